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
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/replay"
	"github.com/faceauth/faceauth/sighting"
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

// A job writes the page and the events, and one that breaks off leaves the older ones as they were.
func TestJob(t *testing.T) {
	g := fixture.Must(gallery.New(line, online.Settings{K: 50}))(t)
	defer g.Close()
	for i, name := range []string{"alice", "bob"} {
		x := [][]float32{{float32(10 * i)}}
		fixture.Must(g.Enroll(name, x, time.Unix(0, 0), gallery.Enrolment{}))(t)
	}
	j := replay.Job{Folder: t.TempDir(), Name: "film.avi"}
	play := func(breaks int) (replay.Result, error) {
		j.Open = func() (replay.Source, error) {
			r := &recorded{breaks: breaks}
			for i := range 400 {
				f := face.Frame{Index: i, Time: time.Duration(i) * time.Second}
				if i%150 < 5 { // alice, bob and alice
					f.Samples = []face.Sample{sample(1+i/150, float32(i/150%2*10)+float32(i%150)/50)}
				}
				r.frames = append(r.frames, f)
			}
			return r, nil
		}
		return j.Run(t.Context(), g)
	}
	r := fixture.Must(play(0))(t)
	if s := r.Summary; s.Faces != 15 || len(s.People) != 2 || r.Source != "film.avi" {
		t.Errorf("%+v", r)
	}
	files := func() (all string) {
		entries, err := os.ReadDir(j.Folder)
		if err != nil || len(entries) != 2 {
			t.Errorf("%v, %v", entries, err)
		}
		for _, e := range entries {
			b, err := os.ReadFile(filepath.Join(j.Folder, e.Name()))
			if err != nil || len(b) < 100 {
				t.Errorf("%s: %d bytes, %v", e.Name(), len(b), err)
			}
			all += string(b)
		}
		return all
	}
	before := files()
	if _, err := play(300); !errors.Is(err, errBroken) {
		t.Fatal(err)
	}
	if files() != before {
		t.Error("a run that broke off changed the files")
	}
}

// A photograph continues nothing: the same face in ten of them is named each time, and confirmed in none.
func TestPhotographs(t *testing.T) {
	l := fixture.Must(online.New(line, online.Settings{K: 50}))(t)
	fixture.Check(t, l.Label([]float32{0}, 1))
	for _, still := range []bool{true, false} {
		var s frames
		for i := range 10 {
			s = append(s, face.Frame{Index: i, Time: time.Duration(i) * 40 * time.Millisecond, Still: still,
				File: "x.jpg", Samples: []face.Sample{sample(1, float32(i)/100)}})
		}
		tracks, confirmed := map[int]bool{}, 0
		err := replay.Run(t.Context(), &s, l, replay.NewReport(), replay.Options{Freeze: true, Names: called("alice"),
			Each: func(f face.Frame, events []replay.Event) error {
				e := events[0]
				if e.Label != "alice" || (e.File == "x.jpg") != still {
					t.Errorf("%+v", e)
				}
				if tracks[e.Track] = true; e.Trust == sighting.Confirmed {
					confirmed++
				}
				return nil
			}})
		if err != nil || still && (confirmed > 0 || len(tracks) != 10) || !still && len(tracks) != 1 {
			t.Errorf("still %t: %d confirmed, %d tracks, %v", still, confirmed, len(tracks), err)
		}
	}
}
