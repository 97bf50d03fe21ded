// SPDX-License-Identifier: Apache-2.0

package gallery

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"time"

	"github.com/faceauth/faceauth/internal/store"
	"github.com/faceauth/faceauth/internal/vector"
	"github.com/faceauth/faceauth/online"
	"github.com/fxamacker/cbor/v2"
)

// mostLoose is the number of labelled faces beyond the snapshot. Each takes milliseconds when a gallery is opened.
const mostLoose = 256

func (g *Gallery) state() state {
	l, c, mass := &g.learner, g.learner.Counts(), 0.
	c.Labelled = 0
	for i := range l.Graph().Len() {
		mass += l.Graph().Multiplicity(i)
	}
	return state{l.Space(), l.Settings(), c, l.Time(), mass - float64(l.Graph().Labelled())}
}

// align brings the learner in line with the database, in a transaction.
func (g *Gallery) align() error {
	var generation, beside int64
	err := g.db.Query("select generation, (select value from meta where key = 'rows') from learned",
		func(r store.Row) error {
			generation, beside = r.ColumnInt64(0), r.ColumnInt64(1)
			return nil
		})
	if err != nil {
		return err
	}
	if generation != g.saved.generation {
		return g.again()
	}
	err = g.follow(beside != g.beside)
	g.beside = beside
	if err != nil {
		g.saved.generation = -1 // it may have followed half way: the next call reads everything
	}
	return err
}

// again reads what another program has saved, and learns the unsaved faces of g again on top of it.
func (g *Gallery) again() error {
	settings, space := g.learner.Settings(), g.Space()
	if err := g.load(); err != nil {
		return err
	}
	if err := g.takes(space); err != nil {
		return err
	}
	if err := g.learner.Configure(settings); err != nil {
		return err
	}
	unsaved := g.unsaved
	g.unsaved = nil
	return g.learner.LearnAgain(unsaved)
}

// load reads the database into g. On error g is unchanged.
func (g *Gallery) load() (err error) {
	before := *g
	defer func() {
		if err != nil {
			*g = before
		}
	}()
	var snapshot []byte
	var labels map[int64]int64
	g.saved, g.labels = saved{}, make(map[int64]int64)
	err = g.db.Query(`select generation, (select value from meta where key = 'rows'), faces, snapshot from learned`,
		func(r store.Row) error {
			g.saved.generation, g.beside, snapshot = r.ColumnInt64(0), r.ColumnInt64(1), slices.Clone(r.ColumnRawBlob(3))
			return cbor.Unmarshal(r.ColumnRawBlob(2), &labels)
		})
	if err == nil && g.saved.generation == 0 {
		err = fmt.Errorf("%w: nothing was written into it yet", fs.ErrNotExist)
	}
	if err != nil {
		return err
	}
	maps.Copy(g.labels, labels)
	vectors := make(map[int64][]float32) // by row
	err = g.db.Query("select id, vector from label union all select id, vector from dropped", func(r store.Row) error {
		vectors[r.ColumnInt64(0)] = vector.Floats(r.ColumnRawBlob(1))
		return nil
	})
	if err != nil {
		return err
	}
	err = g.learner.UnmarshalLearned(snapshot, func(id int64) []float32 { return vectors[g.labels[id]] })
	if err == nil {
		g.saved.state = g.state()
		err = g.follow(true)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return nil
}

// follow brings the learner in line with the labels, whoever has changed them. Unless changed says that there are other
// changes, it looks at new labels only.
func (g *Gallery) follow(changed bool) error {
	last, err := g.Int("select max(id) from label")
	if err != nil || last == g.last && !changed {
		return err
	}
	after := g.last
	if changed {
		after = 0
	}
	var want []int64
	people := make(map[int64]int64) // of these labels
	err = g.db.Query("select id, person from label where id > ? and valid order by id", func(r store.Row) error {
		want = append(want, r.ColumnInt64(0))
		people[r.ColumnInt64(0)] = r.ColumnInt64(1)
		return nil
	}, after)
	if err == nil {
		err = g.readPeople()
	}
	if err != nil {
		return err
	}
	g.turn++
	g.last = last
	there := make(map[int64]bool) // labels that the learner has
	if changed {
		g.retract(people)
		for _, row := range g.labels {
			there[row] = true
		}
	}
	for range 2 { // a rejected face may come before the faces of the person; until then nobody is taken for them
		for _, row := range want {
			if there[row] {
				continue
			}
			there[row], err = g.teach(row)
			if err != nil {
				return fmt.Errorf("label %d: %w", row, err)
			}
		}
	}
	return nil
}

// retract takes all labels back that are not wanted any more: people are those of the wanted ones.
func (g *Gallery) retract(people map[int64]int64) {
	var gone []int64
	for _, label := range g.learner.Labels() {
		if people[g.labels[label.ID]] != label.Person {
			gone = append(gone, label.ID)
		}
	}
	g.learner.Retract(gone...)
	maps.DeleteFunc(g.labels, func(id, _ int64) bool {
		return g.learner.Vector(id) == nil // also faces that went with the last label of a person
	})
}

// teach shows a label to the learner, unless it is a rejected face of somebody whom the learner does not know.
func (g *Gallery) teach(row int64) (taught bool, err error) {
	var person int64
	var x []float32
	show := g.learner.Label
	err = g.db.Query("select person, rejected, vector from label where id = ?", func(r store.Row) error {
		person, x = r.ColumnInt64(0), vector.Floats(r.ColumnRawBlob(2))
		if r.ColumnInt64(1) == 1 {
			show = g.learner.Reject
		}
		return nil
	}, row)
	if err == nil {
		err = show(x, person)
	}
	switch {
	case errors.Is(err, online.ErrUnknown):
		return false, nil
	case err != nil:
		return false, err
	}
	g.labels[g.learner.Newest()] = row
	g.saved.loose++
	return true, nil
}

// readPeople reads the people who have faces. If several have one name, the first keeps it, and the others have their
// number beside it.
func (g *Gallery) readPeople() error {
	var people []Person
	ids, names := make(map[string]int64), make(map[int64]string)
	err := g.db.Query(`select person, name, enrolled, count(*) from label join person on person.id = person
		where not rejected and valid group by person`, func(r store.Row) error {
		p := Person{ID: r.ColumnInt64(0), Name: r.ColumnText(1), Enrolled: time.Unix(r.ColumnInt64(2), 0).UTC(),
			Faces: int(r.ColumnInt64(3))}
		for ids[p.Name] != 0 {
			p.Name = fmt.Sprintf("%s (%d)", p.Name, p.ID)
		}
		ids[p.Name], names[p.ID] = p.ID, p.Name
		people = append(people, p)
		return nil
	})
	if err == nil {
		g.people, g.numbers, g.names = people, ids, names
	}
	return err
}

// save writes what was learned, if it has changed or if too many labels are beyond it.
func (t *Tx) save() error {
	g, next := t.g, t.g.saved
	dropped, err := t.Int("select count(*) from dropped")
	if err != nil {
		return err
	}
	t.gone = t.gone || dropped > 0
	next.state = g.state()
	if !t.anew && !t.gone && next.state == g.saved.state && next.generation > 0 && next.loose <= mostLoose {
		return nil
	}
	labels, err := cbor.Marshal(g.labels)
	if err != nil {
		return err
	}
	snapshot, err := g.learner.MarshalLearned()
	if err != nil {
		return err
	}
	next.generation, next.loose = next.generation+1, 0
	g.saved = next // after a failure they are read again
	t.Exec("delete from dropped")
	return t.Exec("insert or replace into learned values(1, ?, ?, ?)", next.generation, labels, snapshot)
}
