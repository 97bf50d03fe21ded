// SPDX-License-Identifier: Apache-2.0

package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"image"
	"io"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/pipeline"
	"github.com/faceauth/faceauth/preprocess"
	"github.com/faceauth/faceauth/sighting"
)

// recorded is a person of vidtimit_rot as the networks see them.
type recorded struct {
	name   string
	frames []face.Frame
}

var seen struct {
	sync.Mutex
	people []recorded
}

// vidtimit returns the six people of vidtimit_rot. Their 1,600 frames take half a minute, so all
// tests share the result.
func vidtimit(t *testing.T, d facedet.Detector, e preprocess.Extractor) []recorded {
	t.Helper()
	seen.Lock()
	defer seen.Unlock()
	for i := len(seen.people); i < 6; i++ {
		p := recorded{name: fmt.Sprintf("p%d", i)}
		src, err := facedet.Open(context.Background(),
			fixture.Recordings(t, "faces/vidtimit_rot/"+p.name),
			facedet.Options{})
		fixture.Check(t, err)
		stream := pipeline.New(src, d, e, pipeline.Options{Gate: preprocess.LearnGate})
		for {
			f, err := stream.Next(context.Background())
			if errors.Is(err, io.EOF) {
				break
			}
			fixture.Check(t, err)
			p.frames = append(p.frames, f)
		}
		src.Close()
		seen.people = append(seen.people, p)
	}
	return seen.people
}

// Two people walk past each other, and one is hidden behind the other for a while. The test takes
// every pair of vidtimit_rot, and moves their faces to the places that they would have. By place
// alone their tracks are exchanged; by place and looks they are not.
func TestCrossing(t *testing.T) {
	if testing.Short() {
		t.Skip("the recordings take a while")
	}
	d, e := network(t)
	var people [][]face.Sample
	for _, p := range vidtimit(t, d, e) {
		var faces []face.Sample
		for i, f := range p.frames {
			if i%2 == 0 && len(f.Samples) == 1 {
				faces = append(faces, f.Samples[0])
			}
		}
		people = append(people, faces)
	}
	far := face.Space{ID: "place alone", Dim: e.Space().Dim, Scale: 1}
	switches := map[string]int{}
	tracks := map[string]int{}
	pairs := 0
	for i, a := range people {
		for _, b := range people[:i] {
			pairs++
			for name, space := range map[string]face.Space{"place": far,
				"place and looks": e.Space()} {
				tr := sighting.NewTracker(space)
				last := map[int]int{} // the last person of each track
				n := min(len(a), len(b))
				for k := range n {
					x := 600 * k / n
					faces := []face.Sample{a[k], b[k]}
					faces[0].Box, faces[1].Box = image.Rect(x, 0, x+120, 150),
						image.Rect(600-x, 0, 720-x, 150)
					shown := []int{0, 1}
					if math.Abs(float64(2*x-600)) < 60 { // b is behind a
						faces, shown = faces[:1], shown[:1]
					}
					for j, id := range tr.Update(time.Duration(k)*80*time.Millisecond, faces) {
						if who, seen := last[id]; seen && who != shown[j] {
							switches[name]++
						}
						last[id] = shown[j]
					}
				}
				tracks[name] += len(last)
			}
		}
	}
	t.Logf("%d pairs: %d switches in %d tracks by place alone, %d in %d by place and looks", pairs,
		switches["place"], tracks["place"], switches["place and looks"], tracks["place and looks"])
	if switches["place and looks"] > 0 || switches["place"] < pairs/2 {
		t.Errorf("switches: %v", switches)
	}
}

// Before a slow camera somebody takes the seat of a confirmed person between two frames, with any
// turn of both heads: every ordered pair of vidtimit_rot, six moments of the one recording, and
// four of the other.
func TestSlowSeats(t *testing.T) {
	if testing.Short() {
		t.Skip("the recordings take a while")
	}
	d, e := network(t)
	var people [][]face.Sample
	for _, p := range vidtimit(t, d, e) {
		var faces []face.Sample
		for _, f := range p.frames {
			if len(f.Samples) == 1 && f.Samples[0].Vector != nil {
				s := f.Samples[0]
				s.Box, s.Track = image.Rect(0, 0, 100, 100), 0
				faces = append(faces, s)
			}
		}
		people = append(people, faces)
	}
	for _, stride := range []int{8, 15, 25} {
		var swaps, kept, faces, named, track, confirmed, learned int
		for i, user := range people {
			for j, other := range people {
				for n := range 24 {
					if i == j {
						continue
					}
					l := fixture.Must(online.New(e.Space(), online.Settings{}))(t)
					for _, f := range user[:4] {
						fixture.Check(t, l.Label(f.Vector, 1))
					}
					w := sighting.NewWatcher(l)
					left, came := 4+(len(user)-4)*(n%6+1)/6, len(other)*(n/6)/4
					mine, shown := (left-4+stride-1)/stride, 0
					own := 0
					see := func(f face.Sample) sighting.Seen {
						shown++
						seen := fixture.Must(w.See(time.Duration(shown*stride)*40*time.Millisecond,
							[]face.Sample{f}, nil))(t)
						return seen[0]
					}
					for k := range mine {
						own = see(user[4+k*stride]).Track
					}
					swaps++
					for k := came; k < min(len(other), came+25*stride); k += stride {
						s := see(other[k])
						if k == came && s.Track == own {
							kept++
						}
						faces++
						if s.Belief.Person != 0 {
							named++
						}
						if s.Belief.Trust == sighting.Confirmed {
							track++
						}
						if s.Trust == sighting.Confirmed {
							confirmed++
						}
						learned += len(s.Lessons)
					}
				}
			}
		}
		t.Logf("every %dth frame: %d swaps, %d tracks went on; %d faces of the other: %d named, "+
			"%d on a confirmed track, %d confirmed, %d learned", stride, swaps, kept, faces, named,
			track, confirmed, learned)
		if kept == 0 || confirmed > 0 || learned*100 > faces {
			t.Errorf("every %dth frame: %d tracks went on, %d of %d faces confirmed, %d learned",
				stride, kept, confirmed, faces, learned)
		}
	}
}
