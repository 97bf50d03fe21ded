// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/faceauth/faceauth/internal/cli"
	"github.com/faceauth/faceauth/internal/clitest"
	"github.com/faceauth/faceauth/internal/demo"
	"github.com/faceauth/faceauth/internal/fixture"
)

func TestMain(m *testing.M) { clitest.Main(m, "faceauth-lab", main) }

func TestScripts(t *testing.T) { clitest.Scripts(t, "testdata/script") }

func TestArrivals(t *testing.T) {
	clitest.Scripts(t, "testdata/faces", "FACES="+fixture.Recordings(t, "faces/fast_videos"))
}

// refused has command lines that are wrong, each before what the program says.
const refused = `attack STILLS --attack bribe
	unknown attack "bribe"; use bridge, morph, swap, drift, replay
attack STILLS --attack bridge --attack-steps 0
attack STILLS --attack replay --liveness 0
attack STILLS --attack drift --methods nearest
	nearest does not learn from what it accepts
attack STILLS --attack drift --enroll 0
attack STILLS --attack= --methods learner
eval STILLS --protocol authentication --users dave
	there is no recording of the user "dave"
eval STILLS --protocol authentication --strangers s1
	in the protocol authentication all others are strangers
eval STILLS --protocol lucky
	unknown protocol "lucky"; use office, authentication, adaptation
eval STILLS --users s1
eval STILLS --apart 1
eval STILLS --order sideways
eval STILLS --strangers s9
eval STILLS --runs 3
	give that, too
eval STILLS --protocol authentication --runs 3
eval STILLS --methods oracle
	unknown method "oracle"; use learner, sightings, confirmed, within, nearest, knn, mean, boost,
eval STILLS --order backwards
	use sequential, interleaved, mixed or shuffled
eval STILLS --enroll 0
eval STILLS --strangers s1 --choose-strangers 1
eval STILLS --strangers nobody
	stranger "nobody" is not among the recordings
eval STILLS --protocol identify
	unknown protocol "identify"; use office, authentication, adaptation, identification
eval STILLS --protocol identification --strangers zoe
	stranger "zoe" is not among the recordings
eval STILLS --protocol identification --enroll 0
eval STILLS --protocol identification --stride 0
eval STILLS --protocol identification --methods oracle
eval STILLS --protocol identification --users alice
	--users is not for the protocol identification
eval STILLS --protocol identification --choose-strangers 1
eval STILLS --protocol identification --apart 0.5
eval STILLS --protocol identification --order shuffled
	without --learn the order does not matter
eval STILLS --learn
	--learn is for the protocol identification
trial office STILLS --cameras 0
trial office STILLS --away 1ms
trial login --enrol first STILLS
	unknown flag: --enrol
trial login --attack twins STILLS
trial login --every 1ms STILLS
trial login --attack-steps 0 STILLS
trial liveness
trial liveness --every 1ms STILLS
trial liveness --attack bridge STILLS
	unknown attack "bridge"; use photo, print, screen
trial liveness --min-liveness -1 STILLS
tune STILLS --fmr 0
tune STILLS --fmr 2
tune STILLS --folds 1
evil
	unknown command "evil"; did you mean eval?
help evil
	unknown help topic "evil"; did you mean eval?
eval
	see faceauth-lab eval --help
`

// A command line that is wrong is refused before a recording is read.
func TestRefused(t *testing.T) {
	stills := fixture.Must(demo.Find())(t)
	said := ""
	for line := range strings.Lines(strings.ReplaceAll(refused, "STILLS", stills)) {
		words, says := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "\t")
		if says {
			if !strings.Contains(said, words) {
				t.Errorf("want %s, got %s", words, said)
			}
			continue
		}
		var out bytes.Buffer
		code := cli.Run(t.Context(), newRoot(), strings.Fields(words), io.Discard, &out)
		said = out.String()
		if code != cli.BadUsage || strings.Contains(said, "passed over") {
			t.Errorf("%s: code %d, %s", words, code, said)
		}
	}
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
