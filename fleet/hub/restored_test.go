// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/faceauth/faceauth/fleet"
	"github.com/faceauth/faceauth/fleet/hub"
	"github.com/faceauth/faceauth/fleet/hub/embedded"
	"github.com/faceauth/faceauth/fleet/ledger"
)

// wholeFleet is a server that can be killed, with devices that know people and make changes.
type wholeFleet struct {
	t      *testing.T
	server *child
	admin  *hub.Admin
	parts  map[string]part
	n      float32
}

func newWholeFleet(t *testing.T, names ...string) *wholeFleet {
	t.Helper()
	c := startChild(t,
		childConfig{Folder: filepath.Join(t.TempDir(), "server"), Listen: "127.0.0.1:0", SnapshotEvery: 20, Keep: 10})
	w := &wholeFleet{t: t, server: c, admin: admin(t, c.config.Folder), parts: make(map[string]part)}
	for _, name := range names {
		w.parts[name] = takePart(t, w.admin, name)
	}
	return w
}

func (w *wholeFleet) face() []ledger.Face {
	w.n++
	return []ledger.Face{{Vector: []float32{w.n, 1, 0, 0}}}
}

func (w *wholeFleet) enroll(device, name string) ledger.ID {
	w.t.Helper()
	id, err := w.parts[device].Enroll(name, "test", w.face())
	w.must(err)
	return id
}

func (w *wholeFleet) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// agreed waits until these devices have reached one state.
func (w *wholeFleet) agreed(names ...string) {
	w.t.Helper()
	is := func() bool {
		first := w.parts[names[0]]
		seq, hash := first.Hash()
		for _, name := range names {
			p := w.parts[name]
			s, h := p.Hash()
			if state := p.State(); s != seq || h != hash || !state.InStep || state.Keys > 0 || state.Waiting > 0 ||
				p.ContentHash() != first.ContentHash() {
				return false
			}
		}
		return true
	}
	for end := time.Now().Add(45 * time.Second); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			for _, name := range names {
				seq, hash := w.parts[name].Hash()
				w.t.Logf("%s: %d %x %+v", name, seq, hash[:4], w.parts[name].State())
			}
			w.t.Fatalf("no one state: %s", w.server.said)
		}
	}
}

// told describes the people that a device knows, without details that may change when a log is put back.
func told(p part) (all []string) {
	for _, x := range p.People() {
		var faces []string
		for _, f := range x.Faces {
			faces = append(faces, f.ID.String())
		}
		slices.Sort(faces)
		all = append(all, fmt.Sprint(x.ID, x.IDs, x.Shown, x.Names, faces, len(x.Denied), len(x.Gone), len(x.Lessons)))
	}
	slices.Sort(all)
	return all
}

// copyTo copies the folder of a stopped server.
func copyTo(t *testing.T, from, to string) {
	t.Helper()
	if err := os.RemoveAll(to); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(to, func(path string, d os.DirEntry, err error) error { // CopyFS adds rights
		if err == nil && !d.IsDir() {
			err = os.Chmod(path, 0o600)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// restart starts the server that was killed, with or without the administrator's notice that it was put back.
func (w *wholeFleet) restart(restored bool) {
	w.t.Helper()
	w.server.config.Restored = restored
	w.server = w.server.again(w.t)
	w.server.config.Restored = false
	w.admin = admin(w.t, w.server.config.Folder)
}

// The server is put back from a backup. Devices refuse it without the administrator's notice. With the notice they give
// back the entries that it has lost. People forgotten since the backup stay forgotten, and devices revoked since then
// stay revoked.
func TestBackupIsPutBack(t *testing.T) {
	w := newWholeFleet(t, "door", "hall", "gate", "old")
	alice, bob := w.enroll("door", "alice"), w.enroll("hall", "bob")
	erin := w.enroll("old", "erin")
	for i := range 30 { // enough for a snapshot, so that the log is trimmed
		w.enroll("gate", fmt.Sprint("guest", i))
	}
	w.agreed("door", "hall", "gate", "old")
	unused := invite(t, w.admin)
	w.server.kill()
	backup := filepath.Join(t.TempDir(), "backup")
	copyTo(t, w.server.config.Folder, backup)
	w.restart(false)

	carol := w.enroll("door", "carol")
	gone := w.face()
	ref, err := w.parts["hall"].Label(alice, "test", gone)
	w.must(err)
	w.agreed("door", "hall", "gate", "old")
	_, err = w.parts["door"].Retract(alice, ledger.NewFaceID("test", gone[0].Vector))
	w.must(err)
	_, err = w.parts["gate"].Rename(alice, "alicia")
	w.must(err)
	_, err = w.parts["old"].Label(erin, "test", w.face())
	w.must(err)
	_, err = w.parts["hall"].Forget(bob)
	w.must(err)
	w.agreed("door", "hall", "gate", "old")
	_, err = w.admin.Revoke(within(t, 20*time.Second), "old")
	w.must(err)
	w.parts["late"] = takePart(t, w.admin, "late") // admitted after the backup
	frank := w.enroll("late", "frank")
	same := w.enroll("late", "francis")
	w.agreed("door", "hall", "gate", "late")
	_, err = w.parts["hall"].Merge(same, frank)
	w.must(err)
	// The backup has this token as unused.
	w.parts["later"] = join(t, unused, "later")
	w.agreed("door", "hall", "gate", "late", "later")
	before := told(w.parts["door"])
	w.server.kill()
	copyTo(t, backup, w.server.config.Folder)

	w.restart(false)
	for _, name := range []string{"door", "hall", "gate"} {
		eventually(t, name+" to refuse the log", func() bool {
			return strings.Contains(w.parts[name].State().Trouble, "--restored")
		})
		if got := told(w.parts[name]); !slices.Equal(got, before) {
			t.Errorf("%s knows %v, not %v", name, got, before)
		}
	}
	dave := w.enroll("hall", "dave")
	w.server.kill()

	w.restart(true)
	w.agreed("door", "hall", "gate", "late", "later")
	if _, err := hub.Join(within(t, 20*time.Second), t.TempDir(), unused, hub.Joining{Name: "thief"}); !errors.Is(err,
		hub.ErrDenied) {
		t.Errorf("a token that was used after the backup: %v", err)
	}
	for name, p := range w.parts {
		if name == "old" {
			continue
		}
		got := slices.DeleteFunc(told(p), func(s string) bool { return strings.Contains(s, dave.String()) })
		if !slices.Equal(got, before) {
			t.Errorf("%s knows\n%s, not\n%s", name, strings.Join(got, "\n"), strings.Join(before, "\n"))
		}
		if _, err := p.Find(dave.String()); err != nil {
			t.Errorf("%s: dave, who was enrolled meanwhile: %v", name, err)
		}
		if !p.Forgotten(bob) {
			t.Errorf("%s does not know that bob is forgotten", name)
		}
		if _, err := p.Find(carol.String()); err != nil {
			t.Errorf("%s: carol: %v", name, err)
		}
		if m, known, _ := p.Member(w.parts["old"].ID()); !known || !m.Revoked {
			t.Errorf("%s takes the revoked device for a member", name)
		}
	}
	eventually(t, "the revoked device to be refused",
		func() bool { return errors.Is(w.parts["old"].conn.Err(), hub.ErrRefused) })
	grace := w.enroll("door", "grace")
	w.agreed("door", "hall", "gate", "late", "later")
	if _, err := w.parts["old"].Find(grace.String()); err == nil {
		t.Error("the revoked device reads on")
	}
	if _, err := w.parts["hall"].Undo(ref); err != nil { // an entry that was given back can be undone as before
		t.Errorf("undoing: %v", err)
	}
	w.server.kill() // the state survives a restart
	w.restart(false)
	w.agreed("door", "hall", "gate", "late", "later")
	for name, p := range w.parts {
		// The revoked device keeps its entries if it read of the new log before it was shut out.
		if files, _ := filepath.Glob(filepath.Join(p.folder, "aside")); len(files) > 0 && name != "old" {
			t.Errorf("%s still has what it had set aside", name)
		}
	}
}

// The disk of the server is lost. Only the admin key and the certificate are left.
func TestDiskIsLost(t *testing.T) {
	w := newWholeFleet(t, "door", "hall", "old")
	limited, err := w.admin.Invite(within(t, 20*time.Second), time.Hour, []string{w.enroll("door", "alice").String()})
	w.must(err)
	w.parts["tablet"] = join(t, limited, "tablet")
	bob := w.enroll("hall", "bob")
	erin := w.enroll("old", "erin")
	w.agreed("door", "hall", "old")
	for i := range 30 {
		w.enroll("hall", fmt.Sprint("guest", i))
	}
	_, err = w.parts["door"].Forget(bob)
	w.must(err)
	w.agreed("door", "hall", "old")
	_, err = w.admin.Revoke(within(t, 20*time.Second), "old")
	w.must(err)
	w.enroll("tablet", "tom")
	eventually(t, "the tablet to be in step", func() bool { return w.parts["tablet"].State().InStep })
	last, _ := w.parts["tablet"].Hash()
	eventually(t, "the door to be there, too", func() bool { seq, _ := w.parts["door"].Hash(); return seq >= last })
	w.agreed("door", "hall")
	before := told(w.parts["door"])
	w.server.kill()
	folder := w.server.config.Folder
	kept := make(map[string][]byte)
	for _, name := range []string{"admin.nk", "certificate.pem"} {
		kept[name], err = os.ReadFile(filepath.Join(folder, name))
		w.must(err)
	}
	w.must(os.RemoveAll(folder))
	w.must(os.Mkdir(folder, 0o700))
	for name, b := range kept {
		w.must(os.WriteFile(filepath.Join(folder, name), b, 0o600))
	}
	listen := strings.TrimPrefix(w.server.URL, "tls://")
	err = hub.Serve(within(t, 30*time.Second), hub.Options{Folder: folder, Listen: listen, Start: embedded.Start})
	if !errors.Is(err, hub.ErrLost) {
		t.Fatalf("a server without its log: %v", err)
	}

	w.restart(true)
	w.agreed("door", "hall")
	eventually(t, "the tablet to be in step, and in the same state", func() bool {
		seq, hash := w.parts["door"].Hash()
		s, h := w.parts["tablet"].Hash()
		return s == seq && h == hash && w.parts["tablet"].State().InStep
	})
	for _, name := range []string{"door", "hall"} {
		if got := told(w.parts[name]); !slices.Equal(got, before) {
			t.Errorf("%s knows\n%s, not\n%s", name, strings.Join(got, "\n"), strings.Join(before, "\n"))
		}
	}
	if _, err := w.parts["door"].Find(erin.String()); err != nil {
		t.Errorf("erin, whom the revoked device had enrolled: %v", err)
	}
	if !w.parts["hall"].Forgotten(bob) {
		t.Error("bob is not forgotten")
	}
	eventually(t, "the revoked device to be refused",
		func() bool { return errors.Is(w.parts["old"].conn.Err(), hub.ErrRefused) })
	all, err := w.admin.Devices(within(t, 20*time.Second))
	w.must(err)
	for _, d := range all {
		if d.Revoked != (d.Name == "old") {
			t.Errorf("%+v", d)
		}
	}
	if len(all) != 4 {
		t.Errorf("%d devices", len(all))
	}
	w.parts["new"] = takePart(t, w.admin, "new")
	w.agreed("door", "hall", "new")
}

var _ fleet.Restorer = (*hub.Conn)(nil)
