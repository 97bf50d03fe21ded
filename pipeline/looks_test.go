// SPDX-License-Identifier: Apache-2.0

package pipeline_test

import (
	"context"
	"errors"
	"image"
	"io"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/graph"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/pipeline"
	"github.com/faceauth/faceauth/preprocess"
	"github.com/faceauth/faceauth/sighting"
)

// encodings returns pictures of the same still as a camera or a program may deliver it: compressed, scaled, shifted by
// parts of a pixel, brighter, darker, and with noise.
func encodings(t *testing.T, p *facedet.Picture) (all []*facedet.Picture) {
	t.Helper()
	add := func(q *facedet.Picture, err error) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, q)
	}
	size := p.Size()
	for _, quality := range []int{20, 40, 60, 80, 95} {
		b, err := p.JPEG(quality)
		if err != nil {
			t.Fatal(err)
		}
		add(facedet.DecodePicture(b))
	}
	for _, scale := range []float64{.9, .95, 1.05, 1.1} {
		add(p.Warp([6]float64{scale, 0, 0, 0, scale, 0},
			image.Pt(int(scale*float64(size.X)), int(scale*float64(size.Y)))))
	}
	for _, shift := range []float64{.3, .5, 1.5} {
		add(p.Warp([6]float64{1, 0, shift, 0, 1, shift / 2}, size))
	}
	random := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct{ gain, noise float64 }{{.9, 0}, {.95, 0}, {1.05, 0}, {1, 2}, {1, 4}, {1, 6}} {
		m, err := p.Image()
		if err != nil {
			t.Fatal(err)
		}
		for i, x := range m.Pix {
			if i%4 < 3 {
				m.Pix[i] = uint8(min(max(c.gain*float64(x)+c.noise*random.NormFloat64(), 0), 255))
			}
		}
		add(facedet.FromImage(m))
	}
	return all
}

// vectorsOf returns the vectors of the faces in a picture.
func vectorsOf(t *testing.T, p *facedet.Picture, d facedet.Detector, e preprocess.Extractor) (all [][]float32) {
	t.Helper()
	faces, err := d.Detect(p)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range faces {
		aligned, err := e.Align(p, f.Box, f.Landmarks)
		if err != nil {
			t.Fatal(err)
		}
		x, err := e.Vector(aligned)
		aligned.Close()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, x)
	}
	return all
}

// eachFrame calls do with the pictures and frames of a recording.
func eachFrame(t *testing.T, path string, d facedet.Detector, e preprocess.Extractor, gate preprocess.Gate,
	do func(p *facedet.Picture, f face.Frame) bool) {
	t.Helper()
	src, err := facedet.Open(context.Background(), path, facedet.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	more := true
	stream := pipeline.New(src, d, e, pipeline.Options{Gate: gate, Show: func(p *facedet.Picture, f face.Frame) error {
		more = do(p, f)
		return nil
	}})
	for more {
		if _, err := stream.Next(context.Background()); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// The distance within which faces are one look was chosen on stills of att and faces94_subset, in many encodings. Here
// it is measured on others: the first good picture of each recording, and how soon a person before a camera has shown
// three looks.
func TestLooks(t *testing.T) {
	if testing.Short() {
		t.Skip("the recordings take a while")
	}
	d, e := network(t)
	look := e.Space().Look
	for _, set := range []string{"att/s*", "faces94_subset/*", "vidtimit_rot/*", "fast_videos/*"} {
		paths, err := filepath.Glob(filepath.Join(fixture.Recordings(t, "faces"), set))
		if err != nil || len(paths) == 0 {
			t.Fatal(paths, err)
		}
		var stills, second, third []float64
		for _, path := range paths {
			// Of a still, the largest distance between any two of its encodings.
			eachFrame(t, path, d, e, preprocess.LoginGate, func(p *facedet.Picture, f face.Frame) bool {
				if len(f.Samples) != 1 || f.Samples[0].Reason != "" {
					return true
				}
				vectors := [][]float32{f.Samples[0].Vector}
				for _, q := range encodings(t, p) {
					vectors = append(vectors, vectorsOf(t, q, d, e)...)
					q.Close()
				}
				far := 0.
				for i, x := range vectors {
					for _, y := range vectors[:i] {
						far = max(far, graph.Distance(x, y, 1))
					}
				}
				stills = append(stills, far)
				return false
			})
			if set == "att/s*" || set == "faces94_subset/*" {
				continue
			}
			// From every second on, the time until a login has seen two and three looks.
			var vectors [][]float32
			var times []time.Duration
			eachFrame(t, path, d, e, preprocess.LoginGate, func(_ *facedet.Picture, f face.Frame) bool {
				if len(f.Samples) == 1 && f.Samples[0].Reason == "" {
					vectors, times = append(vectors, f.Samples[0].Vector), append(times, f.Time)
				}
				return true
			})
			for next, i := time.Duration(0), 0; i < len(times); i++ {
				if times[i] < next {
					continue
				}
				next = times[i] + time.Second
				var counted [][]float32
				for j := i; j < len(times) && len(counted) < 3; j++ {
					if !sighting.NewLook(e.Space(), vectors[j], counted) {
						continue
					}
					counted = append(counted, vectors[j])
					switch len(counted) {
					case 2:
						second = append(second, (times[j] - times[i]).Seconds())
					case 3:
						third = append(third, (times[j] - times[i]).Seconds())
					}
				}
			}
		}
		slices.Sort(stills)
		t.Logf("%s: %d stills in 19 encodings: two are at most %.3f apart, median %.3f", set, len(stills),
			stills[len(stills)-1], stills[len(stills)/2])
		if stills[len(stills)-1] >= look {
			t.Errorf("%s: a still makes two looks", set)
		}
		for name, x := range map[string][]float64{"second": second, "third": third} {
			if slices.Sort(x); len(x) > 0 {
				t.Logf("%s: the %s look of %d: median %.2f s, 95 in 100 %.2f s, last %.2f s", set, name, len(x),
					x[len(x)/2], x[len(x)*95/100], x[len(x)-1])
			}
		}
	}
}
