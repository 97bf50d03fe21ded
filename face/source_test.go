// SPDX-License-Identifier: Apache-2.0

package face_test

import (
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
)

func TestCut(t *testing.T) {
	s := time.Second
	for name, c := range map[string]struct {
		count face.Count
		want  bool
	}{
		"all of an index": {face.Count{Declared: 24, Read: 24, Length: s,
			Last: 960 * time.Millisecond}, false},
		"a guess, with a long gap": {face.Count{Declared: 1524, Read: 24, Length: 61 * s,
			Last: 60960 * time.Millisecond, Gap: 60 * s}, false},
		"sound that is longer": {face.Count{Declared: 750, Read: 730, Length: 30 * s,
			Last: 29200 * time.Millisecond, Gap: 40 * time.Millisecond}, false},
		"half": {face.Count{Declared: 750, Read: 375, Length: 30 * s, Last: 15 * s,
			Gap: 40 * time.Millisecond}, true},
		"a short one, cut at its end": {face.Count{Declared: 24, Read: 20,
			Length: 960 * time.Millisecond,
			Last:   760 * time.Millisecond, Gap: 40 * time.Millisecond}, true},
		"an index alone":   {face.Count{Declared: 24, Read: 20}, true},
		"damaged pictures": {face.Count{Declared: 24, Read: 20, Damaged: 4}, false},
		"a camera":         {face.Count{Declared: -1, Read: 20, Last: 3 * s}, false},
	} {
		if got := c.count.Cut(); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
