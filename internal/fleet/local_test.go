// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bytes"
	cryptorand "crypto/rand"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/fleet/protocol"
	"github.com/faceauth/faceauth/internal/vector"
	"github.com/nats-io/nkeys"
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
		if !bytes.Equal(protocol.Encode(a), protocol.Encode(b)) {
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
	opens := func(what string, k Keys, place string, sealed []byte, want bool) {
		text := ""
		if is := k.open(place, sealed, &text); is != want || (text == "alice") != want {
			t.Errorf("%s: %v %q", what, is, text)
		}
	}
	opens("its key", k, "here", sealed, true)
	opens("an old key", old, "here", sealed, false)
	opens("another place", k, "there", sealed, false)
	for i := range sealed {
		bad := bytes.Clone(sealed)
		bad[i] ^= 1 << (i % 8)
		opens(fmt.Sprint("byte ", i), k, "here", bad, false)
		opens(fmt.Sprint("up to byte ", i), k, "here", sealed[:i], false)
	}
}

// shelf is the server's part in memory: a value for each person.
type shelf map[ID]kept

// sync lets homes be in step one after the other: each takes what it lacks, and gives what the
// shelf lacks.
func (s shelf) sync(all ...*device) {
	for _, h := range all {
		d := h.local()
		var notes []note
		for _, id := range slices.SortedFunc(maps.Keys(s), ID.compare) {
			notes = append(notes, note{name: id.String(), write: s[id].write})
		}
		var got []kept
		for _, n := range fixture.Must(d.lacking(notes))(h.w.t) {
			id, _ := parseID(n.name)
			k := s[id]
			k.rec = Record{}
			try(h.w.t, protocol.Decode(protocol.Encode(s[id].rec), &k.rec))
			got = append(got, k)
		}
		try(h.w.t, errors.Join(d.take(got), d.look()))
		puts := fixture.Must(d.some(unsent))(h.w.t)
		for _, p := range puts {
			p.write, p.rev = cryptorand.Text(), p.rev+1
			s[p.id] = p.kept
		}
		try(h.w.t, errors.Join(d.written(puts), d.rows.Close()))
	}
}

// Devices merge people in different ways, and a face of one of them is taken back: it is nowhere
// afterwards. Random worlds found both cases, which depend on the order of the people's numbers.
func TestPlainTakenBackOfMerged(t *testing.T) {
	for seed := range uint64(4) {
		w := newPeople(t, seed)
		s := make(shelf)
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
		try(t, errors.Join(d.take([]kept{s[u]}), d.rows.Close()))
		c.merge("t", "u")
		s.sync(c, a, b, c)
		w.check(a, b, c)
	}
}

// The ring of members is taken only as an administrator has sealed it: a member knows its key, and
// can make another one.
func TestRing(t *testing.T) {
	of := func(name string) Membership {
		m := Membership{Invitation: protocol.Invitation{Name: name,
			Seed: protocol.NewSeed(nkeys.CreateUser)}, Box: protocol.NewSeed(nkeys.CreateCurveKeys)}
		return m
	}
	a, b := of("a"), of("b")
	a.Ring.Keys = Keys{}
	a.Ring.Keys.add()
	a.Ring.replace()
	b.Ring = a.Ring.of(false)
	r := fixture.Must(a.renewal(map[string]introduction{
		protocol.Public(a.Seed): a.introduction(), protocol.Public(b.Seed): b.introduction()}))(t)
	takes := func(m Membership, want bool) {
		t.Helper()
		in, ok := r.ring(&m)
		if ok != want || ok && (in.Keys.now() != 1 || in.AdminBox != "") {
			t.Errorf("%s: %t", m.Name, ok)
		}
	}
	takes(b, true)
	takes(of("c"), false)
	box := fixture.Must(nkeys.FromCurveSeed([]byte(b.Box)))(t)
	tag := hash([]byte(protocol.Public(b.Seed)), tagSize)
	for entry := range slices.Chunk(r.For, entrySize) {
		sealed, mine := bytes.CutPrefix(entry, tag)
		if mine {
			opens := fixture.Must(box.Open(sealed, b.Ring.Admin))(t)
			r.Rings[0] = Keys{1: opens[:32]}.seal(keysName, b.Ring)
		}
	}
	takes(b, false)
}
