// SPDX-License-Identifier: Apache-2.0

package quantized

import (
	"errors"
	"fmt"
	"math"
)

// Errors that [New], [Graph.Configure] and [Restore] wrap.
var (
	ErrConfig  = errors.New("unusable setting")
	ErrInvalid = errors.New("quantized: state that no graph can have")
)

// maxValues bounds the coordinates of learned vertices, and separately of labelled vertices: 1 GiB
// each.
const maxValues = 1 << 28

// maxDim bounds the dimension: an empty graph already allocates memory for one point, and a file
// can ask for an empty graph.
const maxDim = 1 << 20

// Config holds the settings of a Graph. All fields except Reach, Link and those after Gamma must be
// set.
type Config struct {
	// most learned vertices after a repartition; >= 1. Labelled vertices come on top
	K          int
	Multiplier float64 // m, by which R grows at a repartition; >= 1.05, and 1.5 in the thesis
	Dim        int     // length of a point
	Scale      float64 // distance = Scale times Euclidean distance; > 0
	Kernel     Kernel  // of the compact weights
	Epsilon    float64 // smaller weights are no edge; in (0,1)
	Reach      float64 // longest edge; 0 for as long as epsilon allows
	// Link is the longest edge between points that the caller knows to be the same person or thing;
	// 0 for the length of other edges.
	Link    float64
	Gamma   float64 // regulariser gamma_g > 0
	Journal int     // points in the journal for Undo; >= 0
}

// check checks what a file can say; package online checks the settings of a user.
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
		what = fmt.Sprintf(
			"%d centroids of %d values need more than 1 GiB of memory; use a smaller k", c.K, c.Dim)
	case !(c.Scale >= 1e-30 && c.Scale <= 1e30):
		what = fmt.Sprintf("scale is %g, but must be positive and of ordinary size", c.Scale)
	case !(c.Kernel.Denominator > 0) || math.IsInf(c.Kernel.Denominator, 1):
		what = fmt.Sprintf("kernel denominator is %g, but must be positive", c.Kernel.Denominator)
	default:
		return nil
	}
	return fmt.Errorf("%w: %s", ErrConfig, what)
}

// EdgeRadius returns the length of the longest edge.
func (c Config) EdgeRadius() float64 {
	r := c.Kernel.Radius(c.Epsilon)
	if c.Reach > 0 {
		r = min(r, c.Reach)
	}
	return r
}

// linkWeight returns the weight of an edge beyond the edge radius between two points known to be
// the same person or thing, or 0 if they are too far apart even for that. The kernel is stretched,
// so that an edge of length Link weighs as much as the longest ordinary edge.
func (c Config) linkWeight(d float64) float64 {
	if d > c.Link {
		return 0
	}
	return c.Kernel.Weight(d * c.EdgeRadius() / c.Link)
}

// farWeight returns the weight of an edge that serves only a judgement. Its length d lies between
// the edge radius r and bound. Squared distances count (r/bound)², so the weights continue the
// weights of ordinary edges and do not vanish if the kernel is narrow.
func (c Config) farWeight(d, bound, radius float64) float64 {
	s := radius / bound
	s *= s
	return c.Kernel.Weight(math.Sqrt(radius*radius + s*(d*d-radius*radius)))
}
