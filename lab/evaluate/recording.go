// SPDX-License-Identifier: Apache-2.0

package evaluate

import (
	"context"
	"errors"
	"io"

	"github.com/faceauth/faceauth/face"
)

// Read returns the first face of each frame of one person's recording. Usable decides by the
// quality which faces are good enough to enrol from. Read ends at the end of the stream, or with
// its error.
func Read(ctx context.Context, name string, s face.Stream,
	usable func(face.Quality) bool) (Identity, error) {
	id := Identity{Name: name}
	for {
		f, err := s.Next(ctx)
		if errors.Is(err, io.EOF) {
			return id, nil
		}
		if err != nil {
			return id, err
		}
		if len(f.Samples) == 0 {
			id.Undetected++
			continue
		}
		if f.Samples[0].Vector == nil {
			id.Undetected++
			id.NoVector++
			continue
		}
		if len(f.Samples) > 1 {
			id.Several++
		}
		x := f.Samples[0]
		id.Faces = append(id.Faces, Face{Vector: x.Vector, Usable: usable(x.Quality) &&
			x.Reason != face.Unclear,
			Hold: x.Reason != "", Quality: x.Quality, Landmarks: x.Landmarks,
			Aligned:  x.Aligned,
			Liveness: x.Liveness, Box: x.Box, At: f.Time})
	}
}
