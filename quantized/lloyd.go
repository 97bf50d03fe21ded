// SPDX-License-Identifier: Apache-2.0

package quantized

import (
	"context"
	"math"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
)

// flat are points as one matrix, and their squared norms.
type flat struct {
	m       blas32.General
	squares []float64
}

func flatten(x [][]float32, dim int) flat {
	f := flat{blas32.General{Rows: len(x), Cols: dim, Stride: max(dim, 1), Data: make([]float32, len(x)*dim)}, make([]float64, len(x))}
	for i, v := range x {
		copy(f.m.Data[i*dim:], v)
		f.squares[i] = squaredNorm(v)
	}
	return f
}

func (f flat) row(i int) []float32 { return f.m.Data[i*f.m.Stride : i*f.m.Stride+f.m.Cols] }

// nowhere is the centre of a point that has not been assigned to one.
const nowhere = -1

// assign writes which of the centres is nearest to each point, the first of equals, and reports whether anything
// changed. Distances are products in float32: a point between two centres at the same distance goes to either, and
// features whose mean is thousands of times their spread should be centred first.
func (f flat) assign(to []int, centres flat) bool {
	const some = 512 // rows at a time, for the size of the product
	product := make([]float32, some*centres.m.Rows)
	changed := false
	for first := 0; first < f.m.Rows; first += some {
		rows := min(some, f.m.Rows-first)
		c := blas32.General{Rows: rows, Cols: centres.m.Rows, Stride: centres.m.Rows, Data: product}
		a := blas32.General{Rows: rows, Cols: f.m.Cols, Stride: f.m.Stride, Data: f.m.Data[first*f.m.Stride:]}
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

// mean writes that of n points with a sum.
func mean(to []float32, sum []float64, n float64) {
	for q, x := range sum {
		to[q] = float32(x / n)
	}
}

// KMeans returns the centres that Lloyd's iteration reaches from seeds, in at most so many rounds: each goes to the
// mean of the points that are nearest to it. A centre without points stays where it is. Seeds are not changed. The
// error is the context's, which is asked once a round, or wraps [ErrConfig].
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
