// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/nats-io/nkeys"
	"golang.org/x/crypto/chacha20poly1305"

	"github.com/faceauth/faceauth/internal/vector"
)

// Limits of the contents of entries.
const (
	maxDim   = 1 << 14 // values of a vector
	maxSpace = 200     // bytes of the name of a feature space
	maxName  = 400     // bytes of a name
	maxScope = 20_000  // people of an admission

	maxCentroids = 1 << 24 // highest index in a link
)

// MaxThrough is the largest number of sources of [Lesson].Through.
const MaxThrough = 256

// FaceID is the number of a face: a hash of its space and vector. The same face has the same number on all devices.
type FaceID [16]byte

// NewFaceID returns the number of a face.
func NewFaceID(space string, x []float32) (id FaceID) {
	b := make([]byte, 0, 64+len(space)+4*len(x))
	b = append(b, "faceauth fleet face\x00"...)
	b = binary.BigEndian.AppendUint32(b, uint32(len(space)))
	b = vector.Append(append(b, space...), x)
	sum := sha256.Sum256(b)
	copy(id[:], sum[:])
	return id
}

// String returns 32 hexadecimal digits.
func (id FaceID) String() string { return hex.EncodeToString(id[:]) }

// MarshalText returns [FaceID.String].
func (id FaceID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText reads the text of MarshalText.
func (id *FaceID) UnmarshalText(text []byte) error {
	if len(text) != 2*len(id) {
		return fmt.Errorf("%q is not the number of a face", text)
	}
	_, err := hex.Decode(id[:], text)
	return err
}

// Face is a labelled, denied or confirmed face.
type Face struct {
	Vector  []float32
	Taken   time.Time // zero for unknown; for people to read only
	Quality float64   // of the picture, as the camera's device measured it; 0 for unknown
}

// Faces is the content of [Label], [Deny] and [Confirm].
type Faces struct {
	Space string // of all vectors
	Faces []Face
}

// Naming is the content of [Name].
type Naming struct {
	Name string `cbor:"1,keyasint"`
}

// Refs is the content of [Retract].
type Refs struct {
	Faces []FaceID
}

// Lesson is the content of [Lessons]: a quantized graph that a device learned of a person.
type Lesson struct {
	Space     string
	Centroids []Centroid
	// Through are the sources ([Ledger.Source]) whose lessons helped to learn these faces, in ascending order. If the
	// lessons of one of them are withdrawn, this lesson does not count.
	Through []string
	// Links are pairs of indexes in Centroids that follow each other on a track. If a lesson has several entries,
	// indexes count through all of them with the same sources.
	Links [][2]int
}

// Equal reports whether two lessons are equal. The order of the links does not matter.
func (x Lesson) Equal(o Lesson) bool {
	a, b := slices.Clone(x.Links), slices.Clone(o.Links)
	for _, links := range [][][2]int{a, b} {
		slices.SortFunc(links, func(p, q [2]int) int { return slices.Compare(p[:], q[:]) })
	}
	return x.Space == o.Space && slices.Equal(x.Through, o.Through) && slices.Equal(a, b) &&
		slices.EqualFunc(x.Centroids, o.Centroids, func(p, q Centroid) bool {
			return p.Multiplicity == q.Multiplicity && p.Radius == q.Radius && slices.Equal(p.Vector, q.Vector)
		})
}

// Centroid is a learned vector.
type Centroid struct {
	Vector       []float32
	Multiplicity float64 // number of faces that it stands for, less for old faces
	Radius       float64 // greatest distance of these faces, in the distance of the space
}

// Forgetting is the content of [Forget]: the further numbers that are forgotten, as a rule those that were merged with
// the person. The entry names all of them. They cannot be found from the merges, because the log no longer holds the
// entries and merges of forgotten people.
type Forgetting struct {
	Also []ID `cbor:"1,keyasint,omitempty"`
}

// Withdrawal is the content of [Withdraw]: earlier lessons of the device do not count. With Mute, its later lessons do
// not count either, until a withdrawal without Mute.
type Withdrawal struct {
	Device string `cbor:"1,keyasint"`
	Mute   bool   `cbor:"2,keyasint,omitempty"`
}

// Scope tells about which people a device may read and write.
type Scope struct {
	All bool `cbor:"1,keyasint,omitempty" json:"all,omitempty"`
	// People lists the people if All is false. A device may always read and write about the people that it enrolled
	// first.
	People []ID `cbor:"2,keyasint,omitempty" json:"people,omitempty"`
}

// Admission is the content of [Admit].
type Admission struct {
	Device string `cbor:"1,keyasint"`
	Name   string `cbor:"2,keyasint"` // of the device, for people
	Scope  Scope  `cbor:"3,keyasint"`
}

// Revocation is the content of [Revoke].
type Revocation struct {
	Device string `cbor:"1,keyasint"`
}

// Allowance is the content of [Allow]: the device may forget [DailyForgets] people again. An empty device means all
// devices: a new day begins.
type Allowance struct {
	Device string `cbor:"1,keyasint,omitempty"`
}

// The encoded forms of the contents. Vectors are little-endian float32.
type wireFace struct {
	_       struct{} `cbor:",toarray"`
	Vector  []byte
	Taken   int64 // milliseconds since 1970; 0 for unknown
	Quality float64
}

type wireFaces struct {
	Space string     `cbor:"1,keyasint"`
	Faces []wireFace `cbor:"2,keyasint"`
}

type wireRefs struct {
	Faces [][]byte `cbor:"1,keyasint"`
}

type wireCentroid struct {
	_            struct{} `cbor:",toarray"`
	Vector       []byte
	Multiplicity float64
	Radius       float64
}

type wireLesson struct {
	Space     string         `cbor:"1,keyasint"`
	Centroids []wireCentroid `cbor:"2,keyasint"`
	Links     [][2]int       `cbor:"3,keyasint,omitempty"`
	Through   []string       `cbor:"4,keyasint,omitempty"`
}

func floats32(b []byte) ([]float32, error) {
	if len(b) == 0 || len(b)%4 != 0 || len(b) > 4*maxDim {
		return nil, fmt.Errorf("%w: a vector has %d bytes", ErrContent, len(b))
	}
	x := vector.Floats(b)
	for _, v := range x {
		if v := float64(v); math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, fmt.Errorf("%w: a vector has a value that is not a finite number", ErrContent)
		}
	}
	return x, nil
}

// encodeContent returns the bytes of a content of kind k. It panics if the content has another kind.
func encodeContent(k Kind, content any) []byte {
	switch c := content.(type) {
	case Faces:
		if k == Label || k == Deny || k == Confirm {
			w := wireFaces{Space: c.Space}
			for _, f := range c.Faces {
				x := wireFace{Vector: vector.Bytes(f.Vector), Quality: f.Quality}
				if !f.Taken.IsZero() {
					x.Taken = f.Taken.UnixMilli()
				}
				w.Faces = append(w.Faces, x)
			}
			return marshal(w)
		}
	case Naming:
		if k == Name {
			return marshal(c)
		}
	case Refs:
		if k == Retract {
			var w wireRefs
			for _, f := range c.Faces {
				w.Faces = append(w.Faces, f[:])
			}
			return marshal(w)
		}
	case Lesson:
		if k == Lessons {
			w := wireLesson{Space: c.Space, Links: c.Links, Through: c.Through}
			for _, x := range c.Centroids {
				y := wireCentroid{Vector: vector.Bytes(x.Vector), Multiplicity: x.Multiplicity, Radius: x.Radius}
				w.Centroids = append(w.Centroids, y)
			}
			return marshal(w)
		}
	case Ref:
		if k == Undo {
			return marshal(c)
		}
	case Forgetting:
		if k == Forget {
			return marshal(c)
		}
	case Withdrawal:
		if k == Withdraw {
			return marshal(c)
		}
	case Admission:
		if k == Admit {
			return marshal(c)
		}
	case Revocation:
		if k == Revoke {
			return marshal(c)
		}
	case Restoration:
		if k == Restored {
			return marshal(c)
		}
	case Allowance:
		if k == Allow {
			return marshal(c)
		}
	}
	panic(fmt.Sprintf("ledger: %T is not a content of %s", content, k))
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// checkThrough checks the sources of a lesson.
func checkThrough(sources []string) error {
	if len(sources) > MaxThrough {
		return fmt.Errorf("%w: a lesson was learned through %d sources; there may be %d", ErrContent, len(sources),
			MaxThrough)
	}
	for i, source := range sources {
		device, place, withdrawn := strings.Cut(source, "@")
		n, err := strconv.ParseUint(place, 10, 64)
		if !nkeys.IsValidPublicUserKey(device) || withdrawn && (err != nil || strconv.FormatUint(n, 10) != place) ||
			i > 0 && sources[i-1] >= source {
			return fmt.Errorf("%w: a lesson was learned through %.100q, which is no source or not in order", ErrContent,
				source)
		}
	}
	return nil
}

func checkSpace(s string) error {
	if s == "" || len(s) > maxSpace {
		return fmt.Errorf("%w: the name of its feature space has %d bytes", ErrContent, len(s))
	}
	return nil
}

// decodeContent reads a content. The error wraps [ErrContent].
func decodeContent(k Kind, data []byte) (any, error) {
	read := func(v any) error {
		if err := decoding.Unmarshal(data, v); err != nil {
			return fmt.Errorf("%w: %s: %w", ErrContent, k, err)
		}
		return nil
	}
	user := func(device string) error {
		if !nkeys.IsValidPublicUserKey(device) {
			return fmt.Errorf("%w: %s names no device", ErrContent, k)
		}
		return nil
	}
	switch k {
	case Label, Deny, Confirm:
		var w wireFaces
		if err := read(&w); err != nil {
			return nil, err
		}
		if err := checkSpace(w.Space); err != nil {
			return nil, err
		}
		c := Faces{Space: w.Space}
		for _, x := range w.Faces {
			v, err := floats32(x.Vector)
			if err != nil {
				return nil, err
			}
			if len(x.Vector) != len(w.Faces[0].Vector) || !finite(x.Quality) {
				return nil, fmt.Errorf("%w: %s: the vectors have different lengths, or a quality is not finite",
					ErrContent, k)
			}
			f := Face{Vector: v, Quality: x.Quality}
			if x.Taken != 0 {
				f.Taken = time.UnixMilli(x.Taken).UTC()
			}
			c.Faces = append(c.Faces, f)
		}
		return c, nil
	case Name:
		var c Naming
		if err := read(&c); err != nil {
			return nil, err
		}
		if c.Name == "" || len(c.Name) > maxName || !utf8.ValidString(c.Name) {
			return nil, fmt.Errorf("%w: a name of %d bytes", ErrContent, len(c.Name))
		}
		return c, nil
	case Retract:
		var w wireRefs
		if err := read(&w); err != nil {
			return nil, err
		}
		var c Refs
		for _, b := range w.Faces {
			var id FaceID
			if copy(id[:], b); len(b) != len(id) {
				return nil, fmt.Errorf("%w: the number of a face has %d bytes", ErrContent, len(b))
			}
			c.Faces = append(c.Faces, id)
		}
		return c, nil
	case Lessons:
		var w wireLesson
		if err := read(&w); err != nil {
			return nil, err
		}
		if err := checkSpace(w.Space); err != nil {
			return nil, err
		}
		for _, link := range w.Links {
			if link[0] < 0 || link[0] >= link[1] || link[1] > maxCentroids {
				return nil, fmt.Errorf("%w: a link from centroid %d to %d", ErrContent, link[0], link[1])
			}
		}
		if err := checkThrough(w.Through); err != nil {
			return nil, err
		}
		c := Lesson{Space: w.Space, Links: w.Links, Through: w.Through}
		for _, x := range w.Centroids {
			v, err := floats32(x.Vector)
			if err != nil {
				return nil, err
			}
			if len(x.Vector) != len(w.Centroids[0].Vector) {
				return nil, fmt.Errorf("%w: the centroids have different lengths", ErrContent)
			}
			if !finite(x.Multiplicity) || x.Multiplicity <= 0 || !finite(x.Radius) || x.Radius < 0 {
				return nil, fmt.Errorf("%w: a centroid stands for %v faces within %v", ErrContent, x.Multiplicity,
					x.Radius)
			}
			c.Centroids = append(c.Centroids, Centroid{v, x.Multiplicity, x.Radius})
		}
		return c, nil
	case Undo:
		var c Ref
		if err := read(&c); err != nil {
			return nil, err
		}
		return c, user(c.Device)
	case Forget:
		var c Forgetting
		if err := read(&c); err != nil {
			return nil, err
		}
		if len(c.Also) > maxScope || slices.ContainsFunc(c.Also, ID.IsZero) {
			return nil, fmt.Errorf("%w: %s of %d people, or of nobody", ErrContent, k, len(c.Also)+1)
		}
		return c, nil
	case Withdraw:
		var c Withdrawal
		if err := read(&c); err != nil {
			return nil, err
		}
		return c, user(c.Device)
	case Admit:
		var c Admission
		if err := read(&c); err != nil {
			return nil, err
		}
		if len(c.Name) > maxName || !utf8.ValidString(c.Name) {
			return nil, fmt.Errorf("%w: the name of a device has %d bytes", ErrContent, len(c.Name))
		}
		if len(c.Scope.People) > maxScope || c.Scope.All && len(c.Scope.People) > 0 {
			return nil, fmt.Errorf("%w: an admission to %d people", ErrContent, len(c.Scope.People))
		}
		return c, user(c.Device)
	case Revoke:
		var c Revocation
		if err := read(&c); err != nil {
			return nil, err
		}
		return c, user(c.Device)
	case Restored:
		var c Restoration
		if err := read(&c); err != nil {
			return nil, err
		}
		if c.Epoch >= 1<<epochShift || c.Epoch <= c.Before {
			return nil, fmt.Errorf("%w: log %d cannot continue as log %d", ErrContent, c.Before, c.Epoch)
		}
		return c, nil
	case Allow:
		var c Allowance
		if err := read(&c); err != nil || c.Device == "" {
			return c, err
		}
		return c, user(c.Device)
	}
	return nil, fmt.Errorf("%w: %s has no content", ErrContent, k)
}

const sealedOverhead = chacha20poly1305.NonceSizeX + chacha20poly1305.Overhead

// bound returns the associated data of a sealed content: the entry without content and signature.
func (e *Entry) bound(fleet string) []byte {
	return signed("content", fleet, max(e.Version, Version), e.Device, e.encodePayload(nil))
}

// Seal puts a content into e, sealed with the key of its person. All other fields must be set before. It panics if the
// content is not of e's kind.
func (e *Entry) Seal(fleet string, key Key, content any) {
	if !e.Kind.Sealed() {
		panic("ledger: the content of " + e.Kind.String() + " is not sealed")
	}
	e.Key = key.ID(e.Person)
	e.Body = key.seal(encodeContent(e.Kind, content), e.bound(fleet))
}

// Put puts a content into an entry of a kind that is not sealed. It panics if the content is not of e's kind.
func (e *Entry) Put(content any) {
	if e.Kind.Sealed() {
		panic("ledger: the content of " + e.Kind.String() + " is sealed")
	}
	e.Body = encodeContent(e.Kind, content)
}

// Open returns the content of a sealed entry: [Faces], [Naming], [Refs] or [Lesson]. The error wraps [ErrUnsealed] or
// [ErrContent].
func (e *Entry) Open(fleet string, key Key) (any, error) {
	if !e.Kind.Sealed() || key.ID(e.Person) != e.Key || len(e.Body) < sealedOverhead {
		return nil, fmt.Errorf("%w: %s", ErrUnsealed, e)
	}
	plain, err := key.open(e.Body, e.bound(fleet))
	if err != nil {
		return nil, fmt.Errorf("%w: %s", ErrUnsealed, e)
	}
	defer clear(plain)
	return decodeContent(e.Kind, plain)
}

// Content returns the content of an entry that is not sealed: [Ref], [Forgetting], [Withdrawal], [Admission],
// [Revocation], [Restoration] or [Allowance]. The error wraps [ErrContent].
func (e *Entry) Content() (any, error) {
	if e.Kind.Sealed() {
		return nil, fmt.Errorf("%w: %s is sealed", ErrContent, e)
	}
	return decodeContent(e.Kind, slices.Clone(e.Body))
}
