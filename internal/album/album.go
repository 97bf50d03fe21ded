// SPDX-License-Identifier: Apache-2.0

// Package album keeps the pictures of a person, or of somebody without a name, by which users know
// them and a name labels them: an [Album] is a bounded set of [Face] values.
package album

import (
	"math"
	"slices"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/quantized"
)

// Face is a face with the time and the camera of its picture.
type Face struct {
	ID     uint64    `json:"id"`
	At     time.Time `json:"at"`
	Camera string    `json:"camera"`
	Vector []float32 `json:"-"`
	JPEG   []byte    `json:"-"` // a small picture, or nil
	Sharp  float64   `json:"-"` // [Sharp] of the quality of its picture
}

// Sharp returns how well a picture shows a face: its sharpness, and less if the head is turned.
func Sharp(q face.Quality) float64 {
	frontal := 1 - math.Abs(q.Turn)
	return q.Sharpness * frontal * frontal
}

// firstFaces is the number of faces of an album that always stay: a name labels them.
const firstFaces = 4

// Album is a bounded set of faces of one person: the first faces, and later ones that differ from
// each other.
type Album struct {
	Faces []Face `json:"faces"`
}

// Add adds a face, and reports whether it did, and the number of the face that it has removed for
// it; 0 for none. The album keeps at most size faces, and at least the first four. Add ignores a
// face that is closer than apart, in units of the space, to a face in the album, and a face whose
// number is in the album. From a full album, the newer one of the two most similar faces is
// removed.
func (a *Album) Add(space face.Space, f Face, size int,
	apart float64) (added bool, removed uint64) {
	_, there := a.Find(f.ID)
	if there || len(a.Faces) >= firstFaces && a.Distance(space, f.Vector) < apart {
		return false, 0
	}
	a.Faces = append(a.Faces, f)
	if len(a.Faces) <= size {
		return true, 0
	}
	drop, least := len(a.Faces)-1, math.Inf(1)
	for i := firstFaces; i < len(a.Faces); i++ {
		for j := range i {
			if d := quantized.Distance(a.Faces[i].Vector, a.Faces[j].Vector,
				space.Scale); d < least {
				drop, least = i, d
			}
		}
	}
	removed = a.Faces[drop].ID
	a.Faces = slices.Delete(a.Faces, drop, drop+1)
	return removed != f.ID, removed
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
		nearest = min(nearest, quantized.Distance(f.Vector, x, space.Scale))
	}
	return nearest
}

// Clear returns how clear the picture of a face is, or 0 without a picture.
func (f Face) Clear() float64 {
	if f.JPEG == nil {
		return 0
	}
	return math.Log1p(f.Sharp)
}

// Clearest returns the face of an album with the clearest picture, the first one of several; a zero
// face of an empty album.
func (a *Album) Clearest() (best Face) {
	for i, f := range a.Faces {
		if i == 0 || f.Clear() > best.Clear() {
			best = f
		}
	}
	return best
}

// Best returns at most n of the faces, the clearest first, and then faces that are clear and differ
// from the faces before.
func Best(space face.Space, faces []Face, n int) (chosen []Face) {
	for faces = slices.Clone(faces); len(chosen) < n && len(faces) > 0; {
		before, at, most := Album{chosen}, 0, -1.
		for i, f := range faces {
			if worth := f.Clear() * min(before.Distance(space, f.Vector),
				math.MaxInt32); worth > most {
				at, most = i, worth
			}
		}
		chosen, faces = append(chosen, faces[at]), slices.Delete(faces, at, at+1)
	}
	return chosen
}
