// SPDX-License-Identifier: Apache-2.0

package quantized_test

import (
	"github.com/faceauth/faceauth/internal/reference/dense"
	"github.com/faceauth/faceauth/quantized"
	"gonum.org/v1/gonum/mat"
)

// direct returns the harmonic values of all vertices, solved directly, for the function that is 1
// at the labelled vertices of some classes and 0 at the others.
func direct(g *quantized.Graph, of func(class int) bool) ([]float64, error) {
	n := g.Len()
	if g.Labelled() == 0 {
		return make([]float64, n), nil
	}
	w := mat.NewSymDense(n, nil)
	p := dense.Problem{Gamma: g.Gamma(), V: g.Multiplicities(), W: w, Classes: 2}
	for i, class := range g.Labels() {
		for j := range i {
			w.SetSym(i, j, g.Edge(i, j))
		}
		switch {
		case class < 0:
			p.Class = append(p.Class, class)
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
