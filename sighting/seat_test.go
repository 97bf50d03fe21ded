// SPDX-License-Identifier: Apache-2.0

package sighting_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/sighting"
)

// sphere has the settings and the measured distances of the default embedding.
var sphere = face.Space{
	ID: "sphere", Dim: 512, Scale: 1, Unit: true, Sigma: .2, Gamma: 1e-3, Reach: .86,
	ImpostorRadius: .93,
	Stills: face.Impostors{
		People: 2211, Pairs: 7429191, Distances: [5]float64{1.230, 1.153, 1.085, 1.023, .947},
	},
	Streams: face.Impostors{People: 20, Pairs: 22631, Distances: [5]float64{1.125, .986, .876}},
}

// look returns a unit vector around a centre. Two looks of one centre are about spread times the
// root of 2 apart.
func look(r *rand.Rand, centre []float64, spread float64) []float32 {
	v, sum := make([]float64, len(centre)), 0.
	for i, c := range centre {
		v[i] = c + spread*r.NormFloat64()/math.Sqrt(float64(len(centre)))
		sum += v[i] * v[i]
	}
	x := make([]float32, len(v))
	for i := range v {
		x[i] = float32(v[i] / math.Sqrt(sum))
	}
	return x
}

// After thirty seconds somebody whose centre is 1.10 away takes the seat, before a camera with a
// frame a second. Some of these faces are within the distance of a genuine step, so the track goes
// on. They are not confirmed, and they are not learned, not even when alice is back.
func TestSwappedSeats(t *testing.T) {
	owner, other := make([]float64, sphere.Dim), make([]float64, sphere.Dim)
	cos := 1 - 1.10*1.10/2
	owner[0], other[0], other[1] = 1, cos, math.Sqrt(1-cos*cos)
	for _, spread := range []float64{.1, .25, .4} {
		t.Run(fmt.Sprint(spread), func(t *testing.T) {
			kept := 0
			for seed := range uint64(10) {
				r := rand.New(rand.NewPCG(seed, 0))
				l := fixture.Must(online.New(sphere, online.Settings{}))(t)
				for range 4 {
					fixture.Check(t, l.Label(look(r, owner, spread), alice))
				}
				w := sighting.NewWatcher(l)
				track := 0
				for i := range 160 {
					who := owner
					if i >= 30 && i < 130 {
						who = other
					}
					seen := fixture.Must(w.See(time.Duration(i)*time.Second,
						[]face.Sample{at(0, look(r, who, spread)...)}, nil))(t)
					s := seen[0]
					switch {
					case i < 30:
						track = s.Track
						if i >= 3 && s.Trust != sighting.Confirmed {
							t.Fatalf("seed %d, face %d of alice: %+v", seed, i, s)
						}
						continue
					case i >= 130:
						for _, number := range s.Lessons {
							if number <= 130 {
								t.Fatalf("seed %d: face %d of the other is learned", seed,
									number-31)
							}
						}
						continue
					case i == 30 && s.Track == track:
						kept++
					}
					if s.Trust == sighting.Confirmed || s.Belief.Trust == sighting.Confirmed ||
						len(s.Lessons) > 0 {
						t.Fatalf("seed %d, face %d of the other: %+v, %+v", seed, i-30, s,
							s.Verdict)
					}
				}
			}
			if kept < 8 {
				t.Errorf("%d of 10 tracks went on, so the faces are too far apart for this test",
					kept)
			}
		})
	}
}

// Before a slow camera a head turns far between two frames. The next faces still have the name,
// which is learned, and nothing is learned of them until a face near an enrolled one ends the
// doubt.
func TestTurnsFarBetweenFrames(t *testing.T) {
	for _, c := range []struct {
		step  time.Duration
		named int // faces after the turn with a name of their own
	}{{time.Second, 4}, {frame, 0}} {
		w, l := watched(t)
		now := time.Duration(0)
		show := func(looks ...float32) sighting.Seen {
			t.Helper()
			now += c.step
			seen := fixture.Must(w.See(now, []face.Sample{at(0, looks...)}, nil))(t)
			return seen[0]
		}
		for range 5 {
			show(.1, 0)
		}
		for range 5 {
			show(.5, 0)
		}
		learned := l.Counts().Learned
		for i := range 8 {
			s := show(1.2, .7+.001*float32(i))
			if s.Track != 1 || (s.Verdict.Person == alice) != (i < c.named) ||
				s.Belief.Trust == sighting.Confirmed ||
				l.Counts().Learned != learned {
				t.Errorf("step %v, face %d after the turn: %+v, %+v", c.step, i, s, s.Verdict)
			}
		}
		if s := show(.3, .2); !s.Verdict.Learned {
			t.Errorf("step %v, near an enrolled face: %+v, %+v", c.step, s, s.Verdict)
		}
	}
}

// A face in doubt keeps the name of its track only if the nearest enrolled face is of that person,
// and within the limit of a name: another person may have taken the seat between two slow frames.
func TestDoubtNeedsAnEnrolledFace(t *testing.T) {
	for name, c := range map[string]struct {
		limit float64
		way   [][2]float32 // faces of alice, and one of somebody in her seat
		named bool
	}{
		"nearer to bob": {0, [][2]float32{{.1, 0}, {.5, 0}, {.6, 0}, {1.4, 0}, {2, 0}, {3, 0}},
			false},
		"nearer to her":  {0, [][2]float32{{.1, 0}, {.5, 0}, {.6, 0}, {1.4, 0}, {1.4, 1}}, true},
		"beyond a limit": {1.6, [][2]float32{{.1, 0}, {.5, 0}, {.6, 0}, {1.4, 0}, {1.4, 1}}, false},
	} {
		w, l := watched(t)
		if c.limit > 0 {
			space := l.Space()
			space.GenuineRadius = c.limit
			fixture.Check(t, l.SetMeasured(space))
			w = sighting.NewWatcher(l)
		}
		var last sighting.Seen
		for i, x := range c.way {
			seen := fixture.Must(w.See(time.Duration(i)*time.Second, []face.Sample{at(0, x[:]...)},
				nil))(t)
			last = seen[0]
			if i < len(c.way)-1 && i > 2 && last.Belief.Person != alice {
				t.Fatalf("%s, face %d of alice: %+v", name, i, last)
			}
		}
		if (last.Belief.Person == alice) != c.named || (last.Verdict.Person == alice) != c.named ||
			last.Track != 1 ||
			last.Known {
			t.Errorf("%s: %+v, %+v", name, last, last.Verdict)
		}
		back := fixture.Must(w.See(time.Minute/10, []face.Sample{at(0, .5, 0)}, nil))(t)[0]
		if c.named && (back.Belief.Person != alice || back.Known) {
			t.Errorf("%s: she herself again: %+v", name, back)
		}
	}
}
