// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/faceauth/faceauth/fleet"
	"github.com/faceauth/faceauth/fleet/ledger"
	"github.com/nats-io/nkeys"
)

const space = "test"

// admin is the admin key of a fleet.
type admin struct {
	t     testing.TB
	key   nkeys.KeyPair
	fleet string
	n     uint64
	log   *memLog
}

func newAdmin(t testing.TB, log *memLog) *admin {
	t.Helper()
	key, err := nkeys.CreateAccount()
	if err != nil {
		t.Fatal(err)
	}
	id, err := key.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	return &admin{t: t, key: key, fleet: id, log: log}
}

func (a *admin) say(kind ledger.Kind, content any) {
	a.t.Helper()
	a.n++
	e := ledger.Entry{N: a.n, Kind: kind, Time: time.Now()}
	e.Put(content)
	if err := e.Sign(a.fleet, a.key); err != nil {
		a.t.Fatal(err)
	}
	a.log.add("-", e.Encode())
}

func (a *admin) admit(device string, scope ledger.Scope) {
	a.t.Helper()
	a.say(ledger.Admit, ledger.Admission{Device: device, Name: "device", Scope: scope})
}

var everybody = ledger.Scope{All: true}

// node is a running device.
type node struct {
	t      testing.TB
	folder string
	d      *fleet.Device
	conn   *conn
	stop   context.CancelFunc
	done   chan error
}

var fast = fleet.Settings{Retry: 2 * time.Millisecond, Look: 20 * time.Millisecond, Patience: 5 * time.Second}

// join makes a device that is a member, and does not start it.
func (a *admin) join(scope ledger.Scope) *node {
	a.t.Helper()
	n := &node{t: a.t, folder: a.t.TempDir(), conn: a.log.conn()}
	if err := fleet.Join(n.folder, a.fleet); err != nil {
		a.t.Fatal(err)
	}
	n.open(fast)
	a.admit(n.d.ID(), scope)
	return n
}

func (n *node) open(s fleet.Settings) {
	n.t.Helper()
	d, err := fleet.Open(n.folder, s)
	if err != nil {
		n.t.Fatal(err)
	}
	n.d = d
}

func (n *node) run() *node {
	ctx, stop := context.WithCancel(context.Background())
	n.stop, n.done = stop, make(chan error, 1)
	d := n.d
	go func() { n.done <- d.Run(ctx, n.conn) }()
	n.t.Cleanup(n.halt)
	return n
}

// halt stops a device.
func (n *node) halt() {
	if n.stop != nil {
		n.stop()
		<-n.done
		n.stop = nil
	}
}

func (n *node) close() {
	n.t.Helper()
	n.halt()
	if err := n.d.Close(); err != nil {
		n.t.Fatal(err)
	}
}

func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it took too long until %s", what)
		}
	}
}

func (n *node) inStep() bool {
	s := n.d.State()
	return s.InStep && s.Keys == 0
}

// allInStep waits until all devices have every entry of the log and every key.
func allInStep(t testing.TB, log *memLog, nodes ...*node) {
	t.Helper()
	until(t, "all are in step", func() bool {
		log.mu.Lock()
		defer log.mu.Unlock()
		return !slices.ContainsFunc(nodes, func(n *node) bool { return !n.inStep() || n.d.State().Seq != log.seq })
	})
}

// names describes the people of a device.
func (n *node) names() string {
	var all []string
	for _, p := range n.d.People() {
		all = append(all, fmt.Sprintf("%s %d-%d", p.Shown, len(p.Faces), len(p.Denied)))
	}
	return strings.Join(all, ", ")
}

func faceAt(values ...float32) []ledger.Face { return []ledger.Face{{Vector: values}} }

func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// A change that is made without a network holds at once on its device, and on the others when the network is back.
func TestSaidAnywhere(t *testing.T) {
	log := newMemLog()
	a := newAdmin(t, log)
	one, two := a.join(everybody), a.join(everybody)
	alice := must[ledger.ID](t)(one.d.Enroll("alice", space, faceAt(1, 2)))
	must[ledger.Ref](t)(one.d.Label(alice, space, faceAt(3, 4)))
	if got := one.names(); got != "alice 2-0" {
		t.Fatalf("without a network it knows %q", got)
	}
	one.run()
	two.run()
	until(t, "the other device knows her", func() bool { return two.names() == "alice 2-0" })
	p := must[ledger.Person](t)(two.d.Find("alice"))
	must[ledger.Ref](t)(two.d.Deny(p.ID, space, faceAt(1, 2)))
	must[ledger.Ref](t)(two.d.Rename(p.ID, "alicia"))
	until(t, "the correction is back", func() bool { return one.names() == "alicia 1-1" })
	bob := must[ledger.ID](t)(one.d.Enroll("alicia", space, faceAt(5, 6)))
	if got := one.names(); got != "alicia 1-1, alicia (2) 1-0" {
		t.Errorf("of two of one name it says %q", got)
	}
	merged := must[ledger.Ref](t)(one.d.Merge(bob, alice))
	until(t, "they are merged", func() bool { return two.names() == "alicia 2-1" })
	until(t, "it can be undone", func() bool { _, err := two.d.Undo(merged); return err == nil })
	until(t, "they are two again", func() bool { return one.names() == "alicia 1-1, alicia (2) 1-0" })
	must[ledger.Ref](t)(two.d.Forget(alice))
	until(t, "she is forgotten", func() bool { return one.names() == "alicia 1-0" })
	if _, err := one.d.Label(alice, space, faceAt(1, 1)); !errors.Is(err, ledger.ErrForgotten) {
		t.Errorf("a label of somebody who is forgotten: %v", err)
	}
	until(t, "both are in step", func() bool { return one.inStep() && two.inStep() })
	for _, n := range []*node{one, two} {
		n.close()
		n.open(fast)
		if got := n.names(); got != "alicia 1-0" {
			t.Errorf("opened again, it knows %q", got)
		}
	}
	_, h1 := one.d.Hash()
	_, h2 := two.d.Hash()
	if h1 != h2 || one.d.ContentHash() != two.d.ContentHash() {
		t.Error("the states are not the same")
	}
	one.close()
	two.close()
}

// After somebody is forgotten, no device can open their entries in an old copy of the log. Without a key ring it opens
// no entry at all.
func TestForgottenForEver(t *testing.T) {
	log := newMemLog()
	a := newAdmin(t, log)
	one, two := a.join(everybody).run(), a.join(everybody).run()
	alice := must[ledger.ID](t)(one.d.Enroll("alice", space, faceAt(1, 2)))
	must[ledger.ID](t)(one.d.Enroll("bob", space, faceAt(3, 4)))
	until(t, "both know both",
		func() bool { return two.names() == "alice 1-0, bob 1-0" && one.inStep() && two.inStep() })
	log.mu.Lock()
	old := slices.Clone(log.all)
	log.mu.Unlock()
	backup := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(backup, must[[]byte](t)(os.ReadFile(filepath.Join(one.folder, "keys"))), 0o600); err != nil {
		t.Fatal(err)
	}
	before := must[*ledger.Ring](t)(ledger.OpenRing(backup))
	defer before.Close()
	must[ledger.Ref](t)(two.d.Forget(alice))
	until(t, "she is forgotten", func() bool { return one.names() == "bob 1-0" && one.inStep() && two.inStep() })
	read := func(ring *ledger.Ring) (opened int) {
		for _, x := range old {
			if e, err := ledger.Parse(x.data); err == nil && e.Person == alice {
				key, have := ring.Key(alice, e.Key)
				if _, err := e.Open(a.fleet, key); have && err == nil {
					opened++
				}
			}
		}
		return opened
	}
	if n := read(before); n != 2 {
		t.Fatalf("with the keys of before, %d entries open", n)
	}
	for _, n := range []*node{one, two} {
		n.close()
		ring := must[*ledger.Ring](t)(ledger.OpenRing(filepath.Join(n.folder, "keys")))
		if n := read(ring); n != 0 {
			t.Errorf("with the keys of a device, %d entries open", n)
		}
		ring.Close()
	}
	// The server's log is put back to its state before she was forgotten. A device begins with it, and asks all others.
	back := newMemLog()
	for _, x := range old {
		back.add(x.subject, x.data)
	}
	three := &node{t: t, folder: t.TempDir(), conn: back.conn()}
	if err := fleet.Join(three.folder, a.fleet); err != nil {
		t.Fatal(err)
	}
	three.open(fast)
	a.log = back
	a.admit(three.d.ID(), everybody)
	back.servers[one.d.ID()] = func(q []byte) []byte { return one.answer(t, a.fleet, q) }
	three.run()
	until(t, "it has read the log", func() bool { return three.d.State().InStep })
	time.Sleep(50 * time.Millisecond)
	for _, p := range three.d.People() {
		if p.Name != "" || len(p.Faces) > 0 {
			t.Errorf("%q with %d faces can be read", p.Name, len(p.Faces))
		}
	}
	three.close()
}

// A device that joins after the entries of forgotten people were purged from the log reaches the same state.
func TestPurged(t *testing.T) {
	log := newMemLog()
	a := newAdmin(t, log)
	one := a.join(everybody).run()
	alice := must[ledger.ID](t)(one.d.Enroll("alice", space, faceAt(1, 2)))
	bob := must[ledger.ID](t)(one.d.Enroll("bob", space, faceAt(3, 4)))
	must[ledger.Ref](t)(one.d.Merge(bob, alice))
	must[ledger.ID](t)(one.d.Enroll("carol", space, faceAt(5, 6)))
	must[ledger.Ref](t)(one.d.Forget(bob))
	allInStep(t, log, one)
	log.purge(alice.String(), log.last())
	log.purge(bob.String(), log.last())
	two := a.join(everybody).run()
	allInStep(t, log, one, two)
	_, h1 := one.d.Hash()
	_, h2 := two.d.Hash()
	if h1 != h2 || two.names() != "carol 1-0" {
		t.Errorf("it knows %s, and the hashes are %x and %x", two.names(), h1[:4], h2[:4])
	}
}

// answer answers a request for keys from the folder of a device that does not run.
func (n *node) answer(t testing.TB, fleetID string, q []byte) []byte {
	key := must[nkeys.KeyPair](t)(fleet.Identity(n.folder))
	ring := must[*ledger.Ring](t)(ledger.OpenRing(filepath.Join(n.folder, "keys")))
	defer ring.Close()
	l := must[*ledger.Store](t)(ledger.OpenStore(n.folder, fleetID, key))
	defer l.Close()
	answer, _, err := l.AnswerKeys(q, ring, key)
	if err != nil {
		return nil
	}
	return answer
}

// A device knows whether another device has received the keys that it made. A program waits for that before it ends.
func TestUngiven(t *testing.T) {
	log := newMemLog()
	a := newAdmin(t, log)
	one := a.join(everybody).run()
	alone := must[ledger.ID](t)(one.d.Enroll("alone", space, faceAt(1, 2)))
	until(t, "it is in the log", func() bool { return one.d.State().InStep })
	if n := one.d.Ungiven(); n != 0 {
		t.Errorf("%d keys have been given to nobody, and there is nobody", n)
	}
	a.join(ledger.Scope{People: []ledger.ID{alone}})
	two := a.join(everybody)
	must[ledger.ID](t)(one.d.Enroll("alice", space, faceAt(3, 4)))
	until(t, "they are in the log", func() bool { s := one.d.State(); return s.InStep && s.Waiting == 0 })
	if n := one.d.Ungiven(); n != 2 {
		t.Errorf("%d keys have been given to nobody, want 2", n)
	}
	two.run()
	until(t, "the other device has the keys", func() bool { return one.d.Ungiven() == 0 })
	until(t, "and knows them", func() bool { return two.names() == "alone 1-0, alice 1-0" })
}

// A revoked device receives no key, and its entries do not count. Later entries are sealed with new keys.
func TestRevoked(t *testing.T) {
	log := newMemLog()
	a := newAdmin(t, log)
	one, two, bad := a.join(everybody).run(), a.join(everybody).run(), a.join(everybody).run()
	alice := must[ledger.ID](t)(one.d.Enroll("alice", space, faceAt(1, 2)))
	until(t, "all know her", func() bool { return bad.names() == "alice 1-0" && two.names() == "alice 1-0" })
	a.say(ledger.Revoke, ledger.Revocation{Device: bad.d.ID()})
	until(t, "all know of it", func() bool {
		m, _, _ := one.d.Member(bad.d.ID())
		n, _, _ := bad.d.Member(bad.d.ID())
		return m.Revoked && n.Revoked
	})
	if _, err := bad.d.Label(alice, space, faceAt(9, 9)); !errors.Is(err, ledger.ErrRevoked) {
		t.Errorf("a revoked device says something: %v", err)
	}
	must[ledger.Ref](t)(one.d.Label(alice, space, faceAt(3, 4)))
	until(t, "the other has the new face", func() bool { return two.names() == "alice 2-0" })
	until(t, "the revoked one has read the entry", func() bool { return bad.d.State().Seq == one.d.State().Seq })
	time.Sleep(300 * time.Millisecond) // the device asks, and nobody answers
	if got := bad.names(); got != "alice 1-0" {
		t.Errorf("a revoked device knows %q", got)
	}
}

// A device that is limited to some people reads and writes no entries about others.
func TestLimitedDevice(t *testing.T) {
	log := newMemLog()
	a := newAdmin(t, log)
	one := a.join(everybody).run()
	alice := must[ledger.ID](t)(one.d.Enroll("alice", space, faceAt(1, 2)))
	bob := must[ledger.ID](t)(one.d.Enroll("bob", space, faceAt(3, 4)))
	tablet := a.join(ledger.Scope{People: []ledger.ID{alice}}).run()
	until(t, "the tablet knows alice", func() bool { return strings.Contains(tablet.names(), "alice 1-0") })
	until(t, "it is in step", func() bool { return tablet.d.State().InStep })
	if got := tablet.names(); got != "alice 1-0,  0-0" {
		t.Errorf("it knows %q", got)
	}
	if _, err := tablet.d.Label(bob, space, faceAt(5, 6)); !errors.Is(err, ledger.ErrScope) {
		t.Errorf("it says something of somebody else: %v", err)
	}
	must[ledger.Ref](t)(tablet.d.Label(alice, space, faceAt(7, 8)))
	carol := must[ledger.ID](t)(tablet.d.Enroll("carol", space, faceAt(9, 9)))
	until(t, "what it says holds", func() bool { return one.names() == "alice 2-0, bob 1-0, carol 1-0" })
	must[ledger.Ref](t)(one.d.Merge(carol, bob))
	until(t, "it reads whom its own was merged with", func() bool { return tablet.names() == "alice 2-0, bob 2-0" })
}

// An entry of a newer version by the admin key stops a device with an error, and nothing is lost. Garbage, and newer
// entries of strangers and members, stop no device.
func TestFutureAndGarbage(t *testing.T) {
	log := newMemLog()
	a := newAdmin(t, log)
	one, two := a.join(everybody).run(), a.join(everybody).run()
	log.add("-", []byte("garbage"))
	log.add("-", bytes.Repeat([]byte{1}, ledger.MaxEntry+1))
	stranger := must[nkeys.KeyPair](t)(nkeys.CreateUser())
	two.halt()
	for _, key := range []nkeys.KeyPair{stranger, must[nkeys.KeyPair](t)(fleet.Identity(two.folder)), a.key} {
		must[ledger.ID](t)(one.d.Enroll("alice", space, faceAt(1, 2)))
		until(t, "it is in the log", one.inStep)
		e := ledger.Entry{Version: ledger.Version + 1, N: 1, Kind: ledger.Name, Time: time.Now()}
		if err := e.Sign(a.fleet, key); err != nil {
			t.Fatal(err)
		}
		log.add("-", e.Encode())
	}
	if err := <-one.done; !errors.Is(err, ledger.ErrFuture) || !strings.Contains(err.Error(), "update faceauth") {
		t.Errorf("a newer version: %v", err)
	}
	one.stop = nil
	seq, _ := one.d.Hash()
	if want := log.last() - 1; seq != want {
		t.Errorf("it stopped at %d, and not at %d", seq, want)
	}
	must[ledger.ID](t)(one.d.Enroll("bob", space, faceAt(3, 4)))
	if got := one.names(); got != "alice 1-0, alice (2) 1-0, alice (3) 1-0, bob 1-0" {
		t.Errorf("after it stopped it knows %q", got)
	}
}

// A device begins with a snapshot if the log is long or was trimmed. It refuses a snapshot with flipped bits.
func TestSnapshots(t *testing.T) {
	log := newMemLog()
	a := newAdmin(t, log)
	one := a.join(everybody)
	one.close()
	s := fast
	s.SnapshotEvery = 20
	one.open(s)
	two := a.join(everybody).run()
	until(t, "it is in step", two.inStep)
	two.close()
	one.run()
	for i := range 30 {
		must[ledger.ID](t)(one.d.Enroll(fmt.Sprint("p", i), space, faceAt(float32(i), 1)))
	}
	until(t, "there is a snapshot", func() bool {
		log.mu.Lock()
		defer log.mu.Unlock()
		return log.snapSeq >= 20
	})
	until(t, "all is said", one.inStep)
	log.trim()
	two.open(fast)
	two.run()
	three := a.join(everybody).run()
	until(t, "both know all", func() bool {
		return len(two.d.People()) == 30 && len(three.d.People()) == 30 && two.inStep() && three.inStep()
	})
	until(t, "all agree", func() bool {
		_, h1 := one.d.Hash()
		_, h2 := two.d.Hash()
		_, h3 := three.d.Hash()
		return h1 == h2 && h2 == h3 && two.d.ContentHash() == one.d.ContentHash()
	})
	log.mu.Lock()
	log.snapshot[len(log.snapshot)/2] ^= 4
	log.mu.Unlock()
	four := a.join(everybody).run()
	until(t, "it says that the snapshot is damaged",
		func() bool { return strings.Contains(four.d.State().Trouble, "snapshot") })
	if n := len(four.d.People()); n != 0 {
		t.Errorf("%d people came of a damaged snapshot", n)
	}
}

// After an old copy of a device's folder was put back, its new entries still reach all devices.
func TestOldFolder(t *testing.T) {
	log := newMemLog()
	a := newAdmin(t, log)
	one, two := a.join(everybody).run(), a.join(everybody).run()
	alice := must[ledger.ID](t)(one.d.Enroll("alice", space, faceAt(1, 2)))
	until(t, "all is said", one.inStep)
	one.close()
	old := filepath.Join(t.TempDir(), "old")
	if err := os.CopyFS(old, os.DirFS(one.folder)); err != nil {
		t.Fatal(err)
	}
	one.open(fast)
	one.run()
	must[ledger.Ref](t)(one.d.Label(alice, space, faceAt(3, 4)))
	must[ledger.Ref](t)(one.d.Rename(alice, "alicia"))
	until(t, "all is said", func() bool { return one.inStep() && two.names() == "alicia 2-0" })
	one.close()
	one.folder = old
	one.open(fast)
	denied := must[ledger.Ref](t)(one.d.Deny(alice, space, faceAt(1, 2)))
	must[ledger.Ref](t)(one.d.Label(alice, space, faceAt(5, 6)))
	must[ledger.Ref](t)(one.d.Undo(denied))
	one.run()
	until(t, "what was said by the old copy holds",
		func() bool { return one.names() == "alicia 3-0" && two.names() == "alicia 3-0" && one.inStep() })
}

// Damaged or foreign folders are refused with an error that says why.
func TestFolders(t *testing.T) {
	a := newAdmin(t, newMemLog())
	folder := t.TempDir()
	if _, err := fleet.Open(folder, fast); !errors.Is(err, fleet.ErrNotJoined) {
		t.Errorf("a folder of no fleet: %v", err)
	}
	if err := fleet.Join(folder, "nonsense"); err == nil {
		t.Error("nonsense was joined")
	}
	if err := fleet.Join(folder, a.fleet); err != nil {
		t.Fatal(err)
	}
	if err := fleet.Join(folder, newAdmin(t, nil).fleet); !errors.Is(err, fleet.ErrOther) {
		t.Errorf("joining another fleet: %v", err)
	}
	d := must[*fleet.Device](t)(fleet.Open(folder, fast))
	if _, err := fleet.Open(folder, fast); !errors.Is(err, fleet.ErrBusy) {
		t.Errorf("a folder that is in use: %v", err)
	}
	must[ledger.ID](t)(d.Enroll("alice", space, faceAt(1, 2)))
	if _, err := d.Enroll(" ", space, faceAt(1)); err == nil {
		t.Error("a name that is none was taken")
	}
	if _, err := d.Enroll("bob", space, nil); err == nil {
		t.Error("somebody without faces was taken")
	}
	if _, err := d.Label(ledger.NewID(), space, faceAt(1)); !errors.Is(err, fleet.ErrUnknown) {
		t.Errorf("a label of nobody: %v", err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if info, err := e.Info(); err == nil && e.Type().IsRegular() && info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"device.nk", "fleet", "keys", "outbox"} {
		path := filepath.Join(folder, name)
		data := must[[]byte](t)(os.ReadFile(path))
		if err := os.WriteFile(path, bytes.Repeat([]byte("x"), len(data)), 0o600); err != nil {
			t.Fatal(err)
		}
		if d, err := fleet.Open(folder, fast); err == nil {
			d.Close()
			t.Errorf("a damaged file %s was taken", name)
		} else if strings.Count(err.Error(), "move") == 0 {
			t.Errorf("%s: the error does not say what to do: %v", name, err)
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// If entries are damaged on disk while a device runs, the device reports them and makes nothing of them. The log
// delivers them again.
func TestEntriesRot(t *testing.T) {
	a := newAdmin(t, newMemLog())
	n := a.join(everybody).run()
	must[ledger.ID](t)(n.d.Enroll("alice", space, faceAt(1, 2)))
	must[ledger.ID](t)(n.d.Enroll("bob", space, faceAt(3, 4)))
	allInStep(t, a.log, n)
	g := newGallery(t)
	n.reconcile(g, false)
	before := labelsOf(g)
	path := filepath.Join(n.folder, "tail")
	data := must[[]byte](t)(os.ReadFile(path))
	f := must[*os.File](t)(os.OpenFile(path, os.O_WRONLY, 0))
	must[int](t)(f.WriteAt(make([]byte, 100), int64(len(data)-150)))
	f.Close()
	if _, err := n.d.Reconcile(g, fleet.Reconciling{}); !errors.Is(err, fleet.ErrDamaged) ||
		!strings.Contains(err.Error(), "move ledger and tail away") {
		t.Errorf("reconciling: %v", err)
	}
	if got := labelsOf(g); got != before {
		t.Errorf("the gallery has %s", got)
	}
	select {
	case err := <-n.done:
		n.stop = nil
		if !errors.Is(err, fleet.ErrDamaged) {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("it goes on")
	}
	if s := n.d.State(); !strings.Contains(s.Trouble, "move ledger and tail away") {
		t.Errorf("its trouble is %q", s.Trouble)
	}
	n.close()
	n.open(fast) // the device cuts off the damaged end of the tail
	n.run()
	allInStep(t, a.log, n)
	if got := n.names(); got != "alice 1-0, bob 1-0" {
		t.Errorf("it knows %s", got)
	}
}

// If the server makes the snapshots, a device that writes an entry does not fetch one, as a snapshot may be very long.
func TestOthersMakeSnapshots(t *testing.T) {
	log := newMemLog()
	log.readOnly = true
	a := newAdmin(t, log)
	n := a.join(everybody)
	n.d.Crash()
	s := fast
	s.SnapshotEvery = 1
	n.open(s)
	n.run()
	allInStep(t, log, n)
	log.mu.Lock()
	before := log.fetched
	log.mu.Unlock()
	for i := range 5 {
		must[ledger.ID](t)(n.d.Enroll(fmt.Sprint("person ", i), space, faceAt(1, 2)))
		allInStep(t, log, n)
	}
	time.Sleep(50 * time.Millisecond)
	log.mu.Lock()
	defer log.mu.Unlock()
	if log.fetched != before {
		t.Errorf("it has fetched %d snapshots", log.fetched-before)
	}
	if trouble := n.d.State().Trouble; trouble != "" {
		t.Error(trouble)
	}
}

// A change that cannot be written to disk is refused. It can be made again when the disk can be written.
func TestDiskTrouble(t *testing.T) {
	a := newAdmin(t, newMemLog())
	n := a.join(everybody)
	for what, shut := range map[string]func(*fleet.Device){
		"keys": (*fleet.Device).CloseRing, "outbox": (*fleet.Device).CloseOutbox,
	} {
		shut(n.d)
		if _, err := n.d.Enroll("alice", space, faceAt(1, 2)); err == nil || n.names() != "" {
			t.Errorf("with no %s it says %q: %v", what, n.names(), err)
		}
		n.d.Crash()
		n.open(fast)
	}
	bob := must[ledger.ID](t)(n.d.Enroll("bob", space, faceAt(3, 4)))
	// This is longer than a line of the outbox may be.
	many := make([]ledger.Face, 0, 300)
	for i := range cap(many) {
		many = append(many, ledger.Face{Vector: slices.Repeat([]float32{float32(i)}, 9216)})
	}
	must[ledger.Ref](t)(n.d.Label(bob, "pixels", many))
	n.d.Crash()
	n.open(fast)
	n.run()
	allInStep(t, a.log, n)
	if got := n.names(); got != "bob 301-0" {
		t.Errorf("it knows %q", got)
	}
}

// Under random faults all devices reach the same state, and no accepted change is lost.
func TestChaos(t *testing.T) {
	seeds := 6
	if testing.Short() {
		seeds = 2
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { testChaos(t, uint64(seed)) })
	}
}

func testChaos(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 2))
	log := newMemLog()
	log.faults = rand.New(rand.NewPCG(seed, 3))
	a := newAdmin(t, log)
	var nodes []*node
	for i := range 5 {
		n := a.join(everybody)
		n.d.Crash()
		s := fast
		s.SnapshotEvery = 25
		s.Now = func() time.Time { return time.Now().Add(time.Duration(i-2) * 12 * time.Hour) }
		n.open(s)
		nodes = append(nodes, n.run())
	}
	reopen := func(n *node, i int) {
		s := fast
		s.SnapshotEvery = 25
		s.Now = func() time.Time { return time.Now().Add(time.Duration(i-2) * 12 * time.Hour) }
		n.open(s)
		n.run()
	}
	want := make(map[ledger.ID]map[ledger.FaceID]bool) // the faces that must exist at the end
	forgotten := make(map[ledger.ID]bool)
	var ids []ledger.ID
	next := float32(0)
	for range 150 {
		i := rng.IntN(len(nodes))
		n := nodes[i]
		switch k := rng.IntN(12); {
		case k < 2:
			next++
			id := must[ledger.ID](t)(n.d.Enroll(fmt.Sprint("p", next), space, faceAt(next, 0)))
			want[id] = map[ledger.FaceID]bool{ledger.NewFaceID(space, []float32{next, 0}): true}
			ids = append(ids, id)
		case k < 7 && len(ids) > 0:
			id := ids[rng.IntN(len(ids))]
			next++
			_, err := n.d.Label(id, space, faceAt(next, 1))
			switch {
			case errors.Is(err, fleet.ErrUnknown), errors.Is(err, ledger.ErrForgotten): // the person is not here yet
			case err != nil:
				t.Fatal(err)
			default:
				want[id][ledger.NewFaceID(space, []float32{next, 1})] = true
			}
		case k == 7 && len(ids) > 0 && rng.IntN(3) == 0:
			id := ids[rng.IntN(len(ids))]
			if _, err := n.d.Forget(id); err == nil {
				forgotten[id] = true
			}
		case k == 8:
			n.conn.part(rng.IntN(2) == 0)
		case k == 9:
			n.halt()
			n.d.Crash()
			reopen(n, i)
		case k == 10:
			n.close()
			reopen(n, i)
		case k == 11:
			log.add("-", []byte("garbage"))
		}
		time.Sleep(time.Duration(rng.IntN(3)) * time.Millisecond)
	}
	log.calm()
	for _, n := range nodes {
		n.conn.part(false)
	}
	allInStep(t, log, nodes...)
	for i, n := range nodes {
		_, hash := n.d.Hash()
		if _, first := nodes[0].d.Hash(); hash != first || n.d.ContentHash() != nodes[0].d.ContentHash() {
			t.Errorf("device %d has come to another state", i)
		}
		for _, p := range n.d.People() {
			if forgotten[p.ID] {
				t.Errorf("device %d knows somebody who was forgotten", i)
			}
			have := make(map[ledger.FaceID]bool)
			for _, f := range p.Faces {
				have[f.ID] = true
			}
			if len(have) != len(want[p.ID]) {
				t.Errorf("device %d has %d faces of %s, and %d were labelled", i, len(have), p.Shown, len(want[p.ID]))
			}
		}
		if n := len(n.d.People()); n != len(want)-len(forgotten) {
			t.Errorf("device %d knows %d people, and %d were enrolled and %d forgotten", i, n, len(want),
				len(forgotten))
		}
	}
}

// A program that is killed loses no change that was reported to it as accepted.
func TestKilled(t *testing.T) {
	if folder := os.Getenv("FLEET_TEST_KILLED"); folder != "" {
		d := must[*fleet.Device](t)(fleet.Open(folder, fast))
		for i := 0; ; i++ {
			id := must[ledger.ID](t)(d.Enroll(fmt.Sprint("p", i), space, faceAt(float32(i), 1)))
			fmt.Println("said", id)
		}
	}
	a := newAdmin(t, newMemLog())
	n := a.join(everybody)
	n.close()
	var said []string
	tries := 10
	if testing.Short() {
		tries = 3
	}
	rng := rand.New(rand.NewPCG(7, 7))
	for range tries {
		c := exec.Command(os.Args[0], "-test.run=^TestKilled$")
		c.Env = append(os.Environ(), "FLEET_TEST_KILLED="+n.folder)
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewReader(out)
		for begun := false; ; {
			line, err := lines.ReadString('\n')
			if err != nil {
				break // an incomplete line reports no change
			}
			if id, ok := strings.CutPrefix(line, "said "); ok {
				said = append(said, strings.TrimSpace(id))
			}
			if !begun {
				begun = true
				time.AfterFunc(time.Duration(rng.IntN(100))*time.Millisecond, func() { c.Process.Kill() })
			}
		}
		c.Wait()
	}
	if len(said) < tries {
		t.Fatalf("only %d people were enrolled", len(said))
	}
	n.open(fast)
	n.run()
	other := a.join(everybody).run()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%+v%s; %+v%s", n.d.State(), n.d.Stuck(), other.d.State(), other.d.Stuck())
		}
	})
	allInStep(t, a.log, n, other)
	known := make(map[string]bool)
	for _, p := range other.d.People() {
		known[p.ID.String()] = len(p.Faces) == 1
	}
	for _, id := range said {
		if !known[id] {
			t.Errorf("%s was enrolled, and is gone", id)
		}
	}
}

// A device forgets only so many people a day. It refuses to forget others, and keeps their keys.
func TestForgettingMany(t *testing.T) {
	a := newAdmin(t, newMemLog())
	one, two := a.join(everybody).run(), a.join(everybody).run()
	var all []ledger.ID
	for i := range ledger.DailyForgets + 1 {
		all = append(all, must[ledger.ID](t)(one.d.Enroll(fmt.Sprint("person ", i), space, faceAt(float32(i), 1))))
	}
	until(t, "they are known", func() bool { return len(two.d.People()) == len(all) && two.d.State().Keys == 0 })
	for _, id := range all[1:] {
		must[ledger.Ref](t)(two.d.Forget(id))
	}
	for range 2 { // before and after the log has the entries
		if _, err := two.d.Forget(all[0]); !errors.Is(err, ledger.ErrForgets) {
			t.Errorf("one more: %v", err)
		}
		until(t, "the log has them", func() bool { return two.inStep() && len(one.d.People()) == 1 })
	}
	if p, err := two.d.Find("person 0"); err != nil || len(p.Faces) != 1 {
		t.Errorf("who was not forgotten: %+v, %v", p, err)
	}
	a.say(ledger.Allow, ledger.Allowance{})
	until(t, "a new day", func() bool { _, err := two.d.Forget(all[0]); return err == nil })
}

// A flood of garbage in the log gives a device a few lines to tell, and not one for each entry.
func TestFloodOfGarbage(t *testing.T) {
	a := newAdmin(t, newMemLog())
	one := a.join(everybody)
	one.close()
	var told atomic.Int64
	s := fast
	s.Tell = func(string) { told.Add(1) }
	one.open(s)
	one.run()
	for range 3000 {
		a.log.add("-", []byte("garbage"))
	}
	until(t, "it has read all", one.inStep)
	if n := told.Load(); n < 5 || n > 15 { // one more every ten seconds
		t.Errorf("3,000 ignored entries gave %d lines", n)
	}
}
