// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/faceauth/faceauth/fleet"
	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/office"
	"github.com/faceauth/faceauth/online"
	"github.com/spf13/cobra"
)

// learner calls f with the learner of the office.
func (b *branch) learner(t *testing.T, f func(l *online.Learner)) {
	t.Helper()
	if err := b.w.Exchange(func(g *gallery.Gallery, _ func(string)) (office.Exchanged, error) {
		f(g.Learner())
		return office.Exchanged{}, nil
	}); err != nil {
		t.Fatal(err)
	}
}

// sources returns the names of the offices whose lessons the office has.
func (b *branch) sources(t *testing.T, of ...*branch) (names []string) {
	t.Helper()
	b.learner(t, func(l *online.Learner) {
		for _, s := range l.Sources() {
			for _, o := range of {
				if s.Name == o.m.Device.ID() {
					names = append(names, o.name)
				}
			}
		}
	})
	slices.Sort(names)
	return names
}

// here returns the name and the trust of the person before the camera; "" for nobody, " " for a stranger.
func (b *branch) here() string {
	for _, c := range b.w.Now().Cameras {
		for _, s := range c.Seen {
			return s.Name + " " + string(s.Trust)
		}
	}
	return ""
}

// turns lets ann, who was confirmed, turn away step by step, and leave after the office has learned the last step.
func (b *branch) turns(t *testing.T, steps ...float32) {
	t.Helper()
	b.stands(0, 0)
	waits(t, b.name+" confirms ann", func() bool { return b.here() == "ann confirmed" })
	learned := func() (n int64) {
		b.learner(t, func(l *online.Learner) { n = l.Counts().Learned + int64(l.Aided()) })
		return n
	}
	for i, y := range steps {
		before, frames := learned(), b.seen.Load()
		b.stands(0, y)
		waits(t, b.name+" sees a step", func() bool {
			return b.seen.Load() > frames+9 && (i < len(steps)-1 || learned() > before)
		})
	}
	b.stands()
	b.m.Spoke() // otherwise the lessons go out within a minute
}

// What one office learns holds at the others, and what they learn with its help is given on. One command takes all of
// it back everywhere, also while the office that taught is switched off.
func TestFleetLessons(t *testing.T) {
	t.Parallel()
	invite := newTestFleet(t)
	north, south, west := newBranch(t, invite(), "north"), newBranch(t, invite(), "south"),
		newBranch(t, invite(), "west")
	north.named(t, "ann", 0, 0)
	for _, b := range []*branch{south, west} {
		waits(t, "all know ann", func() bool { return slices.Equal(b.known(), []string{"ann"}) })
	}
	has := func(b *branch, want ...string) func() bool {
		return func() bool { return slices.Equal(b.sources(t, north, south, west), want) }
	}
	north.turns(t, .5, 1, 1.5, 2)
	for _, b := range []*branch{south, west} {
		waits(t, b.name+" has the lessons", func() (there bool) {
			b.learner(t, func(l *online.Learner) {
				all := l.Sources()
				there = len(all) == 1 && all[0].Centroids == 5
			})
			return there
		})
	}

	// Each step is further than south's own faces reach, and the last one is new for north, too.
	south.turns(t, .9, 1.8, 2.4)
	waits(t, "west has both", has(west, "north", "south"))
	west.stands(0, 2.9)
	waits(t, "west knows ann by what south gave on", func() bool { return west.here() == "ann learned" })
	west.stands()

	north.end()
	withdraw := func(want int, said, folder, device string, more ...string) {
		t.Helper()
		var out, words bytes.Buffer
		args := append([]string{"fleet", "withdraw", device, "--state", folder}, more...)
		if code := run(t.Context(), args, &out, &words); code != want ||
			out.String() != said && words.String() != said {
			t.Fatalf("withdrawing %s: exit code %d: %s%s", device, code, &out, &words)
		}
	}
	// The office of south is running: it does it for the command.
	withdraw(badUsage, "faceauth: no such device: 0 devices of the fleet are called \"nobody\"; give the id of "+
		"one: faceauth fleet devices\n", south.folder, "nobody")
	withdraw(0, "what north has taught is taken back\n", south.folder, "north")
	waits(t, "south has taken all of it back", has(south))
	south.learner(t, func(l *online.Learner) {
		if l.Aided() != 0 {
			t.Errorf("%d faces of south stay that north helped to learn", l.Aided())
		}
	})
	waits(t, "west has what south learned by itself", has(west, "south"))
	west.stands(0, 2.9)
	waits(t, "west sees a stranger", func() bool { return west.here() == " " })
	west.stands(0, 0)
	waits(t, "west knows ann as she was enrolled", func() bool { return west.here() == "ann confirmed" })

	phone := t.TempDir()
	if _, err := fleet.Join(t.Context(), phone, invite(), fleet.Joining{Name: "phone"}); err != nil {
		t.Fatal(err)
	}
	withdraw(0, "what south has taught is taken back\n", phone, "south", "--mute")
	waits(t, "west has no lessons", has(west))
}

// A program that uses the folder of a device answers each request, whatever else comes to its socket, and whatever a
// killed program left.
func TestFleetAsk(t *testing.T) {
	t.Parallel()
	invite := newTestFleet(t)
	folder := t.TempDir()
	if _, err := fleet.Join(t.Context(), folder, invite(), fleet.Joining{Name: "door"}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, "ask")
	killed, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	killed.SetUnlinkOnClose(false)
	killed.Close()
	if _, err := fleet.AskWithdraw(t.Context(), folder, "", false); err == nil {
		t.Error("a killed program answers")
	}
	c := &cobra.Command{}
	c.SetContext(t.Context())
	words := &spoken{}
	c.SetErr(words)
	m, err := (&memberFlags{fleet: true, state: folder}).join(c)
	if err != nil {
		t.Fatal(err)
	}
	defer m.close()
	m.arrive(c)
	const longest = 1 << 13 // longer than any request
	var open []net.Conn
	for _, text := range []string{"", "{", "[]\n", `{"device":7}`, strings.Repeat("x", longest),
		`{"device":"` + strings.Repeat("x", longest) + `"}`} {
		conn, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		open = append(open, conn)
		conn.Write([]byte(text))
	}
	for _, conn := range open[2:] {
		if b, err := bufio.NewReader(conn).ReadString('\n'); !strings.Contains(b, "the request is damaged") {
			t.Errorf("%q, %v", b, err)
		}
	}
	a, err := fleet.AskWithdraw(t.Context(), folder, "door", false)
	if want := (fleet.Answer{Name: "door", Sent: true}); err != nil || a != want {
		t.Errorf("%+v, %v", a, err)
	}
	if s, err := os.Stat(path); err != nil || s.Mode().Type() != fs.ModeSocket {
		t.Errorf("the socket: %v, %v", s, err)
	}
	if words.String() != "" {
		t.Errorf("it warns: %s", words)
	}
}
