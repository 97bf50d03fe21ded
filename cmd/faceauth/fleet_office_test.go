// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"image"
	"net"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/fleet"
	"github.com/faceauth/faceauth/fleet/hub"
	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/office"
	"github.com/faceauth/faceauth/online"
	"github.com/spf13/cobra"
)

var plane = face.Space{ID: "plane", Dim: 2, Scale: 1, Sigma: .2, Gamma: 1e-3, Reach: .86, ImpostorRadius: .93,
	GenuineRadius: 1.3}

// standing is a camera before which a person stands, or nobody if at is nil.
type standing struct {
	at    *atomic.Pointer[[]float32]
	n     int
	begun time.Time
}

func (s *standing) Next(ctx context.Context) (face.Frame, error) {
	select {
	case <-ctx.Done():
		return face.Frame{}, ctx.Err()
	case <-time.After(20 * time.Millisecond):
	}
	f := face.Frame{Index: s.n, Time: time.Since(s.begun)}
	s.n++
	if x := s.at.Load(); x != nil {
		f.Samples = []face.Sample{{Box: image.Rect(0, 0, 8, 8), Space: plane.ID, Vector: *x}}
	}
	return f, nil
}
func (s *standing) Close() error { return nil }
func (s *standing) Dropped() int { return 0 }
func (s *standing) Look()        {}
func (s *standing) Sure()        {}

// branch is an office of a fleet.
type branch struct {
	name         string
	w            *office.Office
	m            *member
	stand        atomic.Pointer[[]float32]
	seen         atomic.Int64 // frames
	told         spoken       // warnings
	folder, path string
	end          func()
}

// newBranch makes an office join a fleet, and runs it.
func newBranch(t *testing.T, token fleet.Token, name string) *branch {
	t.Helper()
	folder := t.TempDir()
	if _, err := fleet.Join(t.Context(), folder, token, fleet.Joining{Name: name}); err != nil {
		t.Fatal(err)
	}
	b := &branch{name: name, folder: folder, path: filepath.Join(t.TempDir(), "gallery")}
	g, err := gallery.New(plane, online.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	c := &cobra.Command{}
	c.SetContext(t.Context())
	c.SetErr(&b.told)
	m, err := (&memberFlags{fleet: true, state: folder}).join(c)
	if err != nil {
		t.Fatal(err)
	}
	if m.Part, err = fleet.NewPart(m.Device, plane.ID, func(s string) { warn(c, "fleet: "+s) }); err != nil {
		t.Fatal(err)
	}
	b.m, m.Pause = m, 0
	b.w = office.New(g.At(b.path), office.Options{
		Frame: func(string, time.Time, []office.Seen) { b.seen.Add(1) },
		Fleet: m.Part, Teach: true, Trouble: func(err error) { t.Error(err) },
	})
	ctx, cancel := context.WithCancel(t.Context())
	leave := b.w.Share(ctx)
	go m.mind(ctx, c, func(err error) { t.Error(err) })
	done := make(chan error, 1)
	go func() {
		done <- b.w.Run(ctx, []office.Camera{{Name: "door",
			Open: func(context.Context, func() bool) (office.Stream, error) {
				return &standing{at: &b.stand, begun: time.Now()}, nil
			}}})
	}()
	ended := false
	b.end = func() {
		if ended {
			return
		}
		ended = true
		cancel()
		leave()
		<-done
		if err := m.close(); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(b.end)
	return b
}

func (b *branch) stands(x ...float32) {
	if x == nil {
		b.stand.Store(nil)
		return
	}
	b.stand.Store(&x)
}

func (b *branch) known() (names []string) {
	for _, p := range b.w.Now().Known {
		names = append(names, p.Name)
	}
	slices.Sort(names)
	return names
}

func waits(t *testing.T, what string, ok func() bool) time.Duration {
	t.Helper()
	begun := time.Now()
	for !ok() {
		if time.Since(begun) > 2*time.Minute {
			t.Fatalf("it took too long until %s", what)
		}
		time.Sleep(10 * time.Millisecond)
	}
	return time.Since(begun)
}

// newTestFleet starts the server of a fleet, and returns a function that invites devices.
func newTestFleet(t *testing.T) func() fleet.Token {
	t.Helper()
	admin, err := fleet.NewAdminKey(filepath.Join(t.TempDir(), "admin.nk"))
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address, folder := l.Addr().String(), filepath.Join(t.TempDir(), "server")
	l.Close()
	if err := hub.Create(folder, admin, "tls://"+address); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ready, done := make(chan hub.Ready, 1), make(chan error, 1)
	go func() {
		done <- hub.Serve(ctx, hub.Options{Folder: folder, Listen: address, Ready: func(r hub.Ready) { ready <- r }})
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	select {
	case <-ready:
	case err := <-done:
		t.Fatal(err)
	}
	return func() fleet.Token {
		t.Helper()
		token, err := admin.Invite("tls://"+address, fleet.Scope{All: true}, time.Now().Add(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
}

// Two offices of a fleet know the same people. A person who is named, denied, renamed, forgotten or taken back on the
// page of one office is so at the other. Each page shows who is at the other office, and who is seen at both at once.
func TestFleetOffices(t *testing.T) {
	t.Parallel()
	invite := newTestFleet(t)
	one, two := newBranch(t, invite(), "north"), newBranch(t, invite(), "south")
	same := func(want ...string) func() bool {
		return func() bool { return slices.Equal(one.known(), want) && slices.Equal(two.known(), want) }
	}
	one.stands(0, 0)
	waits(t, "a stranger is kept", func() bool { return len(one.w.Strangers()) == 1 })
	if err := one.w.Name(one.w.Strangers()[0].ID, "ann", false); err != nil {
		t.Fatal(err)
	}
	t.Logf("a name holds at the other office after %v", waits(t, "both know ann", same("ann")))
	waits(t, "she is here", func() bool { return len(one.w.Now().People) == 1 })
	waits(t, "south hears of her", func() bool {
		sites := two.w.Now().Sites
		return len(sites) == 1 && sites[0].Name == "north" && len(sites[0].People) == 1 &&
			sites[0].People[0].Name == "ann"
	})
	two.stands(.01, 0)
	waits(t, "she is at both", func() bool { return len(two.w.Now().Twice) == 1 && len(one.w.Now().Twice) == 1 })

	// South says that it is not her: north then rejects the face as hers, too.
	seen := func(b *branch) office.Sighting { return b.w.Sightings()[0] }
	waits(t, "south can be corrected", func() bool { return seen(two).Name == "ann" })
	two.stands()
	if err := two.w.Rename("ann", "anna"); err != nil {
		t.Fatal(err)
	}
	waits(t, "another name holds at both", same("anna"))
	waits(t, "who is in view has it", func() bool {
		now := one.w.Now().People
		return len(now) == 1 && now[0].Name == "anna"
	})

	// The naming is undone at its office: she is no longer known anywhere.
	corrections := one.w.Corrections(0, 10)
	if len(corrections) == 0 || corrections[len(corrections)-1].Kind != office.Named {
		t.Fatalf("%+v", corrections)
	}
	one.stands()
	if err := one.w.Undo(corrections[len(corrections)-1].ID); err != nil {
		t.Fatal(err)
	}
	waits(t, "nobody is known", same())

	// A person who is forgotten at one office is forgotten at all, also at an office that was not connected.
	two.stands(5, 5)
	waits(t, "another stranger", func() bool {
		return len(two.w.Strangers()) > 0 && two.w.Strangers()[0].Album.Faces[0].Vector[0] == 5
	})
	if err := two.w.Name(two.w.Strangers()[0].ID, "bob", false); err != nil {
		t.Fatal(err)
	}
	waits(t, "both know bob", same("bob"))
	two.stands()
	if err := one.w.Forget("bob"); err != nil {
		t.Fatal(err)
	}
	waits(t, "bob is forgotten", same())
	for _, b := range []*branch{one, two} {
		for _, e := range b.w.Events(0, 100) {
			if e.Name == "bob" {
				t.Errorf("%+v", e)
			}
		}
		for _, s := range b.w.Sightings() {
			if s.Name == "bob" {
				t.Errorf("%+v", s)
			}
		}
	}
	three := newBranch(t, invite(), "west")
	one.stands(0, 0)
	waits(t, "a stranger again", func() bool {
		all := one.w.Strangers()
		return slices.ContainsFunc(all, func(g office.Group) bool { return g.Album.Faces[0].Vector[0] == 0 })
	})
	for _, g := range one.w.Strangers() {
		if g.Album.Faces[0].Vector[0] == 0 {
			if err := one.w.Name(g.ID, "cleo", false); err != nil {
				t.Fatal(err)
			}
			break
		}
	}
	waits(t, "a new office knows cleo, and nobody else", func() bool {
		return slices.Equal(three.known(), []string{"cleo"})
	})
}
