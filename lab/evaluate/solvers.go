// SPDX-License-Identifier: Apache-2.0

package evaluate

import (
	"math"

	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/quantized"
	"gonum.org/v1/gonum/mat"
)

// A solver gives a point that was tried on the graph of a learner a value for each class.
type solver func(g *quantized.Graph, t quantized.Trial) quantized.Solution

// solvers are in place of the harmonic solution, by name, with the same radii, links and guards.
var solvers = map[string]solver{
	"stored": stored, "spread": spreading(.99), "soft": soft(1),
}

// SolvedBy returns the entry of a learner, or of its sightings, with another solver.
func SolvedBy(e Entry, name string) Entry {
	made, solve := e.New, solvers[name]
	e.Name += "-" + name
	e.New = func() (Method, error) {
		m, err := made()
		if err != nil {
			return nil, err
		}
		l := m.(interface{ inner() *online.Learner }).inner()
		l.SolveBy(func(t quantized.Trial) quantized.Solution { return solve(l.Graph(), t) })
		return m, nil
	}
	return e
}

func (m *learner) inner() *online.Learner { return m.l }

// stored gives the class of the nearest stored face 1: a labelled face, or one that was learned as
// this class.
func stored(g *quantized.Graph, t quantized.Trial) (s quantized.Solution) {
	best := math.Inf(1)
	for c := range g.Classes() {
		if d := t.Nearest(c); d < best {
			best, s.Values = d, []quantized.Value{{Class: c, Value: 1}}
		}
	}
	return s
}

// spreading returns label spreading (Zhou et al., Learning with Local and Global Consistency, 2004):
// (1-alpha) (1 - alpha D^-½ W D^-½)^-1 y, as shares of the sum over all classes.
func spreading(alpha float64) solver {
	return func(g *quantized.Graph, t quantized.Trial) quantized.Solution {
		p := systemOf(g, t)
		n := len(p.vertices)
		a := mat.NewSymDense(n, nil)
		for i := range n {
			a.SetSym(i, i, 1)
			for j := range i {
				if w := p.w.At(i, j); w > 0 {
					a.SetSym(i, j, -alpha*w/math.Sqrt(p.degree[i]*p.degree[j]))
				}
			}
		}
		s := p.solve(g, a, func(float64) float64 { return 1 })
		sum := 0.
		for _, v := range s.Values {
			sum += v.Value
		}
		for i := range s.Values {
			s.Values[i].Value /= sum
		}
		return s
	}
}

// soft returns the soft harmonic solution of the thesis, in which a label has the weight c, and no
// label is certain: (L + (C + gamma) V)^-1 C V y.
func soft(c float64) solver {
	return func(g *quantized.Graph, t quantized.Trial) quantized.Solution {
		p := systemOf(g, t)
		a := mat.NewSymDense(len(p.vertices), nil)
		for i, v := range p.vertices {
			sink := g.Config().Gamma
			if v < g.Len() {
				if _, labelled := g.Class(v); labelled {
					sink += c
				}
			}
			a.SetSym(i, i, p.degree[i]+sink*p.mass[i])
			for j := range i {
				a.SetSym(i, j, -p.w.At(i, j))
			}
		}
		return p.solve(g, a, func(mass float64) float64 { return c * mass })
	}
}

// system is the part of a compact graph on which the harmonic solution at a point depends: the
// vertices that the point, the first one, reaches without crossing a labelled vertex.
type system struct {
	vertices []int // the number of all vertices of the graph stands for the point
	mass     []float64
	w        *mat.SymDense // products of weights and multiplicities
	degree   []float64
}

func systemOf(g *quantized.Graph, t quantized.Trial) (p system) {
	point := g.Len()
	home, held := t.Home()
	first := point
	if held {
		first = home
	}
	place := map[int]int{first: 0}
	p.vertices = []int{first}
	type edge struct {
		i, j int
		w    float64
	}
	var edges []edge
	c := g.Config()
	for at := 0; at < len(p.vertices); at++ {
		i, mass := p.vertices[at], 1.
		visit := func(j int, w float64) {
			to, there := place[j]
			if !there {
				to = len(p.vertices)
				place[j], p.vertices = to, append(p.vertices, j)
			}
			edges = append(edges, edge{at, to, w})
		}
		if i == point {
			t.Edges(visit)
		} else {
			if mass = g.Multiplicity(i); i == first {
				mass++
			}
			if _, labelled := g.Class(i); !labelled {
				g.Neighbours(i, func(j int, d float64) {
					if d > c.EdgeRadius() { // a link
						d *= c.EdgeRadius() / c.Link
					}
					visit(j, c.Kernel.Weight(d))
				})
			}
		}
		p.mass = append(p.mass, mass)
	}
	p.w, p.degree = mat.NewSymDense(len(p.mass), nil), make([]float64, len(p.mass))
	for _, e := range edges {
		p.w.SetSym(e.i, e.j, p.mass[e.i]*e.w*p.mass[e.j])
	}
	for i := range p.degree {
		for j := range p.degree {
			p.degree[i] += p.w.At(i, j)
		}
	}
	return p
}

// solve returns the values at the point of a^-1 y, where a is symmetric and y holds the weight of
// each labelled vertex.
func (p system) solve(g *quantized.Graph, a mat.Symmetric,
	weight func(mass float64) float64) (s quantized.Solution) {
	n := len(p.vertices)
	var f mat.Cholesky
	x, one := mat.NewVecDense(n, nil), mat.NewVecDense(n, nil)
	one.SetVec(0, 1)
	if !f.Factorize(a) {
		return s // no name
	}
	_ = f.SolveVecTo(x, one) // an error warns of the condition; x is solved
	values := make([]float64, g.Classes())
	for i, v := range p.vertices {
		if v == g.Len() {
			continue
		}
		if class, labelled := g.Class(v); labelled {
			values[class] += x.AtVec(i) * weight(p.mass[i])
		}
	}
	for c, v := range values {
		if v > 0 {
			s.Values = append(s.Values, quantized.Value{Class: c, Value: v})
		}
	}
	return s
}
