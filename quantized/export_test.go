// SPDX-License-Identifier: Apache-2.0

package quantized

import (
	"github.com/faceauth/faceauth/internal/reference/dense"
	"gonum.org/v1/gonum/mat"
)

// SetMaxEdges bounds the edges of all graphs until the returned function is called.
func SetMaxEdges(n int) (undo func()) {
	old := maxEdges
	maxEdges = n
	return func() { maxEdges = old }
}

// SketchAlways makes graphs use sketches for any number of points, and several processors for few, until the returned
// function is called.
func SketchAlways() (undo func()) {
	from, part := sketchedFrom, leastPart
	sketchedFrom, leastPart = 0, 8
	return func() { sketchedFrom, leastPart = from, part }
}

// Sketched returns how many vertices were compared by their sketches recently, and how many of them had to be measured.
func (g *Graph) Sketched() (asked, left int64) { return g.sketches.asked, g.sketches.left }

// Resting reports whether sketches have saved so little work that they are not used for a while.
func (g *Graph) Resting() bool { return g.sketches.rest > 0 }

// Room exports room.
func (c Candidate) Room() bool { return c.room() }

// Far reports whether the point has no edge, and is judged by the vertices within sight.
func (t Trial) Far() bool { return t.far }

// Edge returns the weight of the edge between two vertices, or 0.
func (g *Graph) Edge(i, j int) float64 {
	at, there := g.edges.find(i, j)
	if !there {
		return 0
	}
	return g.edges.of[i][at].w
}

// Values returns the harmonic values of all vertices, solved directly, for the function that is 1 at the labelled
// vertices of some classes and 0 at the others.
func (g *Graph) Values(of func(class int) bool) ([]float64, error) {
	n := g.Len()
	if g.Labelled() == 0 {
		return make([]float64, n), nil
	}
	w := mat.NewSymDense(n, nil)
	p := dense.Problem{Gamma: g.c.Gamma, V: g.v, W: w, Classes: 2}
	for i, class := range g.label {
		for _, e := range g.edges.of[i] {
			w.SetSym(i, e.to, e.w)
		}
		switch {
		case class == unlabelled:
			p.Class = append(p.Class, unlabelled)
		case of(class):
			p.Class = append(p.Class, 1)
		default:
			p.Class = append(p.Class, 0)
		}
	}
	l, err := p.Harmonic()
	if err != nil {
		return nil, err
	}
	return mat.Col(nil, 1, l), nil
}
