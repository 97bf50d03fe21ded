// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package office_test

import (
	"io"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/gallery"
	"github.com/faceauth/faceauth/internal/office"
	"github.com/faceauth/faceauth/internal/office/presence"
	"github.com/faceauth/faceauth/models"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/pipeline"
	"github.com/faceauth/faceauth/preprocess"
)

// films reads the first 120 frames of recordings.
func films(t *testing.T, names ...string) (face.Space, map[string][]face.Frame) {
	t.Helper()
	if testing.Short() {
		t.Skip("the recordings take a while")
	}
	dir := fixture.Models(t)
	d := fixture.Must(facedet.NewNetwork(models.Default(models.Detector),
		models.Default(models.Landmarks), dir))(t)
	defer d.Close()
	e := fixture.Must(preprocess.NewEmbedding(models.Default(models.Embedding), dir))(t)
	defer e.Close()
	all := make(map[string][]face.Frame)
	for _, name := range names {
		src := fixture.Must(facedet.Open(t.Context(), fixture.Recordings(t, "faces/"+name),
			facedet.Options{}))(t)
		stream := pipeline.New(src, d, e, pipeline.Options{Gate: preprocess.LearnGate, Picture: 64})
		for len(all[name]) < 120 {
			f, err := stream.Next(t.Context())
			if err == io.EOF {
				break
			}
			fixture.Check(t, err)
			all[name] = append(all[name], f)
		}
		src.Close()
	}
	return e.Space(), all
}

// A stranger in clear view is told of after a second and a half or little more, at any rate of
// frames, and somebody who is known never is.
func TestSystemSeesStrangers(t *testing.T) {
	names := []string{"vidtimit_rot/p3", "vidtimit_rot/p4", "vidtimit_rot/p5", "vidtimit_rot/p1",
		"fast_videos/clm_video14.wmv", "fast_videos/0490_03_007_bill_gates.avi"}
	names = fixture.Some(names, 3)
	space, all := films(t, names...)
	for _, name := range names {
		for _, step := range []int{1, 6, 15} { // of 30 frames a second
			for _, known := range []bool{false, true} {
				g, err := gallery.New(space, online.Settings{})
				nothing(t, err)
				if known {
					var faces [][]float32
					for _, f := range all[name] {
						if len(f.Samples) == 1 && f.Samples[0].Vector != nil &&
							f.Samples[0].Reason == "" {
							faces = append(faces, f.Samples[0].Vector)
						}
					}
					three := [][]float32{faces[0], faces[len(faces)/3], faces[2*len(faces)/3]}
					fixture.Must(g.Enroll("ann", three, noon, gallery.Enrolment{Force: true}))(t)
				}
				var shown []face.Frame
				for i := 0; i < len(all[name]); i += step {
					f := all[name][i]
					f.Index, f.Time = i, time.Duration(i)*time.Second/30
					shown = append(shown, f)
				}
				var told []time.Duration
				o := office.Options{Clock: func(f face.Frame) time.Time { return noon.Add(f.Time) },
					Event: func(e presence.Event) {
						if e.Kind == presence.Unknown {
							told = append(told, e.Known.Sub(noon))
						}
					}}
				_, err = run(t.Context(), t, g, o, film(shown, nil))
				nothing(t, err)
				if good := len(told) == 1 && told[0] <= 2500*time.Millisecond; known &&
					len(told) > 0 || !known && !good {
					t.Errorf("%s, %d frames a second, known %t: %v", name, 30/step, known, told)
				}
			}
		}
	}
}
