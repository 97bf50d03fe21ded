// SPDX-License-Identifier: Apache-2.0

package quantized

import (
	"math"
	"slices"
)

// Value is the harmonic value of a point for a class.
type Value struct {
	Class int
	Value float64
}

// Solution is the harmonic solution at one point.
type Solution struct {
	Values []Value // ascending by class; a class that is not listed has the value 0
	Bound  float64 // largest error of a value, for the edges as they are stored
}

const (
	// tolerance is the error at which the iteration ends, if rounding permits it.
	tolerance = 1e-10
	unit      = 0x1p-53 // of rounding
)

// solver holds the working storage of a solution on one part of the graph: learned vertices that
// depend on each other, along paths that no labelled vertex cuts, and the labelled vertices at
// their rim.
//
// The equation of a learned vertex i on the compact graph is
//
//	v_i (gamma + Σ_j w_ij v_j) l_i - Σ_j v_i w_ij v_j l_j = 0.
//
// The matrix A of these equations is symmetric. It is held with its diagonal scaled to 1; s_i² is
// the diagonal.
type solver struct {
	epoch int64
	when  []int64 // epoch in which a vertex was put into a part
	place []int32 // place in this part

	// vertices of the part; the number of all vertices stands for the point on trial
	part []int
	// weights of the edges of the point on trial to the learned vertices, which follow it in part
	free    []float64
	mass    []float64 // multiplicities
	s       []float64
	inverse []float64 // 1/s
	start   []int     // of the row of each vertex in to and a, and the end of the last one
	to      []int32   // place of a neighbour
	a       []float64 // v_i w_ij v_j / (s_i s_j)
	rim     []rim
	most    int // most neighbours of a vertex

	// solution times s; right side over s; residual over s; direction; matrix times direction
	x, b, r, p, q []float64
	weight        []float64 // of a residual over s in the error of the solution that is looked for

	values []Value
	slot   []int32 // place of a class in values, plus 1

	solved   uint64   // number of the trial that has solution
	solution Solution // shares values
}

// rim is an edge from a vertex of the part to a labelled vertex.
type rim struct {
	place, class int
	a            float64 // v_i w_ij v_j
}

// begin forgets all parts.
func (s *solver) begin(g *Graph) {
	s.epoch++
	if n := g.Len() + 1 - len(s.when); n > 0 {
		s.when = append(s.when, make([]int64, n)...)
		s.place = append(s.place, make([]int32, n)...)
	}
}

// enter puts a vertex into the part if it is not there, and returns its place.
func (s *solver) enter(i int) int32 {
	if s.when[i] != s.epoch {
		s.when[i], s.place[i] = s.epoch, int32(len(s.part))
		s.part = append(s.part, i)
	}
	return s.place[i]
}

// gather gathers the part of vertex i. For the number of all vertices, i is a point with the edges
// in near. Vertex home counts as one point more.
func (s *solver) gather(g *Graph, i, home int, near []edge) {
	trial := g.Len()
	s.part, s.free, s.mass, s.s, s.start = s.part[:0], s.free[:0], s.mass[:0], s.s[:0], s.start[:0]
	s.to, s.a, s.rim, s.most = s.to[:0], s.a[:0], s.rim[:0], 0
	s.enter(i)
	for at := 0; at < len(s.part); at++ {
		i := s.part[at]
		first := len(s.to)
		s.start = append(s.start, first)
		mass, degree := 1., 0.
		if i == trial {
			for _, e := range near {
				pull := e.w * g.v[e.to]
				degree += pull
				if class := g.label[e.to]; class != unlabelled {
					s.rim = append(s.rim, rim{at, class, pull})
					continue
				}
				s.free = append(s.free, e.w)
				s.to, s.a = append(s.to, s.enter(e.to)), append(s.a, pull)
			}
		} else {
			mass = g.v[i]
			if i == home {
				mass++
			}
			// an edge to the point on trial, whose multiplicity is 1
			if at > 0 && at <= len(s.free) {
				degree += s.free[at-1]
				s.to, s.a = append(s.to, 0), append(s.a, mass*s.free[at-1])
			}
			for _, e := range g.edges.of[i] {
				v := g.v[e.to]
				if e.to == home {
					v++
				}
				degree += e.w * v
				if class := g.label[e.to]; class != unlabelled {
					s.rim = append(s.rim, rim{at, class, mass * e.w * v})
					continue
				}
				s.to, s.a = append(s.to, s.enter(e.to)), append(s.a, mass*e.w*v)
			}
		}
		s.most = max(s.most, len(s.to)-first)
		s.mass = append(s.mass, mass)
		s.s = append(s.s, math.Sqrt(mass*(g.c.Gamma+degree)))
	}
	s.start = append(s.start, len(s.to))
	s.inverse = resized(s.inverse, len(s.s))
	for at, d := range s.s {
		s.inverse[at] = 1 / d
	}
	for at, d := range s.inverse {
		row := s.a[s.start[at]:s.start[at+1]]
		for q, to := range s.to[s.start[at]:s.start[at+1]] {
			row[q] *= d * s.inverse[to]
		}
	}
}

// pull returns the product of row at of a with p. Four independent sums let the processor work in
// parallel.
func (s *solver) pull(at int, p []float64) float64 {
	to, w := s.to[s.start[at]:s.start[at+1]], s.a[s.start[at]:s.start[at+1]]
	var a, b, c, d float64
	for len(to) >= 4 && len(w) >= 4 {
		a += w[0] * p[to[0]]
		b += w[1] * p[to[1]]
		c += w[2] * p[to[2]]
		d += w[3] * p[to[3]]
		to, w = to[4:], w[4:]
	}
	for q, j := range to {
		a += w[q] * p[j]
	}
	return (a + b) + (c + d)
}

// iterate solves the scaled system for the right side b by conjugate gradients from 0, into x, and
// returns a bound of Σ weight_i |r_i|, which is at the tolerance or the limit of rounding, unless
// weights are of extremely different size.
//
// The bound includes the rounding errors of the residual itself. A sum of m terms is computed as
// four parallel sums, and the sum of the diagonal in sequence, so each term of the residual has an
// error below 1.25 m + 16 units.
func (s *solver) iterate() (bound float64) {
	n := len(s.part)
	s.x, s.r, s.p, s.q = resized(s.x, n), resized(s.r, n), resized(s.p, n), resized(s.q, n)
	clear(s.x)
	copy(s.r, s.b)
	x, r, p, q, weight := s.x, s.r[:n], s.p[:n], s.q[:n], s.weight[:n]
	// the recurrence's residual drifts from the true residual: measure it, and continue
	for range 4 {
		copy(p, r)
		rr := 0.
		for _, v := range r {
			rr += v * v
		}
		for range n + 10 {
			pq := 0.
			for i := range q {
				q[i] = p[i] - s.pull(i, p)
				pq += p[i] * q[i]
			}
			if !(pq > 0) {
				break
			}
			alpha := rr / pq
			next, sum := 0., 0.
			for i, d := range q {
				x[i] += alpha * p[i]
				v := r[i] - alpha*d
				r[i] = v
				next += v * v
				sum += weight[i] * math.Abs(v)
			}
			if sum <= tolerance/2 {
				break
			}
			beta := next / rr
			rr = next
			for i, v := range r {
				p[i] = v + beta*p[i]
			}
		}
		var sum, size float64
		sum, size, bound = s.residual()
		if sum <= max(tolerance, 16*unit*size) {
			break
		}
	}
	return bound
}

// residual measures the residual of x into r. It returns the weighted sum of its sizes, the
// weighted sum of the sizes of its terms, and the bound of [solver.iterate].
func (s *solver) residual() (sum, size, bound float64) {
	for i, x := range s.x {
		s.r[i] = s.b[i] - (x - s.pull(i, s.x))
		sum += s.weight[i] * math.Abs(s.r[i])
		size += s.weight[i] * (2*math.Abs(x) + math.Abs(s.b[i]))
	}
	return sum, size, sum + (1.25*float64(s.most)+16)*unit*size
}

// Solve returns the harmonic solution at the point, on the graph with the point in it. All values
// of an outlier are 0.
//
// Only one system is solved, for the potential g of a unit of current at the point. Because A is
// symmetric, the value of a class is the current Σ g_i v_i w_ij v_j that leaves through its
// labelled vertices j. So all classes together cost as much as one. An error of g with the residual
// r changes a value by Σ r_i l_i, where l is the solution for the class: by at most Σ |r_i|,
// because all l_i lie in [0,1]. The iteration reduces this sum to 1e-10, or to the limit of
// rounding; for weights of extremely different size, the bound of the solution says how far it
// came.
//
// Only vertices that the point reaches without crossing a labelled vertex take part. The next call
// overwrites the values.
func (t Trial) Solve() Solution {
	g, s := t.g, &t.g.solver
	if s.solved == t.stamp && !t.alone { // Place has taken over the trial of Look
		return s.solution
	}
	s.values, s.solved = s.values[:0], 0
	if len(t.near) == 0 {
		return Solution{Values: s.values}
	}
	s.begin(g)
	source, near := t.home, t.near[:0]
	if t.home < 0 {
		source, near = g.Len(), t.near
	}
	s.gather(g, source, t.home, near)
	n := len(s.part)
	s.b, s.weight = resized(s.b, n), append(s.weight[:0], s.s...)
	clear(s.b)
	s.b[0] = 1 / s.s[0]
	bound := s.iterate()
	s.slot = append(s.slot, make([]int32, max(0, g.classes-len(s.slot)))...)
	total := 0.
	for _, e := range s.rim {
		value := s.x[e.place] / s.s[e.place] * e.a
		if s.slot[e.class] == 0 {
			s.values = append(s.values, Value{Class: e.class})
			s.slot[e.class] = int32(len(s.values))
		}
		s.values[s.slot[e.class]-1].Value += value
		total += math.Abs(value)
	}
	for _, v := range s.values {
		s.slot[v.Class] = 0
	}
	slices.SortFunc(s.values, func(a, b Value) int { return a.Class - b.Class })
	solution := Solution{s.values, bound + float64(len(s.rim)+8)*unit*total}
	if !t.alone {
		s.solved, s.solution = t.stamp, solution
	}
	return solution
}
