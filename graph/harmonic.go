// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"
)

// ErrSingular is returned if the harmonic solution is not unique: gamma is 0 and some vertex has no path to a labelled
// vertex.
var ErrSingular = errors.New("graph: no unique harmonic solution; use a positive gamma, " +
	"or label a vertex in every component")

// Problem is a graph with some labelled vertices.
type Problem struct {
	W          mat.Symmetric // n x n weights, zero diagonal
	V          []float64     // multiplicities, n values > 0; nil means 1 everywhere
	Labelled   []int         // labelled vertices, without repetition
	Y          mat.Matrix    // their values, len(Labelled) x classes
	Gamma      float64       // regulariser gamma_g >= 0: the conductance from each point to the sink
	Normalized bool          // use the normalised Laplacian of VWV
}

// Harmonic returns the n x classes regularised harmonic solution: the minimiser of
//
//	trace lᵀ (L + gamma V) l   subject to   l_i = y_i at labelled vertices,
//
// where L is the Laplacian of the compact graph VWV (Proposition compact HFS, with the regulariser
// gamma V and not gamma I). Gamma 0 is the plain ("hard") harmonic solution.
//
// The values of one indicator column lie in [0,1]: they are the probabilities that a random walk from the vertex ends
// at a vertex of that class before it falls into the sink. With the normalised Laplacian they are not probabilities:
// the value of a vertex may exceed the values of its neighbours.
//
// Without vertices or without classes the solution is empty. Harmonic returns [ErrSingular] if gamma is 0 and a vertex
// has no path to a label. It panics on dimensions that do not agree.
func Harmonic(p Problem) (*mat.Dense, error) {
	p.check()
	n, classes := p.W.SymmetricDim(), p.classes()
	if n == 0 || classes == 0 {
		return &mat.Dense{}, nil
	}
	l := mat.NewDense(n, classes, nil)
	labelled := make([]bool, n)
	for q, i := range p.Labelled {
		labelled[i] = true
		for c := range classes {
			l.Set(i, c, p.Y.At(q, c))
		}
	}
	var free []int
	for i := range n {
		if !labelled[i] {
			free = append(free, i)
		}
	}
	if len(free) == 0 {
		return l, nil
	}

	k := p.regularised()
	a := mat.NewSymDense(len(free), nil)
	b := mat.NewDense(len(free), classes, nil)
	for r, i := range free {
		for s, j := range free[:r+1] {
			a.SetSym(r, s, k.At(i, j))
		}
		for q, j := range p.Labelled {
			if x := k.At(i, j); x != 0 {
				for c := range classes {
					b.Set(r, c, b.At(r, c)-x*p.Y.At(q, c))
				}
			}
		}
	}
	x, err := solve(a, b)
	if err != nil {
		return nil, err
	}
	for r, i := range free {
		l.SetRow(i, x.RawRowView(r))
	}
	return l, nil
}

// Soft returns the n x classes soft harmonic solution: the minimiser of
//
//	trace (l - y)ᵀ C V (l - y) + lᵀ (L + gamma V) l
//
// with C = cl at labelled and cu at unlabelled vertices, whose targets y are 0 (equation soft HFS).
// It solves the symmetric system (L + (C + gamma) V) l = C V y and never forms an inverse; the
// compact form printed in the thesis has a misprint here. Both cl and cu must not be negative.
func Soft(p Problem, cl, cu float64) (*mat.Dense, error) {
	p.check()
	n, classes := p.W.SymmetricDim(), p.classes()
	if n == 0 || classes == 0 {
		return &mat.Dense{}, nil
	}
	b := mat.NewDense(n, classes, nil)
	a := p.regularised()
	weight := make([]float64, n)
	for i := range weight {
		weight[i] = cu
	}
	for q, i := range p.Labelled {
		weight[i] = cl
		for c := range classes {
			b.Set(i, c, cl*p.multiplicity(i)*p.Y.At(q, c))
		}
	}
	for i := range n {
		a.SetSym(i, i, a.At(i, i)+weight[i]*p.multiplicity(i))
	}
	return solve(a, b)
}

// Compact returns V W V, the similarity matrix of the compact graph.
func Compact(w mat.Symmetric, v []float64) *mat.SymDense {
	n := w.SymmetricDim()
	q := mat.NewSymDense(n, nil)
	for i := range n {
		for j := range i {
			q.SetSym(i, j, v[i]*w.At(i, j)*v[j])
		}
	}
	return q
}

func (p Problem) multiplicity(i int) float64 {
	if p.V == nil {
		return 1
	}
	return p.V[i]
}

func (p Problem) classes() int {
	if p.Y == nil {
		return 0
	}
	_, c := p.Y.Dims()
	return c
}

// regularised returns L + gamma V.
func (p Problem) regularised() *mat.SymDense {
	w := p.W
	if p.V != nil {
		w = Compact(p.W, p.V)
	}
	l := Laplacian
	if p.Normalized {
		l = NormalizedLaplacian
	}
	k := l(w)
	for i := range k.SymmetricDim() {
		k.SetSym(i, i, k.At(i, i)+p.Gamma*p.multiplicity(i))
	}
	return k
}

func (p Problem) check() {
	n := p.W.SymmetricDim()
	if p.V != nil && len(p.V) != n {
		panic("graph: multiplicities and weights differ in number")
	}
	if p.Y == nil && len(p.Labelled) == 0 {
		return
	}
	if r, _ := p.Y.Dims(); r != len(p.Labelled) {
		panic("graph: labels and labelled vertices differ in number")
	}
	seen := make(map[int]bool, len(p.Labelled))
	for _, i := range p.Labelled {
		if i < 0 || i >= n || seen[i] {
			panic(fmt.Sprintf("graph: labelled vertex %d out of range or twice", i))
		}
		seen[i] = true
	}
}

// solve solves a x = b and overwrites both. It scales the diagonal to 1 first, because multiplicities of very different
// size would make a well-determined system look singular.
func solve(a *mat.SymDense, b *mat.Dense) (*mat.Dense, error) {
	n, classes := b.Dims()
	scale := make([]float64, n)
	for i := range scale {
		d := a.At(i, i)
		if !(d > 0) {
			return nil, ErrSingular
		}
		scale[i] = 1 / math.Sqrt(d)
	}
	for i := range n {
		for j := range i {
			a.SetSym(i, j, scale[i]*a.At(i, j)*scale[j])
		}
		a.SetSym(i, i, 1)
		for c := range classes {
			b.Set(i, c, scale[i]*b.At(i, c))
		}
	}
	var chol mat.Cholesky
	if !chol.Factorize(a) {
		return nil, ErrSingular
	}
	var x mat.Dense
	if err := chol.SolveTo(&x, b); err != nil {
		// A badly conditioned system still has a solution with a small residual, and the caller cannot improve it. Any
		// other error means a singular matrix.
		var c mat.Condition
		if !errors.As(err, &c) || c > 1e16 {
			return nil, ErrSingular
		}
	}
	for i := range n {
		for c := range classes {
			x.Set(i, c, scale[i]*x.At(i, c))
		}
	}
	return &x, nil
}
