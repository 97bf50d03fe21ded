// SPDX-License-Identifier: Apache-2.0

package replay_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/replay"
	"github.com/faceauth/faceauth/sighting"
)

// A folder gets the page and the events, and one that is not completed keeps the older ones as they were.
func TestFolder(t *testing.T) {
	dir := t.TempDir()
	var s frames
	for i := range 400 {
		f := face.Frame{Index: i, Time: time.Duration(i) * time.Second}
		if i%150 < 5 { // alice, bob and alice
			f.Samples = []face.Sample{sample(1+i/150, float32(i/150%2*10)+float32(i%150)/50)}
		}
		s = append(s, f)
	}
	write := func(s frames) *replay.Folder {
		w := fixture.Must(replay.Create(dir, "film.avi", line))(t)
		for f, err := range replay.Judge(t.Context(), &s, learner(t, 2), replay.Options{}) {
			fixture.Check(t, err)
			fixture.Check(t, w.Add(f))
		}
		return w
	}
	w := write(s)
	r := fixture.Must(w.Commit(replay.Meta{}))(t)
	w.Abort()
	if s := r.Summary; s.Faces != 15 || len(s.People) != 2 || r.Source != "film.avi" {
		t.Errorf("%+v", r)
	}
	files := func() (all string) {
		entries, err := os.ReadDir(dir)
		if err != nil || len(entries) != 2 {
			t.Errorf("%v, %v", entries, err)
		}
		for _, e := range entries {
			b, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil || len(b) < 100 {
				t.Errorf("%s: %d bytes, %v", e.Name(), len(b), err)
			}
			all += string(b)
		}
		return all
	}
	before := files()
	write(s[:300]).Abort()
	if files() != before {
		t.Error("a replay that broke off changed the files")
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
		how := replay.Options{Freeze: true, Names: called("alice")}
		for f, err := range replay.Judge(t.Context(), &s, l, how) {
			fixture.Check(t, err)
			e := f.Events[0]
			if e.Label != "alice" || (e.File == "x.jpg") != still {
				t.Errorf("%+v", e)
			}
			if tracks[e.Track] = true; e.Trust == sighting.Confirmed {
				confirmed++
			}
		}
		if still && (confirmed > 0 || len(tracks) != 10) || !still && len(tracks) != 1 {
			t.Errorf("still %t: %d confirmed, %d tracks", still, confirmed, len(tracks))
		}
	}
}
