// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"sort"

	"gonum.org/v1/gonum/mat"
)

// Similarity returns the epsilon-neighbourhood graph of points at the given distances. Its weights come from the
// kernel; weights below epsilon and the diagonal are zero. Epsilon 0 keeps every edge.
func Similarity(d mat.Symmetric, k Kernel, epsilon float64) *mat.SymDense {
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

// Nearest returns the graph that joins two points if either is among the m nearest of the other (symmetrised by OR).
// Its weights come from the kernel, and its diagonal is zero. Of equal distances the smaller index counts as nearer. It
// panics unless m is positive; with m >= n-1 every pair is joined.
func Nearest(d mat.Symmetric, k Kernel, m int) *mat.SymDense {
	if m <= 0 {
		panic("graph: number of neighbours not positive")
	}
	n := d.SymmetricDim()
	w := mat.NewSymDense(n, nil)
	order := make([]int, 0, n)
	for i := range n {
		order = order[:0]
		for j := range n {
			if j != i {
				order = append(order, j)
			}
		}
		sort.SliceStable(order, func(a, b int) bool { return d.At(i, order[a]) < d.At(i, order[b]) })
		for _, j := range order[:min(m, len(order))] {
			w.SetSym(i, j, k.Weight(d.At(i, j)))
		}
	}
	return w
}

// Degrees returns the sum of the weights at each vertex.
func Degrees(w mat.Symmetric) []float64 {
	n := w.SymmetricDim()
	deg := make([]float64, n)
	for i := range n {
		for j := range n {
			deg[i] += w.At(i, j)
		}
	}
	return deg
}
