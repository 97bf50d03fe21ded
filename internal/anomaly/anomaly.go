// SPDX-License-Identifier: Apache-2.0

// Package anomaly finds labels that are unusual given the examples: conditional anomaly detection.
//
// [Neighbours.SoftHarmonic] gives each example of a similarity graph a score. A large score means
// that its label does not fit the labels around it. An example that is itself unusual, far from all
// others or at the edge of its class, does not get a large score for that reason, because this says
// little about its label.
//
// The source is M. Valko, Adaptive Graph-Based Algorithms for Conditional Anomaly Detection and
// Semi-Supervised Learning, 2011, Section "Conditional Anomaly Detection with Soft Harmonic
// Functions".
package anomaly

import (
	"math"
	"runtime"
	"slices"
	"sync"

	"github.com/faceauth/faceauth/quantized"
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
	"gonum.org/v1/gonum/mat"
)

// Edge leads to a neighbour.
type Edge struct {
	To       int
	Weight   float64
	Distance float64
}

// Neighbours are the examples near each example, without the pairs between examples that are far
// from each other.
type Neighbours struct {
	// Edges has the neighbours of each example, in ascending order.
	Edges [][]Edge
	// Own and Other are the distances to the nearest other example of the same class and of another
	// class, or +Inf.
	Own, Other []float64
	y          []int
}

// tile is the number of examples of which the products with as many others are computed at once: 1
// MB.
const tile = 512

// Near finds the neighbours of examples x with classes y: those whose weight by the kernel is at
// least least. Distances are scale times the Euclidean distance. It measures all pairs, but keeps
// only neighbours: memory grows with their number.
//
// A float32 product finds the pairs that may matter. It differs from the true product by at most
// n·u/(1 - n·u) times the product of the norms, with u = 2^-24, for n values (Higham, Accuracy and
// Stability of Numerical Algorithms, Section 3.1), so only pairs that are certainly too far are
// left out. The others are measured in float64.
func Near(x [][]float32, y []int, scale float64, kernel quantized.Kernel,
	least float64) *Neighbours {
	n := len(x)
	s := &Neighbours{make([][]Edge, n), slices.Repeat([]float64{math.Inf(1)}, n),
		slices.Repeat([]float64{math.Inf(1)}, n), y}
	if n == 0 {
		return s
	}
	dim := len(x[0])
	flat, squares, norms := make([]float32, 0, n*dim), make([]float64, n), make([]float64, n)
	zero := make([]float32, dim)
	for i := range x {
		flat = append(flat, x[i]...)
		squares[i] = quantized.SquaredDistance(x[i], zero)
		norms[i] = math.Sqrt(squares[i])
	}
	nu := float64(dim+4) * 0x1p-24 // 4 for the scaling and the sums
	if nu >= .5 {
		nu = math.Inf(1) // no bound holds: every pair is measured
	}
	slack := 2 * nu / (1 - nu)
	cut := kernel.Radius(least) / scale
	cut *= cut * (1 + 1e-9)
	rows := func(from int) blas32.General {
		to := min(from+tile, n)
		return blas32.General{Rows: to - from, Cols: dim, Stride: dim,
			Data: flat[from*dim : to*dim]}
	}
	products := make([]float32, tile*tile)
	for a := 0; a < n; a += tile {
		for b := 0; b <= a; b += tile {
			left, right := rows(a), rows(b)
			blas32.Gemm(blas.NoTrans, blas.Trans, 1, left, right, 0,
				blas32.General{Rows: left.Rows, Cols: right.Rows, Stride: tile, Data: products})
			for i := a; i < a+left.Rows; i++ {
				for j, p := range products[(i-a)*tile:][:min(b+right.Rows, i)-min(b, i)] {
					j += b
					near := squares[i] + squares[j] - 2*float64(p) - slack*norms[i]*norms[j]
					// Negated, so that a pair is measured if its product overflowed.
					if !(near > max(cut, s.worst(i, j)/(scale*scale))) || y[i] == y[j] {
						s.join(i, j, quantized.Distance(x[i], x[j], scale), kernel, least)
					}
				}
			}
		}
	}
	for _, edges := range s.Edges {
		slices.SortFunc(edges, func(a, b Edge) int { return a.To - b.To })
	}
	return s
}

// worst returns the square of the distance below which a pair of two classes is the nearest of one
// of its examples.
func (s *Neighbours) worst(i, j int) float64 {
	d := max(s.Other[i], s.Other[j])
	return d * d
}

func (s *Neighbours) join(i, j int, d float64, kernel quantized.Kernel, least float64) {
	nearest := s.Other
	if s.y[i] == s.y[j] {
		nearest = s.Own
	}
	nearest[i], nearest[j] = min(nearest[i], d), min(nearest[j], d)
	if w := kernel.Weight(d); w >= least {
		s.Edges[i] = append(s.Edges[i], Edge{j, w, d})
		s.Edges[j] = append(s.Edges[j], Edge{i, w, d})
	}
}

// OwnMinusOther returns the distance of an example to the nearest other one of its class, minus
// that to the nearest of another class. A large value means that the class does not fit. It is 0
// for the only example of a class, and if there is only one class.
func (s *Neighbours) OwnMinusOther(i int) float64 {
	if math.IsInf(s.Own[i], 1) || math.IsInf(s.Other[i], 1) {
		return 0
	}
	return s.Own[i] - s.Other[i]
}

// Unusual returns the SoftHAD score of an example from its soft harmonic values in all classes: the
// value of the strongest other class minus the value of its own class, plus 1, in [0,2]. For two
// classes with labels of -1 and 1 this is the |l - y| of the thesis (equation "Anomaly score for
// soft harmonic anomaly detection"). An example without edges has gamma/(c+gamma).
func Unusual(values []float64, own int) float64 {
	other := 0.
	for q, v := range values {
		if q != own {
			other = max(other, v)
		}
	}
	return min(max(1-values[own]+other, 0), 2)
}

// Components up to this number of examples are solved directly. Larger ones are solved to
// [Tolerance]. Tests change it.
var direct = 500

// Tolerance is the largest error of a value of [Neighbours.SoftHarmonic] in a component of more
// than 500 examples.
const Tolerance = 2e-3

// SoftHarmonic returns the scores of all examples ([Unusual]): labels spread over the graph, and no
// label is certain. V has the multiplicities, the number of examples that each stands for. C is the
// weight of a label, and gamma the conductance of a sink, which lowers the confidence far from all
// examples; all are positive. Each component of the graph is solved by itself: the components of a
// gallery are people, and those who look alike. Memory grows with the number of edges. The score of
// an example of a large component is at most 2 [Tolerance] from the exact one.
func (s *Neighbours) SoftHarmonic(v []float64, c, gamma float64) []float64 {
	scores, seen := make([]float64, len(s.y)), make([]bool, len(s.y))
	for i := range s.y {
		if seen[i] {
			continue
		}
		part := s.component(i, seen)
		for q, score := range s.system(part, v, c, gamma).scores() {
			scores[part[q]] = score
		}
	}
	return scores
}

// component returns the examples that are connected with i, i included, and marks them as seen.
func (s *Neighbours) component(i int, seen []bool) []int {
	part := []int{i}
	seen[i] = true
	for q := 0; q < len(part); q++ {
		for _, e := range s.Edges[part[q]] {
			if !seen[e.To] {
				seen[e.To] = true
				part = append(part, e.To)
			}
		}
	}
	slices.Sort(part)
	return part
}

// system is (L + (c + gamma) V) l = c V y of a component, by the places of its examples there.
//
// No row of the matrix sums to less than (c + gamma) v, and no element beside the diagonal is
// positive. So the error of a solution is nowhere larger than the largest residual divided by (c +
// gamma) v.
type system struct {
	class    []int
	target   []float64 // c v
	least    []float64 // the residual that may be left
	diagonal []float64
	from     []int // the first element of each row, and the end
	to       []int32
	element  []float64 // beside the diagonal, times -1
}

func (s *Neighbours) system(part []int, v []float64, c, gamma float64) *system {
	at := make(map[int]int, len(part))
	for q, i := range part {
		at[i] = q
	}
	a := &system{from: []int{0}}
	for _, i := range part {
		diagonal := (c + gamma) * v[i]
		a.class, a.target = append(a.class, s.y[i]), append(a.target, c*v[i])
		a.least = append(a.least, Tolerance*diagonal)
		for _, e := range s.Edges[i] {
			x := v[i] * e.Weight * v[e.To]
			a.to, a.element = append(a.to, int32(at[e.To])), append(a.element, x)
			diagonal += x
		}
		a.diagonal, a.from = append(a.diagonal, diagonal), append(a.from, len(a.to))
	}
	return a
}

// scores returns the scores of the component's examples.
func (a *system) scores() []float64 {
	members := make(map[int][]int32) // of each class
	for i, class := range a.class {
		members[class] = append(members[class], int32(i))
	}
	if len(a.class) > direct {
		return a.stepwise(members)
	}
	return a.exact(members)
}

// exact solves the system by a decomposition of its matrix.
func (a *system) exact(members map[int][]int32) []float64 {
	n, class := len(a.class), 0
	column := make([]int, n) // of the class of each example
	b := mat.NewDense(n, len(members), nil)
	for _, of := range members {
		for _, i := range of {
			column[i] = class
			b.Set(int(i), class, a.target[i])
		}
		class++
	}
	m := mat.NewSymDense(n, nil)
	for i, d := range a.diagonal {
		m.SetSym(i, i, d)
		for q := a.from[i]; q < a.from[i+1]; q++ {
			m.SetSym(i, int(a.to[q]), -a.element[q])
		}
	}
	var chol mat.Cholesky
	if !chol.Factorize(m) { // lost to rounding
		return a.stepwise(members)
	}
	chol.SolveTo(b, b) // its error warns of the condition
	scores := make([]float64, n)
	for i, q := range column {
		scores[i] = Unusual(b.RawRowView(i), q)
	}
	return scores
}

// stepwise solves for the classes one by one, on all processors.
func (a *system) stepwise(members map[int][]int32) []float64 {
	n := len(a.class)
	work := make(chan []int32)
	solvers := make([]*solver, runtime.GOMAXPROCS(0))
	var all sync.WaitGroup
	for q := range solvers {
		s := &solver{system: a, residual: make([]float64, n), value: make([]float64, n),
			queued: make([]bool, n), own: make([]float64, n), other: make([]float64, n)}
		solvers[q] = s
		all.Go(func() {
			for of := range work {
				s.solve(of)
			}
		})
	}
	for _, of := range members {
		work <- of
	}
	close(work)
	all.Wait()
	scores := make([]float64, n)
	for i := range scores {
		own, other := 0., 0.
		for _, s := range solvers {
			own, other = max(own, s.own[i]), max(other, s.other[i])
		}
		scores[i] = Unusual([]float64{own, other}, 0)
	}
	return scores
}

// solver solves a system for one class at a time, by Gauss-Seidel steps at the examples whose
// equation is not yet true. It begins at the examples of the class and stays near them.
type solver struct {
	*system
	residual, value []float64
	queued          []bool
	own, other      []float64 // the values of the own class, and the largest of another
	queue, next     []int32
	touched         []int32
}

func (s *solver) give(i int32, r float64) {
	if s.residual[i] == 0 && s.value[i] == 0 {
		s.touched = append(s.touched, i)
	}
	s.residual[i] += r
	if !s.queued[i] && s.residual[i] > s.least[i] {
		s.queued[i] = true
		s.next = append(s.next, i)
	}
}

func (s *solver) solve(members []int32) {
	s.next, s.touched = s.next[:0], s.touched[:0]
	for _, i := range members {
		s.give(i, s.target[i])
	}
	for len(s.next) > 0 {
		s.queue, s.next = s.next, s.queue[:0]
		for _, i := range s.queue {
			gain := s.residual[i] / s.diagonal[i]
			s.value[i] += gain
			s.residual[i], s.queued[i] = 0, false
			for q := s.from[i]; q < s.from[i+1]; q++ {
				s.give(s.to[q], s.element[q]*gain)
			}
		}
	}
	class := s.class[members[0]]
	for _, i := range s.touched {
		if s.class[i] == class {
			s.own[i] = s.value[i]
		} else {
			s.other[i] = max(s.other[i], s.value[i])
		}
		s.value[i], s.residual[i] = 0, 0
	}
}
