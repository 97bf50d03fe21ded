// SPDX-License-Identifier: Apache-2.0

// Package anomaly finds labels that are unusual given the examples: conditional anomaly detection.
//
// [Neighbours.SoftHarmonic] gives each example of a similarity graph a score. A large score means that its label does
// not fit the labels around it. An example that is itself unusual, far from all others or at the edge of its class,
// does not get a large score for that reason, because this says little about its label.
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

// Solve returns the n x classes soft harmonic solution on a graph with n x n weights: labels spread over the graph, and
// no label is certain. Y has the classes of the examples, from 0. V has the multiplicities, the number of examples that
// each vertex stands for; nil means 1 for each. Gamma > 0 is the conductance of a sink, which lowers the confidence far
// from all examples. C > 0 is the weight of a label. The error wraps [ErrSetting].
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

// Unusual returns the SoftHAD score of an example from its values in all classes ([Solve]): the value of the strongest
// other class minus the value of its own class, plus 1, in [0,2]. For two classes with labels of -1 and 1 this is the
// |l - y| of the thesis (equation "Anomaly score for soft harmonic anomaly detection"). An example without edges has
// gamma/(c+gamma).
func Unusual(values []float64, own int) float64 {
	other := 0.
	for q, v := range values {
		if q != own {
			other = max(other, v)
		}
	}
	return min(max(1-values[own]+other, 0), 2)
}
