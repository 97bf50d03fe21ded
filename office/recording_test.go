// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package office_test

import (
	"context"
	"image"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/models"
	"github.com/faceauth/faceauth/office"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/pipeline"
	"github.com/faceauth/faceauth/preprocess"
)

// read keeps the recordings that were read.
var read = make(map[string][]face.Frame)

// films reads recordings, once for all tests.
func films(t *testing.T, names ...string) (face.Space, map[string][]face.Frame) {
	t.Helper()
	return changed(t, nil, names...)
}

// changed reads the first 120 frames of recordings. A function changes the pictures, or nil leaves them as they are.
func changed(t *testing.T, by func(index int, size image.Point, pix []byte) []byte, names ...string) (face.Space,
	map[string][]face.Frame) {
	t.Helper()
	if testing.Short() {
		t.Skip("the recordings take a while")
	}
	dir := fixture.Models(t)
	d, err := facedet.NewNetwork(models.Default(models.Detector), models.Default(models.Landmarks), dir)
	nothing(t, err)
	defer d.Close()
	e, err := preprocess.NewEmbedding(models.Default(models.Embedding), dir)
	nothing(t, err)
	defer e.Close()
	all := make(map[string][]face.Frame)
	for _, name := range names {
		if all[name] = read[name]; all[name] != nil && by == nil {
			continue
		}
		all[name] = nil
		src, err := facedet.Open(t.Context(), fixture.Recordings(t, "faces/"+name), facedet.Options{})
		nothing(t, err)
		if by != nil {
			src = spoilt{src, by}
		}
		stream := pipeline.New(src, d, e, pipeline.Options{Gate: preprocess.LearnGate, Picture: 64})
		for len(all[name]) < 120 {
			f, err := stream.Next(t.Context())
			if err == io.EOF {
				break
			}
			nothing(t, err)
			all[name] = append(all[name], f)
		}
		src.Close()
		if by == nil {
			read[name] = all[name]
		}
	}
	return e.Space(), all
}

// spoilt is a source whose pictures are changed.
type spoilt struct {
	facedet.Source
	by func(index int, size image.Point, pix []byte) []byte
}

func (s spoilt) Next(ctx context.Context) (*facedet.Frame, error) {
	f, err := s.Source.Next(ctx)
	if err != nil {
		return nil, err
	}
	defer f.Image.Close()
	size := f.Image.Size()
	pix, err := f.Image.BGR()
	if err != nil {
		return nil, err
	}
	f.Image, err = facedet.FromBGR(size, s.by(f.Index, size, pix))
	return f, err
}

// smeared returns a picture during whose exposure the camera moved by n pixels.
func smeared(n int, size image.Point, pix []byte) []byte {
	to := make([]byte, len(pix))
	for y := range size.Y {
		row := pix[3*size.X*y : 3*size.X*(y+1)]
		for x := range row {
			sum := 0
			for i := range n {
				sum += int(row[min(max(x+3*(i-n/2), x%3), len(row)-3+x%3)])
			}
			to[3*size.X*y+x] = uint8(sum / n)
		}
	}
	return to
}

// black paints a part of a picture black, as a privacy mask does.
func black(r image.Rectangle, size image.Point, pix []byte) []byte {
	r = r.Intersect(image.Rectangle{Max: size})
	for y := r.Min.Y; y < r.Max.Y; y++ {
		clear(pix[3*(size.X*y+r.Min.X) : 3*(size.X*y+r.Max.X)])
	}
	return pix
}

// Whole faces make one event and one group. Faces that nobody can recognise make none: smeared by a
// movement, or half of them beside a black bar.
func TestSystemSpoiltFaces(t *testing.T) {
	const edge = 1 << 15
	names := []string{"vidtimit_rot/p3", "vidtimit_rot/p5"}
	space, whole := films(t, append(names, "vidtimit_rot/p0")...)
	for _, name := range names {
		for _, c := range []struct {
			name string
			by   func(box image.Rectangle, size image.Point, pix []byte) []byte
		}{
			{"whole", nil},
			{"smeared by a fifth", func(box image.Rectangle, size image.Point, pix []byte) []byte {
				return smeared(box.Dx()/5, size, pix)
			}},
			{"right half black", func(box image.Rectangle, size image.Point, pix []byte) []byte {
				return black(image.Rect((box.Min.X+box.Max.X)/2, 0, edge, edge), size, pix)
			}},
			{"black to the ear", func(box image.Rectangle, size image.Point, pix []byte) []byte {
				return black(image.Rect(0, 0, box.Max.X-box.Dx()/4, edge), size, pix)
			}},
		} {
			var box image.Rectangle
			shown := slices.Clone(whole[name])
			if c.by != nil {
				_, all := changed(t, func(index int, size image.Point, pix []byte) []byte {
					if s := whole[name][index].Samples; len(s) > 0 {
						box = s[0].Box
					}
					return c.by(box, size, pix)
				}, name)
				shown = all[name]
			}
			why := make(map[face.Reason]int)
			for i := range shown {
				shown[i].Time = time.Duration(i) * time.Second / 10
				for _, s := range shown[i].Samples {
					why[s.Reason]++
				}
			}
			k := new(recorded)
			g, err := gallery.New(space, online.Settings{})
			nothing(t, err)
			var faces [][]float32
			for _, f := range whole["vidtimit_rot/p0"][:4] {
				faces = append(faces, f.Samples[0].Vector)
			}
			if _, err := g.Enroll("ann", faces, noon, gallery.Enrolment{Force: true}); err != nil {
				t.Fatal(err)
			}
			w, err := run(t.Context(), t, g, k.options(), film(shown, nil))
			nothing(t, err)
			t.Logf("%s, %s: %v", name, c.name, why)
			want := 0
			if c.name == "whole" {
				want = 1
			}
			if groups := w.Strangers(); len(k.events) != want || len(groups) != want {
				t.Errorf("%s, %s: %q, %d groups", name, c.name, k.events, len(groups))
			}
		}
	}
}

// A stranger in clear view is told of after a second and a half or little more, at any rate of frames, and somebody who
// is known never is.
func TestSystemStrangerAtAnyRate(t *testing.T) {
	names := []string{"vidtimit_rot/p3", "vidtimit_rot/p4", "vidtimit_rot/p5", "vidtimit_rot/p1", "fast_videos/clm_video14.wmv",
		"fast_videos/0490_03_007_bill_gates.avi"}
	space, all := films(t, names...)
	for _, name := range names {
		for _, step := range []int{1, 6, 15} { // of 30 frames a second
			for _, known := range []bool{false, true} {
				g, err := gallery.New(space, online.Settings{})
				nothing(t, err)
				if known {
					var faces [][]float32
					for _, f := range all[name] {
						if len(f.Samples) == 1 && f.Samples[0].Vector != nil && f.Samples[0].Reason == "" {
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
				o := office.Options{Clock: func(f face.Frame) time.Time { return noon.Add(f.Time) }, Event: func(e office.Event) {
					if e.Kind == office.Unknown {
						told = append(told, e.Known.Sub(noon))
					}
				}}
				_, err = run(t.Context(), t, g, o, film(shown, nil))
				nothing(t, err)
				if good := len(told) == 1 && told[0] <= 2500*time.Millisecond; known && len(told) > 0 || !known && !good {
					t.Errorf("%s, %d frames a second, known %t: %v", name, 30/step, known, told)
				}
			}
		}
	}
}
