// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/faceauth/faceauth/internal/vector"
)

// randomRecord is a record of few faces and clocks, so that records contradict each other.
func randomRecord(r *rand.Rand) Record {
	rec := Record{Name: fmt.Sprint("n", r.IntN(3)), Named: r.Uint64N(4), Enrolled: r.Int64N(3),
		Faces: make(map[faceKey]Face), Forgotten: r.IntN(8) == 0}
	if r.IntN(6) == 0 {
		rec.Into[0] = byte(1 + r.IntN(3))
	}
	for i := range 5 {
		if r.IntN(2) == 0 {
			f := Face{Clock: r.Uint64N(4), Gone: r.IntN(2) == 0}
			if !f.Gone {
				f.Not, f.Space, f.Vector = i == 0, "room", []byte{byte(i)}
			}
			rec.Faces[faceKey(fmt.Sprint(i))] = f
		}
	}
	return rec
}

// The join of records is commutative, associative and idempotent; its clock never falls.
func TestJoin(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 45))
	same := func(law string, a, b Record) {
		t.Helper()
		if !bytes.Equal(encode(a), encode(b)) {
			t.Fatalf("%s:\n%+v\n%+v", law, a, b)
		}
	}
	for range 20000 {
		a, b, c := randomRecord(r), randomRecord(r), randomRecord(r)
		same("commutative", join(a, b), join(b, a))
		same("associative", join(join(a, b), c), join(a, join(b, c)))
		same("idempotent", join(join(a, b), b), join(a, b))
		if j := join(a, b); !j.ended() && j.clock() < max(a.clock(), b.clock()) {
			t.Fatalf("a clock falls: %+v %+v", a, b)
		}
	}
}

// A sealed value opens with its key and at its place only, and no bytes make it panic.
func TestSeal(t *testing.T) {
	old, k := Keys{}, Keys{}
	old.add()
	maps.Copy(k, old)
	k.add()
	sealed := k.seal("here", "alice")
	opens := func(what string, k Keys, place string, sealed []byte, want error) {
		text := ""
		if err := k.open(place, sealed, &text); err != want || (text == "alice") != (err == nil) {
			t.Errorf("%s: %v %q", what, err, text)
		}
	}
	opens("its key", k, "here", sealed, nil)
	opens("an old key", old, "here", sealed, errSealed)
	opens("another place", k, "there", sealed, errSealed)
	for i := range sealed {
		bad := bytes.Clone(sealed)
		bad[i] ^= 1 << (i % 8)
		opens(fmt.Sprint("byte ", i), k, "here", bad, errSealed)
		opens(fmt.Sprint("up to byte ", i), k, "here", sealed[:i], errSealed)
	}
}

// shelf is the server's part in memory: a value for each person, written over what was read.
type shelf struct {
	values map[ID]kept
	rev    uint64
}

func (s *shelf) put(r kept, over uint64) bool {
	if s.values[r.id].rev != over {
		return false
	}
	s.rev++
	r.rev = s.rev
	s.values[r.id] = r
	return true
}

// sync is a session without a network: list, fetch and join, give. Partly ends it anywhere.
func (h *home) sync(s *shelf, listed *bool, partly bool) {
	d := h.local()
	defer d.rows.Close()
	stop := func() bool { return partly && h.w.r.IntN(4) == 0 }
	lost := make(map[ID]bool) // who was second joins and tries again
	for range 10 {
		var all []kept
		there := make(map[ID]bool)
		ids := slices.SortedFunc(maps.Keys(s.values), ID.compare)
		h.w.r.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
		for _, id := range ids {
			v := s.values[id]
			there[id] = true
			lacks, err := d.lacks(id, v.write)
			try(h.w.t, err)
			if lacks || lost[id] {
				var rec Record
				try(h.w.t, decoding.Unmarshal(encode(v.rec), &rec))
				v.rec = rec
				all = append(all, v)
			}
		}
		for len(all) > 0 { // in pieces, as they come
			n := min(len(all), 1+h.w.r.IntN(3))
			try(h.w.t, d.take(all[:n]))
			if all = all[n:]; stop() {
				return
			}
		}
		if !*listed {
			try(h.w.t, d.missing(there))
			*listed = true
		}
		try(h.w.t, d.look())
		puts, err := d.unsent()
		try(h.w.t, err)
		if len(puts) == 0 {
			return
		}
		var won []*state
		for _, p := range puts {
			p.write = fmt.Sprint(h.name, s.rev)
			if s.put(kept{id: p.id, rec: p.rec, write: p.write}, p.rev) {
				p.rev = s.rev
				won = append(won, p)
			}
			lost[p.id] = len(won) == 0 || won[len(won)-1] != p
			if stop() {
				return // without the acknowledgement
			}
		}
		try(h.w.t, d.written(won))
	}
	if !partly {
		h.w.fail("%s is not in step after ten rounds", h.name)
	}
}

// sync lets homes be in step one after the other.
func (s *shelf) sync(all ...*home) {
	listed := true
	for _, h := range all {
		h.sync(s, &listed, false)
	}
}

// TestRandomRecords runs random worlds of three galleries and a shelf in one process: what users say
// beside each other and while they are away, ends between any two steps, and old copies put back.
func TestRandomRecords(t *testing.T) {
	few := 40
	if testing.Short() {
		few = 8
	}
	worlds(t, few, func(t *testing.T, seed uint64) {
		w := newPeople(t, seed)
		s := &shelf{values: make(map[ID]kept)}
		var old []map[ID]kept
		homes := []*home{w.home("a"), w.home("b"), w.home("c")}
		listed := make([]bool, len(homes))
		for range *steps {
			i := w.r.IntN(len(homes))
			h := homes[i]
			switch k := w.r.IntN(20); {
			case k < 11:
				h.edit()
			case k < 17:
				h.sync(s, &listed[i], w.r.IntN(3) == 0)
			case k == 17 && seed%2 == 0:
				old = append(old, maps.Clone(s.values))
			case k == 18 && len(old) > 0:
				w.say("server is-put-back")
				clear(listed)
				s.values = maps.Clone(old[w.r.IntN(len(old))])
				for _, id := range slices.SortedFunc(maps.Keys(s.values), ID.compare) {
					v := s.values[id] // a new stream has other numbers
					s.rev++
					v.rev = s.rev
					s.values[id] = v
				}
			case k == 17:
				h.sync(s, &listed[i], false) // what it says later is with the others first
				h.keep()
			case k == 18 && len(h.copies) > 0:
				h.sync(s, &listed[i], false)
				h.putBack()
				listed[i] = false
			}
		}
		for range 3 {
			for i, h := range homes {
				h.sync(s, &listed[i], false)
			}
		}
		w.check(homes)
	})
}

// Devices merge people in different ways, and a face of one of them is taken back: it is nowhere
// afterwards. Random worlds found both cases, which depend on the order of the people's numbers.
func TestTakenBackOfMerged(t *testing.T) {
	for seed := range uint64(4) {
		w := newPeople(t, seed)
		s := &shelf{values: make(map[ID]kept)}
		a, b, c := w.home("a"), w.home("b"), w.home("c")
		faces := make(map[string][][]float32)
		var all [][]float32
		for range 6 {
			all = append(all, w.vector())
		}
		slices.SortFunc(all, func(x, y []float32) int {
			return idOf(room.ID, vector.Bytes(x), 0).compare(idOf(room.ID, vector.Bytes(y), 0))
		})
		for i, name := range []string{"r", "s", "u", "q", "p", "t"} {
			faces[name] = w.said(&group{}, all[i], w.near(all[i]))
			a.enrol(name, faces[name]...)
		}
		s.sync(a, b, c)
		a.merge("p", "q") // and into r; at b into s
		s.sync(a)
		a.merge("q", "r")
		s.sync(a)
		b.merge("p", "s")
		b.remove(faces["p"][0])
		a.merge("t", "u")
		s.sync(b, a)
		b.remove(faces["t"][1])
		b.remove(faces["u"][1])
		s.sync(b)
		d := c.local() // it has the record that stays, and not yet the end of the merged one
		u := idOf(room.ID, vector.Bytes(faces["u"][0]), 0)
		try(t, errors.Join(d.take([]kept{s.values[u]}), d.rows.Close()))
		c.merge("t", "u")
		s.sync(c, a, b, c)
		w.check([]*home{a, b, c})
	}
}

// Of somebody whom no program that shares people has seen, the fleet learns nothing; if they were found
// to be another person meanwhile, that one has their faces.
func TestNeverSeen(t *testing.T) {
	w := newPeople(t, 3)
	s := &shelf{values: make(map[ID]kept)}
	a, b := w.home("a"), w.home("b")
	for _, name := range []string{"alice", "mallory", "ann"} {
		a.enrol(name, w.said(&group{}, w.vector())...)
		if name == "alice" {
			s.sync(a)
		}
	}
	a.forget("mallory")
	a.merge("ann", "alice")
	s.sync(a, b)
	w.check([]*home{a, b})
	if text, where := b.content(); len(s.values) != 1 || len(where) != 2 {
		t.Errorf("%d values; %s", len(s.values), text)
	}
}
