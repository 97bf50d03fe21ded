// SPDX-License-Identifier: Apache-2.0

// Package maxmargin learns classifiers with a large margin from examples with few labels.
//
// [Examples.GraphCut] spreads the labels over a similarity graph and learns from the resulting
// values of all examples: a max-margin graph cut. The result, a [Machine], judges new examples
// without the graph. [Examples.SVM] learns from the labelled examples alone, for comparison.
//
// The source is M. Valko, Adaptive Graph-Based Algorithms for Conditional Anomaly Detection and
// Semi-Supervised Learning, 2011, Sections "Max-Margin Graph Cuts" and "Analysis of Max-margin
// Graph Cuts".
//
// # Caveats
//
// All matrices are dense, so the limit is some thousands of examples. A machine with a bias gives
// every point a sign, also a point far from all examples. [Examples.Origin] makes a machine without
// a bias. Its value is 0 wherever the kernel is 0.
package maxmargin

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/faceauth/faceauth/internal/reference/dense"
	"github.com/faceauth/faceauth/lab/svm"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// Errors of the methods.
var (
	ErrExamples = errors.New("unusable examples")
	ErrLabels   = errors.New("unusable labels")
	ErrSetting  = errors.New("unusable setting")
	ErrSlow     = svm.ErrSlow
)

// Machine is a classifier, f(x) = Σ Weights_i k(Support_i, x) + Bias, positive for class 1 and
// negative for class -1.
type Machine struct {
	Kernel  Kernel
	Support [][]float32
	Weights []float64
	Bias    float64
}

// Value returns f(x). X must be as long as the examples are.
func (m *Machine) Value(x []float32) float64 {
	f := m.Bias
	for i, s := range m.Support {
		f += m.Weights[i] * m.Kernel(s, x)
	}
	return f
}

// Examples are points with a kernel, and a setting for all methods.
type Examples struct {
	// Origin leaves the bias out: f is a function of the kernel's space alone, as in the thesis.
	// Then one class is enough.
	Origin bool

	x      [][]float32
	kernel Kernel
	gram   *mat.SymDense
}

// NewExamples returns the examples x, all of the same length. It computes their kernel matrix, in
// O(n²) time and memory. The error wraps [ErrExamples].
func NewExamples(x [][]float32, k Kernel) (*Examples, error) {
	if len(x) == 0 {
		return nil, fmt.Errorf("%w: there are none", ErrExamples)
	}
	e := &Examples{x: x, kernel: k, gram: mat.NewSymDense(len(x), nil)}
	for i := range x {
		if len(x[i]) != len(x[0]) {
			return nil, fmt.Errorf("%w: number %d has %d values, and the first has %d", ErrExamples,
				i, len(x[i]), len(x[0]))
		}
		for j := range i + 1 {
			v := k(x[i], x[j])
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return nil, fmt.Errorf(
					"%w: the kernel of %d and %d is not a finite number; scale the features",
					ErrExamples, i, j)
			}
			e.gram.SetSym(i, j, v)
		}
	}
	return e, nil
}

// labelled returns the examples with a label of -1 or 1; 0 means no label. The error wraps
// [ErrLabels].
func (e *Examples) labelled(y []float64) (all []int, err error) {
	if len(y) != len(e.x) {
		return nil, fmt.Errorf("%w: %d for %d examples", ErrLabels, len(y), len(e.x))
	}
	seen := map[float64]bool{}
	for i, label := range y {
		switch label {
		case 0:
		case -1, 1:
			all = append(all, i)
			seen[label] = true
		default:
			return nil, fmt.Errorf(
				"%w: the label of example %d is %g, and must be -1, 1, or 0 for none", ErrLabels, i,
				label)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%w: no example has one", ErrLabels)
	}
	if len(seen) < 2 && !e.Origin {
		return nil, fmt.Errorf("%w: all are of one class; label an example of the second class, "+
			"or leave the bias out",
			ErrLabels)
	}
	return all, nil
}

// SVM learns from the labelled examples alone. Y is -1, 1, or 0 for an example without a label.
// Gamma > 0 is the weight of |f|² against the sum of the hinge losses: the cost of LIBSVM is 1/(2
// gamma).
//
// The error wraps [ErrLabels], [ErrSetting] or [ErrSlow], or [ErrExamples] if the kernel is not
// positive semi-definite.
func (e *Examples) SVM(y []float64, gamma float64) (*Machine, error) {
	labelled, err := e.labelled(y)
	if err != nil {
		return nil, err
	}
	k, classes := mat.NewSymDense(len(labelled), nil), make([]float64, len(labelled))
	for r, i := range labelled {
		classes[r] = y[i]
		for s, j := range labelled[:r+1] {
			k.SetSym(r, s, e.gram.At(i, j))
		}
	}
	trained, err := classify(k, classes, gamma, !e.Origin)
	if err != nil {
		return nil, err
	}
	m := &Machine{Kernel: e.kernel, Bias: trained.Bias}
	for r, i := range labelled {
		if w := trained.Weights[r]; w != 0 {
			m.Support, m.Weights = append(m.Support, e.x[i]), append(m.Weights, w)
		}
	}
	return m, nil
}

func classify(k mat.Symmetric, y []float64, gamma float64, bias bool) (svm.Machine, error) {
	if !(gamma > 0) || math.IsInf(gamma, 1) {
		return svm.Machine{}, fmt.Errorf("%w: gamma is %g, and must be positive", ErrSetting, gamma)
	}
	m, err := svm.Classify(k, y, 1/(2*gamma), bias)
	if errors.Is(err, svm.ErrKernel) {
		err = fmt.Errorf("%w: %w", ErrExamples, err)
	}
	return m, err
}

// Spread returns the regularised harmonic solution on a graph of the examples with n x n weights:
// values between -1 and 1, from which [Examples.Cut] learns. GammaG >= 0 is the conductance of the
// sink. The error wraps [ErrLabels] or [ErrSetting], or is [dense.ErrSingular] if gammaG is 0 and
// an example has no path to a labelled example.
func (e *Examples) Spread(w mat.Symmetric, y []float64, gammaG float64) ([]float64, error) {
	labelled, err := e.labelled(y)
	if err != nil {
		return nil, err
	}
	if err := e.checkGraph(w); err != nil {
		return nil, err
	}
	if !(gammaG >= 0) || math.IsInf(gammaG, 1) {
		return nil, fmt.Errorf("%w: gamma_g is %g, and must not be negative", ErrSetting, gammaG)
	}
	class := slices.Repeat([]int{-1}, len(y))
	for _, i := range labelled {
		class[i] = max(0, int(y[i]))
	}
	l, err := dense.Problem{W: w, Class: class, Classes: 2, Gamma: gammaG}.Harmonic()
	if err != nil {
		return nil, err
	}
	values := mat.Col(nil, 1, l)
	floats.Sub(values, mat.Col(nil, 0, l))
	return values, nil
}

func (e *Examples) checkGraph(w mat.Symmetric) error {
	if n := w.SymmetricDim(); n != len(e.x) {
		return fmt.Errorf("%w: a graph of %d vertices for %d examples", ErrSetting, n, len(e.x))
	}
	for i := range e.x {
		for j := range i {
			if x := w.At(i, j); !(x >= 0) || math.IsInf(x, 1) {
				return fmt.Errorf("%w: the graph has a weight of %g between %d and %d", ErrSetting,
					x, i, j)
			}
		}
	}
	return nil
}

// Cut learns from the signs of l, which has a value for each example. It ignores examples with |l|
// less than epsilon. The error wraps [ErrLabels], [ErrSetting] or [ErrSlow].
func (e *Examples) Cut(l []float64, epsilon, gamma float64) (*Machine, error) {
	if !(epsilon >= 0) {
		return nil, fmt.Errorf("%w: epsilon is %g, and must not be negative", ErrSetting, epsilon)
	}
	signs := make([]float64, len(l))
	for i, x := range l {
		switch {
		case math.IsNaN(x):
			return nil, fmt.Errorf("%w: the label of example %d is not a number", ErrLabels, i)
		case math.Abs(x) < epsilon:
		case x > 0:
			signs[i] = 1
		case x < 0:
			signs[i] = -1
		}
	}
	return e.SVM(signs, gamma)
}

// GraphCut learns a max-margin graph cut (equation MMGC): [Examples.Spread], then [Examples.Cut].
// With a large gammaG and a positive epsilon only the labelled examples count, as in
// [Examples.SVM].
func (e *Examples) GraphCut(w mat.Symmetric, y []float64, gammaG, epsilon,
	gamma float64) (*Machine, error) {
	l, err := e.Spread(w, y, gammaG)
	if err != nil {
		return nil, err
	}
	return e.Cut(l, epsilon, gamma)
}
