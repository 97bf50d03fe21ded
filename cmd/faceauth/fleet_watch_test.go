// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/fleet"
	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/replay"
	"github.com/spf13/cobra"
)

// A watch follows the fleet while it runs: it knows a person who is named at an office, uses a new name, and no longer
// recognises a forgotten person. Its gallery file follows, too, without learned faces unless they are to be kept.
func TestFleetWatch(t *testing.T) {
	t.Parallel()
	invite := newTestFleet(t)
	north := newBranch(t, invite(), "north")
	north.named(t, "bob", 5, 5)
	for name, keep := range map[string]bool{"watch": false, "learner": true} {
		folder, path := t.TempDir(), filepath.Join(t.TempDir(), "gallery")
		if _, err := fleet.Join(t.Context(), folder, invite(), fleet.Joining{Name: name}); err != nil {
			t.Fatal(err)
		}
		c := &cobra.Command{}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		c.SetContext(ctx)
		words := &spoken{}
		c.SetErr(words)
		m, err := (&memberFlags{fleet: true, state: folder}).join(c)
		if err != nil {
			t.Fatal(err)
		}
		m.arrive(c)
		g, err := gallery.New(plane, online.Settings{})
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Align(g.At(path)); err != nil {
			t.Fatal(err)
		}
		if got := g.Learner().Names(); len(got) != 1 || got[0] != "bob" {
			t.Fatalf("it begins with %q", got)
		}
		var at atomic.Pointer[[]float32]
		at.Store(&[]float32{.01, 0})
		frames, end, err := (&watched{m, c, g, path, keep}).run(ctx, &standing{at: &at, begun: time.Now()},
			func(err error) {
				t.Error(err)
			})
		if err != nil {
			t.Fatal(err)
		}
		var seen atomic.Pointer[string]
		done := make(chan error, 1)
		go func() {
			err := replay.Run(ctx, frames, g.Learner(), replay.NewReport(),
				replay.Options{Each: func(_ face.Frame, all []replay.Event) error {
					for _, e := range all {
						text := e.Label + "|" + e.Name
						seen.Store(&text)
					}
					return nil
				}})
			end()
			done <- err
		}()
		sees := func(what, want string) {
			t.Helper()
			took := waits(t, what, func() bool { s := seen.Load(); return s != nil && *s == want })
			t.Logf("learn %t: %s after %v", keep, what, took)
		}
		file := func() string {
			g, err := gallery.Open(path, plane)
			if err != nil {
				return err.Error()
			}
			return strings.Join(g.Learner().Names(), " ")
		}
		sees("a stranger is seen", "|")
		north.named(t, "ann", 0, 0)
		sees("who was named at an office is known", "ann|ann")
		waits(t, "the file has her", func() bool { return file() == "ann bob" || file() == "bob ann" })
		if err := north.w.Rename("ann", "anna"); err != nil {
			t.Fatal(err)
		}
		sees("another name holds", "anna|anna")
		if err := north.w.Forget("anna"); err != nil {
			t.Fatal(err)
		}
		sees("who is forgotten is nobody", "|")
		waits(t, "the file has forgotten her", func() bool { return file() == "bob" })
		cancel()
		if err := <-done; err == nil {
			t.Error("it ended by itself")
		}
		if data, err := os.ReadFile(path); err != nil || bytes.Contains(data, []byte("anna")) {
			t.Errorf("the file: %v", err)
		}
		if err := m.close(); err != nil {
			t.Error(err)
		}
		if s := words.String(); s != "" {
			t.Errorf("it said %s", s)
		}
	}
}

// A program whose device was revoked says so, and continues without the fleet.
func TestRevokedGoesOn(t *testing.T) {
	ended := make(chan error, 1)
	m := &member{&fleet.Session{Ended: ended}}
	ended <- fmt.Errorf("taking part: %w", fleet.ErrRevoked)
	var words bytes.Buffer
	c := &cobra.Command{}
	c.SetErr(&words)
	m.mind(t.Context(), c, func(err error) { t.Errorf("it ends: %v", err) })
	if !strings.Contains(words.String(), "this device was revoked") {
		t.Errorf("it says %q", &words)
	}
}
