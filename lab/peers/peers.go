// SPDX-License-Identifier: Apache-2.0

// Package peers holds methods for comparison. Only the figures of package thesis use them.
//
// For conditional anomaly detection (package anomaly): [WeightedNeighbours], and with training
// examples [Projection], [OneClass], [Quadratic] and [Logistic], alone or after [Confident]
// learning. [CrossValidate] scores each example with a scorer that was trained on others.
// [Backbone] is [SoftHarmonic] for more examples than a graph can hold. For max-margin graph cuts
// (package maxmargin): [Manifold], whose classifier itself must be smooth on the graph.
package peers

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/faceauth/faceauth/internal/reference/dense"
	"github.com/faceauth/faceauth/lab/svm"
	"github.com/faceauth/faceauth/quantized"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distmv"
)

// ErrExamples is wrapped if examples differ in length, hold a value that is not finite, or leave
// nothing to compare.
var ErrExamples = errors.New("unusable examples")

// WeightedNeighbours returns for each example of a similarity graph with n x n weights the share of
// the weight around it that belongs to other classes, or 0 without edges. Y has the classes. On a
// graph of nearest neighbours this is weighted k-NN. An example far from all others is judged by
// tiny weights, too. The error wraps [ErrLabels] or [ErrWeights].
func WeightedNeighbours(w mat.Symmetric, y []int) ([]float64, error) {
	if _, err := checkGraph(w, y); err != nil {
		return nil, err
	}
	scores := make([]float64, len(y))
	for i := range y {
		var other, all float64
		for j := range y {
			if j == i {
				continue
			}
			x := w.At(i, j)
			all += x
			if y[j] != y[i] {
				other += x
			}
		}
		if all > 0 {
			scores[i] = other / all
		}
	}
	return scores, nil
}

// Scorer returns how unusual a class is for an example. The scorer need not be trained on this
// example. A larger score is more unusual.
type Scorer func(x []float32, class int) float64

// Trainer makes a [Scorer] from examples and their classes, from 0.
type Trainer func(x [][]float32, y []int) (Scorer, error)

// checkExamples checks that there are examples, that they are finite and have one length, and that
// there are as many classes. It returns the number of classes.
func checkExamples(x [][]float32, y []int) (k int, err error) {
	if len(x) != len(y) || len(x) == 0 {
		return 0, fmt.Errorf("%w: %d with %d classes", ErrExamples, len(x), len(y))
	}
	for i, v := range x {
		if len(v) != len(x[0]) {
			return 0, fmt.Errorf("%w: number %d has %d values, and the first has %d", ErrExamples,
				i, len(v), len(x[0]))
		}
		for _, f := range v {
			if f := float64(f); math.IsNaN(f) || math.IsInf(f, 0) {
				return 0, fmt.Errorf("%w: number %d has a value that is not finite", ErrExamples, i)
			}
		}
	}
	return classesOf(y)
}

// of returns the examples of a class.
func of(x [][]float32, y []int, class int) (some [][]float32) {
	for i, v := range x {
		if y[i] == class {
			some = append(some, v)
		}
	}
	return some
}

// Projection trains support vector machines, each class against the others, with cost c > 0 and a
// kernel: discriminative SVM anomaly detection. A score is the value of the strongest other class
// minus the value of the own class.
func Projection(k quantized.Kernel, c float64) Trainer {
	return func(x [][]float32, y []int) (Scorer, error) {
		n, err := checkExamples(x, y)
		if err != nil {
			return nil, err
		}
		w := gram(x, k)
		machines := make([]svm.Machine, n)
		for q := range machines {
			signs, size := make([]float64, len(y)), 0
			for i := range y {
				signs[i] = -1
				if y[i] == q {
					signs[i] = 1
					size++
				}
			}
			if size == 0 {
				machines[q].Bias = math.Inf(-1) // a class without examples is never the strongest
				continue
			}
			if machines[q], err = svm.Classify(w, signs, c, true); err != nil {
				return nil, err
			}
		}
		return func(p []float32, class int) float64 {
			near := weightsTo(x, p, k)
			own, other := math.Inf(-1), math.Inf(-1)
			for q, m := range machines {
				if f := value(m, near); q == class {
					own = f
				} else {
					other = max(other, f)
				}
			}
			return other - own
		}, nil
	}
}

// OneClass trains a one-class support vector machine for each class, with a share nu of outliers in
// (0,1] and a kernel. A score is the negative value of the own class; other classes have no
// influence.
func OneClass(k quantized.Kernel, nu float64) Trainer {
	return func(x [][]float32, y []int) (Scorer, error) {
		n, err := checkExamples(x, y)
		if err != nil {
			return nil, err
		}
		machines, parts := make([]svm.Machine, n), make([][][]float32, n)
		for q := range machines {
			if parts[q] = of(x, y, q); len(parts[q]) == 0 {
				continue
			}
			if machines[q], err = svm.OneClass(gram(parts[q], k), nu); err != nil {
				return nil, err
			}
		}
		return func(p []float32, class int) float64 {
			if class >= n || len(parts[class]) == 0 {
				return math.Inf(1)
			}
			return -value(machines[class], weightsTo(parts[class], p, k))
		}, nil
	}
}

func gram(x [][]float32, k quantized.Kernel) *mat.SymDense {
	w := dense.Similarity(dense.Distances(x, 1), k, 0)
	for i := range x {
		w.SetSym(i, i, 1)
	}
	return w
}

func weightsTo(x [][]float32, p []float32, k quantized.Kernel) []float64 {
	w := make([]float64, len(x))
	for i := range x {
		w[i] = k.Weight(quantized.Distance(x[i], p, 1))
	}
	return w
}

func value(m svm.Machine, k []float64) float64 {
	f := m.Bias
	for i, w := range m.Weights {
		f += w * k[i]
	}
	return f
}

// Quadratic trains a Gaussian for each class: quadratic discriminant analysis. A score is the
// posterior probability of the other classes. Ridge >= 0, in units of the mean variance of a
// class's features, is added to the diagonal; without it a class needs more examples than features.
// The error of the trainer wraps [ErrExamples] if a covariance is singular.
func Quadratic(ridge float64) Trainer {
	return func(x [][]float32, y []int) (Scorer, error) {
		n, err := checkExamples(x, y)
		if err != nil {
			return nil, err
		}
		if !(ridge >= 0) || math.IsInf(ridge, 1) {
			return nil, fmt.Errorf("%w: the ridge is %g, and must not be negative", ErrSetting,
				ridge)
		}
		classes, priors := make([]*distmv.Normal, n), make([]float64, n)
		for q := range classes {
			part := of(x, y, q)
			if len(part) == 0 {
				continue
			}
			priors[q] = math.Log(float64(len(part)) / float64(len(x)))
			if classes[q] = gaussian(part, ridge); classes[q] == nil {
				return nil, fmt.Errorf(
					"%w: class %d has %d, in which some features do not vary or depend on each "+
						"other; "+
						"use a larger ridge",
					ErrExamples, q, len(part))
			}
		}
		return func(p []float32, class int) float64 {
			logs, own := make([]float64, 0, n), math.Inf(-1)
			v := widen(p)
			for q, g := range classes {
				if g == nil {
					continue
				}
				l := priors[q] + g.LogProb(v)
				logs = append(logs, l)
				if q == class {
					own = l
				}
			}
			most, sum := slices.Max(logs), 0.
			for _, l := range logs {
				sum += math.Exp(l - most)
			}
			return 1 - math.Exp(own-most)/sum
		}, nil
	}
}

// gaussian returns the Gaussian of some examples, or nil if their covariance is singular.
func gaussian(x [][]float32, ridge float64) *distmv.Normal {
	p := len(x[0])
	data := mat.NewDense(len(x), p, nil)
	for i, v := range x {
		data.SetRow(i, widen(v))
	}
	mean := make([]float64, p)
	for q := range mean {
		mean[q] = stat.Mean(mat.Col(nil, q, data), nil)
	}
	covariance := mat.NewSymDense(p, nil)
	if len(x) > 1 {
		stat.CovarianceMatrix(covariance, data, nil)
	}
	add := ridge * mat.Trace(covariance) / float64(p)
	for q := range p {
		covariance.SetSym(q, q, covariance.At(q, q)+add)
	}
	g, ok := distmv.NewNormal(mean, covariance, nil)
	if !ok {
		return nil
	}
	return g
}

func widen(x []float32) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = float64(v)
	}
	return y
}

// CrossValidate returns the scores of all examples, each from a scorer that was trained without it:
// on all folds except one. Each class is spread evenly over the folds. The error wraps [ErrLabels]
// if a class has fewer than two examples, or comes from the trainer.
func CrossValidate(x [][]float32, y []int, folds int, train Trainer) ([]float64, error) {
	scores := make([]float64, len(y))
	err := crossValidate(x, y, folds, train, func(i int, score Scorer) {
		scores[i] = score(x[i], y[i])
	})
	if err != nil {
		return nil, err
	}
	return scores, nil
}

// crossValidate calls held for each example, with a scorer that was trained without this example.
func crossValidate(x [][]float32, y []int, folds int, train Trainer,
	held func(i int, score Scorer)) error {
	k, err := checkExamples(x, y)
	if err != nil {
		return err
	}
	if folds < 2 {
		return fmt.Errorf("%w: %d folds, and at least two are needed", ErrSetting, folds)
	}
	at, size := make([]int, len(y)), make([]int, k)
	for i, class := range y {
		at[i] = (size[class] + class) % folds
		size[class]++
	}
	for class, n := range size {
		if n == 1 {
			return fmt.Errorf("%w: class %d has one example, and none is left to compare it with",
				ErrLabels, class)
		}
	}
	for fold := range folds {
		var some [][]float32
		var classes []int
		for i := range x {
			if at[i] != fold {
				some, classes = append(some, x[i]), append(classes, y[i])
			}
		}
		if len(some) == len(x) {
			continue // fewer examples than folds
		}
		score, err := train(some, classes)
		if err != nil {
			return fmt.Errorf("fold %d of %d: %w", fold+1, folds, err)
		}
		for i := range x {
			if at[i] == fold {
				held(i, score)
			}
		}
	}
	return nil
}
