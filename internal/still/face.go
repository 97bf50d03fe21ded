// SPDX-License-Identifier: Apache-2.0

package still

import (
	"image"
	"math"
	"time"

	"github.com/faceauth/faceauth/face"
)

// Limits that decide whether a face has changed since its last vector.
const (
	firstVectors = 8                      // the first faces of a track always get a vector
	oldest       = 400 * time.Millisecond // largest age of the last vector of a face that moves
	// largest age of the last vector if nothing moved around the face
	oldestStill = 10 * time.Second
	turned      = .10             // change of face.Pose.Turn
	nodded      = .07             // change of face.Pose.Nod
	grown       = 1.2             // ratio of sizes
	lit         = 12.0            // change of the mean grey value
	apart       = .3              // least overlap with the box of the last vector
	alike       = .94             // least correlation with the patch of the last vector
	itself      = .7              // least such correlation of a head that is followed
	lost        = 2 * time.Second // after which a track is forgotten
)

// Faces remembers for each track when a vector was made, and of which face. One goroutine at a time
// may use it. The zero value remembers nothing.
type Faces struct {
	tracks map[int]*known
}

// known is the state of a track.
type known struct {
	vectors int
	at      time.Duration // time of the last vector
	sample  face.Sample   // the face of the last vector, as a held sample
	pose    face.Pose
	posed   bool
	patch   []uint8
	last    time.Duration // when the face was last in view
	due     bool          // it was asked for, or an examined frame did not show the face
}

// Patch is the side in pixels of the small grey picture of a face with which [Faces] decides
// whether the face has changed.
const Patch = 16

// Look is a face that was found in a frame: a sample with track, box, landmarks, quality and
// reason.
type Look struct {
	face.Sample
	Patch   []uint8 // the box in grey values, Patch pixels wide and high; nil if the box is smaller
	Crowded bool    // another face is so near that the two may be confused
}

// Changed reports whether a face needs a new vector, because it may be new evidence.
func (f *Faces) Changed(at time.Duration, l Look) bool {
	if l.Crowded || f.Due(at, l.Track, true) {
		return true
	}
	t := f.tracks[l.Track]
	pose, posed := face.PoseOf(l.Landmarks)
	q, old := l.Quality, t.sample.Quality
	size := float64(max(1, q.Size)) / float64(max(1, old.Size))
	switch {
	case !posed || !t.posed: // the pose of the head is unknown
		return true
	case math.Abs(pose.Turn-t.pose.Turn) > turned, math.Abs(pose.Nod-t.pose.Nod) > nodded:
		return true
	case size > grown, size < 1/grown, face.Overlap(l.Box, t.sample.Box) < apart:
		return true
	case math.Abs(q.Brightness-old.Brightness) > lit, l.Reason != t.sample.Reason:
		return true
	}
	return Alike(l.Patch, t.patch) < alike
}

// Settled reports whether a track has its first vectors.
func (f *Faces) Settled(track int) bool {
	t := f.tracks[track]
	return t != nil && t.vectors >= firstVectors
}

// Same reports whether a patch may be of the head of the last vector of a track.
func (f *Faces) Same(track int, patch []uint8) bool {
	t := f.tracks[track]
	return t != nil && Alike(patch, t.patch) >= itself
}

// Ask says that the faces of some tracks need a new vector. It reports whether one of the tracks is
// known; the others are left out.
func (f *Faces) Ask(tracks ...int) (known bool) {
	for _, track := range tracks {
		t := f.tracks[track]
		if t != nil {
			t.due, known = true, true
		}
	}
	return known
}

// Due reports whether a face needs a new vector without a comparison of its picture: it was asked
// for, its track has too few vectors, or the last one is old, which it is sooner if the face moved.
func (f *Faces) Due(at time.Duration, track int, moved bool) bool {
	most := oldestStill
	if moved {
		most = oldest
	}
	t := f.tracks[track]
	return t == nil || t.due || t.vectors < firstVectors || at-t.at >= most
}

// Alike returns the correlation of the grey values of two patches, in [-1,1]. It is 1 if they
// differ only in light and contrast, and -1 if they cannot be compared.
func Alike(a, b []uint8) float64 {
	if len(a) != len(b) || len(a) == 0 {
		return -1
	}
	var ma, mb float64
	for i := range a {
		ma += float64(a[i])
		mb += float64(b[i])
	}
	n := float64(len(a))
	ma, mb = ma/n, mb/n
	var ab, aa, bb float64
	for i := range a {
		x, y := float64(a[i])-ma, float64(b[i])-mb
		ab, aa, bb = ab+x*y, aa+x*x, bb+y*y
	}
	if aa == 0 || bb == 0 {
		return -1
	}
	return ab / math.Sqrt(aa*bb)
}

// Hold returns the face of a track as a held sample at another place. Ok is false if no vector of
// this track was tried.
func (f *Faces) Hold(at time.Duration, track int, box image.Rectangle,
	score float32) (s face.Sample, ok bool) {
	t := f.tracks[track]
	if t == nil {
		return s, false
	}
	t.last = at
	s = t.sample
	s.Box, s.Score = box, score
	return s, true
}

// Made notes that a vector of a face was made, or could not be made.
func (f *Faces) Made(at time.Duration, l Look) {
	if f.tracks == nil {
		f.tracks = make(map[int]*known)
	}
	t := f.tracks[l.Track]
	if t == nil {
		t = &known{}
		f.tracks[l.Track] = t
	}
	t.vectors++
	t.at, t.last, t.due, t.patch = at, at, false, l.Patch
	t.pose, t.posed = face.PoseOf(l.Landmarks)
	s := l.Sample
	s.Held, s.Vector, s.Landmarks, s.Aligned, s.JPEG, s.Liveness = true, nil, nil, nil, nil, nil
	t.sample = s
}

// Keep says that all faces of the frame at this time were passed to f. It forgets tracks that were
// lost some time ago.
func (f *Faces) Keep(at time.Duration) {
	for id, t := range f.tracks {
		if t.last < at {
			t.due = true
		}
		if at-t.last > lost {
			delete(f.tracks, id)
		}
	}
}
