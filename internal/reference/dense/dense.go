// SPDX-License-Identifier: Apache-2.0

// Package dense computes on similarity graphs with matrices of all pairs of points, directly and
// offline: the slow model of package quantized, and what the laboratory reproduces the thesis with.
//
// The source is M. Valko, Adaptive Graph-Based Algorithms for Conditional Anomaly Detection and
// Semi-Supervised Learning, 2011: "Graphs as Data Models" for the graphs and their Laplacians,
// "Regularized Harmonic Function" for [Problem.Harmonic], "Soft Harmonic Solution" for
// [Problem.Soft], and the proposition on the compact harmonic solution (Section "Online
// Semi-Supervised Learning With Quantized Graphs") for multiplicities.
package dense

import (
	"errors"
	"math"
	"sort"

	"github.com/faceauth/faceauth/quantized"
	"gonum.org/v1/gonum/mat"
)

// Distances returns the matrix of Euclidean distances between the rows of x, times scale. All rows
// must have the same length.
func Distances(x [][]float32, scale float64) *mat.SymDense {
	d := mat.NewSymDense(len(x), nil)
	for i := range x {
		for j := range i {
			d.SetSym(i, j, quantized.Distance(x[i], x[j], scale))
		}
	}
	return d
}

// Similarity returns the epsilon-neighbourhood graph of points at the given distances. Its weights
// come from the kernel; weights below epsilon and the diagonal are zero. Epsilon 0 keeps every
// edge.
func Similarity(d mat.Symmetric, k quantized.Kernel, epsilon float64) *mat.SymDense {
	n := d.SymmetricDim()
	w := mat.NewSymDense(n, nil)
	for i := range n {
		for j := range i {
			if x := k.Weight(d.At(i, j)); x >= epsilon {
				w.SetSym(i, j, x)
			}
		}
	}
	return w
}

// Nearest returns the graph that joins two points if either is among the m nearest of the other
// (symmetrised by OR). Its weights come from the kernel, and its diagonal is zero. Of equal
// distances the smaller index counts as nearer. With m >= n-1 every pair is joined.
func Nearest(d mat.Symmetric, k quantized.Kernel, m int) *mat.SymDense {
	n := d.SymmetricDim()
	w := mat.NewSymDense(n, nil)
	for i := range n {
		var others []int
		for j := range n {
			if j != i {
				others = append(others, j)
			}
		}
		sort.SliceStable(others, func(a, b int) bool {
			return d.At(i, others[a]) < d.At(i, others[b])
		})
		for _, j := range others[:min(m, len(others))] {
			w.SetSym(i, j, k.Weight(d.At(i, j)))
		}
	}
	return w
}

// Laplacian returns L = D - W, or, if it is to be normalised, D^-½ L D^-½, where the row and the
// column of a vertex without edges are zero. The diagonal of w must be zero.
func Laplacian(w mat.Symmetric, normalised bool) *mat.SymDense {
	n := w.SymmetricDim()
	l := mat.NewSymDense(n, nil)
	degree := make([]float64, n)
	for i := range n {
		for j := range n {
			degree[i] += w.At(i, j)
		}
	}
	for i := range n {
		for j := range i + 1 {
			x := -w.At(i, j)
			if i == j {
				x = degree[i]
			}
			if normalised && x != 0 {
				x /= math.Sqrt(degree[i] * degree[j])
			}
			l.SetSym(i, j, x)
		}
	}
	return l
}

// ErrSingular is returned if the harmonic solution is not unique: gamma is 0 and some vertex has no
// path to a labelled vertex.
var ErrSingular = errors.New(
	"no unique harmonic solution; use a positive gamma, or label a vertex in every component")

// Problem is a graph of n > 0 vertices, of which some have labels.
type Problem struct {
	W mat.Symmetric // n x n weights, zero diagonal
	// multiplicities: how many points each vertex stands for; nil for 1 everywhere
	V          []float64
	Class      []int   // of each vertex, from 0; negative for an unlabelled one
	Classes    int     // their number, > 0
	Gamma      float64 // regulariser gamma_g >= 0: the conductance from each point to the sink
	Normalised bool    // use the normalised Laplacian of VWV
}

// Harmonic returns the n x classes regularised harmonic solution: the minimiser of
//
//	trace lᵀ (L + gamma V) l   subject to   l_i = y_i at labelled vertices,
//
// where L is the Laplacian of the compact graph VWV (Proposition compact HFS, with the regulariser
// gamma V and not gamma I), and y_i has a 1 for the class. Gamma 0 is the plain ("hard") harmonic
// solution.
//
// The values of a class lie in [0,1]: they are the probabilities that a random walk from the vertex
// ends at a vertex of that class before it falls into the sink. With the normalised Laplacian they
// are not probabilities: the value of a vertex may exceed the values of its neighbours. The error
// is [ErrSingular].
func (p Problem) Harmonic() (*mat.Dense, error) {
	a, b := p.system()
	for i, class := range p.Class {
		if class < 0 {
			continue
		}
		for j, other := range p.Class {
			if other < 0 {
				b.Set(j, class, b.At(j, class)-a.At(i, j))
			}
			a.SetSym(i, j, 0)
		}
		a.SetSym(i, i, 1)
		b.Set(i, class, 1)
	}
	return solve(a, b)
}

// Soft returns the n x classes soft harmonic solution: the minimiser of
//
//	trace (l - y)ᵀ C V (l - y) + lᵀ (L + gamma V) l
//
// with C = cl at labelled and cu at unlabelled vertices, whose targets y are 0 (equation soft HFS).
// It solves the symmetric system (L + (C + gamma) V) l = C V y and never forms an inverse; the
// compact form printed in the thesis has a misprint here. Both cl and cu must not be negative. The
// error is [ErrSingular].
func (p Problem) Soft(cl, cu float64) (*mat.Dense, error) {
	a, b := p.system()
	for i, class := range p.Class {
		c := cu
		if class >= 0 {
			c = cl
			b.Set(i, class, cl*p.multiplicity(i))
		}
		a.SetSym(i, i, a.At(i, i)+c*p.multiplicity(i))
	}
	return solve(a, b)
}

func (p Problem) multiplicity(i int) float64 {
	if p.V == nil {
		return 1
	}
	return p.V[i]
}

// system returns L + gamma V, and zeros for the right side.
func (p Problem) system() (a *mat.SymDense, b *mat.Dense) {
	n := len(p.Class)
	compact := mat.NewSymDense(n, nil)
	for i := range n {
		for j := range i {
			compact.SetSym(i, j, p.multiplicity(i)*p.W.At(i, j)*p.multiplicity(j))
		}
	}
	a = Laplacian(compact, p.Normalised)
	for i := range n {
		a.SetSym(i, i, a.At(i, i)+p.Gamma*p.multiplicity(i))
	}
	return a, mat.NewDense(n, p.Classes, nil)
}

// solve solves a x = b and overwrites both. It scales the diagonal to 1 first, because
// multiplicities of very different size would make a well-determined system look singular.
func solve(a *mat.SymDense, b *mat.Dense) (*mat.Dense, error) {
	n, classes := b.Dims()
	scale := make([]float64, n)
	for i := range n {
		d := a.At(i, i)
		if !(d > 0) {
			return nil, ErrSingular
		}
		scale[i] = 1 / math.Sqrt(d)
		a.SetSym(i, i, 1)
		for j := range i {
			a.SetSym(i, j, scale[i]*a.At(i, j)*scale[j])
		}
		for c := range classes {
			b.Set(i, c, scale[i]*b.At(i, c))
		}
	}
	var chol mat.Cholesky
	if !chol.Factorize(a) {
		return nil, ErrSingular
	}
	// A badly conditioned system still has a solution with a small residual, and the caller cannot
	// improve it.
	var condition mat.Condition
	if err := chol.SolveTo(b, b); err != nil && (!errors.As(err, &condition) || condition > 1e16) {
		return nil, ErrSingular
	}
	for i := range n {
		for c := range classes {
			b.Set(i, c, scale[i]*b.At(i, c))
		}
	}
	return b, nil
}
