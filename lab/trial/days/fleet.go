// SPDX-License-Identifier: Apache-2.0

package days

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/graph"
	"github.com/faceauth/faceauth/online"
	"github.com/fxamacker/cbor/v2"
)

// Poison is the kind of wrong lessons that a device gives.
type Poison string

// Poisons.
const (
	Clean Poison = ""
	// Swapped gives the faces of another person under the name of each enrolled person: a stranger's if there are
	// strangers.
	Swapped Poison = "swapped"
	// Bridged gives the same faces and artificial ones: a path from the enrolled faces of the person to the faces of
	// the other person, in steps that are edges of the graph.
	Bridged Poison = "bridged"
	// Blended gives the faces of Swapped, and blended faces on the path to them: [Options].Blend makes these from the
	// two nearest faces of the person and the other person.
	Blended Poison = "blended"
)

// fleet holds the devices of a day.
type fleet struct {
	o         Options
	r         *Report
	devices   []*gallery.Gallery
	next      time.Duration // exchange
	withdrawn bool
}

const poisoner = "poisoned device"

// exchange lets all devices exchange their lessons, if it is time. It is called between frames.
func (f *fleet) exchange(at time.Duration) error {
	if f.o.Withdraw > 0 && at >= f.o.Withdraw && f.o.Poison != Clean && !f.withdrawn {
		f.withdrawn = true
		for _, g := range f.devices {
			if err := g.Learner().WithdrawLessons(poisoner); err != nil {
				return err
			}
		}
	}
	if f.o.Share <= 0 || at < f.next {
		return nil
	}
	f.next = at + f.o.Share
	f.r.Exchanges++
	for i, g := range f.devices {
		lessons, _, err := carry(g.Learner().Lessons())
		if err != nil {
			return err
		}
		for j, other := range f.devices {
			if i == j {
				continue
			}
			if err := other.Learner().TakeLessons(fmt.Sprint("device ", i+1), lessons); err != nil {
				return err
			}
		}
	}
	return nil
}

// end counts the results of a day.
func (f *fleet) end() error {
	if f.o.Share <= 0 {
		return nil
	}
	for _, g := range f.devices {
		lessons, bytes, err := carry(g.Learner().Lessons())
		if err != nil {
			return err
		}
		f.r.Bytes += bytes
		for _, s := range lessons {
			f.r.Given += len(s.Centroids)
		}
		f.r.Kept += g.Learner().Taken().Kept
	}
	return nil
}

// carry encodes and decodes lessons, as on the way to another device, and returns their size in bytes.
func carry(lessons []online.Lesson) (there []online.Lesson, bytes int, err error) {
	for _, s := range lessons {
		data, err := cbor.Marshal(s)
		if err != nil {
			return nil, 0, err
		}
		back := online.Lesson{Space: s.Space}
		if err := cbor.Unmarshal(data, &back); err != nil {
			return nil, 0, err
		}
		bytes += len(data)
		there = append(there, back)
	}
	return there, bytes, nil
}

// poison gives all devices the lessons of a wrong device.
func (f *fleet) poison(people []subject, known map[string]bool) error {
	if f.o.Poison == Clean {
		return nil
	}
	others := slices.DeleteFunc(slices.Clone(people), func(p subject) bool { return known[p.name] })
	if len(others) == 0 {
		others = people
	}
	for _, g := range f.devices {
		var lessons []online.Lesson
		for i, p := range people {
			if !known[p.name] {
				continue
			}
			other := others[i%len(others)]
			if other.name == p.name {
				other = others[(i+1)%len(others)]
			}
			s := online.Lesson{Space: g.Space().ID, Name: p.name}
			add := func(x []float32, n float64) {
				if len(s.Centroids) < online.MaxCentroids/len(people) {
					s.Centroids = append(s.Centroids, online.Centroid{Vector: x, Multiplicity: n})
				}
			}
			var faces [][]float32
			for _, visit := range other.visits {
				for _, x := range visit {
					if x.Vector != nil && x.Reason == "" {
						faces = append(faces, x.Vector)
					}
				}
			}
			if f.o.Poison == Bridged {
				step := g.Learner().Graph().Config().EdgeRadius() / 3
				for _, x := range p.enroll {
					for q := 0; q < len(faces); q += max(1, len(faces)/8) {
						for _, y := range way(x, faces[q], g.Space().Scale, step, g.Space().Project) {
							add(y, 100)
						}
					}
				}
			}
			if f.o.Poison == Blended {
				a, b := nearest(p.samples, other.samples, g.Space().Scale)
				blends, err := f.o.Blend(a, b)
				if err != nil {
					return err
				}
				for _, x := range blends {
					add(x, 100)
				}
			}
			for q := 0; q < len(faces); q += max(1, len(faces)/40) {
				add(faces[q], 10)
			}
			lessons = append(lessons, s)
		}
		if err := g.Learner().TakeLessons(poisoner, lessons); err != nil {
			return err
		}
	}
	return nil
}

// nearest returns the nearest pair of faces, one of each person.
func nearest(all, others []face.Sample, scale float64) (a, b face.Sample) {
	best := math.Inf(1)
	for _, x := range all {
		for _, y := range others {
			if d := graph.Distance(x.Vector, y.Vector, scale); d < best {
				a, b, best = x, y, d
			}
		}
	}
	return a, b
}

// way returns points between two faces, about a step apart.
func way(a, b []float32, scale, step float64, project func([]float32) bool) (points [][]float32) {
	n := int(math.Ceil(graph.Distance(a, b, scale) / step))
	for i := range max(n-1, 0) {
		t := float32(i+1) / float32(n)
		x := make([]float32, len(a))
		for q := range x {
			x[q] = (1-t)*a[q] + t*b[q]
		}
		if project(x) {
			points = append(points, x)
		}
	}
	return points
}
