// SPDX-License-Identifier: Apache-2.0

package face_test

import (
	"testing"

	"github.com/faceauth/faceauth/face"
)

func TestTurns(t *testing.T) {
	for _, test := range []struct {
		t      face.Turns
		turned int
		lead   float64
		best   int
		err    string
	}{
		{face.Turns{}, 0, 1, 0, ""},
		{face.Turns{4, 2, 2, 2}, 0, 1, 0, ""},
		{face.Turns{2, 2, 2, 2}, 0, 1, 0, ""},
		{face.Turns{2, 2, 3, 2}, 0, 1, 180, "the camera seems to be turned; try --rotate 180"},
		{face.Turns{2, 3, 2, 2}, 0, 1, 90, "the camera seems to be turned; try --rotate 90"},
		{face.Turns{2, 2, 2, 3}, 0, 1, 270, "the camera seems to be turned; try --rotate 270"},
		{face.Turns{2, 2, 3, 2}, 180, 1, 180, "the camera seems to be turned; try --rotate 0"},
		{face.Turns{2, 2, 2, 3}, 180, 1, 270, "the camera seems to be turned; try --rotate 90"},
		{face.Turns{1, 2, 1, 2.2}, 90, 1, 270,
			"the camera seems to be turned; try --rotate 0 or 180"},
		{face.Turns{2, 2.2, 2, 2}, 0, 1.15, 0,
			"the camera seems to be turned; try --rotate 90 or 180"},
		{face.Turns{0, 0, 0, 2}, 0, 1.15, 270, "the camera seems to be turned; try --rotate 270"},
	} {
		if got := test.t.Best(test.lead); got != test.best {
			t.Errorf("%v with lead %v: best %d, want %d", test.t, test.lead, got, test.best)
		}
		err := test.t.Check(test.turned)
		if (err != nil || test.err != "") && (err == nil || err.Error() != test.err) {
			t.Errorf("%v turned by %d: %v, want %q", test.t, test.turned, err, test.err)
		}
	}
}
