// SPDX-License-Identifier: Apache-2.0

// Package svm trains support vector machines on kernel matrices that the caller computes.
//
// [Classify] separates two classes and [OneClass] finds where the examples of one class are. Both
// solve the dual problem by sequential minimal optimisation, in which two multipliers move at a
// time. The second multiplier is chosen by the decrease of the objective (R.-E. Fan, P.-H. Chen,
// C.-J. Lin, Working Set Selection Using Second Order Information for Training SVM, 2005, WSS 2).
// Both keep the whole matrix in memory, so they are for some thousands of examples.
package svm

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"
)

// Errors of the solvers.
var (
	ErrLabels  = errors.New("unusable labels")
	ErrKernel  = errors.New("unusable kernel matrix")
	ErrSetting = errors.New("unusable setting")
	ErrSlow    = errors.New("support vector machine did not converge")
)

// Tolerance is the largest violation of the optimality conditions by a trained machine, in units of
// its value f(x).
const Tolerance = 1e-3

// flat replaces a curvature of 0, which a semi-definite kernel matrix can have.
const flat = 1e-12

// Machine is f(x) = Σ Weights_i k(x_i, x) + Bias over all examples of its training.
type Machine struct {
	Weights []float64 // signed by the class; 0 for an example that is not a support vector
	Bias    float64
}

// Classify returns the C-SVC with cost c of n examples with an n x n kernel matrix and classes y of
// -1 and 1: the minimiser of ½|f|² + c Σ max(1 - y f, 0). It is positive for examples of class 1.
//
// Without a bias f is a function of the kernel's space alone, as in the thesis, and it is 0 where
// the kernel is 0. Examples of one class are then enough. With a bias there must be examples of
// both classes.
//
// The error wraps [ErrLabels], [ErrKernel], [ErrSetting], or [ErrSlow] after too many steps.
func Classify(k mat.Symmetric, y []float64, c float64, bias bool) (Machine, error) {
	p, err := newProblem(k, len(y))
	if err != nil {
		return Machine{}, err
	}
	if !(c > 0) || math.IsInf(c, 1) {
		return Machine{}, fmt.Errorf("%w: the cost is %g, and must be positive", ErrSetting, c)
	}
	classes := map[float64]bool{}
	for i, label := range y {
		if label != 1 && label != -1 {
			return Machine{}, fmt.Errorf("%w: the label of example %d is %g, and must be -1 or 1",
				ErrLabels, i, label)
		}
		classes[label] = true
		p.gradient[i] = -1
	}
	if bias && len(classes) < 2 {
		return Machine{}, fmt.Errorf("%w: all examples are of one class", ErrLabels)
	}
	p.y, p.c = y, c
	var m Machine
	if bias {
		m.Bias, err = p.pairs()
		m.Bias = -m.Bias
	} else {
		err = p.singles()
	}
	if err != nil {
		return Machine{}, err
	}
	m.Weights = p.signed()
	return m, nil
}

// OneClass returns the one-class machine of n examples (B. Schölkopf et al., Estimating the Support
// of a High-Dimensional Distribution, 2001). Its value is negative where there are few examples,
// and for at most a share nu of the examples themselves. The weights lie in [0,1] and sum to n·nu,
// so values are in units of n·nu kernel values.
//
// The error wraps [ErrLabels] if there are no examples, [ErrKernel], [ErrSetting] or [ErrSlow].
func OneClass(k mat.Symmetric, nu float64) (Machine, error) {
	p, err := newProblem(k, k.SymmetricDim())
	if err != nil {
		return Machine{}, err
	}
	if !(nu > 0 && nu <= 1) {
		return Machine{}, fmt.Errorf("%w: nu is %g, and must lie in (0,1]", ErrSetting, nu)
	}
	p.c = 1
	left := nu * float64(len(p.a))
	for i := range p.a {
		p.y[i] = 1
		p.a[i] = min(left, 1)
		left -= p.a[i]
	}
	for i := range p.a {
		for j, a := range p.a {
			p.gradient[i] += p.k[i][j] * a
		}
	}
	rho, err := p.pairs()
	if err != nil {
		return Machine{}, err
	}
	return Machine{p.signed(), -rho}, nil
}

// problem is min ½ aᵀQa + qᵀa for 0 <= a <= c, with Q_ij = y_i y_j k_ij.
type problem struct {
	k        [][]float64
	y, a     []float64
	c        float64
	gradient []float64 // Qa + q
}

func newProblem(k mat.Symmetric, labels int) (*problem, error) {
	n := k.SymmetricDim()
	if n == 0 || labels == 0 {
		return nil, fmt.Errorf("%w: there are none", ErrLabels)
	}
	if n != labels {
		return nil, fmt.Errorf("%w: %d for %d examples", ErrLabels, labels, n)
	}
	p := &problem{k: make([][]float64, n), y: make([]float64, n), a: make([]float64, n),
		gradient: make([]float64, n)}
	store := make([]float64, n*n)
	for i := range p.k {
		p.k[i] = store[i*n : (i+1)*n]
		for j := range n {
			x := k.At(i, j)
			if math.IsNaN(x) || math.IsInf(x, 0) {
				return nil, fmt.Errorf("%w: its value for %d and %d is %g", ErrKernel, i, j, x)
			}
			p.k[i][j] = x
		}
		if p.k[i][i] < 0 {
			return nil, fmt.Errorf("%w: its value for %d and itself is negative", ErrKernel, i)
		}
	}
	return p, nil
}

// signed returns the multipliers with the signs of their classes.
func (p *problem) signed() []float64 {
	for i := range p.a {
		p.a[i] *= p.y[i]
	}
	return p.a
}

// rises and falls report whether y·a of an example can still rise or fall.
func (p *problem) rises(i int) bool {
	return p.y[i] > 0 && p.a[i] < p.c || p.y[i] < 0 &&
		p.a[i] > 0
}
func (p *problem) falls(i int) bool {
	return p.y[i] > 0 && p.a[i] > 0 || p.y[i] < 0 &&
		p.a[i] < p.c
}

// steps returns the largest number of steps of a solution.
func (p *problem) steps() int { return 1_000_000 + 100*len(p.a) }

// pairs solves the problem with constant yᵀa, and returns rho, which must be subtracted from f.
func (p *problem) pairs() (rho float64, err error) {
	n := len(p.a)
	for range p.steps() {
		// i has the largest violation; j is chosen so that the objective falls most.
		i, most := -1, math.Inf(-1)
		for t := range n {
			if v := -p.y[t] * p.gradient[t]; v > most && p.rises(t) {
				i, most = t, v
			}
		}
		j, least, gain := -1, math.Inf(1), 0.
		for t := range n {
			if !p.falls(t) {
				continue
			}
			v := -p.y[t] * p.gradient[t]
			least = min(least, v)
			if i < 0 || v >= most {
				continue
			}
			if g := (most - v) * (most - v) / p.curvature(i, t); g > gain {
				j, gain = t, g
			}
		}
		if i < 0 || j < 0 || most-least < Tolerance {
			return p.rho(), nil
		}
		// y_i a_i rises and y_j a_j falls by the same step.
		step := (most + p.y[j]*p.gradient[j]) / p.curvature(i, j)
		step = min(step, p.room(i, 1), p.room(j, -1))
		p.move(i, p.y[i]*step)
		p.move(j, -p.y[j]*step)
	}
	return 0, fmt.Errorf("%w in %d steps; use a smaller cost, or scale the features", ErrSlow,
		p.steps())
}

// curvature returns the second derivative of the objective when two multipliers move together.
func (p *problem) curvature(i, j int) float64 {
	return max(p.k[i][i]+p.k[j][j]-2*p.k[i][j], flat)
}

// room returns how far y·a of an example can move in a direction of 1 or -1.
func (p *problem) room(i int, direction float64) float64 {
	if p.y[i]*direction > 0 {
		return p.c - p.a[i]
	}
	return p.a[i]
}

// move adds to a multiplier, and updates the gradient.
func (p *problem) move(i int, by float64) {
	a := p.a[i] + by
	// A step that was cut at a bound must end exactly at the bound.
	if a < flat*p.c {
		a = 0
	} else if a > p.c*(1-flat) {
		a = p.c
	}
	by, p.a[i] = a-p.a[i], a
	if by == 0 {
		return
	}
	by *= p.y[i]
	for t, k := range p.k[i] {
		p.gradient[t] += p.y[t] * k * by
	}
}

// rho is the mean of y times the gradient over free multipliers, or else the middle of the range
// that the bounds allow.
func (p *problem) rho() float64 {
	var sum, free float64
	low, high := math.Inf(-1), math.Inf(1)
	for i, g := range p.gradient {
		v := p.y[i] * g
		switch rises, falls := p.rises(i), p.falls(i); {
		case rises && falls:
			sum += v
			free++
		case rises:
			low = max(low, -v)
		case falls:
			high = min(high, -v)
		}
	}
	switch {
	case free > 0:
		return sum / free
	case math.IsInf(low, -1):
		return -high
	case math.IsInf(high, 1):
		return -low
	}
	return -(low + high) / 2
}

// singles solves the problem without the constraint: the multiplier with the largest violation
// moves to its optimum.
func (p *problem) singles() error {
	for range p.steps() {
		best, most, to := -1, 0., 0.
		for i, g := range p.gradient {
			violation := -g // may rise
			switch {
			case p.a[i] <= 0 && g >= 0, p.a[i] >= p.c && g <= 0:
				continue
			case g > 0:
				violation = g
			}
			if violation > most {
				best, most = i, violation
				to = min(max(p.a[i]-g/max(p.k[i][i], flat), 0), p.c)
			}
		}
		if best < 0 || most < Tolerance {
			return nil
		}
		p.move(best, to-p.a[best])
	}
	return fmt.Errorf("%w in %d steps; use a smaller cost, or scale the features", ErrSlow,
		p.steps())
}
