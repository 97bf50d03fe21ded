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
)

// Errors of the methods.
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

// CheckSetting returns an error that wraps [ErrSetting] unless the weight c of a label and the conductance gamma of the
// sink, which lowers the confidence far from all examples, are positive.
func CheckSetting(c, gamma float64) error {
	if !(c > 0) || !(gamma > 0) || math.IsInf(c, 1) || math.IsInf(gamma, 1) {
		return fmt.Errorf("%w: c is %g and gamma is %g; both must be positive", ErrSetting, c, gamma)
	}
	return nil
}

// Unusual returns the SoftHAD score of an example from its soft harmonic values in all classes: the value of the strongest
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
