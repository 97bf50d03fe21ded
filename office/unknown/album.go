// SPDX-License-Identifier: Apache-2.0

package unknown

import (
	"math"
	"slices"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/graph"
)

// Face is a face of somebody, and where and when it was seen.
type Face struct {
	ID     uint64    `cbor:"id"`
	Vector []float32 `cbor:"vector"`
	JPEG   []byte    `cbor:"jpeg"` // a small picture, or nil
	Camera string    `cbor:"camera"`
	At     time.Time `cbor:"at"`
}

// firstFaces is how many faces of an album stay whatever comes: those that a name labels.
const firstFaces = 4

// Album is a bounded set of faces of one person: the first ones, and of those that followed such as are unlike each
// other.
type Album struct {
	Faces []Face `cbor:"faces"`
}

// Add takes in a face, as one of at most size, and reports whether it did. One that looks nearly like one that is
// there, closer than apart in units of the space, says nothing new, and the face of a number that is there neither. Where
// the album is full, the newer one of the two that are most alike goes.
func (a *Album) Add(space face.Space, f Face, size int, apart float64) bool {
	if _, there := a.Find(f.ID); there {
		return false
	}
	if len(a.Faces) < firstFaces {
		a.Faces = append(a.Faces, f)
		return true
	}
	if a.Distance(space, f.Vector) < apart {
		return false
	}
	a.Faces = append(a.Faces, f)
	if len(a.Faces) <= size {
		return true
	}
	drop, least := len(a.Faces)-1, math.Inf(1)
	for i := firstFaces; i < len(a.Faces); i++ {
		for j := range i {
			if d := graph.Distance(a.Faces[i].Vector, a.Faces[j].Vector, space.Scale); d < least {
				drop, least = i, d
			}
		}
	}
	kept := drop < len(a.Faces)-1
	a.Faces = slices.Delete(a.Faces, drop, drop+1)
	return kept
}

// First returns the faces that a name labels, and the others.
func (a *Album) First() (first, rest []Face) {
	n := min(firstFaces, len(a.Faces))
	return a.Faces[:n], a.Faces[n:]
}

// Find returns the face of a number, and whether it is there.
func (a *Album) Find(id uint64) (Face, bool) {
	for _, f := range a.Faces {
		if f.ID == id {
			return f, true
		}
	}
	return Face{}, false
}

// Distance returns the distance from a vector to the nearest face, or +Inf for an empty album.
func (a *Album) Distance(space face.Space, x []float32) float64 {
	nearest := math.Inf(1)
	for _, f := range a.Faces {
		nearest = min(nearest, graph.Distance(f.Vector, x, space.Scale))
	}
	return nearest
}
