// SPDX-License-Identifier: Apache-2.0

package office

import (
	"math"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/graph"
)

// bestFaces is the number of faces of [Stranger].Best.
const bestFaces = 4

// clear returns how clear the picture of a face is, or 0 without a picture.
func (f Face) clear() float64 {
	if f.JPEG == nil {
		return 0
	}
	return math.Log1p(f.Sharp)
}

// best returns at most n of the faces, the clearest first, and then faces that are clear and differ from the faces
// before.
func best(space face.Space, faces []Face, n int) (chosen []Face) {
	apart := make([]float64, len(faces)) // distance to the nearest chosen face; below 0: chosen
	for len(chosen) < min(n, len(faces)) {
		at := -1
		for i, f := range faces {
			if len(chosen) == 0 {
				apart[i] = 1
			}
			if apart[i] >= 0 && (at < 0 || f.clear()*apart[i] > faces[at].clear()*apart[at]) {
				at = i
			}
		}
		for i, f := range faces {
			d := graph.Distance(f.Vector, faces[at].Vector, space.Scale)
			if len(chosen) > 0 {
				d = min(d, apart[i])
			}
			apart[i] = d
		}
		apart[at] = -1
		chosen = append(chosen, faces[at])
	}
	return chosen
}
