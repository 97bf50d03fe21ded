// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/faceauth/faceauth/face"
)

// --unclear labels doubtful faces, and none that may not even be learned.
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
		s := face.Sample{Reason: test.reason, Vector: test.vector, Quality: face.Quality{Norm: test.norm}}
		if got := doubtful(s, space); got != test.want {
			t.Errorf("%q with norm %g: %q, want %q", test.reason, test.norm, got, test.want)
		}
	}
}
