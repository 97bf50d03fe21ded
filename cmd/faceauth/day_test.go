// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/faceauth/faceauth/internal/fixture"
)

// TestComposeDays writes the days of BenchmarkStillDay, and an hour of such days of four people by turns, into the
// folder that FACEAUTH_DAYS names, so that they can be given to the program by hand.
func TestComposeDays(t *testing.T) {
	dir := os.Getenv("FACEAUTH_DAYS")
	if dir == "" {
		t.Skip("FACEAUTH_DAYS names no folder for days that are composed of recordings")
	}
	var people []string
	for i := range 4 {
		people = append(people, fixture.Recordings(t, fmt.Sprintf("faces/vidtimit_rot/p%d", i)))
		if path := filepath.Join(dir, fmt.Sprintf("p%d.avi", i)); absent(path) {
			tenth.write(t, path, people[i], uint64(i))
		}
	}
	if path := filepath.Join(dir, "hour.avi"); absent(path) {
		tenth.writeAll(t, path, 9, 5, people...)
	}
}

// absent reports whether there is no file of that name.
func absent(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// BenchmarkStillRecording measures the processor time of replay and of search on a day of p0 with 95 % stillness,
// relative to the time with every frame looked at (x-replay, x-search). Both must find the same person at the same
// times.
func BenchmarkStillRecording(b *testing.B) {
	gallery, dir := enrolled(b, 0), b.TempDir()
	day := filepath.Join(dir, "p0.avi")
	tenth.write(b, day, fixture.Recordings(b, "faces/vidtimit_rot/p0"), 0)
	run := func(args ...string) (out []byte, took time.Duration) {
		c := exec.CommandContext(b.Context(), "faceauth", append(args, "--json", "--gallery", gallery, "--models",
			fixture.Models(b))...)
		out, err := c.Output()
		if err != nil {
			b.Fatal(err)
		}
		return out, spent(c)
	}
	for b.Loop() {
		var took [2][2]time.Duration
		var found [2][2]string // the people, and from when to when they were there
		for i, more := range [][]string{{"--every-frame"}, nil} {
			var replayed struct {
				Summary struct {
					People []struct {
						Name        string
						First, Last float64
					}
				}
			}
			out, cpu := run(append([]string{"replay", day, "--out", filepath.Join(dir, fmt.Sprint("out", i))},
				more...)...)
			if err := json.Unmarshal(out, &replayed); err != nil {
				b.Fatal(err)
			}
			found[i][0], took[i][0] = fmt.Sprint(replayed.Summary.People), cpu
			var searched struct {
				Hits []struct{ From, To float64 }
			}
			out, cpu = run(append([]string{"search", day, "--name", "p0", "--no-index"}, more...)...)
			if err := json.Unmarshal(out, &searched); err != nil {
				b.Fatal(err)
			}
			found[i][1], took[i][1] = fmt.Sprint(searched.Hits), cpu
		}
		if found[0] != found[1] || found[0][1] == "[]" {
			b.Errorf("found %q, and where every frame is looked at %q", found[1], found[0])
		}
		b.Logf("processor time of replay and search: %v, every frame %v; %q", took[1], took[0], found[1])
		b.ReportMetric(took[0][0].Seconds()/took[1][0].Seconds(), "x-replay")
		b.ReportMetric(took[0][1].Seconds()/took[1][1].Seconds(), "x-search")
	}
}
