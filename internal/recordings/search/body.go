// SPDX-License-Identifier: Apache-2.0

package search

import (
	"errors"
	"image"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/album"
	"github.com/faceauth/faceauth/internal/vector"
	"github.com/fxamacker/cbor/v2"
)

// body is a recording as the index keeps it. A search reads all of them, so they are arrays, and
// vectors are bytes. Rectangles are arrays, too: as maps they made reading a fifth slower.
type body struct {
	_         struct{} `cbor:",toarray"`
	Space     string
	Stills    int
	Film      bool
	Count     face.Count
	Sightings []bodySighting
}

type bodySighting struct {
	_        struct{} `cbor:",toarray"`
	From, To time.Duration
	Frames   int
	Box      [4]int // as in [image.Rect]
	Size     [2]int
	Turned   int
	Faces    []bodyFace
}

type bodyFace struct {
	_      struct{} `cbor:",toarray"`
	ID     uint64
	Vector []byte
	JPEG   []byte
}

// encode returns what the index keeps of a recording.
func encode(r Recording, space face.Space) ([]byte, error) {
	b := body{Space: space.ID, Stills: r.Stills, Film: r.Film, Count: r.Count}
	for _, s := range r.Sightings {
		kept := bodySighting{From: s.From, To: s.To, Frames: s.Frames, Turned: s.Turned,
			Box:  [4]int{s.Box.Min.X, s.Box.Min.Y, s.Box.Max.X, s.Box.Max.Y},
			Size: [2]int{s.Size.X, s.Size.Y}}
		for _, f := range s.Album.Faces {
			kept.Faces = append(kept.Faces, bodyFace{ID: f.ID, Vector: vector.Bytes(f.Vector),
				JPEG: f.JPEG})
		}
		b.Sightings = append(b.Sightings, kept)
	}
	return cbor.Marshal(b)
}

var (
	errBody  = errors.New("what the index holds cannot be read")
	errSpace = errors.New("the index holds vectors of another feature space")
)

// decode reads what encode returned. The error is errBody or errSpace.
func decode(from []byte, space face.Space) (r Recording, err error) {
	var b body
	if cbor.Unmarshal(from, &b) != nil {
		return r, errBody
	}
	if b.Space != space.ID {
		return r, errSpace
	}
	r = Recording{Stills: b.Stills, Film: b.Film, Count: b.Count}
	for _, k := range b.Sightings {
		s := Sighting{From: k.From, To: k.To, Frames: k.Frames, Turned: k.Turned,
			Box:  image.Rectangle{image.Pt(k.Box[0], k.Box[1]), image.Pt(k.Box[2], k.Box[3])},
			Size: image.Pt(k.Size[0], k.Size[1])}
		for _, f := range k.Faces {
			x := vector.Floats(f.Vector)
			if len(f.Vector)%4 != 0 || space.Check(x) != nil {
				return r, errBody
			}
			s.Album.Faces = append(s.Album.Faces, album.Face{ID: f.ID, Vector: x, JPEG: f.JPEG})
		}
		if len(s.Album.Faces) == 0 {
			return r, errBody
		}
		r.Sightings = append(r.Sightings, s)
	}
	return r, nil
}
