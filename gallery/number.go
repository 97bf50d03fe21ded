// SPDX-License-Identifier: Apache-2.0

package gallery

import "math/rand/v2"

// reserved is how many numbers of a kind a program reserves at once. It can give them while it cannot write the database.
var reserved = map[string]int{"face": 50000, "sighting": 1000, "stranger": 1}

// Next returns a number of a kind, "face", "sighting" or "stranger", that no other thing of this kind has or gets, also
// after a crash. If the database cannot be written to reserve more, numbers go on from a random one above 2^52.
func (g *Gallery) Next(kind string) uint64 {
	if g.given == nil {
		g.given = make(map[string]numbers)
	}
	n := g.given[kind]
	if n.given == n.last {
		n.given = 1<<52 + rand.Uint64N(1<<51)
		n.last = n.given + 1<<51
		if g.tx == nil { // what a transaction reserves could be taken back
			var last int64
			err := g.Records(false, func(t *Tx) (err error) {
				last, err = t.Next(kind, reserved[kind])
				return err
			})
			if err == nil {
				n.given, n.last = uint64(last)-uint64(reserved[kind]), uint64(last)
			}
		}
	}
	n.given++
	g.given[kind] = n
	return n.given
}

// Next reserves n numbers of a kind, and returns the last of them. Nobody else gets them.
func (t *Tx) Next(kind string, n int) (int64, error) {
	return t.Int(`insert into number values(?1, ?2) on conflict(kind) do update set last = last + ?2 returning last`, kind,
		int64(n))
}
