// SPDX-License-Identifier: Apache-2.0

package replay_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/replay"
)

// recorded is a recording with a frame per second. It breaks off at a frame, if that is not 0.
type recorded struct {
	frames
	breaks int
}

var errBroken = errors.New("the disk is away")

func (r *recorded) Next(ctx context.Context) (face.Frame, error) {
	f, err := r.frames.Next(ctx)
	if err == nil && r.breaks > 0 && f.Index == r.breaks {
		return face.Frame{}, errBroken
	}
	return f, err
}

func (r *recorded) Count() face.Count { return face.Count{Declared: 400, Read: 400} }
func (r *recorded) Renew() bool       { return true }

// An interrupted job goes on where nobody was in view, and ends with the files of one that was not interrupted. Without
// Depends, with Anew, or with another folder it begins anew.
func TestJob(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	film := filepath.Join(t.TempDir(), "film.avi")
	if err := os.WriteFile(film, []byte("frames"), 0o600); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "faceauth.db")
	g, err := gallery.New(line, online.Settings{K: 50})
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"alice", "bob"} {
		x := [][]float32{{float32(10 * i)}}
		if _, err := g.Enroll(name, x, time.Unix(0, 0), gallery.Enrolment{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := g.Save(path); err != nil {
		t.Fatal(err)
	}
	g.Close()
	// play runs a job that breaks off at a frame. It returns where it began, and the files.
	play := func(j replay.Job, breaks int) (resumed time.Duration, report, events string) {
		t.Helper()
		g, err := gallery.Open(path, line)
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		j.Name, j.Path = "film.avi", film
		j.Resumed = func(at time.Duration) { resumed = at }
		j.Warn = func(text string) { t.Error(text) }
		j.Open = func(after *int) (replay.Source, error) {
			first := 0
			if after != nil {
				first = *after + 1
			}
			r := &recorded{breaks: breaks}
			for i := first; i < 400; i++ {
				f := face.Frame{Index: i, Time: time.Duration(i) * time.Second}
				if i%150 < 5 { // alice, bob and alice
					f.Samples = []face.Sample{sample(1+i/150, float32(i/150%2*10)+float32(i%150)/50)}
				}
				r.frames = append(r.frames, f)
			}
			return r, nil
		}
		r, err := j.Run(t.Context(), g)
		if breaks > 0 {
			if !errors.Is(err, errBroken) {
				t.Fatal(err)
			}
			return resumed, "", ""
		}
		if err != nil {
			t.Fatal(err)
		}
		if s := r.Summary; s.Faces != 15 || len(s.People) != 2 || r.Source != "film.avi" {
			t.Errorf("%+v", r)
		}
		a, err := os.ReadFile(r.Report)
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(r.Events)
		if err != nil {
			t.Fatal(err)
		}
		return resumed, string(a), string(b)
	}
	_, report, events := play(replay.Job{Folder: t.TempDir()}, 0)
	for name, c := range map[string]struct {
		depends string
		anew    bool
		goesOn  bool
	}{
		"goes on": {depends: "all", goesOn: true},
		"anew":    {depends: "all", anew: true},
		"unknown": {},
	} {
		t.Run(name, func(t *testing.T) {
			j := replay.Job{Folder: t.TempDir(), Depends: c.depends}
			if at, _, _ := play(j, 300); at != 0 {
				t.Errorf("the first run went on at %v", at)
			}
			j.Anew = c.anew
			at, r, e := play(j, 0)
			if (at > 0) != c.goesOn || r != report || e != events {
				t.Errorf("went on at %v; the same report: %t, the same events: %t", at, r == report, e == events)
			}
			if at, _, _ := play(j, 0); at != 0 {
				t.Errorf("after its end it went on at %v", at)
			}
		})
	}
}
