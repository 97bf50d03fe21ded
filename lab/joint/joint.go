// SPDX-License-Identifier: Apache-2.0

// Package joint finds centroids for points that are all known at the start: [Offline.Joint] is
// elastic-joint quantization (M. Valko, Adaptive Graph-Based Algorithms for Conditional Anomaly
// Detection and Semi-Supervised Learning, 2011, Section "Joint Quantization and Label
// Propagation"); [KMeans] and [ElasticNet] are other methods.
package joint

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/faceauth/faceauth/internal/reference/dense"
	"github.com/faceauth/faceauth/quantized"
	"gonum.org/v1/gonum/mat"
)

// ErrConfig is wrapped by the errors of unusable settings and points.
var ErrConfig = quantized.ErrConfig

const unlabelled = -1

// positive reports whether x is positive and finite.
func positive(x float64) bool { return x > 0 && !math.IsInf(x, 1) }

// Offline holds the settings of [Offline.Joint], which makes a backbone graph of points that are
// all known at the start.
type Offline struct {
	Kernel     quantized.Kernel // of the weights, on Euclidean distances
	Neighbours int              // number of nearest vertices to which a vertex is joined
	Fit        float64          // f_l > 0, the weight of a label
	// f_u >= 0, the weight that pulls an unlabelled vertex towards no class
	Doubt  float64
	Gamma  float64 // gamma_g >= 0
	Rounds int     // largest number of rounds

	// Pull > 0 says how strongly points hold the centroids against labels that push them apart. It
	// is the mean ratio of the two terms on the diagonal of the system for the centroids, without a
	// unit. At about 2, half of the centroids do not move, because labels push more strongly. A
	// large value gives k-means with the labelled points as fixed centres.
	Pull float64
	// GammaQ, if it is not 0, is the thesis's gamma_q and replaces Pull. Its effect depends on the
	// size of the features.
	GammaQ float64
}

// Backbone is a small graph that stands for many points.
type Backbone struct {
	Vertices [][]float32 // the labelled points in their order, then the centroids
	Labelled int
	Values   *mat.Dense // soft harmonic solution, vertices x classes
	Of       []int      // nearest vertex of each point
	Points   []int      // number of points whose nearest vertex this is
	Rounds   int        // rounds that were needed
	Frozen   int        // centroids that did not move in the last round, because nothing held them
}

// Class returns the class with the largest value at vertex i, or the first of equals.
func (b *Backbone) Class(i int) int {
	best := 0
	for q, v := range b.Values.RawRowView(i) {
		if v > b.Values.At(i, best) {
			best = q
		}
	}
	return best
}

// checkPoints returns an error that wraps [ErrConfig] unless there are points, finite and of one
// length.
func checkPoints(x [][]float32) error {
	if len(x) == 0 || len(x[0]) == 0 {
		return fmt.Errorf("%w: there are no points", ErrConfig)
	}
	for i, v := range x {
		if len(v) != len(x[0]) {
			return fmt.Errorf("%w: point %d has %d values, and the first has %d", ErrConfig, i,
				len(v), len(x[0]))
		}
		for _, f := range v {
			if f := float64(f); math.IsNaN(f) || math.IsInf(f, 0) {
				return fmt.Errorf("%w: point %d has a value that is not finite", ErrConfig, i)
			}
		}
	}
	return nil
}

func (o Offline) check(x [][]float32, classes []int, seeds [][]float32) error {
	if err := checkPoints(x); err != nil {
		return err
	}
	if len(classes) != len(x) {
		return fmt.Errorf("%w: %d classes for %d points", ErrConfig, len(classes), len(x))
	}
	labelled := 0
	for i, c := range classes {
		if c < unlabelled || c > 1<<14 {
			return fmt.Errorf("%w: point %d is of class %d", ErrConfig, i, c)
		}
		if c != unlabelled {
			labelled++
		}
	}
	switch {
	case labelled == 0:
		return fmt.Errorf("%w: no point has a label", ErrConfig)
	case !positive(o.Kernel.Denominator) || !positive(o.Fit) || !(o.Doubt >= 0) || !(o.Gamma >= 0):
		return fmt.Errorf("%w: the kernel's denominator and the fit must be positive, and doubt "+
			"and gamma not negative",
			ErrConfig)
	case o.Neighbours < 1 || o.Rounds < 0:
		return fmt.Errorf("%w: %d neighbours and %d rounds", ErrConfig, o.Neighbours, o.Rounds)
	case o.Doubt == 0 && o.Gamma == 0:
		return fmt.Errorf("%w: doubt and gamma are both 0, and a vertex on its own has no value",
			ErrConfig)
	}
	if len(seeds) == 0 {
		return nil
	}
	return checkSeeds(x, seeds)
}

// checkSeeds returns an error that wraps [ErrConfig] unless there are seeds, finite and as long as
// the points.
func checkSeeds(x, seeds [][]float32) error {
	if err := checkPoints(seeds); err != nil {
		return fmt.Errorf("seeds: %w", err)
	}
	if len(seeds[0]) != len(x[0]) {
		return fmt.Errorf("%w: seeds have %d values, and points have %d", ErrConfig, len(seeds[0]),
			len(x[0]))
	}
	return nil
}

// Seeds draws k different points without a label, or all of them if there are fewer: random
// subsampling.
func Seeds(r *rand.Rand, x [][]float32, classes []int, k int) (seeds [][]float32) {
	for _, i := range r.Perm(len(x)) {
		if classes[i] == unlabelled && len(seeds) < k {
			seeds = append(seeds, slices.Clone(x[i]))
		}
	}
	return seeds
}

// Infer returns the backbone with the soft harmonic solution for the labelled points and the given
// centroids. Class -1 means no label. The error wraps [ErrConfig].
func (o Offline) Infer(x [][]float32, classes []int, centroids [][]float32) (*Backbone, error) {
	if err := o.check(x, classes, centroids); err != nil {
		return nil, err
	}
	b, labels := o.begin(x, classes, centroids)
	if err := o.propagate(b, labels); err != nil {
		return nil, err
	}
	b.Of, b.Points = make([]int, len(x)), make([]int, len(b.Vertices))
	flatten(x, len(x[0])).assign(b.Of, flatten(b.Vertices, len(x[0])))
	for _, j := range b.Of {
		b.Points[j]++
	}
	return b, nil
}

// begin returns the backbone without values, and the classes of its vertices.
func (o Offline) begin(x [][]float32, classes []int,
	centroids [][]float32) (b *Backbone, labels []int) {
	b = &Backbone{}
	for i, c := range classes {
		if c != unlabelled {
			b.Vertices, labels = append(b.Vertices, slices.Clone(x[i])), append(labels, c)
		}
	}
	b.Labelled = len(labels)
	for _, c := range centroids {
		b.Vertices, labels = append(b.Vertices, slices.Clone(c)), append(labels, unlabelled)
	}
	return b, labels
}

// propagate computes the values.
func (o Offline) propagate(b *Backbone, labels []int) error {
	p := dense.Problem{W: dense.Nearest(dense.Distances(b.Vertices, 1), o.Kernel, o.Neighbours),
		Class: labels, Classes: slices.Max(labels) + 1, Gamma: o.Gamma}
	l, err := p.Soft(o.Fit, o.Doubt)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	b.Values = l
	return nil
}

// Joint returns the backbone of points: the labelled points, and as many centroids as there are
// seeds (elastic-joint; Section "Joint Quantization and Label Propagation", Algorithm "Quantized
// semi-supervised learning with principal manifolds"). Class -1 means no label. Joint alternates
// between the soft harmonic solution on the backbone and the system of equations for the centroids
// (equation "sle for centroids"). In this system points hold their nearest centroid, and
// differences of labels push centroids apart. It ends when no point changes its vertex.
//
// For more than two classes, (l_i-l_j)² is the sum of the squared differences between any two
// columns; for two classes this is the thesis's formula. A centroid without points starts again at
// a random point. If labels push a centroid more strongly than points hold it, the objective has no
// minimum there, and the centroid does not move in this round. Points without a label whose nearest
// vertex is labelled need no centroid.
//
// The error wraps [ErrConfig], or is the error of ctx, which is checked once a round.
func (o Offline) Joint(ctx context.Context, x [][]float32, classes []int, seeds [][]float32,
	r *rand.Rand) (*Backbone,
	error) {
	if err := o.check(x, classes, seeds); err != nil {
		return nil, err
	}
	if !(o.Pull > 0) && !(o.GammaQ > 0) || math.IsInf(o.Pull, 1) || math.IsInf(o.GammaQ, 1) {
		return nil, fmt.Errorf("%w: the pull is %g, and must be positive", ErrConfig, o.Pull)
	}
	b, labels := o.begin(x, classes, seeds)
	points := flatten(x, len(x[0]))
	b.Of = slices.Repeat([]int{nowhere}, len(x))
	for b.Rounds < o.Rounds && len(seeds) > 0 {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if !points.assign(b.Of, flatten(b.Vertices, len(x[0]))) {
			break
		}
		b.Rounds++
		if err := o.propagate(b, labels); err != nil {
			return nil, err
		}
		o.place(b, points, r)
	}
	result, err := o.Infer(x, classes, b.Vertices[b.Labelled:])
	if err == nil {
		result.Rounds, result.Frozen = b.Rounds, b.Frozen
	}
	return result, err
}

// place solves for the centroids; the assignment of points stays fixed.
func (o Offline) place(b *Backbone, points flat, r *rand.Rand) {
	n, m, k := float64(points.m.Rows), b.Labelled, len(b.Vertices)-b.Labelled
	sum, size := points.sums(b.Of, len(b.Vertices))
	// push[i][j] is (l_i-l_j)²/((m+k)²σ²); the kernel's denominator is 2σ².
	scale := 2 / (float64(m+k) * float64(m+k) * o.Kernel.Denominator)
	push, total := mat.NewSymDense(m+k, nil), make([]float64, m+k)
	for i := range m + k {
		for j := range i {
			d := scale * spread(b.Values.RawRowView(i), b.Values.RawRowView(j))
			push.SetSym(i, j, d)
			total[i] += d
			total[j] += d
		}
	}
	hold := 2 * o.GammaQ / n // of a point
	if o.GammaQ == 0 {
		var pushed, held float64
		for j := m; j < m+k; j++ {
			pushed += total[j]
			held += size[j]
		}
		if pushed == 0 || held == 0 {
			hold = 1 // without push, centroids are means
		} else {
			hold = o.Pull * pushed / held
		}
	}
	for j := m; j < m+k; j++ {
		if size[j] == 0 {
			copy(b.Vertices[j], points.row(r.IntN(points.m.Rows)))
		}
	}
	var free []int
	for j := m; j < m+k; j++ {
		if size[j] > 0 && hold*size[j] > total[j] {
			free = append(free, j)
		}
	}
	for len(free) > 0 && !o.solve(b, free, sum, size, push, total, hold) {
		// The system has no minimum, or almost none. Centroids whose row does not prove a minimum
		// do not move either. If all rows prove one, the centroid that is held least does not move.
		least, weakest := math.Inf(1), 0
		kept := free[:0:0]
		for _, j := range free {
			rest := total[j]
			for _, i := range free {
				rest += push.At(i, j)
			}
			held := (hold*size[j] - rest) / (hold * size[j])
			if held > 0 {
				kept = append(kept, j)
			}
			if held < least {
				least, weakest = held, j
			}
		}
		if len(kept) == len(free) {
			kept = slices.DeleteFunc(kept, func(j int) bool { return j == weakest })
		}
		free = kept
	}
	b.Frozen = k - len(free)
}

// solve moves the free centroids to the solution of the system, unless its matrix is not positive
// definite.
func (o Offline) solve(b *Backbone, free []int, sum [][]float64, size []float64, push *mat.SymDense,
	total []float64,
	hold float64) bool {
	dim := len(b.Vertices[0])
	a, rhs := mat.NewSymDense(len(free), nil), mat.NewDense(len(free), dim, nil)
	at := make(map[int]int, len(free))
	for r, j := range free {
		at[j] = r
	}
	for r, j := range free {
		a.SetSym(r, r, hold*size[j]-total[j])
		row := rhs.RawRowView(r)
		for q, s := range sum[j] {
			row[q] = hold * s
		}
		for i := range b.Vertices {
			p := push.At(i, j)
			if s, ok := at[i]; ok {
				if s < r {
					a.SetSym(r, s, p)
				}
				continue
			}
			for q, v := range b.Vertices[i] {
				row[q] -= p * float64(v)
			}
		}
	}
	var chol mat.Cholesky
	if !chol.Factorize(a) || chol.Cond() > 1e12 {
		return false
	}
	var c mat.Dense
	if err := chol.SolveTo(&c, rhs); err != nil {
		return false
	}
	for r, j := range free {
		mean(b.Vertices[j], c.RawRowView(r), 1)
	}
	return true
}

// spread returns the sum over all pairs of columns of the squared difference between two rows'
// differences.
func spread(a, b []float64) float64 {
	var sum, squares float64
	for q := range a {
		d := a[q] - b[q]
		sum += d
		squares += d * d
	}
	if len(a) == 1 {
		return squares
	}
	return max(float64(len(a))*squares-sum*sum, 0)
}
