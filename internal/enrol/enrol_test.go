// SPDX-License-Identifier: Apache-2.0

package enrol_test

import (
	"context"
	"image"
	"io"
	"maps"
	"testing"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/enrol"
)

// A doubtful face is one that may be enrolled if a user insists, and none that may not even be
// learned.
func TestDoubtful(t *testing.T) {
	space := face.Space{LearnNorm: 2, ClearNorm: 2.8}
	x := []float32{1}
	for _, test := range []struct {
		reason face.Reason
		vector []float32
		norm   float64
		want   face.Reason
	}{
		{"", x, 3, ""},
		{"", x, 2.5, face.Unclear},
		{face.Unclear, x, 1.5, ""},
		{face.Covered, x, 2.5, face.Covered},
		{face.Covered, x, 1.5, ""},
		{face.Covered, nil, 3, ""},
		{face.Moved, x, 3, face.Moved},
		{face.TooDark, x, 3, ""},
	} {
		s := face.Sample{Reason: test.reason, Vector: test.vector,
			Quality: face.Quality{Norm: test.norm}}
		if got := enrol.Doubtful(s, space); got != test.want {
			t.Errorf("%q with norm %g: %q, want %q", test.reason, test.norm, got, test.want)
		}
	}
}

// shown is a stream of frames.
type shown []face.Frame

func (s *shown) Next(context.Context) (f face.Frame, err error) {
	if len(*s) == 0 {
		return f, io.EOF
	}
	f, *s = (*s)[0], (*s)[1:]
	return f, nil
}

// Gather takes the first good faces, and counts the others by reason.
func TestGather(t *testing.T) {
	space := face.Space{LearnNorm: 2, ClearNorm: 2.8}
	good := face.Sample{Vector: []float32{1}, Quality: face.Quality{Norm: 3}}
	unclear, dark := good, good
	dark.Reason, unclear.Quality.Norm = face.TooDark, 2.5
	for name, c := range map[string]struct {
		want    enrol.Wanted
		samples [][]face.Sample
		faces   int
		frames  int
		refused map[string]int
		unclear int
	}{
		"enough": {want: enrol.Wanted{Faces: 2}, faces: 2, frames: 5,
			samples: [][]face.Sample{{}, {good, good}, {good}, {dark}, {good}, {good}},
			refused: map[string]int{"no face": 1, "several faces": 1, string(face.TooDark): 1}},
		"too few": {want: enrol.Wanted{Faces: 2}, faces: 1, frames: 2, unclear: 1,
			samples: [][]face.Sample{{unclear}, {good}},
			refused: map[string]int{string(face.Unclear): 1}},
		"unclear, too": {want: enrol.Wanted{Faces: 2, Unclear: true}, faces: 2, frames: 2,
			samples: [][]face.Sample{{unclear}, {good}}},
	} {
		t.Run(name, func(t *testing.T) {
			var s shown
			for _, x := range c.samples {
				s = append(s, face.Frame{Size: image.Pt(640, 480), Samples: x})
			}
			steps := 0
			g, err := enrol.Gather(face.Frames(t.Context(), &s), space, c.want, func() { steps++ })
			if len(g.Vectors) != c.faces || steps != c.faces || g.Frames != c.frames ||
				g.Unclear != c.unclear ||
				!maps.Equal(g.Refused, c.refused) || err != nil {
				t.Errorf("%+v, %v after %d steps", g, err, steps)
			}
		})
	}
}
