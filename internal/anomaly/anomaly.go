// SPDX-License-Identifier: Apache-2.0

// Package anomaly finds labels that are unusual given the examples: conditional anomaly detection.
//
// [SoftHarmonic] gives each example of a similarity graph a score. A large score means that its label does not fit the
// labels around it. An example that is itself unusual, far from all others or at the edge of its class, does not get a
// large score for that reason, because this says little about its label.
//
// The source is M. Valko, Adaptive Graph-Based Algorithms for Conditional Anomaly Detection and Semi-Supervised
// Learning, 2011, Section "Conditional Anomaly Detection with Soft Harmonic Functions".
package anomaly

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/faceauth/faceauth/graph"
	"gonum.org/v1/gonum/mat"
)

// Errors of the methods. [graph.ErrSingular] passes through.
var (
	ErrLabels  = errors.New("unusable labels")
	ErrWeights = errors.New("unusable weights")
	ErrSetting = errors.New("unusable setting")
)

// CheckGraph checks labels and weights, and returns the number of classes: one more than the largest label. The error
// wraps [ErrLabels] or [ErrWeights].
func CheckGraph(w mat.Symmetric, y []int) (int, error) {
	n := w.SymmetricDim()
	if len(y) != n {
		return 0, fmt.Errorf("%w: %d for %d examples", ErrLabels, len(y), n)
	}
	k, err := Classes(y)
	if err != nil {
		return 0, err
	}
	for i := range n {
		for j := range i {
			if x := w.At(i, j); !(x >= 0) || math.IsInf(x, 1) {
				return 0, fmt.Errorf("%w: weight (%d,%d) is %g; it must be finite and not negative", ErrWeights, i, j,
					x)
			}
		}
	}
	return k, nil
}

// Classes checks labels, and returns the number of classes. The error wraps [ErrLabels].
func Classes(y []int) (int, error) {
	if len(y) == 0 {
		return 0, fmt.Errorf("%w: there are no labels", ErrLabels)
	}
	least, most := slices.Min(y), slices.Max(y)
	if least < 0 {
		return 0, fmt.Errorf("%w: a label is %d; labels count from 0", ErrLabels, least)
	}
	if least == most {
		return 0, fmt.Errorf("%w: all labels are the same; give at least two classes", ErrLabels)
	}
	return most + 1, nil
}

// SoftHarmonic returns the SoftHAD scores of all examples of a similarity graph with n x n weights. Y has their
// classes, from 0. V has the multiplicities, the number of examples that each vertex stands for; nil means 1 for each.
//
// Labels spread over the graph by the soft harmonic solution l, in which no label is certain. Gamma > 0 is the
// conductance of a sink, which lowers the confidence far from all examples. C > 0 is the weight of a label. The score
// is the value of the strongest other class minus the value of the own class, plus 1. For two classes with labels of -1
// and 1 this is the |l - y| of the thesis (equation "Anomaly score for soft harmonic anomaly detection"). It lies in
// [0,2]. An example without edges has gamma/(c+gamma).
//
// It solves systems of equations, in O(n³) time and O(n²) memory, and never forms an inverse. The error wraps
// [ErrLabels], [ErrWeights] or [ErrSetting].
func SoftHarmonic(w mat.Symmetric, v []float64, y []int, c, gamma float64) ([]float64, error) {
	if _, err := CheckGraph(w, y); err != nil {
		return nil, err
	}
	for i, x := range v {
		if !(x > 0) || math.IsInf(x, 1) || len(v) != len(y) {
			return nil, fmt.Errorf("%w: multiplicity %d of %d is %g", ErrWeights, i+1, len(v), x)
		}
	}
	l, err := Solve(w, v, y, c, gamma)
	if err != nil {
		return nil, err
	}
	scores := make([]float64, len(y))
	for i, class := range y {
		scores[i] = Unusual(l.RawRowView(i), class)
	}
	return scores, nil
}

// Solve returns the n x classes soft harmonic solution from which [SoftHarmonic] computes its scores: every vertex has
// a label, and no label is certain. The error wraps [ErrSetting].
func Solve(w mat.Symmetric, v []float64, y []int, c, gamma float64) (*mat.Dense, error) {
	if err := checkSetting(c, gamma); err != nil {
		return nil, err
	}
	labels, all := mat.NewDense(len(y), slices.Max(y)+1, nil), make([]int, len(y))
	for i, class := range y {
		labels.Set(i, class, 1)
		all[i] = i
	}
	return graph.Soft(graph.Problem{W: w, V: v, Labelled: all, Y: labels, Gamma: gamma}, c, 0)
}

func checkSetting(c, gamma float64) error {
	if !(c > 0) || !(gamma > 0) || math.IsInf(c, 1) || math.IsInf(gamma, 1) {
		return fmt.Errorf("%w: c is %g and gamma is %g; both must be positive", ErrSetting, c, gamma)
	}
	return nil
}

// Unusual returns the score of [SoftHarmonic] from the values of an example in all classes: the value of the strongest
// other class minus the value of its own class, plus 1, in [0,2].
func Unusual(values []float64, own int) float64 {
	other := 0.
	for q, v := range values {
		if q != own {
			other = max(other, v)
		}
	}
	return min(max(1-values[own]+other, 0), 2)
}

// OwnMinusOther returns for each example the distance to the nearest other example of its class, minus the distance to
// the nearest example of another class. A large value means that the class does not fit the example. It is 0 for the
// only example of a class, and if there is only one class.
func OwnMinusOther(d mat.Symmetric, y []int) []float64 {
	scores := make([]float64, len(y))
	for i := range y {
		own, other := math.Inf(1), math.Inf(1)
		for j := range y {
			switch {
			case j == i:
			case y[j] == y[i]:
				own = min(own, d.At(i, j))
			default:
				other = min(other, d.At(i, j))
			}
		}
		if !math.IsInf(own, 1) && !math.IsInf(other, 1) {
			scores[i] = own - other
		}
	}
	return scores
}
