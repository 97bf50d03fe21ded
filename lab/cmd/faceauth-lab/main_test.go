// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/faceauth/faceauth/internal/clitest"
	"github.com/faceauth/faceauth/internal/fixture"
)

func TestMain(m *testing.M) { clitest.Main(m, "faceauth-lab", main) }

func TestScripts(t *testing.T) { clitest.Scripts(t, "testdata/script") }

func TestArrivals(t *testing.T) {
	clitest.Scripts(t, "testdata/faces", "FACES="+fixture.Recordings(t, "faces/fast_videos"))
}

// A limit is never rounded to a better value.
func TestAtMost(t *testing.T) {
	for x, want := range map[float64]float64{3. / 414: .0073, .75: .75, .001: .001,
		.0010000001: .0011, 1: 1, .101: .11,
		.0099: .0099} {
		if got := atMost(x); got != want {
			t.Errorf("%g is at most %g, want %g", x, got, want)
		}
	}
}

func TestOrdinal(t *testing.T) {
	for n, want := range map[int]string{1: "1st", 2: "2nd", 3: "3rd", 4: "4th", 11: "11th",
		12: "12th", 21: "21st",
		112: "112th"} {
		if got := ordinal(n); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
}
