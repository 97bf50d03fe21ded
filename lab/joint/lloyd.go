// SPDX-License-Identifier: Apache-2.0

package joint

import (
	"context"
	"math"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
)

// flat holds points as one matrix, and their squared norms.
type flat struct {
	m       blas32.General
	squares []float64
}

func flatten(x [][]float32, dim int) flat {
	f := flat{blas32.General{Rows: len(x), Cols: dim, Stride: max(dim, 1),
		Data: make([]float32, len(x)*dim)},
		make([]float64, len(x))}
	for i, v := range x {
		copy(f.m.Data[i*dim:], v)
		f.squares[i] = squaredNorm(v)
	}
	return f
}

func squaredNorm(x []float32) float64 {
	v := blas32.Vector{N: len(x), Inc: 1, Data: x}
	return blas32.DDot(v, v)
}

func (f flat) row(i int) []float32 { return f.m.Data[i*f.m.Stride : i*f.m.Stride+f.m.Cols] }

// nowhere is the centre of a point that has no centre yet.
const nowhere = -1

// assign writes the nearest centre of each point, or the first of equals, and reports whether
// anything changed. Distances are products in float32. A point between two centres at almost the
// same distance can go to either. If the mean of the features is thousands of times their spread,
// centre them first.
func (f flat) assign(to []int, centres flat) bool {
	const some = 512 // rows in one product, to limit its size
	product := make([]float32, some*centres.m.Rows)
	changed := false
	for first := 0; first < f.m.Rows; first += some {
		rows := min(some, f.m.Rows-first)
		c := blas32.General{Rows: rows, Cols: centres.m.Rows, Stride: centres.m.Rows, Data: product}
		a := blas32.General{Rows: rows, Cols: f.m.Cols, Stride: f.m.Stride,
			Data: f.m.Data[first*f.m.Stride:]}
		blas32.Gemm(blas.NoTrans, blas.Trans, 1, a, centres.m, 0, c)
		for r := range rows {
			best, least := 0, math.Inf(1)
			for j, p := range product[r*c.Stride : (r+1)*c.Stride] {
				if d := centres.squares[j] - 2*float64(p); d < least {
					best, least = j, d
				}
			}
			if to[first+r] != best {
				to[first+r], changed = best, true
			}
		}
	}
	return changed
}

// sums returns the sum of the points of each centre, and their number.
func (f flat) sums(of []int, centres int) (sum [][]float64, n []float64) {
	sum, n = make([][]float64, centres), make([]float64, centres)
	for j := range sum {
		sum[j] = make([]float64, f.m.Cols)
	}
	for i, j := range of {
		n[j]++
		s := sum[j]
		for q, x := range f.row(i) {
			s[q] += float64(x)
		}
	}
	return sum, n
}

// mean writes the mean of n points with this sum.
func mean(to []float32, sum []float64, n float64) {
	for q, x := range sum {
		to[q] = float32(x / n)
	}
}

// KMeans returns the centres of Lloyd's iteration from seeds, after at most rounds rounds: each
// centre moves to the mean of its nearest points. A centre without points stays. Seeds are not
// changed. The error is the error of ctx, which is checked once a round, or wraps [ErrConfig].
func KMeans(ctx context.Context, x, seeds [][]float32, rounds int) ([][]float32, error) {
	if err := checkPoints(x); err != nil {
		return nil, err
	}
	if err := checkSeeds(x, seeds); err != nil {
		return nil, err
	}
	dim := len(x[0])
	points, centres := flatten(x, dim), flatten(seeds, dim)
	of := slices.Repeat([]int{nowhere}, len(x))
	for range rounds {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if !points.assign(of, centres) {
			break
		}
		sum, n := points.sums(of, len(seeds))
		for j := range sum {
			if n[j] > 0 {
				mean(centres.row(j), sum[j], n[j])
				centres.squares[j] = squaredNorm(centres.row(j))
			}
		}
	}
	return centres.rows(), nil
}

// rows returns copies of the rows.
func (f flat) rows() [][]float32 {
	x := make([][]float32, f.m.Rows)
	for i := range x {
		x[i] = slices.Clone(f.row(i))
	}
	return x
}
