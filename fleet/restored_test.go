// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/faceauth/faceauth/fleet"
	"github.com/faceauth/faceauth/fleet/ledger"
)

var _ fleet.Restorer = (*conn)(nil)

// boundTo is the context key for the channel that is closed when a connection is lost.
type boundTo struct{}

// Bind implements fleet.Restorer.
func (c *conn) Bind(ctx context.Context) (context.Context, context.CancelFunc, error) {
	cut, away := c.lost()
	if away {
		return nil, nil, errFault
	}
	ctx, cancel := context.WithCancel(context.WithValue(ctx, boundTo{}, cut))
	return ctx, cancel, nil
}

// isCut reports whether the connection that a context is bound to is lost.
func isCut(ctx context.Context) bool {
	cut, bound := ctx.Value(boundTo{}).(<-chan struct{})
	if !bound {
		return false
	}
	select {
	case <-cut:
		return true
	default:
		return false
	}
}

// Restored implements fleet.Restorer.
func (c *conn) Restored(context.Context) ([]byte, error) {
	if _, away := c.lost(); away {
		return nil, errFault
	}
	c.memLog.mu.Lock()
	defer c.memLog.mu.Unlock()
	return c.restored, nil
}

// Rejoin implements fleet.Restorer: this log admits every device.
func (c *conn) Rejoin(context.Context, [][]byte) error {
	if _, away := c.lost(); away || c.fault(6) {
		return errFault
	}
	return nil
}

// backup is a copy of a log.
type backup struct {
	all               []logEntry
	seq, snap, epoch  uint64
	snapshot, descr   []byte
	trimmed, adminsay uint64
}

func (a *admin) backup(epoch uint64) backup {
	l := a.log
	l.mu.Lock()
	defer l.mu.Unlock()
	return backup{slices.Clone(l.all), l.seq, l.snapSeq, epoch, l.snapshot, l.restored, l.trimmed, a.n}
}

// putBack puts the log back to a backup, without the administrator's notice, while nobody is connected.
func (a *admin) putBack(b backup) {
	l := a.log
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all, l.seq, l.snapSeq, l.snapshot, l.trimmed, l.restored = slices.Clone(
		b.all), b.seq, b.snap, b.snapshot, b.trimmed, b.descr
	l.served++
	a.n = b.adminsay
}

// restore declares that the log continues as a new one.
func (a *admin) restore(b backup, epoch uint64) {
	a.t.Helper()
	r := ledger.Restoration{Epoch: epoch, Before: b.epoch, At: b.seq}
	e := ledger.Entry{N: r.Counter(), Kind: ledger.Restored, Time: time.Now()}
	e.Put(r)
	if err := e.Sign(a.fleet, a.key); err != nil {
		a.t.Fatal(err)
	}
	a.n = e.N
	a.log.mu.Lock()
	a.log.restored = e.Encode()
	a.log.mu.Unlock()
	a.log.add("-", e.Encode())
}

// Devices refuse a log that was put back until the admin key has signed a notice of it. They keep everything they knew.
func TestRewoundWithoutAWord(t *testing.T) {
	log := newMemLog()
	a := newAdmin(t, log)
	one, two := a.join(everybody).run(), a.join(everybody).run()
	must[ledger.ID](t)(one.d.Enroll("alice", space, faceAt(1, 2)))
	allInStep(t, log, one, two)
	b := a.backup(0)
	alice := must[ledger.ID](t)(two.d.Enroll("bob", space, faceAt(3, 4)))
	allInStep(t, log, one, two)
	for _, n := range []*node{one, two} {
		n.conn.part(true)
	}
	a.putBack(b)
	for _, n := range []*node{one, two} {
		n.conn.part(false)
		until(t, "the log is refused",
			func() bool { return strings.Contains(n.d.State().Trouble, fleet.ErrRewound.Error()) })
	}
	must[ledger.Ref](t)(one.d.Label(alice, space, faceAt(5, 6)))
	if log.last() != b.seq {
		t.Errorf("the log was given something")
	}
	// A notice signed with another key does not count either.
	stranger := newAdmin(t, log)
	stranger.restore(b, 7)
	log.mu.Lock()
	log.all, log.seq = log.all[:len(log.all)-1], log.seq-1
	log.mu.Unlock()
	until(t, "the word is refused", func() bool {
		return strings.Contains(two.d.State().Trouble, "checking the signature that the server shows")
	})
	if one.names() != "alice 1-0, bob 2-0" || two.names() != "alice 1-0, bob 1-0" {
		t.Errorf("they know %q and %q", one.names(), two.names())
	}
	a.restore(b, 8)
	allInStep(t, log, one, two)
	if one.names() != "alice 1-0, bob 2-0" || two.names() != one.names() {
		t.Errorf("they know %q and %q", one.names(), two.names())
	}
	one.close() // an even older state, although the administrator has declared one restoration right
	two.conn.part(true)
	a.putBack(b)
	two.conn.part(false)
	until(t, "the log is refused again", func() bool { return strings.Contains(two.d.State().Trouble, "log 8") })
}

// A backup is put back a second time while a device is giving back the entries that the log had lost. No other device
// has them.
func TestRestoredAgainMeanwhile(t *testing.T) {
	log := newMemLog()
	a := newAdmin(t, log)
	author, one := a.join(everybody).run(), a.join(everybody).run()
	allInStep(t, log, author, one)
	b := a.backup(0)
	alice := must[ledger.ID](t)(author.d.Enroll("alice", space, faceAt(1, 2)))
	for i := range 4 {
		must[ledger.Ref](t)(author.d.Label(alice, space, faceAt(float32(i), 7)))
	}
	allInStep(t, log, author, one)
	all := one.names()
	author.close()
	one.conn.part(true)
	a.putBack(b)
	a.restore(b, 10)
	b = a.backup(10)
	log.mu.Lock()
	log.full = b.seq + 3
	log.mu.Unlock()
	one.conn.part(false)
	until(t, "a part is given back and seen", func() bool { return one.d.State().Seq == b.seq+3 })
	one.conn.part(true)
	log.mu.Lock()
	log.full = 0
	log.mu.Unlock()
	a.putBack(b)
	a.restore(b, 20)
	one.conn.part(false)
	allInStep(t, log, one)
	if one.names() != all {
		t.Errorf("it knows %q, and knew %q", one.names(), all)
	}
}

// More people than one device may forget a day were forgotten on two days that the log has lost. They stay forgotten.
func TestRestoredForgettings(t *testing.T) {
	log := newMemLog()
	a := newAdmin(t, log)
	one, two := a.join(everybody).run(), a.join(everybody).run()
	var all []ledger.ID
	for i := range ledger.DailyForgets + 2 {
		all = append(all, must[ledger.ID](t)(one.d.Enroll(fmt.Sprint("person ", i), space, faceAt(float32(i), 1))))
	}
	allInStep(t, log, one, two)
	b := a.backup(0)
	for _, id := range all[:ledger.DailyForgets] {
		must[ledger.Ref](t)(one.d.Forget(id))
	}
	allInStep(t, log, one, two)
	a.say(ledger.Allow, ledger.Allowance{})
	allInStep(t, log, one, two)
	must[ledger.Ref](t)(one.d.Forget(all[ledger.DailyForgets]))
	allInStep(t, log, one, two)
	for _, n := range []*node{one, two} {
		n.conn.part(true)
	}
	a.putBack(b)
	a.restore(b, 3)
	for _, n := range []*node{one, two} {
		n.conn.part(false)
	}
	allInStep(t, log, one, two)
	for _, n := range []*node{one, two} {
		if left := n.d.People(); len(left) != 1 || left[0].ID != all[ledger.DailyForgets+1] {
			t.Errorf("%d people are left", len(left))
		}
	}
}

// Backups are put back at random moments, twice. Some devices have read more of the log than others, some are killed,
// and some come back after others have continued. All devices reach one state, which holds every accepted change.
func TestRestoredAtRandom(t *testing.T) {
	seeds := 12
	if testing.Short() {
		seeds = 3
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { testRestored(t, uint64(seed)) })
	}
}

func testRestored(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 5))
	log := newMemLog()
	a := newAdmin(t, log)
	s := fast
	s.SnapshotEvery = 25
	var nodes []*node
	for range 4 {
		n := a.join(everybody)
		n.d.Crash()
		n.open(s)
		nodes = append(nodes, n.run())
	}
	bad := a.join(everybody).run()
	must[ledger.ID](t)(bad.d.Enroll("bad", space, faceAt(9, 9)))
	allInStep(t, log, append(nodes, bad)...)
	want := make(map[ledger.ID]map[ledger.FaceID]bool)
	forgotten := make(map[ledger.ID]bool)
	var ids []ledger.ID
	next := float32(0)
	fold := func(err error) bool {
		if err != nil && !errors.Is(err, fleet.ErrUnknown) && !errors.Is(err, ledger.ErrForgotten) {
			t.Fatal(err)
		}
		return err == nil
	}
	act := func(times int) {
		for range times {
			n := nodes[rng.IntN(len(nodes))]
			next++
			switch k := rng.IntN(14); {
			case k < 3 || len(ids) == 0:
				id := must[ledger.ID](t)(n.d.Enroll(fmt.Sprint("p", next), space, faceAt(next, 0)))
				want[id] = map[ledger.FaceID]bool{ledger.NewFaceID(space, []float32{next, 0}): true}
				ids = append(ids, id)
			case k < 8:
				id := ids[rng.IntN(len(ids))]
				if _, err := n.d.Label(id, space, faceAt(next, 1)); fold(err) {
					want[id][ledger.NewFaceID(space, []float32{next, 1})] = true
				}
			case k < 10:
				id := ids[rng.IntN(len(ids))]
				i := slices.IndexFunc(n.d.People(),
					func(p ledger.Person) bool { return p.ID == id && len(p.Faces) > 1 })
				if i >= 0 {
					f := n.d.People()[i].Faces[0].ID
					if _, err := n.d.Retract(id, f); fold(err) {
						delete(want[id], f)
					}
				}
			case k == 10 && rng.IntN(2) == 0:
				id := ids[rng.IntN(len(ids))]
				if _, err := n.d.Forget(id); fold(err) {
					forgotten[id] = true
				}
			case k == 11:
				n.conn.part(rng.IntN(2) == 0)
			case k == 12:
				n.halt()
				n.d.Crash()
				n.open(s)
				n.run()
			case k == 13:
				n.close()
				n.open(s)
				n.run()
			}
			time.Sleep(time.Duration(rng.IntN(3)) * time.Millisecond)
		}
	}
	act(30)
	epoch := uint64(0)
	for round := range 2 {
		b := a.backup(epoch)
		log.mu.Lock()
		log.faults = rand.New(rand.NewPCG(seed, uint64(round)))
		log.mu.Unlock()
		act(40)
		if round == 0 {
			a.say(ledger.Revoke, ledger.Revocation{Device: bad.d.ID()})
			for _, n := range nodes { // one of the devices notices it
				n.conn.part(false)
			}
			until(t, "somebody knows of the revocation", func() bool {
				m, _, _ := nodes[rng.IntN(len(nodes))].d.Member(bad.d.ID())
				return m.Revoked
			})
			bad.conn.part(true)
		}
		act(20)
		for _, n := range nodes {
			n.conn.part(true)
		}
		a.putBack(b)
		epoch = 10 * uint64(round+1)
		a.restore(b, epoch)
		for _, i := range rng.Perm(len(nodes)) {
			if rng.IntN(4) > 0 {
				nodes[i].conn.part(false)
			}
			act(rng.IntN(10))
		}
	}
	log.calm()
	for _, n := range append(nodes, bad) {
		n.conn.part(false)
	}
	t.Cleanup(func() {
		for i, n := range append(nodes, bad) {
			if t.Failed() {
				t.Logf("device %d, of a log with %d entries: %+v", i, log.last(), n.d.State())
				t.Log(n.d.Stuck())
			}
		}
	})
	allInStep(t, log, append(nodes, bad)...)
	maps.DeleteFunc(want, func(id ledger.ID, _ map[ledger.FaceID]bool) bool { return forgotten[id] })
	for i, n := range append(nodes, bad) {
		_, hash := n.d.Hash()
		if _, first := nodes[0].d.Hash(); hash != first {
			t.Errorf("device %d has come to another state", i)
		}
		if m, known, _ := n.d.Member(bad.d.ID()); !known || !m.Revoked {
			t.Errorf("device %d takes the revoked one for a member", i)
		}
		if n == bad {
			continue
		}
		if n.d.ContentHash() != nodes[0].d.ContentHash() {
			t.Errorf("device %d knows something else", i)
		}
		for _, p := range n.d.People() {
			if forgotten[p.ID] {
				t.Errorf("device %d knows somebody who was forgotten", i)
			}
			have := make(map[ledger.FaceID]bool)
			for _, f := range p.Faces {
				have[f.ID] = true
			}
			if p.Shown != "bad" && !maps.Equal(have, want[p.ID]) {
				t.Errorf("device %d has %d faces of %s, and %d are to be there", i, len(have), p.Shown, len(want[p.ID]))
			}
		}
		if n := len(n.d.People()); n != len(want)+1 {
			t.Errorf("device %d knows %d people, and %d are to be there", i, n, len(want)+1)
		}
	}
}
