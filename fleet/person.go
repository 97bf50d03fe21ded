// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/faceauth/faceauth/internal/vector"
	"github.com/faceauth/faceauth/online"
)

// ID is the number of a person in a fleet. It is a hash of the device that made it and of a random number, so that
// everybody can check which device made it.
type ID [16]byte

// born is the random number in the number of a person.
type born [16]byte

// newID returns the number of a new person of a device.
func newID(device string) (id ID, b born) {
	rand.Read(b[:])
	return b.id(device), b
}

func (b born) id(device string) (id ID) {
	sum := sha256.Sum256(append([]byte("faceauth fleet person\x00"+device), b[:]...))
	copy(id[:], sum[:])
	return id
}

// ParseID reads 32 hexadecimal digits.
func ParseID(s string) (id ID, err error) {
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != len(id) || hex.EncodeToString(b) != s {
		return id, fmt.Errorf("%q is not the number of a person: it needs 32 lower-case hexadecimal digits", s)
	}
	return ID(b), nil
}

// String returns 32 hexadecimal digits.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// MarshalText returns [ID.String].
func (id ID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText reads the text of MarshalText.
func (id *ID) UnmarshalText(text []byte) (err error) {
	*id, err = ParseID(string(text))
	return err
}

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
	x, err := ParseID(string(text))
	*id = FaceID(x)
	return err
}

// Face is a labelled or denied face.
type Face struct {
	Vector  []float32
	Taken   time.Time // zero for unknown; for people to read only
	Quality float64   // of the picture, as the camera's device measured it; 0 for unknown
}

// PersonFace is a labelled or denied face of a person.
type PersonFace struct {
	ID    FaceID
	Space string
	Face

	clock  uint64
	device string // that said it
}

// Person is a person of a fleet: the join of what its devices say.
type Person struct {
	ID       ID
	IDs      []ID         // all numbers of the person, ID first; several after merges
	Name     string       // the given name; "" without a name or without its key
	Shown    string       // a unique form of the name: "alice (2)"
	Faces    []PersonFace // the labelled faces, the oldest first
	Denied   []PersonFace // faces that are not the person's, the oldest first, at most [MaxDenied]
	Gone     []FaceID     // faces that were labelled once and are not labelled now
	Allowed  []FaceID     // faces that were denied once and are not now
	Names    []string     // the name and earlier names
	Lessons  []PersonLesson
	Enrolled time.Time // when the last face was labelled, by its device's clock
	Sealed   int       // number of values about the person that this device cannot open

	named uint64 // clock of the name
}

// Limits of what counts.
const (
	MaxDenied = 16 // denied faces of a person: the newest
	MaxFaces  = 64 // labelled faces that one device gives one person: the newest
)

// PersonLesson is a device's lesson about a person.
type PersonLesson struct {
	Device string
	Of     ID // the number under which the device knew the person
	online.Lesson
}
