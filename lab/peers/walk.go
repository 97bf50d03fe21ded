// SPDX-License-Identifier: Apache-2.0

package peers

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
)

// RandomWalk returns the lambda-RWCAD scores (Section "Regularized Random Walk CAD" of the thesis)
// of all examples of a similarity graph with n x n weights. Y has their classes, from 0. A score
// estimates the probability, in [0,1], that the label should be another class.
//
// The likelihood of an example in a class is the share of time that a random walk on the graph of
// this class, with the example in it, spends at the example. The priors are the shares of the
// classes among the other examples. Lambda >= 0 stands for everything else, so an example that is
// unlikely in all classes has a low score. If its likelihood is 0 in all classes, the score is 0.
//
// It reads each weight a fixed number of times, and holds O(n) numbers beside them, so w may
// compute weights when they are read. The error wraps [ErrLabels], [ErrWeights] or [ErrSetting].
func RandomWalk(w mat.Symmetric, y []int, lambda float64) ([]float64, error) {
	k, err := checkGraph(w, y)
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
			if q == y[i] { // the volume contains the example's own edges
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

// Scale maps scores to the range of the scores of a training set: the least becomes 0 and the
// largest 1, so that scores of several tasks can be compared, as in the thesis. Scores outside the
// range become negative or larger than 1. If all training scores are equal, or there are none, the
// scores become 0.
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
