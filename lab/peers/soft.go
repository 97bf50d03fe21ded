// SPDX-License-Identifier: Apache-2.0

package peers

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/faceauth/faceauth/internal/anomaly"
	"github.com/faceauth/faceauth/internal/reference/dense"
	"gonum.org/v1/gonum/mat"
)

// Errors of the methods.
var (
	ErrLabels  = errors.New("unusable labels")
	ErrWeights = errors.New("unusable weights")
	ErrSetting = errors.New("unusable setting")
)

// classesOf checks labels, and returns the number of classes. The error wraps [ErrLabels].
func classesOf(y []int) (int, error) {
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

// checkSetting returns an error that wraps [ErrSetting] unless the weight c of a label and the
// conductance gamma of the sink, which lowers the confidence far from all examples, are positive.
func checkSetting(c, gamma float64) error {
	if !(c > 0) || !(gamma > 0) || math.IsInf(c, 1) || math.IsInf(gamma, 1) {
		return fmt.Errorf("%w: c is %g and gamma is %g; both must be positive", ErrSetting, c,
			gamma)
	}
	return nil
}

// checkGraph checks labels and weights, and returns the number of classes: one more than the
// largest label. The error wraps [ErrLabels] or [ErrWeights].
func checkGraph(w mat.Symmetric, y []int) (int, error) {
	n := w.SymmetricDim()
	if len(y) != n {
		return 0, fmt.Errorf("%w: %d for %d examples", ErrLabels, len(y), n)
	}
	k, err := classesOf(y)
	if err != nil {
		return 0, err
	}
	for i := range n {
		for j := range i {
			if x := w.At(i, j); !(x >= 0) || math.IsInf(x, 1) {
				return 0, fmt.Errorf("%w: weight (%d,%d) is %g; it must be finite and not negative",
					ErrWeights, i, j, x)
			}
		}
	}
	return k, nil
}

// SoftHarmonic returns the SoftHAD scores of all examples of a similarity graph with n x n weights
// ([anomaly.Unusual]), in O(n³) time. Package anomaly has them for a graph of neighbours. The error
// wraps [ErrLabels], [ErrWeights] or [ErrSetting].
func SoftHarmonic(w mat.Symmetric, y []int, c, gamma float64) ([]float64, error) {
	if _, err := checkGraph(w, y); err != nil {
		return nil, err
	}
	l, err := soft(w, nil, y, c, gamma)
	if err != nil {
		return nil, err
	}
	scores := make([]float64, len(y))
	for i, class := range y {
		scores[i] = anomaly.Unusual(l.RawRowView(i), class)
	}
	return scores, nil
}

// soft returns the n x classes soft harmonic solution on a graph with n x n weights: labels spread
// over the graph, and no label is certain. V has the multiplicities, or is nil. The error wraps
// [ErrSetting].
func soft(w mat.Symmetric, v []float64, y []int, c, gamma float64) (*mat.Dense, error) {
	if err := checkSetting(c, gamma); err != nil {
		return nil, err
	}
	return dense.Problem{W: w, V: v, Class: y, Classes: slices.Max(y) + 1, Gamma: gamma}.Soft(c, 0)
}
