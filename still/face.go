// SPDX-License-Identifier: Apache-2.0

package still

import (
	"image"
	"math"
	"time"

	"github.com/faceauth/faceauth/face"
)

// What says that a face has changed since a vector was made of it.
const (
	firstVectors = 8                      // of a track are always made
	oldest       = 400 * time.Millisecond // of a vector of a face that moves
	oldestStill  = 10 * time.Second       // and of one around which nothing moved
	turned       = .10                    // change of face.Pose.Turn
	nodded       = .07                    // and of Nod
	grown        = 1.2                    // ratio of sizes
	lit          = 12.0                   // change of the mean grey value
	apart        = .3                     // least overlap with the box of which the vector was made
	alike        = .94                    // least correlation with its patch
	lost         = 2 * time.Second        // after which a track is forgotten
)

// Faces know of which faces a vector was made, and when, by track. It is used by one goroutine at a time. The zero value
// knows of none.
type Faces struct {
	tracks map[int]*known
}

// known is what is known of a track.
type known struct {
	vectors int
	at      time.Duration // of the last vector
	sample  face.Sample   // of which it was made, as a held one
	pose    face.Pose
	posed   bool
	patch   []uint8
	last    time.Duration // when it was in view last
	missed  bool          // since then, in a frame that was looked at
}

// Patch is the side, in pixels, of the small grey picture of a face by which [Faces] tell whether it has changed.
const Patch = 16

// Look is a face that was found in a frame: a sample with its track, box, landmarks, quality and reason.
type Look struct {
	face.Sample
	Patch   []uint8 // the box in grey values, Patch pixels wide and high; nil where it is smaller
	Crowded bool    // somebody else is so near that the two may be taken for each other
}

// Changed reports whether a vector of a face should be made: it may say something new.
func (f *Faces) Changed(at time.Duration, l Look) bool {
	if l.Crowded || f.Due(at, l.Track) {
		return true
	}
	t := f.tracks[l.Track]
	pose, posed := face.PoseOf(l.Landmarks)
	q, old := l.Quality, t.sample.Quality
	size := float64(max(1, q.Size)) / float64(max(1, old.Size))
	switch {
	case !posed || !t.posed: // how the head is held cannot be told
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

// Due reports whether a vector of a face that moved should be made without comparing its picture: there are too few of its
// track, or the last one is old.
func (f *Faces) Due(at time.Duration, track int) bool {
	t := f.tracks[track]
	return t == nil || t.missed || t.vectors < firstVectors || at-t.at >= oldest
}

// Alike returns the correlation of the grey values of two patches, which is 1 where they differ in light and contrast
// alone, and -1 for patches that cannot be compared.
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

// Old reports whether a vector should be made of a face around which nothing moved.
func (f *Faces) Old(at time.Duration, track int) bool {
	t := f.tracks[track]
	return t == nil || t.missed || t.vectors < firstVectors || at-t.at >= oldestStill
}

// Hold returns the face of a track as a held one in another place. Ok is false where no vector was tried of it.
func (f *Faces) Hold(at time.Duration, track int, box image.Rectangle, score float32) (s face.Sample, ok bool) {
	t := f.tracks[track]
	if t == nil {
		return s, false
	}
	t.last = at
	s = t.sample
	s.Box, s.Score = box, score
	return s, true
}

// Made notes that a vector of a face was made, or could not be.
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
	t.at, t.last, t.missed, t.patch = at, at, false, l.Patch
	t.pose, t.posed = face.PoseOf(l.Landmarks)
	s := l.Sample
	s.Held, s.Vector, s.Landmarks, s.JPEG, s.Liveness = true, nil, nil, nil, nil
	t.sample = s
}

// Keep says that the faces of a frame of that time are all told of, and forgets those that were lost a while ago.
func (f *Faces) Keep(at time.Duration) {
	for id, t := range f.tracks {
		if t.last < at {
			t.missed = true
		}
		if at-t.last > lost {
			delete(f.tracks, id)
		}
	}
}
