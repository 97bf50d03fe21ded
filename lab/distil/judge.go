// SPDX-License-Identifier: Apache-2.0

package distil

import (
	"context"
	"errors"
	"io"
	"math"

	"github.com/faceauth/faceauth/face"
)

// Decision is the result of judging several faces.
type Decision struct {
	Faces    int     // judged
	Accepted int     // of these
	Best     float64 // largest value of a face; -Inf without a face
}

// Yes reports whether more than half of the faces are accepted.
func (d Decision) Yes() bool { return 2*d.Accepted > d.Faces }

// Judge judges the largest face of each frame of a stream, up to a number of faces. If the stream or the deadline of
// ctx ends earlier, it decides with the faces until then. The error comes from the stream, or from ctx if ctx was
// cancelled.
func (v *Verifier) Judge(ctx context.Context, s face.Stream, faces int) (Decision, error) {
	d := Decision{Best: math.Inf(-1)}
	for d.Faces < faces {
		f, err := s.Next(ctx)
		if errors.Is(err, io.EOF) || err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
			break
		}
		if err != nil {
			return d, err
		}
		if len(f.Samples) == 0 || f.Samples[0].Vector == nil {
			continue
		}
		value, err := v.Value(f.Samples[0].Vector)
		if err != nil {
			return d, err
		}
		d.Faces++
		d.Best = max(d.Best, value)
		if value >= v.threshold {
			d.Accepted++
		}
	}
	return d, nil
}
