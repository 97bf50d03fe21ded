// SPDX-License-Identifier: Apache-2.0

package sighting_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
)

// sphere has the settings and the measured distances of the default embedding.
var sphere = face.Space{ID: "sphere", Dim: 512, Scale: 1, Unit: true, Sigma: .2, Gamma: 1e-3, Reach: .86,
	ImpostorRadius: .93,
	Stills:         face.Impostors{People: 2211, Pairs: 7429191, Distances: [5]float64{1.230, 1.153, 1.085, 1.023, .947}},
	Streams:        face.Impostors{People: 20, Pairs: 22631, Distances: [5]float64{1.125, .986, .876}},
}

// look returns a unit vector around a centre. Two looks of one centre are about spread times the root of 2 apart.
func look(r *rand.Rand, centre []float64, spread float64) []float32 {
	v, sum := make([]float64, len(centre)), 0.
	for i, c := range centre {
		v[i] = c + spread*r.NormFloat64()/math.Sqrt(float64(len(centre)))
		sum += v[i] * v[i]
	}
	x := make([]float32, len(v))
	for i := range v {
		x[i] = float32(v[i] / math.Sqrt(sum))
	}
	return x
}

// A nil hold means the reasons of the samples.
func TestNilHold(t *testing.T) {
	for _, c := range []struct {
		reason  face.Reason
		learned int64
	}{{"", 5}, {face.Blurred, 0}} {
		w, l := watched(t)
		for i := range 5 {
			s := at(0, .1+.01*float32(i), 0)
			s.Reason = c.reason
			if _, err := w.See(time.Duration(i)*frame, []face.Sample{s}, nil); err != nil {
				t.Fatal(err)
			}
		}
		if got := l.Counts().Learned; got != c.learned {
			t.Errorf("reason %q: %d faces learned, want %d", c.reason, got, c.learned)
		}
	}
}
