// SPDX-License-Identifier: Apache-2.0

package search

import (
	"image"
	"reflect"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/album"
	"github.com/faceauth/faceauth/internal/fixture"
)

// What the index keeps comes out as it went in, and a damaged part of it as an error.
func TestBody(t *testing.T) {
	space := face.Space{ID: "plane", Dim: 2, Scale: 1}
	r := Recording{Stills: 1, Film: true, Count: face.Count{Declared: 1, Read: 1, Partial: 1},
		Sightings: []Sighting{{From: time.Second, To: time.Minute, Frames: 3, Turned: 90,
			Box: image.Rect(1, 2, 3, 4), Size: image.Pt(5, 6), Album: album.Album{
				Faces: []album.Face{{ID: 1, Vector: []float32{1, -2}, JPEG: []byte("jpeg")},
					{ID: 7, Vector: []float32{.1, 3e8}}}}}}}
	b := fixture.Must(encode(r, space))(t)
	if got, err := decode(b, space); err != nil || !reflect.DeepEqual(got, r) {
		t.Errorf("%+v, %v; want %+v", got, err, r)
	}
	other := space
	other.ID, other.Dim = "cube", 3
	if _, err := decode(b, other); err != errSpace {
		t.Errorf("another space: %v", err)
	}
	for i := range b {
		if _, err := decode(b[:i], space); err != errBody {
			t.Errorf("cut to %d bytes: %v", i, err)
		}
		damaged := append([]byte(nil), b...)
		damaged[i] ^= 1
		got, err := decode(damaged, space)
		for _, s := range got.Sightings {
			if err == nil && len(s.Album.Faces) == 0 {
				t.Errorf("byte %d: a sighting without a face", i)
			}
		}
	}
	for name, faces := range map[string][]album.Face{
		"no face": nil, "another dimension": {{Vector: []float32{1}}}, "no vector": {{}},
	} {
		r.Sightings[0].Album.Faces = faces
		if _, err := decode(fixture.Must(encode(r, space))(t), space); err != errBody {
			t.Errorf("%s: %v", name, err)
		}
	}
}
