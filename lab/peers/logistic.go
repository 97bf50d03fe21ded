// SPDX-License-Identifier: Apache-2.0

package peers

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/optimize"
)

// Logistic trains a multinomial logistic regression. It minimises half the squared weights, without
// biases, plus cost > 0 times the negative log-likelihood. A score is the probability of the other
// classes. The error of the trainer wraps [ErrExamples], [ErrLabels], [ErrSetting], or comes from
// an optimiser that found no minimum.
func Logistic(cost float64) Trainer {
	return func(x [][]float32, y []int) (Scorer, error) {
		classes, err := checkExamples(x, y)
		if err != nil {
			return nil, err
		}
		if !(cost > 0) || math.IsInf(cost, 1) {
			return nil, fmt.Errorf("%w: the cost is %g, and must be positive", ErrSetting, cost)
		}
		l := newLogLikelihood(x, y, classes, cost)
		result, err := optimize.Minimize(optimize.Problem{Func: l.value, Grad: l.gradient},
			make([]float64, classes*l.width),
			&optimize.Settings{GradientThreshold: 1e-6 * cost * float64(len(x)),
				MajorIterations: 1000, Concurrent: 1},
			&optimize.LBFGS{})
		if err != nil && (result == nil || floats.HasNaN(result.X)) {
			return nil, fmt.Errorf("logistic regression: %w", err)
		}
		weights := mat.NewDense(classes, l.width, result.X)
		present := make([]bool, classes)
		for _, class := range y {
			present[class] = true
		}
		return func(p []float32, class int) float64 {
			if class >= classes || !present[class] {
				return 1
			}
			logs := make([]float64, 0, classes)
			own := 0.
			for q := range classes {
				if !present[q] {
					continue
				}
				row := weights.RawRowView(q)
				v := row[l.width-1]
				for j, f := range p {
					v += row[j] * float64(f)
				}
				logs = append(logs, v)
				if q == class {
					own = v
				}
			}
			return 1 - math.Exp(own-floats.LogSumExp(logs))
		}, nil
	}
}

// logLikelihood is the objective of a logistic regression and its gradient, computed together.
type logLikelihood struct {
	x     *mat.Dense // n x width, the last column 1
	y     []int
	width int
	cost  float64

	classes int
	at      []float64 // the argument of the two values below
	f       float64
	g       []float64
}

func newLogLikelihood(x [][]float32, y []int, classes int, cost float64) *logLikelihood {
	l := &logLikelihood{y: y, width: len(x[0]) + 1, cost: cost, classes: classes}
	l.x = mat.NewDense(len(x), l.width, nil)
	for i, v := range x {
		l.x.SetRow(i, append(widen(v), 1))
	}
	return l
}

func (l *logLikelihood) value(w []float64) float64 {
	l.compute(w)
	return l.f
}

func (l *logLikelihood) gradient(g, w []float64) {
	l.compute(w)
	copy(g, l.g)
}

func (l *logLikelihood) compute(w []float64) {
	if l.at != nil && floats.Equal(l.at, w) {
		return
	}
	l.at = append(l.at[:0], w...)
	weights := mat.NewDense(l.classes, l.width, l.at)
	var p mat.Dense
	p.Mul(l.x, weights.T())
	l.f = 0
	for i, class := range l.y {
		row := p.RawRowView(i)
		all := floats.LogSumExp(row)
		l.f += l.cost * (all - row[class])
		for q := range row {
			row[q] = l.cost * math.Exp(row[q]-all)
		}
		row[class] -= l.cost
	}
	var g mat.Dense
	g.Mul(p.T(), l.x)
	for q := range l.classes {
		row, gradient := weights.RawRowView(q), g.RawRowView(q)
		for j := range l.width - 1 {
			l.f += row[j] * row[j] / 2
			gradient[j] += row[j]
		}
	}
	l.g = g.RawMatrix().Data
}

// Confident trains on the examples that confident learning keeps (Northcutt, Jiang and Chuang
// 2021). A class is a candidate for an example if its probability is at least its mean probability
// over its own examples, by a scorer trained without the example. An example is left out if its
// most probable candidate is another class than its own. The scores of the trainer must be one
// minus the probability of a class. The error comes from [CrossValidate].
func Confident(folds int, train Trainer) Trainer {
	return func(x [][]float32, y []int) (Scorer, error) {
		k, err := checkExamples(x, y)
		if err != nil {
			return nil, err
		}
		p := make([][]float64, len(x))
		err = crossValidate(x, y, folds, train, func(i int, score Scorer) {
			p[i] = make([]float64, k)
			for q := range k {
				p[i][q] = 1 - score(x[i], q)
			}
		})
		if err != nil {
			return nil, err
		}
		threshold, size := make([]float64, k), make([]float64, k)
		for i, class := range y {
			if p[i] != nil { // in a fold
				threshold[class] += p[i][class]
				size[class]++
			}
		}
		for q := range threshold {
			threshold[q] /= max(size[q], 1)
		}
		var some [][]float32
		var classes []int
		left := make([]int, k)
		for i, class := range y {
			best := class
			for q := range p[i] {
				if size[q] > 0 && p[i][q] >= threshold[q] &&
					(p[i][best] < threshold[best] || p[i][q] > p[i][best]) {
					best = q
				}
			}
			if best == class {
				some, classes = append(some, x[i]), append(classes, class)
				left[class]++
			}
		}
		for q, n := range left {
			if n == 0 && size[q] > 0 { // a class must not vanish
				return train(x, y)
			}
		}
		return train(some, classes)
	}
}
