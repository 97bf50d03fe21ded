// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"math"

	"gonum.org/v1/gonum/mat"
)

// Laplacian returns L = D - W.
func Laplacian(w mat.Symmetric) *mat.SymDense {
	n := w.SymmetricDim()
	l := mat.NewSymDense(n, nil)
	for i, d := range Degrees(w) {
		for j := range i {
			l.SetSym(i, j, -w.At(i, j))
		}
		// The diagonal of w, if it is not zero, is a loop: it cancels in D - W.
		l.SetSym(i, i, d-w.At(i, i))
	}
	return l
}

// NormalizedLaplacian returns L = I - D^-½ W D^-½. The row and column of a vertex without edges are zero.
func NormalizedLaplacian(w mat.Symmetric) *mat.SymDense {
	n := w.SymmetricDim()
	l := Laplacian(w)
	deg := Degrees(w)
	for i := range n {
		for j := range i + 1 {
			if x := l.At(i, j); x != 0 {
				l.SetSym(i, j, x/math.Sqrt(deg[i]*deg[j]))
			}
		}
	}
	return l
}
