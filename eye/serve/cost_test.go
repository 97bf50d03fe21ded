// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"errors"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/faceauth/faceauth/eye"
	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/pipeline"
	"github.com/faceauth/faceauth/preprocess"
)

// BenchmarkCost measures what an eye costs, against the pipeline in this process, turn about in one run: the ratio of
// frames a second (x-fps, 1 where it costs nothing), and how much later the first frame comes, in milliseconds, from
// nothing (start-ms) and where the eye is ready, as for a login (ready-ms). The medians over the pairs of each
// recording count.
func BenchmarkCost(b *testing.B) {
	const pairs = 7
	for name, recording := range map[string]string{
		"avi": "faces/fast_videos/clm_multi_face.avi", "wmv": "faces/fast_videos/clm_default.wmv", "jpg": "faces/vidtimit_rot/p0",
	} {
		b.Run(name, func(b *testing.B) {
			path := fixture.Recordings(b, recording)
			median := func(x []float64) float64 {
				slices.Sort(x)
				return x[len(x)/2]
			}
			for b.Loop() {
				var fps, start, ready []float64
				for i := range pairs {
					var networks, first, cold, warm time.Duration
					var rest [2]time.Duration
					for turn := range 2 {
						if which := (i + turn) % 2; which == 0 {
							networks, first, rest[0] = inProcess(b, path)
						} else {
							cold, rest[1], warm = inEye(b, path)
						}
					}
					fps = append(fps, rest[0].Seconds()/rest[1].Seconds())
					start = append(start, (cold-networks-first).Seconds()*1e3)
					ready = append(ready, (warm-first).Seconds()*1e3)
				}
				b.Logf("fps %.3f, start %.0f, ready %.0f", fps, start, ready)
				b.ReportMetric(median(fps), "x-fps")
				b.ReportMetric(median(start), "start-ms")
				b.ReportMetric(median(ready), "ready-ms")
			}
		})
	}
}

const measured = 200 // frames

// frames reads the measured frames, the first of which came so long after begun.
func frames(b *testing.B, begun time.Time, next func() error) (first, rest time.Duration) {
	for i := range measured {
		err := next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			b.Fatal(err)
		}
		if i == 0 {
			first, begun = time.Since(begun), time.Now()
		}
	}
	return first, time.Since(begun)
}

// inProcess reads a recording in this process: how long its networks take to open, the first frame after that, and the
// others.
func inProcess(b *testing.B, path string) (networks, first, rest time.Duration) {
	begun := time.Now()
	d, e, err := Open(config(b).Vision)
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	defer e.Close()
	networks, begun = time.Since(begun), time.Now()
	src, err := facedet.Open(b.Context(), path, facedet.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer src.Close()
	p := pipeline.New(src, d, e, pipeline.Options{Gate: preprocess.LearnGate, Picture: 112})
	first, rest = frames(b, begun, func() error { _, err := p.Next(b.Context()); return err })
	return networks, first, rest
}

// inEye reads a recording in an eye: how long the first frame takes from nothing, and the others; and the first frame
// of an eye that is ready.
func inEye(b *testing.B, path string) (first, rest, ready time.Duration) {
	begun := time.Now()
	e, err := eye.Start(b.Context(), config(b))
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close()
	s, err := e.Open(b.Context(), path, eye.Options{Gate: eye.Learn, Picture: 112})
	if err != nil {
		b.Fatal(err)
	}
	first, rest = frames(b, begun, func() error { _, err := s.Next(b.Context()); return err })
	warm, err := eye.Start(b.Context(), config(b))
	if err != nil {
		b.Fatal(err)
	}
	defer warm.Close()
	if err := warm.Await(b.Context()); err != nil {
		b.Fatal(err)
	}
	begun = time.Now()
	if s, err = warm.Open(b.Context(), path, eye.Options{Gate: eye.Learn, Picture: 112}); err == nil {
		_, err = s.Next(b.Context())
	}
	if err != nil {
		b.Fatal(err)
	}
	return first, rest, time.Since(begun)
}
