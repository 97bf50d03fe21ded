// SPDX-License-Identifier: Apache-2.0

package ledger_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/faceauth/faceauth/fleet/ledger"
	"github.com/nats-io/nkeys"
)

const space = "test"

// author is a device that writes entries.
type author struct {
	t     testing.TB
	fleet string
	key   nkeys.KeyPair
	id    string
	n     uint64
	clock time.Time
	ring  *ledger.Ring
	own   *ledger.Ledger
	store *ledger.Store // its ledger on disk
	path  string
}

// onDisk makes an author keep its entries on disk.
func (a *author) onDisk() {
	a.t.Helper()
	a.path = a.t.TempDir()
	a.open()
}

// open opens the ledger on disk.
func (a *author) open() {
	a.t.Helper()
	s, err := ledger.OpenStore(a.path, a.fleet, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	a.store, a.own = s, s.Ledger
}

// disturb saves the ledger, or closes and opens it as another program would. The ledger must stay the same.
func (a *author) disturb(rng *rand.Rand) {
	a.t.Helper()
	if a.store == nil {
		return
	}
	hash := a.own.Hash()
	if rng.IntN(2) == 0 {
		if err := a.store.Save(); err != nil {
			a.t.Fatal(err)
		}
	}
	if rng.IntN(2) == 0 {
		if err := a.store.Close(); err != nil {
			a.t.Fatal(err)
		}
		a.open()
	}
	if a.own.Hash() != hash || a.store.Damage() != nil {
		a.t.Fatal("the ledger on disk is not what it was: ", a.store.Damage())
	}
}

func newAuthor(t testing.TB, fleet string, key nkeys.KeyPair) *author {
	t.Helper()
	id, err := key.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	l, err := ledger.New(fleet)
	if err != nil {
		t.Fatal(err)
	}
	return &author{t: t, fleet: fleet, key: key, id: id, clock: time.Unix(1e9, 0), ring: ledger.NewRing(), own: l}
}

func newUser(t testing.TB) nkeys.KeyPair {
	t.Helper()
	key, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func newAdmin(t testing.TB) *author {
	t.Helper()
	key, err := nkeys.CreateAccount()
	if err != nil {
		t.Fatal(err)
	}
	fleet, err := key.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	return newAuthor(t, fleet, key)
}

// write returns an encoded entry, sealed with the key of its person if it has to be sealed.
func (a *author) write(e ledger.Entry, content any) []byte {
	a.t.Helper()
	a.n++
	e.Device, e.N, e.Time = a.id, a.n, a.clock
	if e.Kind.Sealed() {
		key, ok := a.own.WriteKey(e.Person, a.ring)
		if !ok {
			key = ledger.NewKey()
			a.ring.Add(e.Person, key)
		}
		e.Seal(a.fleet, key, content)
	} else if content != nil {
		e.Put(content)
	}
	if err := e.Sign(a.fleet, a.key); err != nil {
		a.t.Fatal(err)
	}
	return e.Encode()
}

func (a *author) admit(device string, scope ledger.Scope) []byte {
	return a.write(ledger.Entry{Kind: ledger.Admit}, ledger.Admission{Device: device, Name: "device", Scope: scope})
}

func faces(rng *rand.Rand, n int) ledger.Faces {
	c := ledger.Faces{Space: space}
	for range n {
		// Few values, so that some faces occur twice.
		c.Faces = append(c.Faces, ledger.Face{Vector: []float32{float32(rng.IntN(6)), float32(rng.IntN(3)), 1}})
	}
	return c
}

// world is many devices, a log and the faults between them.
type world struct {
	t           *testing.T
	rng         *rand.Rand
	admin       *author
	devices     []*author
	away        []bool
	outbox      [][][]byte
	everRevoked bool
	log         []logged
	seq         uint64
	keys        map[string]ledger.Key // all keys that were ever made
}

func (w *world) append(data []byte) {
	w.seq += 1 + uint64(w.rng.IntN(3)) // some numbers are skipped
	w.log = append(w.log, logged{w.seq, data})
}

// deliver brings a device up to date, with some entries repeated and out of order.
func (w *world) deliver(d *author, limit int) {
	for _, x := range w.log {
		if x.seq <= d.own.Seq() {
			continue
		}
		if limit--; limit < 0 {
			return
		}
		for range 1 + w.rng.IntN(2) {
			o, err := d.own.Apply(x.seq, x.data)
			if err != nil {
				w.t.Fatal(err)
			}
			for _, id := range o.Forgotten {
				d.ring.Destroy(id)
			}
		}
		if old := w.log[w.rng.IntN(len(w.log))]; old.seq < x.seq {
			if o, err := d.own.Apply(old.seq, old.data); err != nil || !errors.Is(o.Reason, ledger.ErrOld) {
				w.t.Fatalf("an entry that came again: %v, %v", o.Reason, err)
			}
		}
	}
}

// ask makes a device ask another one for all keys that it lacks.
func (w *world) ask(d, other *author) {
	wants := d.own.Wants(d.id, d.ring)
	if len(wants) == 0 {
		return
	}
	q, err := ledger.NewKeyRequest(w.admin.fleet, d.key, wants)
	if err != nil {
		w.t.Fatal(err)
	}
	answer, _, err := other.own.AnswerKeys(q.Bytes(), other.ring, other.key)
	if err != nil {
		return // the other device does not know d yet, or no longer
	}
	if _, err := q.Open(answer, d.ring); err != nil {
		w.t.Fatal(err)
	}
}

// snapshot restores a device from a snapshot of its own or of another device.
func (w *world) snapshot(d, other *author) {
	var b bytes.Buffer
	if err := other.own.Snapshot(&b, other.key); err != nil {
		w.t.Fatal(err)
	}
	if other.own.Seq() < d.own.Seq() {
		return
	}
	var l *ledger.Ledger
	var draft *ledger.Draft
	var err error
	if d.store == nil {
		l, err = ledger.Restore(w.admin.fleet, &b)
	} else if draft, err = d.store.Fetch(&b); err == nil {
		l = draft.Ledger
	}
	if m, _ := other.own.Device(other.id); err != nil && (m.Revoked || m.Name == "") {
		return // refused, as expected
	}
	if err != nil {
		w.t.Fatal(err)
	}
	if l.Hash() != other.own.Hash() || l.Seq() != other.own.Seq() {
		w.t.Fatal("a snapshot is not what it was made of")
	}
	if draft != nil {
		if err := d.store.Adopt(draft); err != nil {
			w.t.Fatal(err)
		}
	}
	d.own = l
	for _, id := range d.ring.People() {
		if l.Forgotten(id) {
			d.ring.Destroy(id)
		}
	}
}

// garbage puts an entry into the log that must not count, or must not count twice.
func (w *world) garbage(stranger *author) {
	if len(w.log) == 0 {
		return
	}
	some := bytes.Clone(w.log[w.rng.IntN(len(w.log))].data)
	switch w.rng.IntN(6) {
	case 0:
		some = some[:w.rng.IntN(len(some))]
	case 1:
		if len(some) > 0 {
			some[w.rng.IntN(len(some))] ^= 1 << w.rng.IntN(8)
		}
	case 2: // an old entry unchanged: a replay
	case 3:
		some = stranger.write(ledger.Entry{Kind: ledger.Name, Person: ledger.NewID()}, ledger.Naming{Name: "mallory"})
	case 4: // a future version, by a stranger or a member
		by := append([]*author{stranger}, w.devices...)[w.rng.IntN(len(w.devices)+1)]
		e := ledger.Entry{Version: 99, N: 1, Kind: ledger.Name, Time: w.admin.clock}
		if err := e.Sign(w.admin.fleet, by.key); err != nil {
			w.t.Fatal(err)
		}
		some = e.Encode()
	case 5:
		some = []byte("garbage")
	}
	w.append(some)
}

func keyOf(t *testing.T, data []byte) ledger.KeyID {
	t.Helper()
	e, err := ledger.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	return e.Key
}

// op makes a device write a random entry.
func (w *world) op(i int) {
	d := w.devices[i]
	pending := w.outbox[i]
	view := d.own.With(pending...)
	people := view.People(d.ring)
	rng := w.rng
	say := func(e ledger.Entry, content any) {
		base := d.own
		d.own = view // the keys of its own entries
		data := d.write(e, content)
		d.own = base
		w.outbox[i] = append(w.outbox[i], data)
		if k, ok := d.ring.Key(e.Person, keyOf(w.t, data)); ok {
			w.keys[fmt.Sprint(e.Person, keyOf(w.t, data))] = k
		}
	}
	if len(people) == 0 || rng.IntN(8) == 0 {
		id := ledger.NewID()
		say(ledger.Entry{Kind: ledger.Name, Person: id},
			ledger.Naming{Name: []string{"alice", "bob", "alice (2)"}[rng.IntN(3)]})
		view = d.own.With(w.outbox[i]...)
		say(ledger.Entry{Kind: ledger.Label, Person: id}, faces(rng, 1+rng.IntN(3)))
		return
	}
	p := people[rng.IntN(len(people))]
	id := p.IDs[rng.IntN(len(p.IDs))]
	switch rng.IntN(12) {
	case 0, 1, 2:
		say(ledger.Entry{Kind: ledger.Label, Person: id}, faces(rng, 1+rng.IntN(2)))
	case 3:
		say(ledger.Entry{Kind: ledger.Name, Person: id}, ledger.Naming{Name: fmt.Sprint("name", rng.IntN(4))})
	case 4:
		say(ledger.Entry{Kind: ledger.Deny, Person: id}, faces(rng, 1))
	case 5:
		if len(p.Faces) > 0 {
			say(ledger.Entry{Kind: ledger.Retract, Person: id},
				ledger.Refs{Faces: []ledger.FaceID{p.Faces[rng.IntN(len(p.Faces))].ID}})
		}
	case 6:
		say(ledger.Entry{Kind: ledger.Confirm, Person: id}, faces(rng, 1))
	case 7:
		c := ledger.Lesson{
			Space:     space,
			Centroids: []ledger.Centroid{{Vector: []float32{rng.Float32()}, Multiplicity: 3, Radius: .1}},
		}
		for range rng.IntN(3) {
			c.Through = append(c.Through, d.own.Source(w.devices[rng.IntN(len(w.devices))].id))
		}
		slices.Sort(c.Through)
		c.Through = slices.Compact(c.Through)
		say(ledger.Entry{Kind: ledger.Lessons, Person: id, Part: uint64(rng.IntN(2))}, c)
	case 8:
		if other := people[rng.IntN(len(people))]; other.ID != id {
			say(ledger.Entry{Kind: ledger.Merge, Person: id, Other: other.ID}, nil)
		}
	case 9:
		if len(w.log) > 0 {
			e, err := ledger.Parse(w.log[rng.IntN(len(w.log))].data)
			if err == nil && !e.Person.IsZero() && (e.Kind.Sealed() || e.Kind == ledger.Merge) {
				say(ledger.Entry{Kind: ledger.Undo, Person: e.Person}, e.Ref())
			}
		}
	case 10:
		if rng.IntN(3) == 0 {
			say(ledger.Entry{Kind: ledger.Forget, Person: p.ID}, ledger.Forgetting{Also: p.IDs[1:]})
			for _, id := range p.IDs {
				d.ring.Destroy(id)
			}
		}
	case 11:
		if rng.IntN(3) == 0 {
			say(ledger.Entry{Kind: ledger.Withdraw},
				ledger.Withdrawal{Device: w.devices[rng.IntN(len(w.devices))].id, Mute: rng.IntN(2) == 0})
		}
	}
}

// All devices reach the same state as the model, in whatever order entries, keys and snapshots reach them.
func TestDevicesAgree(t *testing.T) {
	seeds := 16
	if testing.Short() {
		seeds = 4
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			testAgree(t, uint64(seed))
		})
	}
}

func testAgree(t *testing.T, seed uint64) {
	w := &world{t: t, rng: rand.New(rand.NewPCG(seed, 1)), admin: newAdmin(t), keys: make(map[string]ledger.Key)}
	rng := w.rng
	for range 6 {
		d := newAuthor(t, w.admin.fleet, newUser(t))
		d.clock = d.clock.Add(time.Duration(rng.IntN(48)-24) * time.Hour) // clocks are wrong by up to a day
		if len(w.devices)%2 == 0 {
			d.onDisk()
		}
		w.devices = append(w.devices, d)
		w.append(w.admin.admit(d.id, ledger.Scope{All: true}))
	}
	w.away, w.outbox = make([]bool, len(w.devices)), make([][][]byte, len(w.devices))
	stranger := newAuthor(t, w.admin.fleet, newUser(t))
	var limited []ledger.ID
	for step := range 500 {
		i := rng.IntN(len(w.devices))
		d := w.devices[i]
		switch k := rng.IntN(20); {
		case k < 8:
			w.op(i)
		case k < 12 && !w.away[i]:
			for _, data := range w.outbox[i] {
				w.append(data)
				if rng.IntN(4) == 0 {
					w.append(data) // its author was not told that it was stored
				}
			}
			w.outbox[i] = nil
		case k < 15 && !w.away[i]:
			w.deliver(d, rng.IntN(30))
		case k == 15:
			w.away[i] = !w.away[i]
		case k == 16:
			w.ask(d, w.devices[rng.IntN(len(w.devices))])
		case k == 17:
			w.garbage(stranger)
		case k == 18:
			w.snapshot(d, w.devices[rng.IntN(len(w.devices))])
		case k == 19 && rng.IntN(2) == 0:
			d.disturb(rng)
		case k == 19 && step > 100 && rng.IntN(4) == 0:
			last := w.devices[len(w.devices)-1]
			switch rng.IntN(3) {
			case 0:
				w.append(w.admin.write(ledger.Entry{Kind: ledger.Revoke}, ledger.Revocation{Device: last.id}))
				w.everRevoked = true
			case 1:
				limited = nil
				for _, p := range d.own.People(d.ring) {
					limited = append(limited, p.ID)
				}
				w.append(w.admin.admit(last.id, ledger.Scope{People: limited[:len(limited)/2]}))
			case 2:
				w.append(w.admin.admit(last.id, ledger.Scope{All: true}))
			}
		}
	}
	for i, d := range w.devices {
		w.deliver(d, 1<<30)
		for _, data := range w.outbox[i] {
			w.append(data)
		}
	}
	for _, d := range w.devices {
		w.deliver(d, 1<<30)
	}
	for range 2 {
		for _, d := range w.devices {
			for _, other := range w.devices {
				w.ask(d, other)
			}
		}
	}
	m := runModel(w.admin.fleet, w.log, func(id ledger.ID, key ledger.KeyID) (ledger.Key, bool) {
		k, ok := w.keys[fmt.Sprint(id, key)]
		return k, ok
	})
	want := lines(m.people())
	first := w.devices[0]
	for i, d := range w.devices {
		if d.own.Hash() != first.own.Hash() {
			t.Errorf("device %d has come to another state", i)
		}
		if a, member := m.admission(d.id); !member || !a.Scope.All {
			for _, p := range d.own.People(d.ring) {
				if m.gone[p.ID] {
					t.Error("somebody who was forgotten is there again")
				}
			}
			continue
		}
		got := d.own.People(d.ring)
		sealed := 0
		for _, p := range got {
			sealed += p.Sealed
		}
		if sealed > 0 {
			if !w.everRevoked { // after a revocation, a forgetting that destroyed a key may not count
				t.Errorf("device %d misses keys of %d entries", i, sealed)
			}
			continue
		}
		if d.own.ContentHash(d.ring) != first.own.ContentHash(first.ring) {
			t.Errorf("device %d has other people than the first one", i)
		}
		if text := lines(describe(got)); text != want {
			t.Errorf("device %d knows\n%s\nand the model\n%s", i, text, want)
		}
	}
	if len(m.all) < 80 {
		t.Errorf("only %d entries counted", len(m.all))
	}
	// A device that joins late finds nothing about forgotten people in the log.
	late := newAuthor(t, w.admin.fleet, newUser(t))
	for _, x := range m.purge(w.log) {
		if _, err := late.own.Apply(x.seq, x.data); err != nil {
			t.Fatal(err)
		}
	}
	if late.own.Hash() != first.own.Hash() {
		t.Error("a device that comes after the forgotten were purged has come to another state")
	}
	for id := range m.gone {
		for i, d := range w.devices {
			if d.own.Known(id) || d.ring.Has(id) {
				t.Errorf("device %d knows somebody who was forgotten, or has the key", i)
			}
		}
	}
}
