// SPDX-License-Identifier: Apache-2.0

package sighting_test

import (
	"cmp"
	"image"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/graph"
	"github.com/faceauth/faceauth/sighting"
)

// slowTracker compares every person with every face.
type slowTracker struct {
	s    sighting.Settings // complete
	live []*slowPerson
	next int
}

type slowPerson struct {
	id, source int
	box        image.Rectangle
	at         time.Duration
	missed     bool
	looks      [][]float32
}

func (t *slowTracker) update(at time.Duration, faces []face.Sample) []int {
	t.live = slices.DeleteFunc(t.live, func(p *slowPerson) bool { return at-p.at > t.s.Gap })
	type pair struct {
		p     *slowPerson
		face  int
		score float64
	}
	var pairs []pair
	for _, p := range t.live {
		for j, f := range faces {
			overlap, far := face.Overlap(p.box, f.Box), t.s.Far
			if f.Vector == nil || len(p.looks) == 0 {
				if overlap >= t.s.Overlap {
					pairs = append(pairs, pair{p, j, overlap})
				}
				continue
			}
			if p.missed {
				far = t.s.Lost
			}
			near, d := t.s.Near, math.Inf(1)
			if overlap > 0 {
				near = max(near, t.s.Same)
			}
			for _, x := range p.looks {
				d = min(d, graph.Distance(f.Vector, x, 1))
			}
			if d <= far && (overlap >= t.s.Overlap || d <= near) {
				pairs = append(pairs, pair{p, j, overlap + 1 - d/far})
			}
		}
	}
	slices.SortStableFunc(pairs, func(a, b pair) int { return cmp.Compare(b.score, a.score) })
	ids, taken := make([]int, len(faces)), map[*slowPerson]bool{}
	give := func(p *slowPerson, j int) {
		if p == nil || taken[p] || ids[j] != 0 {
			return
		}
		f := faces[j]
		ids[j], taken[p] = p.id, true
		p.box, p.at, p.source = f.Box, at, f.Track
		if f.Vector != nil && (f.Reason == "" || len(p.looks) == 0) {
			p.looks = append(p.looks, f.Vector)
			p.looks = p.looks[max(0, len(p.looks)-t.s.Looks):]
		}
	}
	for j, f := range faces {
		var last *slowPerson
		for _, p := range t.live {
			if f.Held && p.source == f.Track && (last == nil || p.at >= last.at) {
				last = p
			}
		}
		give(last, j)
	}
	for _, c := range pairs {
		give(c.p, c.face)
	}
	for _, p := range t.live {
		p.missed = !taken[p]
	}
	for j := range faces {
		if ids[j] == 0 {
			t.next++
			p := &slowPerson{id: t.next}
			t.live = append(t.live, p)
			give(p, j)
		}
	}
	return ids
}

// In random crowds that walk, jump, cross, turn, hide and change places, the tracker gives the numbers that a
// comparison of every person with every face gives.
func TestTrackerAgreesWithSlow(t *testing.T) {
	space := face.Space{ID: "cube", Dim: 70, Scale: 1, ImpostorRadius: 1}
	s := sighting.Settings{
		Overlap: .25, Near: .6, Far: 1.1, Lost: 1, Sure: .9, Same: .8, Gap: 2 * time.Second, Looks: 5,
	}
	type somebody struct {
		x, y, size, source int
		look               [2]float64
	}
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 0))
		room, slow, fast := 100+r.IntN(900), &slowTracker{s: s}, sighting.NewTracker(space, s)
		crowd := make([]somebody, 1+r.IntN(12))
		for i := range crowd {
			look := [2]float64{3 * r.Float64(), 3 * r.Float64()}
			crowd[i] = somebody{r.IntN(room), r.IntN(room), 40 + r.IntN(60), i, look}
		}
		at := time.Duration(0)
		for n := range 60 {
			at += time.Duration(1+r.IntN(20)) * frame
			var faces []face.Sample
			for i := range crowd {
				p := &crowd[i]
				switch r.IntN(12) {
				case 0:
					p.x, p.y = r.IntN(room), r.IntN(room)
				case 1:
					o := &crowd[r.IntN(len(crowd))]
					p.x, p.y, o.x, o.y = o.x, o.y, p.x, p.y
				case 2:
					p.look[0] += r.NormFloat64()
				case 3:
					continue // hides
				}
				p.x, p.y = p.x+r.IntN(21)-10, p.y+r.IntN(21)-10
				f := face.Sample{Box: image.Rect(p.x, p.y, p.x+p.size, p.y+p.size), Track: p.source}
				switch r.IntN(10) {
				case 0:
					f.Held = true
				case 1: // no vector
				default:
					f.Vector = make([]float32, space.Dim)
					f.Vector[0] = float32(p.look[0] + .1*r.NormFloat64())
					f.Vector[space.Dim-1] = float32(p.look[1] + .1*r.NormFloat64())
					if r.IntN(10) == 0 {
						f.Reason = face.Blurred
					}
				}
				faces = append(faces, f)
			}
			if got, want := fast.Update(at, faces), slow.update(at, faces); !slices.Equal(got, want) {
				t.Fatalf("seed %d, frame %d: %v, want %v", seed, n, got, want)
			}
		}
	}
}

// If the clock of the source stands, or goes back, a track ends after fifty frames, and the clock may go on. A coarse
// clock does not shorten the gap.
func TestClockStands(t *testing.T) {
	stands := func(int) time.Duration { return time.Hour }
	for _, c := range []struct {
		name   string
		clock  func(frame int) time.Duration
		absent int
		want   int
	}{
		{"stands, fifty frames", stands, 49, 1},
		{"stands, one more", stands, 50, 2},
		{"goes back once", func(i int) time.Duration { return time.Duration(min(1, 10/(i+1))) * time.Hour }, 60, 2},
		{"goes back always", func(i int) time.Duration { return -time.Duration(i) * time.Hour }, 50, 2},
		{"whole seconds", func(i int) time.Duration { return time.Duration(i/25) * time.Second }, 49, 1},
		{"whole seconds, too late", func(i int) time.Duration { return time.Duration(i/25) * time.Second }, 75, 2},
		{"stands for long, goes on", func(i int) time.Duration { return time.Duration(max(i, 1000)) * frame }, 1060, 2},
	} {
		tr := sighting.NewTracker(plane, sighting.Settings{})
		for i := range 10 {
			tr.Update(c.clock(i), []face.Sample{at(0, 0, 0)})
		}
		for i := range c.absent {
			tr.Update(c.clock(10+i), nil)
		}
		if got := tr.Update(c.clock(10+c.absent), []face.Sample{at(0, 0, 0)}); got[0] != c.want {
			t.Errorf("%s: track %d, want %d", c.name, got[0], c.want)
		}
	}
}

// crowd returns frames of n people whose boxes do not touch, with five looks each.
func crowd(n, move int) [][]face.Sample {
	r := rand.New(rand.NewPCG(uint64(n), 0))
	centres := make([][]float64, n)
	for i := range centres {
		centres[i] = make([]float64, sphere.Dim)
		for j := range centres[i] {
			centres[i][j] = r.NormFloat64() / math.Sqrt(float64(sphere.Dim))
		}
	}
	frames := make([][]face.Sample, 6)
	for k := range frames {
		for i := range n {
			x, y := i%40*150+k*move, i/40*150
			frames[k] = append(frames[k], face.Sample{
				Box: image.Rect(x, y, x+100, y+100), Vector: look(r, centres[i], .3),
			})
		}
	}
	return frames
}

// More people than can be compared with all faces have all changed their places: those who can be found are found.
func TestManyElsewhere(t *testing.T) {
	const n = 150
	tr := sighting.NewTracker(sphere, sighting.Settings{})
	frames := crowd(n, 10000)
	tr.Update(0, frames[0])
	found := 0
	for i, id := range tr.Update(frame, frames[1]) {
		switch {
		case id == i+1:
			found++
		case id <= n:
			t.Errorf("face %d continues track %d", i, id)
		}
	}
	if want := 10000 / n; found != want {
		t.Errorf("%d people found, want %d", found, want)
	}
}
