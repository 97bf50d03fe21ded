// SPDX-License-Identifier: Apache-2.0

package pipeline_test

import (
	"context"
	"errors"
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

// encodings returns pictures of the same unmoved still as a camera or a program may deliver it: compressed, brighter,
// darker, and with the noise of a camera.
func encodings(t *testing.T, p *facedet.Picture) (all []*facedet.Picture) {
	t.Helper()
	add := func(q *facedet.Picture, err error) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, q)
	}
	for _, quality := range []int{80, 95} {
		b, err := p.JPEG(quality)
		if err != nil {
			t.Fatal(err)
		}
		add(facedet.DecodePicture(b))
	}
	random := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct{ gain, noise float64 }{{.9, 0}, {.95, 0}, {1.05, 0}, {1, 2}} {
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

// An unmoved still is one look. The distance was chosen on these stills: .16 on att and faces94_subset, and .2 after a
// still of fast_videos had moved by .17.
func TestStillIsOneLook(t *testing.T) {
	if testing.Short() {
		t.Skip("the recordings take a while")
	}
	d, e := network(t)
	for _, set := range []string{"att/s*", "faces94_subset/*", "vidtimit_rot/*", "fast_videos/*"} {
		var far []float64 // of each still, the largest distance of an encoding
		for _, path := range fixture.Some(paths(t, set), 6) {
			eachFrame(t, path, d, e, preprocess.LoginGate, func(p *facedet.Picture, f face.Frame) bool {
				if len(f.Samples) != 1 || f.Samples[0].Reason != "" {
					return true
				}
				largest := 0.
				for _, q := range encodings(t, p) {
					for _, x := range vectorsOf(t, q, d, e) {
						largest = max(largest, graph.Distance(x, f.Samples[0].Vector, 1))
					}
					q.Close()
				}
				far = append(far, largest)
				return false
			})
		}
		slices.Sort(far)
		last := far[len(far)-1]
		t.Logf("%s: %d stills: an encoding is at most %.3f away, median %.3f", set, len(far), last, far[len(far)/2])
		if last >= e.Space().Look {
			t.Errorf("%s: a still makes two looks", set)
		}
	}
}

// Live people, who turn their heads or talk, soon show three looks.
func TestThreeLooks(t *testing.T) {
	if testing.Short() {
		t.Skip("the recordings take a while")
	}
	d, e := network(t)
	for _, set := range []string{"vidtimit_rot/*", "fast_videos/*"} {
		var third []float64 // from every second on, the time until a login has seen three looks
		for _, path := range fixture.Some(paths(t, set), 3) {
			var vectors [][]float32
			var times []time.Duration
			eachFrame(t, path, d, e, preprocess.LoginGate, func(_ *facedet.Picture, f face.Frame) bool {
				if len(f.Samples) == 1 && f.Samples[0].Reason == "" {
					vectors, times = append(vectors, f.Samples[0].Vector), append(times, f.Time)
				}
				return f.Time < 6*time.Second
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
					if counted = append(counted, vectors[j]); len(counted) == 3 {
						third = append(third, (times[j] - times[i]).Seconds())
					}
				}
			}
		}
		slices.Sort(third)
		last := third[len(third)-1]
		t.Logf("%s: the third look of %d: median %.2f s, 95 in 100 %.2f s, last %.2f s", set, len(third),
			third[len(third)/2], third[len(third)*95/100], last)
		if last > 5 {
			t.Errorf("%s: a live person takes %.2f s to show three looks", set, last)
		}
	}
}

// paths returns those of a set of recordings of faces.
func paths(t *testing.T, set string) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(fixture.Recordings(t, "faces"), set))
	if err != nil || len(all) == 0 {
		t.Fatal(all, err)
	}
	return all
}
