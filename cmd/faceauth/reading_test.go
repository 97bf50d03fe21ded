// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
)

// A pause of a recording is said; of pictures that come far apart, none is.
func TestJump(t *testing.T) {
	s := time.Second
	for name, c := range map[string]struct {
		count face.Count
		want  bool
	}{
		"a minute is missing": {face.Count{Read: 24, Last: 61 * s, Gap: 60 * s}, true},
		"ten seconds each":    {face.Count{Read: 10, Last: 90 * s, Gap: 10 * s}, false},
		"twenty seconds each": {face.Count{Read: 10, Last: 180 * s, Gap: 20 * s}, false},
		"a short pause":       {face.Count{Read: 24, Last: 6 * s, Gap: 5 * s}, false},
		"two pictures":        {face.Count{Read: 2, Last: 60 * s, Gap: 60 * s}, false},
	} {
		if got := jumps(c.count); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
