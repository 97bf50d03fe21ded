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

// BenchmarkCost measures what an eye costs, against the pipeline in this process, turn about in one run: the ratio of frames
// a second (x-fps, 1 where it costs nothing), and how much later the first frame comes, in milliseconds, from nothing
// (start-ms) and where the eye is ready, as for a login (ready-ms). The medians over the pairs of each recording count.
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
					var first, rest [2]time.Duration
					var warm time.Duration
					for turn := range 2 {
						if which := (i + turn) % 2; which == 0 {
							first[0], rest[0] = inProcess(b, path)
						} else {
							first[1], rest[1], warm = inEye(b, path)
						}
					}
					fps = append(fps, rest[0].Seconds()/rest[1].Seconds())
					start = append(start, (first[1]-first[0]).Seconds()*1e3)
					_, opened := inProcessReady(b, path)
					ready = append(ready, (warm-opened).Seconds()*1e3)
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

func inProcess(b *testing.B, path string) (first, rest time.Duration) {
	begun := time.Now()
	d, e, err := Open(config(b).Vision)
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	defer e.Close()
	src, err := facedet.Open(b.Context(), path, facedet.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer src.Close()
	p := pipeline.New(src, d, e, pipeline.Options{Gate: preprocess.LearnGate, Picture: 112})
	for i := range measured {
		_, err := p.Next(b.Context())
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

// inProcessReady is how long a source takes to its first frame where the networks are open.
func inProcessReady(b *testing.B, path string) (networks, first time.Duration) {
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
	if _, err := pipeline.New(src, d, e, pipeline.Options{Gate: preprocess.LearnGate, Picture: 112}).Next(b.Context()); err != nil {
		b.Fatal(err)
	}
	return networks, time.Since(begun)
}

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
	for i := range measured {
		_, err := s.Next(b.Context())
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
	rest = time.Since(begun)
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
