// SPDX-License-Identifier: Apache-2.0

//go:build matprofile

package cv_test

import (
	"os"
	"testing"

	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/models"
	"github.com/faceauth/faceauth/pipeline"
	"github.com/faceauth/faceauth/preprocess"
	"gocv.io/x/gocv"
)

// Every Mat of hundreds of frames is closed, by all detectors and extractors, with pictures and
// without. Only this package may ask gocv, which counts them with the tag matprofile, as in make
// test.
func TestMatsClosed(t *testing.T) {
	if testing.Short() {
		t.Skip("hundreds of frames take a while")
	}
	film, dir := fixture.Recordings(t, "faces/fast_videos/clm_default.wmv"), fixture.Models(t)
	d := fixture.Must(facedet.NewNetwork(models.Default(models.Detector),
		models.Default(models.Landmarks), dir))(t)
	defer d.Close()
	e := fixture.Must(preprocess.NewEmbedding(models.Default(models.Embedding), dir))(t)
	defer e.Close()
	haar := fixture.Must(facedet.Haar())(t)
	defer haar.Close()
	live := fixture.Must(preprocess.NewLiveness(models.Default(models.Liveness), dir))(t)
	defer live.Close()
	before, frames := gocv.MatProfile.Count(), 150
	if os.Getenv("FACEAUTH_FIGURES") != "" {
		frames = 550
	}
	play := func(d facedet.Detector, e preprocess.Extractor, o pipeline.Options) {
		src := fixture.Must(facedet.Open(t.Context(), film, facedet.Options{}))(t)
		defer src.Close()
		p := pipeline.New(src, d, e, o)
		for range frames {
			fixture.Must(p.Next(t.Context()))(t)
			// The worker of the source may hold one frame ready.
			if n := gocv.MatProfile.Count(); n > before+1 {
				t.Fatalf("%d live Mats, before %d", n, before)
			}
		}
	}
	play(d, e, pipeline.Options{Picture: 112, Liveness: live})
	play(d, preprocess.Pixels, pipeline.Options{})
	play(haar, preprocess.Pixels, pipeline.Options{Picture: 112})
	if n := gocv.MatProfile.Count(); n != before {
		t.Errorf("%d live Mats at the end, %d before", n, before)
	}
}
