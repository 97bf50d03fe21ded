// SPDX-License-Identifier: Apache-2.0

package pipeline_test

import (
	"context"
	"path/filepath"
	"slices"
	"testing"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/pipeline"
	"github.com/faceauth/faceauth/preprocess"
	"github.com/faceauth/faceauth/tablet"
)

// The anchor of logins depends on how near a face comes to four enrolled faces of another person. The test measures
// this on recordings for which no login is reported. No face of another person may be within the anchor, and hardly any
// face of the same person may be beyond it.
func TestAnchor(t *testing.T) {
	if testing.Short() {
		t.Skip("the recordings take a while")
	}
	d, e := network(t)
	anchor := tablet.Anchor(e.Space())
	for _, set := range []string{"att", "faces94_subset"} {
		people, err := filepath.Glob(filepath.Join(fixture.Recordings(t, "faces/"+set), "*"))
		if err != nil {
			t.Fatal(err)
		}
		var enrolled, looks []*online.Learner // with four faces, and with up to twelve, as after two further looks
		var probes [][][]float32
		for _, p := range people {
			src := fixture.Must(facedet.Open(context.Background(), p, facedet.Options{}))(t)
			faces := fixture.Faces(t, pipeline.New(src, d, e, pipeline.Options{Gate: preprocess.LoginGate}))
			src.Close()
			l := fixture.Must(online.New(e.Space(), online.Settings{}))(t)
			more := fixture.Must(online.New(e.Space(), online.Settings{}))(t)
			var rest [][]float32
			labelled := 0
			for _, f := range faces {
				if more.Counts().Labelled < 12 && f.Reason != face.Unclear && preprocess.EnrolGate.Passes(f.Quality) {
					fixture.Check(t, more.Label(f.Vector, 1))
				}
				switch {
				case labelled < 4 && f.Reason != face.Unclear && preprocess.EnrolGate.Passes(f.Quality):
					labelled++
					fixture.Check(t, l.Label(f.Vector, 1))
				case f.Reason == "":
					rest = append(rest, f.Vector)
				}
			}
			if labelled == 4 {
				enrolled, looks, probes = append(enrolled, l), append(looks, more), append(probes, rest)
			}
		}
		var genuine, impostor, many []float64
		for i, l := range enrolled {
			for j, faces := range probes {
				for _, x := range faces {
					at := fixture.Must(l.Nearest(x, 1))(t)
					if i == j {
						genuine = append(genuine, at)
					} else {
						impostor = append(impostor, at)
						if at, err = looks[i].Nearest(x, 1); err != nil {
							t.Fatal(err)
						}
						many = append(many, at)
					}
				}
			}
		}
		slices.Sort(genuine)
		slices.Sort(impostor)
		t.Logf("%s: %d people; of %d comparisons with four faces of somebody else the nearest is at %.3f, with "+
			"up to twelve at %.3f; of %d with the person's own, 99 in 100 are within %.3f",
			set, len(enrolled), len(impostor), impostor[0], slices.Min(many),
			len(genuine), genuine[len(genuine)*99/100])
		if impostor[0] <= anchor || genuine[len(genuine)*99/100] > anchor {
			t.Errorf("%s: the anchor at %.3f does not separate people", set, anchor)
		}
	}
}
