// SPDX-License-Identifier: Apache-2.0

package peers

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/faceauth/faceauth/internal/anomaly"
	"github.com/faceauth/faceauth/internal/reference/dense"
	"github.com/faceauth/faceauth/lab/joint"
	"github.com/faceauth/faceauth/quantized"
)

// lloydRounds is the number of k-means rounds.
const lloydRounds = 20

// Backbone returns SoftHAD scores like [SoftHarmonic], in O(k³ + nk) time. Each class is
// represented by at most k centroids from k-means. The multiplicity of a centroid is its number of
// points. The compact soft harmonic solution is computed on the centroids. An example is then one
// more vertex, and its value follows from the values of the centroids; its own share in its
// centroid is left out. If k is at least the size of every class, all examples are centroids, and
// the scores are the scores of [SoftHarmonic].
//
// Weights come from the kernel on Euclidean distances. The thesis prints a compact form in which
// gamma is multiplied by c; here it is divided by c, which agrees with the full graph. The error
// wraps [ErrExamples], [ErrLabels] or [ErrSetting], or comes from the context.
func Backbone(ctx context.Context, x [][]float32, y []int, k int, kernel quantized.Kernel,
	c, gamma float64) ([]float64, error) {
	classes, err := checkExamples(x, y)
	if err != nil {
		return nil, err
	}
	if k < 1 {
		return nil, fmt.Errorf("%w: %d centroids for a class", ErrSetting, k)
	}
	if !(kernel.Denominator > 0) {
		return nil, fmt.Errorf("%w: the kernel's denominator is %g, and must be positive",
			ErrSetting, kernel.Denominator)
	}
	var vertices [][]float32
	var labels []int
	var v []float64
	home := make([]int, len(x))
	for class := range classes {
		part := of(x, y, class)
		if len(part) == 0 {
			continue
		}
		seeds := part
		if k < len(part) {
			// a fixed seed gives the same scores every time
			r := rand.New(rand.NewPCG(uint64(class), 0))
			seeds = nil
			for _, i := range r.Perm(len(part))[:k] {
				seeds = append(seeds, part[i])
			}
			if seeds, err = joint.KMeans(ctx, part, seeds, lloydRounds); err != nil {
				return nil, err
			}
		}
		first := len(vertices)
		for _, s := range seeds {
			vertices, labels, v = append(vertices, s), append(labels, class), append(v, 0)
		}
		at := 0
		for i := range x {
			if y[i] != class {
				continue
			}
			home[i] = first + at
			if k < len(part) {
				home[i] = first + nearest(vertices[first:], x[i])
			}
			v[home[i]]++
			at++
		}
	}
	// A centroid that is nearest to no example is dropped.
	kept := make([]int, len(v))
	n := 0
	for j := range v {
		kept[j] = n
		if v[j] > 0 {
			vertices[n], labels[n], v[n] = vertices[j], labels[j], v[j]
			n++
		}
	}
	vertices, labels, v = vertices[:n], labels[:n], v[:n]
	w := dense.Similarity(dense.Distances(vertices, 1), kernel, 0)
	l, err := soft(w, v, labels, c, gamma)
	if err != nil {
		return nil, err
	}
	scores, values := make([]float64, len(x)), make([]float64, classes)
	for i := range x {
		if i%1024 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		clear(values)
		sum := c + gamma
		values[y[i]] = c
		for j := range vertices {
			many := v[j]
			if j == kept[home[i]] {
				many--
			}
			near := many * kernel.Weight(quantized.Distance(x[i], vertices[j], 1))
			sum += near
			for q := range values {
				values[q] += near * l.At(j, q)
			}
		}
		for q := range values {
			values[q] /= sum
		}
		scores[i] = anomaly.Unusual(values, y[i])
	}
	return scores, nil
}

func nearest(x [][]float32, p []float32) int {
	best, least := 0, math.Inf(1)
	for j := range x {
		if d := quantized.SquaredDistance(x[j], p); d < least {
			best, least = j, d
		}
	}
	return best
}
