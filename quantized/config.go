// SPDX-License-Identifier: Apache-2.0

package quantized

import (
	"errors"
	"fmt"
	"math"

	"github.com/faceauth/faceauth/graph"
)

// Errors that [New], [Graph.Configure] and [Restore] wrap.
var (
	ErrConfig  = errors.New("unusable setting")
	ErrInvalid = errors.New("quantized: state that no graph can have")
)

// maxValues bounds the coordinates of the learned vertices, and again those of the labelled ones: 1 GiB.
const maxValues = 1 << 28

// maxDim bounds the values of a point: an empty graph already holds some, and a file can ask for one.
const maxDim = 1 << 20

// Config says what a Graph may hold and how it measures. All fields but Reach, Link and those after Gamma must be set.
type Config struct {
	K          int          // learned vertices left after a repartition, at the most; >= 1. Labelled ones come on top
	Multiplier float64      // m, by which R grows at a repartition; >= 1.05, and 1.5 in the thesis
	Dim        int          // length of a point
	Scale      float64      // distance = Scale times Euclidean distance; > 0
	Kernel     graph.Kernel // of the compact weights
	Epsilon    float64      // smaller weights are no edge; in (0,1)
	Reach      float64      // longest edge; 0 for as long as epsilon allows
	Link       float64      // longest edge between points of which the caller knows that they are one's; 0 for no longer than others
	Gamma      float64      // regulariser gamma_g > 0
	Journal    int          // points taken in that are remembered for Undo; >= 0
	HalfLife   int          // observations after which a learned point counts half, see Graph.Age; 0 for never
	Absorb     bool         // labelled vertices take in points closer than R
	Normalized bool         // normalised Laplacian; solved directly, O(n³) a step for n vertices
}

func (c Config) check() error {
	var what string
	switch {
	case c.K < 1:
		what = fmt.Sprintf("k is %d, but must be at least 1", c.K)
	case c.Dim < 1:
		what = fmt.Sprintf("dimension is %d, but must be at least 1", c.Dim)
	case c.Dim > maxDim:
		what = fmt.Sprintf("dimension is %d, but must be at most %d", c.Dim, maxDim)
	case c.K > maxValues/c.Dim:
		what = fmt.Sprintf("%d centroids of %d values need more than 1 GiB of memory; use a smaller k", c.K, c.Dim)
	case !(c.Multiplier >= 1.05 && c.Multiplier <= 1e3):
		what = fmt.Sprintf("multiplier is %g, but must lie between 1.05 and 1000", c.Multiplier)
	case !(c.Scale >= 1e-30 && c.Scale <= 1e30):
		what = fmt.Sprintf("scale is %g, but must be positive and of ordinary size", c.Scale)
	case !positive(c.Kernel.Denominator):
		what = fmt.Sprintf("kernel denominator is %g, but must be positive", c.Kernel.Denominator)
	case !(c.Epsilon > 0 && c.Epsilon < 1):
		what = fmt.Sprintf("epsilon is %g, but must lie between 0 and 1", c.Epsilon)
	case c.Journal < 0 || c.Journal > 1<<20:
		what = fmt.Sprintf("journal is %d, but must lie between 0 and %d", c.Journal, 1<<20)
	case c.HalfLife < 0 || c.HalfLife > 0 && c.Normalized:
		what = fmt.Sprintf("half-life is %d, but must not be negative, and 0 with the normalised Laplacian", c.HalfLife)
	case !(c.Reach >= 0):
		what = fmt.Sprintf("reach is %g, but must be positive, or 0 for none", c.Reach)
	case !(c.Link >= 0) || math.IsInf(c.Link, 1):
		what = fmt.Sprintf("link is %g, but must be positive, or 0 for none", c.Link)
	case !positive(c.Gamma):
		what = fmt.Sprintf("gamma is %g, but must be positive", c.Gamma)
	default:
		return nil
	}
	return fmt.Errorf("%w: %s", ErrConfig, what)
}

// EdgeRadius returns the distance beyond which two points are not joined.
func (c Config) EdgeRadius() float64 {
	r := c.Kernel.Radius(c.Epsilon)
	if c.Reach > 0 {
		r = min(r, c.Reach)
	}
	return r
}

// Weight returns the weight of an edge between two points at distance d, or 0 where there is none.
func (c Config) Weight(d float64) float64 { return c.weight(d, c.EdgeRadius()) }

// weight is Weight for an edge radius that is known.
func (c Config) weight(d, radius float64) float64 {
	if d > radius {
		return 0
	}
	return c.Kernel.Weight(d)
}

// LinkWeight returns that of an edge between two points at distance d which are known to be one's and lie beyond the
// edge radius, or 0 where they are too far apart even for that: the kernel is stretched, so that an edge of the length
// Link weighs as much as the longest ordinary one.
func (c Config) LinkWeight(d float64) float64 {
	if d > c.Link {
		return 0
	}
	return c.Kernel.Weight(d * c.EdgeRadius() / c.Link)
}

// farWeight returns that of an edge which serves a judgement alone, of a length d between the edge radius and the bound
// of such edges. Beyond the edge radius r, squared distances count (r/bound)² of what they are, so that weights go on
// from those of ordinary edges and do not vanish where the kernel is narrow.
func (c Config) farWeight(d, bound, radius float64) float64 {
	s := radius / bound
	s *= s
	return c.Kernel.Weight(math.Sqrt(radius*radius + s*(d*d-radius*radius)))
}

// positive reports whether x is a number above 0 and finite.
func positive(x float64) bool { return x > 0 && !math.IsInf(x, 1) }
