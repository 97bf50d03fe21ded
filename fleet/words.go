// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/faceauth/faceauth/internal/vector"
	"github.com/faceauth/faceauth/online"
)

// The words of a device about one person are sealed with the key of the person. Each word has a key (the name, a face,
// another person) and a clock. Of the words of all devices with one key the one with the later clock counts, then the
// one of the device with the greater id.
type words struct {
	Name   *naming    `cbor:"1,keyasint,omitempty"`
	Spaces []string   `cbor:"2,keyasint,omitempty"` // of the faces
	Faces  []faceWord `cbor:"3,keyasint,omitempty"`
	Same   []sameWord `cbor:"4,keyasint,omitempty"`
}

type naming struct {
	_     struct{} `cbor:",toarray"`
	Clock uint64
	Name  string
	Was   []string // earlier names
}

// A faceState says what a face is to a person.
type faceState uint64

const (
	labelled  faceState = 0
	retracted faceState = 2 // labelled once
	denied    faceState = 3 // the face is not the person's
	allowed   faceState = 4 // denied once
)

type faceWord struct {
	_       struct{} `cbor:",toarray"`
	ID      []byte
	Clock   uint64
	State   faceState
	Space   uint64 // index in words.Spaces
	Vector  []byte // little-endian float32; empty for retracted and allowed faces
	Taken   int64  // milliseconds since 1970; 0 for unknown
	Quality float64
}

func (f faceWord) id() FaceID { return FaceID(f.ID) }

// A sameWord says that the person is the same as another one, with the other's name.
type sameWord struct {
	_     struct{} `cbor:",toarray"`
	Into  []byte
	Clock uint64
	Off   bool // no longer
}

// Limits of words.
const (
	maxDim    = 1 << 14 // values of a vector
	maxSpace  = 200     // bytes of the name of a feature space
	mostNames = 8       // earlier names
	mostGone  = 1000    // retracted and allowed faces of a device and a person
	mostSame  = 100
)

// openWords decodes words and checks them.
func openWords(data []byte) (w words, err error) {
	if err := decoding.Unmarshal(data, &w); err != nil {
		return w, errValue
	}
	if w.Name != nil && (online.CheckName(w.Name.Name) != nil || len(w.Name.Was) > mostNames) {
		return w, fmt.Errorf("%w: a wrong name", errValue)
	}
	for _, s := range w.Spaces {
		if s == "" || len(s) > maxSpace {
			return w, fmt.Errorf("%w: a wrong feature space", errValue)
		}
	}
	for _, f := range w.Faces {
		with := f.State == labelled || f.State == denied
		if len(f.ID) != len(FaceID{}) || f.State > allowed || with != (len(f.Vector) > 0) ||
			with && f.Space >= uint64(len(w.Spaces)) || !finite(f.Quality) {
			return w, fmt.Errorf("%w: a wrong face", errValue)
		}
		if with && checkVector(f.Vector) != nil {
			return w, fmt.Errorf("%w: a wrong vector", errValue)
		}
	}
	for _, s := range w.Same {
		if len(s.Into) != len(ID{}) {
			return w, fmt.Errorf("%w: a wrong person", errValue)
		}
	}
	return w, nil
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// checkVector returns nil for the bytes of a vector of finite numbers.
func checkVector(b []byte) error {
	if len(b) == 0 || len(b)%4 != 0 || len(b) > 4*maxDim {
		return fmt.Errorf("%w: a vector of %d bytes", errValue, len(b))
	}
	for _, v := range vector.Floats(b) {
		if !finite(float64(v)) {
			return fmt.Errorf("%w: a vector with a value that is not a finite number", errValue)
		}
	}
	return nil
}

// space returns the index of a space in w, and adds it if it is missing.
func (w *words) space(s string) uint64 {
	i := slices.Index(w.Spaces, s)
	if i < 0 {
		i = len(w.Spaces)
		w.Spaces = append(w.Spaces, s)
	}
	return uint64(i)
}

// setFace says what a face is, and returns whether this replaces another word.
func (w *words) setFace(f faceWord) {
	w.Faces = slices.DeleteFunc(w.Faces, func(o faceWord) bool { return string(o.ID) == string(f.ID) })
	w.Faces = append(w.Faces, f)
}

// join adds the later words of another copy of the same device's words.
func (w *words) join(o words) {
	if o.Name != nil && (w.Name == nil || o.Name.Clock > w.Name.Clock) {
		w.Name = o.Name
	}
	for _, f := range o.Faces {
		i := slices.IndexFunc(w.Faces, func(x faceWord) bool { return string(x.ID) == string(f.ID) })
		if i >= 0 && w.Faces[i].Clock >= f.Clock {
			continue
		}
		if len(f.Vector) > 0 {
			f.Space = w.space(o.Spaces[f.Space])
		}
		w.setFace(f)
	}
	for _, s := range o.Same {
		i := slices.IndexFunc(w.Same, func(x sameWord) bool { return string(x.Into) == string(s.Into) })
		if i < 0 {
			w.Same = append(w.Same, s)
		} else if w.Same[i].Clock < s.Clock {
			w.Same[i] = s
		}
	}
}

// trim drops the oldest words beyond the limits.
func (w *words) trim() {
	slices.SortStableFunc(w.Faces, func(a, b faceWord) int { return cmp.Compare(b.Clock, a.Clock) }) // the newest first
	var count [allowed + 1]int
	w.Faces = slices.DeleteFunc(w.Faces, func(f faceWord) bool {
		count[f.State]++
		switch f.State {
		case labelled:
			return count[f.State] > MaxFaces
		case denied:
			return count[f.State] > MaxDenied
		}
		return count[f.State] > mostGone
	})
	slices.Reverse(w.Faces)
	if len(w.Same) > mostSame {
		w.Same = w.Same[len(w.Same)-mostSame:]
	}
}

// newFaceWord returns a word about a face.
func (w *words) newFaceWord(space string, f Face, state faceState, clock uint64) faceWord {
	id := NewFaceID(space, f.Vector)
	x := faceWord{ID: id[:], Clock: clock, State: state, Space: w.space(space), Vector: vector.Bytes(f.Vector),
		Quality: f.Quality}
	if !f.Taken.IsZero() {
		x.Taken = f.Taken.UnixMilli()
	}
	return x
}

// personFace converts a word about a face.
func (f faceWord) personFace(spaces []string) PersonFace {
	p := PersonFace{ID: f.id(), clock: f.Clock}
	p.Quality = f.Quality
	if len(f.Vector) > 0 {
		p.Space, p.Vector = spaces[f.Space], vector.Floats(f.Vector)
	}
	if f.Taken != 0 {
		p.Taken = time.UnixMilli(f.Taken).UTC()
	}
	return p
}

// A lessonPart is a part of the encoded lessons of a device about a person. The lessons count when all parts are there.
type lessonPart struct {
	Clock uint64 `cbor:"1,keyasint"`
	Parts uint64 `cbor:"2,keyasint"`
	Data  []byte `cbor:"3,keyasint,omitempty"`
}

// Limits of lessons.
const (
	lessonBytes = 200_000 // of a part
	mostParts   = 32
)

type wireLesson struct {
	Space     string         `cbor:"1,keyasint"`
	Centroids []wireCentroid `cbor:"2,keyasint"`
	Links     [][2]int       `cbor:"3,keyasint,omitempty"`
	Through   []string       `cbor:"4,keyasint,omitempty"`
}

type wireCentroid struct {
	_            struct{} `cbor:",toarray"`
	Vector       []byte
	Multiplicity float64
	Radius       float64
}

func encodeLessons(all []online.Lesson) []byte {
	var w []wireLesson
	for _, x := range all {
		if len(x.Centroids) == 0 {
			continue
		}
		l := wireLesson{Space: x.Space, Links: x.Links, Through: x.Through}
		for _, c := range x.Centroids {
			l.Centroids = append(l.Centroids, wireCentroid{Vector: vector.Bytes(c.Vector),
				Multiplicity: c.Multiplicity, Radius: c.Radius})
		}
		w = append(w, l)
	}
	if len(w) == 0 {
		return nil
	}
	return encode(w)
}

// decodeLessons checks the lessons of a member.
func decodeLessons(data []byte) (all []online.Lesson, err error) {
	var w []wireLesson
	if err := decoding.Unmarshal(data, &w); err != nil {
		return nil, errValue
	}
	for _, l := range w {
		x := online.Lesson{Space: l.Space, Links: l.Links, Through: l.Through}
		if l.Space == "" || len(l.Space) > maxSpace || len(l.Through) > online.MaxThrough ||
			!slices.IsSorted(l.Through) {
			return nil, fmt.Errorf("%w: a wrong lesson", errValue)
		}
		for _, c := range l.Centroids {
			if err := checkVector(c.Vector); err != nil {
				return nil, err
			}
			if len(c.Vector) != len(l.Centroids[0].Vector) || !(c.Multiplicity > 0) || !finite(c.Multiplicity) ||
				!(c.Radius >= 0) || !finite(c.Radius) {
				return nil, fmt.Errorf("%w: a wrong centroid", errValue)
			}
			x.Centroids = append(x.Centroids, online.Centroid{Vector: vector.Floats(c.Vector),
				Multiplicity: c.Multiplicity, Radius: c.Radius})
		}
		for _, k := range l.Links {
			if min(k[0], k[1]) < 0 || max(k[0], k[1]) >= len(x.Centroids) {
				return nil, fmt.Errorf("%w: a wrong link", errValue)
			}
		}
		all = append(all, x)
	}
	return all, nil
}

// personOf returns the person whom a value is about, and the part of a lesson, or -1 for the words themselves. Ok is
// false for notes, whose names begin with "_", and for wrong names.
func personOf(name string) (id ID, part int, ok bool) {
	if len(name) < 2*len(id) || strings.ToLower(name) != name {
		return id, 0, false
	}
	if _, err := hex.Decode(id[:], []byte(name[:2*len(id)])); err != nil {
		return id, 0, false
	}
	if name = name[2*len(id):]; name == "" {
		return id, -1, true
	}
	for part := range mostParts {
		if name == lessonName(part) {
			return id, part, true
		}
	}
	return id, 0, false
}

func lessonName(part int) string { return fmt.Sprintf("l%d", part) }
