// SPDX-License-Identifier: Apache-2.0

package office

import (
	"math"
	"slices"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/graph"
)

// Face is a face with the time and the camera of its picture.
type Face struct {
	ID     uint64    `json:"id"`
	At     time.Time `json:"at"`
	Camera string    `json:"camera"`
	Vector []float32 `json:"-" cbor:"vector"` // the index of searches keeps it
	JPEG   []byte    `json:"-" cbor:"jpeg"`   // a small picture, or nil
	Sharp  float64   `json:"-"`               // as [face.Quality].Sharpness
}

// firstFaces is the number of faces of an album that always stay: a name labels them.
const firstFaces = 4

// Album is a bounded set of faces of one person: the first faces, and later ones that differ from each other.
type Album struct {
	Faces []Face `json:"faces"`
}

// Add adds a face and reports whether it did. The album keeps at most size faces. Add ignores a face that is closer
// than apart, in units of the space, to a face in the album, and a face whose number is in the album. From a full
// album, the newer one of the two most similar faces is removed.
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

// Find returns the face with a number, if it is in the album.
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
	for faces = slices.Clone(faces); len(chosen) < n && len(faces) > 0; {
		before, at, most := Album{chosen}, 0, -1.
		for i, f := range faces {
			if worth := f.clear() * min(before.Distance(space, f.Vector), math.MaxInt32); worth > most {
				at, most = i, worth
			}
		}
		chosen, faces = append(chosen, faces[at]), slices.Delete(faces, at, at+1)
	}
	return chosen
}
