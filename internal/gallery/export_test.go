// SPDX-License-Identifier: Apache-2.0

package gallery

// Reject adds a face that is not the named person's ([online.Learner.Reject]). Number is its
// number, if it has one.
func (g *Gallery) Reject(x []float32, name string, number ...uint64) error {
	return g.Rows().Change(func(t *Tx) error {
		if err := g.Space().Check(x); err != nil {
			return err
		}
		person, err := g.Find(name)
		if err == nil {
			err = t.Label(person, true, [][]float32{x}, number)
		}
		return err
	})
}

// Retract takes back labels by the learner's numbers, with everything that was learned through
// them. Numbers that are not labels are ignored.
func (g *Gallery) Retract(stored ...int64) error {
	return g.Rows().Change(func(t *Tx) error {
		for _, id := range stored {
			if row := g.labels[id]; row != 0 {
				t.Drop(row)
			}
		}
		return t.Follow()
	})
}
