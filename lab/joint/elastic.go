// SPDX-License-Identifier: Apache-2.0

package joint

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/faceauth/faceauth/internal/reference/dense"
	"github.com/faceauth/faceauth/quantized"
	"gonum.org/v1/gonum/mat"
)

// ElasticNet returns the nodes of an elastic net over points (A. N. Gorban, A. Zinovyev, Principal
// Graphs and Manifolds, 2009; thesis, equation "Elastic net"). The net begins at seeds, each joined
// to its nearest neighbours, and these edges stay. The nodes minimise the mean squared distance of
// the points to their nodes, plus stretch times the squared length of each edge, plus bend times
// the squared distance of each node to the mean of its neighbours. There are at most rounds rounds.
//
// The error wraps [ErrConfig], or is the error of ctx, which is checked once a round.
func ElasticNet(ctx context.Context, x, seeds [][]float32, neighbours int, stretch, bend float64,
	rounds int) ([][]float32, error) {
	if err := checkPoints(x); err != nil {
		return nil, err
	}
	if err := checkSeeds(x, seeds); err != nil {
		return nil, err
	}
	if !(stretch >= 0 && bend >= 0) || neighbours < 1 || math.IsInf(stretch+bend, 1) {
		return nil, fmt.Errorf("%w: an elastic net of %d neighbours, stretch %g and bend %g",
			ErrConfig, neighbours, stretch, bend)
	}
	k, dim := len(seeds), len(x[0])
	// weights of 1
	net := dense.Nearest(dense.Distances(seeds, 1), quantized.Kernel{Denominator: math.Inf(1)},
		neighbours)
	// The two energies are quadratic forms of the nodes. Their matrices are a Laplacian, and the
	// square of the matrix that takes each node minus the mean of its neighbours.
	star, energy := mat.NewDense(k, k, nil), dense.Laplacian(net, false)
	for i := range k {
		for j := range k {
			switch {
			case i == j && energy.At(i, i) > 0:
				star.Set(i, i, 1)
			case net.At(i, j) > 0:
				star.Set(i, j, -1/energy.At(i, i))
			}
		}
	}
	var bending mat.SymDense
	bending.SymOuterK(bend, star.T())
	energy.ScaleSym(stretch, energy)
	energy.AddSym(energy, &bending)
	points, nodes := flatten(x, dim), flatten(seeds, dim)
	of := slices.Repeat([]int{nowhere}, len(x))
	n := float64(len(x))
	for range rounds {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if !points.assign(of, nodes) {
			break
		}
		sum, size := points.sums(of, k)
		a, b := mat.NewSymDense(k, nil), mat.NewDense(k, dim, nil)
		a.CopySym(energy)
		for j := range k {
			// A node without points and without edges keeps its place.
			hold := size[j] / n
			if size[j] == 0 {
				hold = 1e-9 / n
				for q, v := range nodes.row(j) {
					sum[j][q] = 1e-9 * float64(v)
				}
			}
			a.SetSym(j, j, a.At(j, j)+hold)
			for q, s := range sum[j] {
				b.Set(j, q, s/n)
			}
		}
		var chol mat.Cholesky
		var c mat.Dense
		if !chol.Factorize(a) {
			return nil, fmt.Errorf(
				"%w: the net's energies drown its points; use a smaller stretch and bend",
				ErrConfig)
		}
		if err := chol.SolveTo(&c, b); err != nil && c.IsEmpty() {
			return nil, fmt.Errorf("%w: %w", ErrConfig, err)
		}
		for j := range k {
			mean(nodes.row(j), c.RawRowView(j), 1)
			nodes.squares[j] = squaredNorm(nodes.row(j))
		}
	}
	return nodes.rows(), nil
}
