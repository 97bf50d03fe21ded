// SPDX-License-Identifier: Apache-2.0

package album_test

import (
	"slices"
	"testing"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/album"
)

// plane has people on a grid.
var plane = face.Space{ID: "plane", Dim: 2, Scale: 1, ImpostorRadius: 1}

// The best faces of a stranger are clear and differ from each other. They are not simply the first
// four, from the moment at which the stranger walked in.
func TestBest(t *testing.T) {
	jpeg := []byte("a picture")
	faces := []album.Face{
		{ID: 1, Vector: []float32{0, 0}, JPEG: jpeg, Sharp: 4},
		{ID: 2, Vector: []float32{0, 0}, JPEG: jpeg, Sharp: 900},
		{ID: 3, Vector: []float32{.01, 0}, JPEG: jpeg, Sharp: 900},
		{ID: 4, Vector: []float32{1, 0}, JPEG: jpeg, Sharp: 900},
		{ID: 5, Vector: []float32{1, 1}, JPEG: jpeg, Sharp: 4},
		{ID: 6, Vector: []float32{0, 1}, JPEG: jpeg, Sharp: 900},
		{ID: 7, Vector: []float32{9, 9}, Sharp: 9000},
	}
	for n, want := range map[int][]uint64{4: {2, 4, 6, 5}, 100: {2, 4, 6, 5, 3, 1, 7}, 1: {2},
		0: {}} {
		var got []uint64
		for _, f := range album.Best(plane, faces, n) {
			got = append(got, f.ID)
		}
		slices.Sort(got[min(4, len(got)):])
		if slices.Sort(want[min(4, len(want)):]); !slices.Equal(got, want) {
			t.Errorf("%d: %v", n, got)
		}
	}
}

// A full album keeps the faces that differ from each other.
func TestAlbum(t *testing.T) {
	var a album.Album
	number := uint64(0)
	faceAt := func(x, y float32) album.Face {
		number++
		return album.Face{ID: number, Vector: []float32{x, y}}
	}
	for i := range 4 {
		a.Add(plane, faceAt(0, float32(i)/100), 6, .25)
	}
	if added, _ := a.Add(plane, faceAt(.1, 0), 6, .25); added {
		t.Error("a face that says nothing new was kept")
	}
	for _, x := range []float32{1, 2, 2.3} {
		a.Add(plane, faceAt(x, 0), 6, .25)
	}
	if n := len(a.Faces); n != 6 || a.Faces[4].Vector[0] != 1 || a.Faces[5].Vector[0] != 2 {
		t.Errorf("%+v", a.Faces)
	}
	first, rest := a.First()
	if len(first) != 4 || len(rest) != 2 {
		t.Errorf("%d and %d", len(first), len(rest))
	}
}
