// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/faceauth/faceauth/fleet"
)

// member is a whole device of a fleet.
type member struct {
	t      *testing.T
	folder string
	d      *fleet.Device
	stop   context.CancelFunc
	ended  chan error
}

func (x *site) join(name string) *member {
	x.t.Helper()
	m := &member{t: x.t, folder: filepath.Join(x.t.TempDir(), name)}
	how := fleet.Joining{Name: name, Creds: x.creds}
	if _, err := fleet.Join(x.t.Context(), m.folder, x.invite(time.Hour), how); err != nil {
		x.t.Fatal(err)
	}
	m.start()
	x.t.Cleanup(m.end)
	return m
}

func (m *member) start() {
	m.t.Helper()
	d, err := fleet.Open(m.folder, fleet.Settings{Retry: 20 * time.Millisecond, Turn: 100 * time.Millisecond})
	if err != nil {
		m.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	m.d, m.stop, m.ended = d, cancel, make(chan error, 1)
	go func() { m.ended <- d.Run(ctx, d.Dial) }()
}

func (m *member) end() {
	if m.d == nil {
		return
	}
	m.stop()
	<-m.ended
	m.d.Close()
	m.d = nil
}

func agree(t *testing.T, all ...*member) {
	t.Helper()
	until(t, "all know the same", func() bool {
		hash := all[0].d.Hash()
		for _, m := range all {
			if s := m.d.State(); !s.InStep || s.Keys > 0 || m.d.Hash() != hash {
				return false
			}
		}
		return true
	})
}

// Devices share people, also with one that joins later, and after the server was killed, put back from an old copy, and
// moved. A revoked device is out, and what it said is undone.
func TestWhole(t *testing.T) {
	x := newSite(t).start()
	one, two := x.join("one"), x.join("two")
	face := func(v ...float32) []fleet.Face { return []fleet.Face{{Vector: v}} }
	alice, err := one.d.Enroll("alice", "space", face(1, 2))
	if err != nil {
		t.Fatal(err)
	}
	until(t, "two knows alice", func() bool { p, _ := two.d.Person(alice); return len(p.Faces) == 1 })
	agree(t, one, two)
	x.stop()
	old := t.TempDir()
	if err := os.CopyFS(old, os.DirFS(x.folder)); err != nil {
		t.Fatal(err)
	}
	x.start()
	three := x.join("three")
	agree(t, one, two, three)
	if err := three.d.Label(alice, "space", face(3, 4)); err != nil {
		t.Fatal(err)
	}
	agree(t, one, two, three)
	three.end()
	x.stop()
	if err := two.d.Label(alice, "space", face(5, 6)); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(x.folder); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(old, x.folder); err != nil { // this copy knows neither three nor its face
		t.Fatal(err)
	}
	x.start()
	agree(t, one, two)
	three.start()
	agree(t, one, two, three)
	if p, _ := one.d.Person(alice); len(p.Faces) != 3 {
		t.Errorf("alice has %d faces", len(p.Faces))
	}
	a := x.admin()
	if _, err := a.Revoke(t.Context(), "three", nil); err != nil {
		t.Fatal(err)
	}
	if err := <-three.ended; !errors.Is(err, fleet.ErrRevoked) {
		t.Errorf("three ends with %v", err)
	}
	three.ended <- nil
	until(t, "the face is undone", func() bool { p, _ := one.d.Person(alice); return len(p.Faces) == 2 })
	agree(t, one, two)
}
