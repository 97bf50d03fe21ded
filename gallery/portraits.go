// SPDX-License-Identifier: Apache-2.0

package gallery

import (
	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/graph"
)

// sameFace is the greatest distance, as a share of the longest edge, between a face of the gallery and the same face in
// a recording. The same frame gives the same vector except for rounding on another machine.
const sameFace = .05

// Portraits looks for faces of a gallery in the recordings from which they come. [Gallery.Portraits] makes one.
type Portraits struct {
	g      *Gallery
	faces  []portrait
	labels []portrait // the labelled faces
}

// portrait is a face of the gallery with what is known from the nearest face in the recordings.
type portrait struct {
	name  string
	x     []float32
	least float64 // distance of the nearest face
	jpeg  []byte
	turns *face.Turns
}

// see takes in a face of a recording.
func (p *portrait) see(s face.Sample, scale float64) {
	d := graph.Distance(p.x, s.Vector, scale)
	if d <= p.least {
		p.least, p.jpeg, p.turns = d, s.JPEG, s.Turns
	}
}

// Turned is a person who was enrolled from pictures that are not the right way up.
type Turned struct {
	Name   string `json:"name"`
	Rotate int    `json:"rotate"` // degrees clockwise by which the pictures must be turned
}

// Portraits returns an empty collection of portraits of faces of g.
func (g *Gallery) Portraits(faces []Unusual) *Portraits {
	p := &Portraits{g: g}
	if g.learner == nil {
		return p
	}
	radius := sameFace * g.learner.Graph().Config().EdgeRadius()
	for _, u := range faces {
		p.faces = append(p.faces, portrait{x: u.Vector, least: radius})
	}
	for _, l := range g.learner.Labels() {
		if !l.Negative {
			p.labels = append(p.labels, portrait{name: g.Name(l.Person), x: g.learner.Vector(l.ID), least: radius})
		}
	}
	return p
}

// Take takes in a frame of a recording, whose faces have pictures and [face.Turns].
func (p *Portraits) Take(f face.Frame) {
	scale := p.g.Space().Scale
	for _, s := range f.Samples {
		if s.Vector == nil || len(s.JPEG) == 0 {
			continue
		}
		for i := range p.faces {
			p.faces[i].see(s, scale)
		}
		for i := range p.labels {
			if s.Turns != nil {
				p.labels[i].see(s, scale)
			}
		}
	}
}

// Picture returns the picture of a face, by its place in the faces of [Gallery.Portraits], or nil.
func (p *Portraits) Picture(i int) []byte { return p.faces[i].jpeg }

// Turned returns the people who were enrolled from turned pictures, and the people of whom nobody knows whether all
// labelled faces are the right way up: those who were not enrolled so ([Enrolment].Upright), and whose faces are not
// all in the recordings.
func (p *Portraits) Turned() (turned []Turned, unknown []string) {
	sums, found := make(map[string]*face.Turns), make(map[string]int)
	for _, l := range p.labels {
		if l.turns != nil {
			if sums[l.name] == nil {
				sums[l.name] = &face.Turns{}
			}
			sums[l.name].Add(*l.turns)
			found[l.name]++
		}
	}
	for _, x := range p.g.People() {
		if t := sums[x.Name]; t != nil && t.Best(1) != 0 {
			turned = append(turned, Turned{x.Name, t.Best(1)})
		}
		if x.Upright < x.Faces && found[x.Name] < x.Faces {
			unknown = append(unknown, x.Name)
		}
	}
	return turned, unknown
}
