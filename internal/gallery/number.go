// SPDX-License-Identifier: Apache-2.0

package gallery

import "math/rand/v2"

// reserved is how many numbers of a kind a program reserves at once. It can give them while it
// cannot write the database.
var reserved = map[string]uint64{"face": 50000, "sighting": 1000, "stranger": 4}

// numbers are numbers of a kind that the database has reserved: the last that was given, the last
// of them, and the last of as many that come after them, or 0.
type numbers struct{ given, last, spare uint64 }

// Reserve has the next transaction reserve numbers of each kind, so that [Rows.Next] needs none
// of its own.
func (r *Rows) Reserve() {
	if r.given == nil {
		r.given = make(map[string]numbers)
	}
	for kind := range reserved {
		if _, there := r.given[kind]; !there {
			r.given[kind] = numbers{}
		}
	}
}

// Next returns a number of a kind, "face", "sighting" or "stranger", that no other thing of this
// kind has or gets, also after a crash. Each transaction reserves more, so that some are left
// while the database cannot be written. When there are none, as within a transaction that needs
// too many, numbers go on from a random one above 2^52.
func (r *Rows) Next(kind string) uint64 {
	g := (*Gallery)(r)
	if g.given == nil {
		g.given = make(map[string]numbers)
	}
	n := g.given[kind].next(kind)
	if n.given == n.last && g.tx == nil { // what a transaction reserves could be taken back
		g.given[kind] = n
		r.Write(false, func(*Tx) error { return nil })
		n = g.given[kind]
	}
	if n.given == n.last {
		n.given = 1<<52 + rand.Uint64N(1<<51)
		n.last = n.given + 1<<51
	}
	n.given++
	g.given[kind] = n
	return n.given
}

// next goes on to the spare numbers, when no others are left.
func (n numbers) next(kind string) numbers {
	if n.given == n.last && n.spare > 0 {
		return numbers{given: n.spare - reserved[kind], last: n.spare}
	}
	return n
}

// reserve reserves spare numbers of the kinds that have none. They count when the transaction is
// committed.
func (t *Tx) reserve() map[string]numbers {
	got := make(map[string]numbers)
	for kind, n := range t.g.given {
		if n.spare == 0 && n.last <= 1<<52 {
			last, _ := t.Next(kind, int(reserved[kind]))
			n.spare = uint64(last)
			got[kind] = n.next(kind)
		}
	}
	return got
}

// Next reserves n numbers of a kind, and returns the last of them. Nobody else gets them.
func (t *Tx) Next(kind string, n int) (int64, error) {
	return t.Int(
		`insert into number values(?1, ?2) on conflict(kind) do update set last = last + ?2
			returning last`, kind,
		int64(n))
}
