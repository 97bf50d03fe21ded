package maxmargin

import (
	"fmt"
	"math"

	"github.com/faceauth/faceauth/graph"
	"gonum.org/v1/gonum/mat"
)

// Manifold learns support vector machines that are smooth on a graph, the minimisers of
//
//	Σ max(1 - y f, 0) + gamma |f|² + gamma_u fᵀ L f
//
// over the labelled examples, with the Laplacian L of all of them (equation MR; M. Belkin, P. Niyogi, V. Sindhwani,
// Manifold Regularization, 2006). Such a machine is an ordinary one with the kernel deformed to K (I + r L K)⁻¹,
// where r = gamma_u/gamma (V. Sindhwani, P. Niyogi, M. Belkin, Beyond the Point Cloud, 2005).
type Manifold struct {
	e  *Examples
	lu mat.LU // of I + r L K
}

// Manifold returns the learner for a graph of the examples with n x n weights, and r >= 0. It takes O(n³) time once for
// all labels and all gamma. The error wraps [ErrSetting].
func (e *Examples) Manifold(w mat.Symmetric, r float64) (*Manifold, error) {
	if err := e.checkGraph(w); err != nil {
		return nil, err
	}
	if !(r >= 0) || math.IsInf(r, 1) {
		return nil, fmt.Errorf("%w: the ratio gamma_u/gamma is %g, and must not be negative", ErrSetting, r)
	}
	n := len(e.x)
	var system mat.Dense
	system.Mul(mat.DenseCopyOf(graph.Laplacian(w)), mat.DenseCopyOf(e.gram)) // gonum is slow with two symmetric ones
	system.Scale(r, &system)
	for i := range n {
		system.Set(i, i, system.At(i, i)+1)
	}
	m := &Manifold{e: e}
	m.lu.Factorize(&system)
	return m, nil
}

// SVM learns from labels as [Examples.SVM] does. All examples are support vectors. The error wraps [ErrLabels],
// [ErrSetting] or [ErrSlow].
func (m *Manifold) SVM(y []float64, gamma float64) (*Machine, error) {
	labelled, err := m.e.labelled(y)
	if err != nil {
		return nil, err
	}
	n := len(m.e.x)
	// The columns of (I + r L K)⁻¹ that belong to labelled examples.
	units, classes := mat.NewDense(n, len(labelled), nil), make([]float64, len(labelled))
	for r, i := range labelled {
		units.Set(i, r, 1)
		classes[r] = y[i]
	}
	var columns mat.Dense
	if err := m.lu.SolveTo(&columns, false, units); err != nil && columns.IsEmpty() {
		return nil, fmt.Errorf("%w: the graph's term drowns the kernel; use a smaller gamma_u/gamma", ErrSetting)
	}
	deformed := mat.NewSymDense(len(labelled), nil)
	var product mat.Dense
	product.Mul(m.e.gram, &columns)
	for r, i := range labelled {
		for s, j := range labelled[:r+1] {
			// Rounding makes the two halves differ.
			deformed.SetSym(r, s, (product.At(i, s)+product.At(j, r))/2)
		}
		deformed.SetSym(r, r, max(deformed.At(r, r), 0))
	}
	trained, err := classify(deformed, classes, gamma, !m.e.Origin)
	if err != nil {
		return nil, err
	}
	var weights mat.VecDense
	weights.MulVec(&columns, mat.NewVecDense(len(labelled), trained.Weights))
	return &Machine{Kernel: m.e.kernel, Support: m.e.x, Weights: weights.RawVector().Data, Bias: trained.Bias}, nil
}
