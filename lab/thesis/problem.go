// SPDX-License-Identifier: Apache-2.0

package thesis

import (
	"fmt"
	"math/rand/v2"
	"strconv"

	"github.com/faceauth/faceauth/internal/reference/dense"
	"github.com/faceauth/faceauth/quantized"
	"gonum.org/v1/gonum/mat"
)

// problem is a stream of points of two classes, with the labelled points first.
type problem struct {
	x      [][]float32
	class  []int
	kernel quantized.Kernel
	d      *mat.SymDense // distances of all points
}

// readUCI returns the problems of a dataset: each of the first ten classes against the next class.
func (o *options) readUCI(dataset string) ([]problem, error) {
	classes := namesOfClasses(26, func(i int) string { return string(rune('A' + i)) })
	if dataset == "optdigits" {
		classes = namesOfClasses(10, strconv.Itoa)
	}
	table, err := o.rows(dataset)
	if err != nil {
		return nil, err
	}
	rows := byLabel(table)
	all := make([]problem, problems)
	for i := range all {
		a, b := rows[classes[i]], rows[classes[(i+1)%len(classes)]]
		if len(a) < points/4 || len(b) < points/4 {
			return nil, fmt.Errorf("%s has %d points of %s and %d of %s", dataset, len(a),
				classes[i], len(b), classes[(i+1)%len(classes)])
		}
		all[i] = newProblem(a, b, uint64(i))
	}
	return all, nil
}

func namesOfClasses(n int, f func(int) string) []string {
	s := make([]string, n)
	for i := range s {
		s[i] = f(i)
	}
	return s
}

func newProblem(a, b [][]float32, seed uint64) problem {
	r := rand.New(rand.NewPCG(seed, 2011))
	type point struct {
		x     []float32
		class int
	}
	var stream []point
	for class, rows := range [][][]float32{a, b} {
		for _, x := range rows {
			stream = append(stream, point{x, class})
		}
	}
	r.Shuffle(len(stream), func(i, j int) { stream[i], stream[j] = stream[j], stream[i] })
	stream = stream[:min(points, len(stream))]
	// The labelled points come first, in their order.
	seen := [2]int{}
	var labelled, rest []point
	for _, p := range stream {
		if seen[p.class] < perClass {
			seen[p.class]++
			labelled = append(labelled, p)
		} else {
			rest = append(rest, p)
		}
	}
	var p problem
	for _, q := range append(labelled, rest...) {
		p.x, p.class = append(p.x, q.x), append(p.class, q.class)
	}
	p.kernel = scaledHeat(len(p.x[0]), deviation(p.x))
	p.d = dense.Distances(p.x, 1)
	return p
}

// scaledHeat returns the kernel exp(-d²/(2 p sigma²)) for p features, which the thesis's UCI
// experiments use.
func scaledHeat(p int, sigma float64) quantized.Kernel {
	return quantized.Kernel{Denominator: 2 * float64(p) * sigma * sigma}
}
