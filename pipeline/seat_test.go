// SPDX-License-Identifier: Apache-2.0

package pipeline_test

import (
	"image"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/sighting"
)

// Before a slow camera somebody takes the seat of a confirmed person between two frames, with any turn of both heads:
// every ordered pair of vidtimit_rot, six moments of the one recording, and four of the other.
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
					w := sighting.NewWatcher(l, sighting.Settings{}, sighting.Rules{})
					left, came := 4+(len(user)-4)*(n%6+1)/6, len(other)*(n/6)/4
					mine, shown := (left-4+stride-1)/stride, 0
					own := 0
					see := func(f face.Sample) sighting.Seen {
						shown++
						seen, err := w.See(time.Duration(shown*stride)*40*time.Millisecond, []face.Sample{f}, nil)
						if err != nil {
							t.Fatal(err)
						}
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
		t.Logf("every %dth frame: %d swaps, %d tracks went on; %d faces of the other: %d named, %d on a confirmed track, "+
			"%d confirmed, %d learned", stride, swaps, kept, faces, named, track, confirmed, learned)
		if kept == 0 || confirmed > 0 || learned*100 > faces {
			t.Errorf("every %dth frame: %d tracks went on, %d of %d faces confirmed, %d learned", stride, kept,
				confirmed, faces, learned)
		}
	}
}
