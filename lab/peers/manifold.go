// SPDX-License-Identifier: Apache-2.0

package peers

import (
	"fmt"
	"math"

	"github.com/faceauth/faceauth/internal/reference/dense"
	"github.com/faceauth/faceauth/lab/maxmargin"
	"gonum.org/v1/gonum/mat"
)

// Manifold learns support vector machines that are smooth on a graph, the minimisers of
//
//	Σ max(1 - y f, 0) + gamma |f|² + gamma_u fᵀ L f
//
// The sum is over the labelled examples. L is the Laplacian of the graph of all examples (equation
// MR; M. Belkin, P. Niyogi, V. Sindhwani, Manifold Regularization, 2006). Such a machine is an ordinary support vector machine with the deformed kernel K (I + r L
// K)⁻¹, where r = gamma_u/gamma (V. Sindhwani, P. Niyogi, M. Belkin, Beyond the Point Cloud, 2005).
type Manifold struct {
	x       [][]float32
	kernel  maxmargin.Kernel
	inverse mat.Dense // (I + r L K)⁻¹
	// deformed has the examples with the deformed kernel. Each example is represented by its
	// number.
	deformed *maxmargin.Examples
}

// NewManifold returns the learner for the examples x, a graph of them with n x n weights, and r >=
// 0. Origin leaves the bias out, as in [maxmargin.Examples.Origin]. It takes O(n³) time, once for
// all labels and all values of gamma. The error wraps [maxmargin.ErrExamples] or
// [maxmargin.ErrSetting].
func NewManifold(x [][]float32, kernel maxmargin.Kernel, origin bool, w mat.Symmetric,
	r float64) (*Manifold, error) {
	if w.SymmetricDim() != len(x) {
		return nil, fmt.Errorf("%w: a graph of %d vertices for %d examples", maxmargin.ErrSetting,
			w.SymmetricDim(), len(x))
	}
	n := len(x)
	for i := range n {
		for j := range i + 1 {
			if s := w.At(i, j); !(s >= 0) || math.IsInf(s, 1) {
				return nil, fmt.Errorf("%w: weight (%d,%d) of the graph is %g",
					maxmargin.ErrSetting, i, j, s)
			}
		}
	}
	gram := mat.NewDense(n, n, nil)
	for i := range n {
		for j := range i + 1 {
			v := kernel(x[i], x[j])
			gram.Set(i, j, v)
			gram.Set(j, i, v)
		}
	}
	if !(r >= 0) || math.IsInf(r, 1) {
		return nil, fmt.Errorf("%w: the ratio gamma_u/gamma must not be negative, got %g",
			maxmargin.ErrSetting, r)
	}
	m := &Manifold{x: x, kernel: kernel}
	var system, product mat.Dense
	// gonum is slow with two symmetric matrices
	system.Mul(mat.DenseCopyOf(dense.Laplacian(w, false)), gram)
	system.Scale(r, &system)
	unit := mat.NewDense(n, n, nil)
	for i := range n {
		system.Set(i, i, system.At(i, i)+1)
		unit.Set(i, i, 1)
	}
	if err := m.inverse.Solve(&system, unit); err != nil && m.inverse.IsEmpty() {
		return nil, fmt.Errorf(
			"%w: the graph's term drowns the kernel; use a smaller gamma_u/gamma",
			maxmargin.ErrSetting)
	}
	product.Mul(gram, &m.inverse)
	numbers := make([][]float32, n)
	for i := range numbers {
		numbers[i] = []float32{float32(i)}
	}
	var err error
	m.deformed, err = maxmargin.NewExamples(numbers, func(a, b []float32) float64 {
		i, j := int(a[0]), int(b[0])
		// makes the kernel symmetric in spite of rounding
		v := (product.At(i, j) + product.At(j, i)) / 2
		if i == j {
			v = max(v, 0)
		}
		return v
	})
	if err != nil {
		return nil, err
	}
	m.deformed.Origin = origin
	return m, nil
}

// SVM learns from labels as [maxmargin.Examples.SVM] does. All examples are support vectors. The
// error wraps [maxmargin.ErrLabels], [maxmargin.ErrSetting] or [maxmargin.ErrSlow].
func (m *Manifold) SVM(y []float64, gamma float64) (*maxmargin.Machine, error) {
	trained, err := m.deformed.SVM(y, gamma)
	if err != nil {
		return nil, err
	}
	known := mat.NewVecDense(len(m.x), nil)
	for s, number := range trained.Support {
		known.SetVec(int(number[0]), trained.Weights[s])
	}
	var weights mat.VecDense
	weights.MulVec(&m.inverse, known)
	return &maxmargin.Machine{Kernel: m.kernel, Support: m.x, Weights: weights.RawVector().Data,
		Bias: trained.Bias}, nil
}
