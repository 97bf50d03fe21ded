// SPDX-License-Identifier: Apache-2.0

// Package anomaly finds labels that are unusual given the examples: conditional anomaly detection.
//
// [SoftHarmonic] and [RandomWalk] give each example of a similarity graph a score, the larger the less its label goes
// with those around it. Both are built so that an example which is itself unusual, far from all others or at the edge
// of its class, does not lead the list for that: it says little about its label.
//
// The source is M. Valko, Adaptive Graph-Based Algorithms for Conditional Anomaly Detection and Semi-Supervised
// Learning, 2011: Section "Conditional Anomaly Detection with Soft Harmonic Functions" for the one, and "Regularized
// Random Walk CAD" for the other.
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

// SoftHarmonic returns the SoftHAD scores of all examples of a similarity graph with n x n weights, of which y are the
// classes from 0 on. V are multiplicities, the number of examples that each vertex stands for; nil for one each.
//
// Labels spread over the graph as the soft harmonic solution l has it, in which no label is certain: gamma > 0 is the
// conductance of a sink, which lowers the confidence in what is far from everything, and c > 0 says how much a label
// is believed. The score is that of the strongest other class minus that of its own, plus 1: for two classes with
// labels of
// -1 and 1 the |l - y| of the thesis (equation "Anomaly score for soft harmonic anomaly detection"), and in [0,2]. An
// example without edges has gamma/(c+gamma).
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

// Solve returns the n x classes soft harmonic solution on which the scores of [SoftHarmonic] rest: every vertex has a
// label, and none is certain. The error wraps [ErrSetting].
func Solve(w mat.Symmetric, v []float64, y []int, c, gamma float64) (*mat.Dense, error) {
	if !(c > 0) || !(gamma > 0) || math.IsInf(c, 1) || math.IsInf(gamma, 1) {
		return nil, fmt.Errorf("%w: c is %g and gamma is %g; both must be positive", ErrSetting, c, gamma)
	}
	labels, all := mat.NewDense(len(y), slices.Max(y)+1, nil), make([]int, len(y))
	for i, class := range y {
		labels.Set(i, class, 1)
		all[i] = i
	}
	return graph.Soft(graph.Problem{W: w, V: v, Labelled: all, Y: labels, Gamma: gamma}, c, 0)
}

// Unusual returns the score of [SoftHarmonic] for the values of an example in all classes: by how much the strongest
// other class exceeds its own, plus 1, in [0,2].
func Unusual(values []float64, own int) float64 {
	other := 0.
	for q, v := range values {
		if q != own {
			other = max(other, v)
		}
	}
	return min(max(1-values[own]+other, 0), 2)
}

// RandomWalk returns the lambda-RWCAD scores of all examples of a similarity graph with n x n weights, of which y are
// the classes from 0 on: estimates of the probability, in [0,1], that the label is another one.
//
// How likely an example is in a class is taken to be the share of time that a random walk on the graph of that class,
// with the example in it, spends there; the priors are the shares of the classes among the others. Lambda >= 0 stands
// for everything else, so that an example which is unlikely in all classes has a low score. Where it is in none the
// score is 0.
//
// It asks for each weight a fixed number of times, and holds O(n) numbers beside them: w may compute them. The error
// wraps [ErrLabels], [ErrWeights] or [ErrSetting].
func RandomWalk(w mat.Symmetric, y []int, lambda float64) ([]float64, error) {
	k, err := CheckGraph(w, y)
	if err != nil {
		return nil, err
	}
	if !(lambda >= 0) || math.IsInf(lambda, 1) {
		return nil, fmt.Errorf("%w: lambda is %g, and must not be negative", ErrSetting, lambda)
	}
	n := len(y)
	size, volume := make([]float64, k), make([]float64, k)
	for i := range n {
		size[y[i]]++
		for j := range n {
			if i != j && y[i] == y[j] {
				volume[y[i]] += w.At(i, j)
			}
		}
	}
	scores, sums := make([]float64, n), make([]float64, k)
	for i := range n {
		clear(sums)
		for j := range n {
			if j != i {
				sums[y[j]] += w.At(i, j)
			}
		}
		own, all := 0., lambda
		for q := range k {
			total, others := volume[q]+2*sums[q], size[q]
			if q == y[i] { // its own edges are in the volume
				total, others = volume[q], size[q]-1
			}
			if sums[q] == 0 {
				continue
			}
			p := sums[q] / total * others / float64(n-1)
			all += p
			if q == y[i] {
				own = p
			}
		}
		if all > lambda {
			scores[i] = min(max((all-lambda-own)/all, 0), 1)
		}
	}
	return scores, nil
}

// Scale moves scores to the range of those of a training set, so that its least is 0 and its largest 1 and those of
// several tasks can be compared, as the thesis does. A score that exceeds all of the training set is above 1, one below
// them negative. Where all of the training set are the same, or there are none, the scores are 0.
func Scale(scores, training []float64) {
	if len(training) == 0 {
		clear(scores)
		return
	}
	least, most := slices.Min(training), slices.Max(training)
	for i := range scores {
		if most > least {
			scores[i] = (scores[i] - least) / (most - least)
		} else {
			scores[i] = 0
		}
	}
}
