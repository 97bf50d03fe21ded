// SPDX-License-Identifier: Apache-2.0

package pipeline_test

import (
	"context"
	"image"
	"math"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/models"
	"github.com/faceauth/faceauth/pipeline"
	"github.com/faceauth/faceauth/preprocess"
)

// dusk is a stage whose light changes, with a detector that is blind in the dark.
type dusk struct {
	*stage
	light func(index int) float64
	seen  float64 // largest mean grey value of a face that got a vector
}

func (d *dusk) Next(ctx context.Context) (*facedet.Frame, error) {
	f, err := d.stage.Next(ctx)
	if err != nil {
		return nil, err
	}
	dim, err := f.Image.Brightened(d.light(f.Index))
	f.Image.Close()
	f.Image = dim
	return f, err
}

func (d *dusk) blind(img *facedet.Picture) bool { return mean(d.t, img, img.Bounds()) < 50 }

func (d *dusk) Detect(img *facedet.Picture) ([]facedet.Face, error) {
	if d.blind(img) {
		return nil, nil
	}
	return d.stage.Detect(img)
}

func (d *dusk) Boxes(img *facedet.Picture, _ ...image.Rectangle) ([]facedet.Face, error) {
	if d.blind(img) {
		return nil, nil
	}
	return d.stage.Boxes(img)
}

// seer notes how bright the faces are that get a vector.
type seer struct {
	eyes
	d *dusk
}

func (s seer) Align(img *facedet.Picture, box image.Rectangle,
	l []face.Point) (*facedet.Picture, error) {
	s.d.seen = max(s.d.seen, mean(s.d.t, img, box))
	return s.eyes.Align(img, box, l)
}

func mean(t *testing.T, img *facedet.Picture, part image.Rectangle) (sum float64) {
	crop := fixture.Must(img.Crop(part))(t)
	defer crop.Close()
	grey := fixture.Must(crop.Thumbnail(image.Pt(32, 32)))(t)
	for _, v := range grey {
		sum += float64(v) / (32 * 32)
	}
	return sum
}

// A dim frame is brightened before faces are looked for, unless the gate is a login's, which then
// says why it sees nobody.
func TestDim(t *testing.T) {
	for _, c := range []struct {
		name   string
		gate   preprocess.Gate
		light  float64
		reason face.Reason
		vector bool
		gain   float64 // 220 / (210 light), as the brightest of the face is about 210
	}{
		{"learn, bright", preprocess.LearnGate, 1, "", true, 0},
		{"learn, dim", preprocess.LearnGate, .1, "", true, 10.5},
		{"enrol, half the light", preprocess.EnrolGate, .5, "", true, 2.1},
		{"enrol, dim", preprocess.EnrolGate, .1, face.TooDark, true, 10.5},
		{"login, bright", preprocess.LoginGate, 1, "", true, 0},
		{"login, half the light", preprocess.LoginGate, .6, "", true, 0},
		{"login, dim", preprocess.LoginGate, .1, face.TooDark, false, 10.5},
	} {
		d := &dusk{stage: newStage(t), light: func(int) float64 { return c.light }}
		d.face = image.Rect(100, 60, 220, 190)
		p := pipeline.New(d, d, seer{eyes{d.stage}, d}, pipeline.Options{Gate: c.gate, Picture: 64,
			Frame: func() bool { return true }, Width: stageSize.X})
		f, err := p.Next(t.Context())
		if err != nil || len(f.Samples) != 1 {
			t.Fatalf("%s: %d faces, %v", c.name, len(f.Samples), err)
		}
		s := f.Samples[0]
		if s.Reason != c.reason || (s.Vector != nil) != c.vector ||
			math.Abs(s.Quality.Gain-c.gain) > .1*c.gain {
			t.Errorf("%s: reason %q, vector %t, gain %.2f", c.name, s.Reason, s.Vector != nil,
				s.Quality.Gain)
		}
		whole := fixture.Must(facedet.DecodePicture(f.JPEG))(t)
		if full, shown := 165., mean(t, whole, d.face); math.Abs(shown-full*c.light) > 10 {
			t.Errorf("%s: the face is shown at %.0f, want the frame as it is", c.name, shown)
		}
		whole.Close()
		if c.gain == 0 {
			continue
		}
		if c.vector && d.seen < 140 {
			t.Errorf("%s: the vector is that of a face at %.0f", c.name, d.seen)
		}
		if !c.vector {
			if s.JPEG != nil || s.Liveness != nil || d.seen > 0 {
				t.Errorf("%s: a face that is too dark was extracted", c.name)
			}
			continue
		}
		img := fixture.Must(facedet.DecodePicture(s.JPEG))(t)
		if got := mean(t, img, img.Bounds()); got < 100 {
			t.Errorf("%s: the picture of the face is at %.0f", c.name, got)
		}
		img.Close()
	}
}

// A light that flickers does not look like movement, and a person who sits in the dark stays in
// view at little cost.
func TestSpareDim(t *testing.T) {
	flicker := []float64{.097, .1, .103}
	d := &dusk{stage: newStage(t), light: func(i int) float64 { return flicker[i/30%3] }}
	d.face = image.Rect(100, 60, 220, 190)
	p := pipeline.New(d, d, eyes{d.stage},
		pipeline.Options{Gate: preprocess.LearnGate, Spare: true})
	gains := map[float64]bool{}
	for i := range 600 {
		faces := d.frame(p)
		if len(faces) != 1 || faces[0].Track != 1 {
			t.Fatalf("frame %d: %+v", i, faces)
		}
		gains[faces[0].Quality.Gain] = true
	}
	if len(gains) != 1 {
		t.Errorf("gains %v, want one", gains)
	}
	if d.found > 80 || d.vectors > 40 {
		t.Errorf("in a minute the detector ran %d times, and %d vectors were made", d.found,
			d.vectors)
	}
	found := d.found
	d.face = d.face.Add(image.Pt(40, 0))
	if faces := d.frame(p); len(faces) != 1 || faces[0].Box != d.face || d.found == found {
		t.Errorf("after a movement in the dark: %+v", faces)
	}
	d.light = func(int) float64 { return 1 }
	var faces []face.Sample
	for range 3 {
		faces = d.frame(p)
	}
	if len(faces) != 1 || faces[0].Quality.Gain != 0 || faces[0].Track != 1 {
		t.Errorf("after the light was switched on: %+v", faces)
	}
}

// Liveness is scored in the frame as it is: a brightened replay looks live.
func TestDimLiveness(t *testing.T) {
	dir := fixture.Recordings(t, "faces/vidtimit_rot/p0")
	d := fixture.Must(facedet.NewNetwork(models.Default(models.Detector),
		models.Default(models.Landmarks),
		fixture.Models(t)))(t)
	defer d.Close()
	live := fixture.Must(preprocess.NewLiveness(models.Default(models.Liveness),
		fixture.Models(t)))(t)
	defer live.Close()
	src := fixture.Must(facedet.Open(t.Context(), dir, facedet.Options{Timeout: time.Minute}))(t)
	defer src.Close()
	f := fixture.Must(src.Next(t.Context()))(t)
	defer f.Close()
	dim := fixture.Must(f.Image.Brightened(.2))(t)
	defer dim.Close()
	p := pipeline.New(&loop{images: []*facedet.Picture{dim}}, d, preprocess.Pixels,
		pipeline.Options{Gate: preprocess.LearnGate, Liveness: live})
	got, err := p.Next(t.Context())
	if err != nil || len(got.Samples) != 1 || got.Samples[0].Quality.Gain == 0 {
		t.Fatalf("%+v, %v", got.Samples, err)
	}
	s := got.Samples[0]
	want, err := live.Score(dim, s.Box)
	if err != nil || s.Liveness == nil || *s.Liveness != want {
		t.Errorf("liveness %v, %v; the frame as it is has %g", s.Liveness, err, want)
	}
}
