// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/faceauth/faceauth/eye"
	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/fixture"
)

// seen returns the frames that an eye gives of a recording. In make test these are only the first
// 120 frames.
func seen(t *testing.T, path string, o eye.Options, look bool) (all []face.Frame) {
	t.Helper()
	e := fixture.Must(eye.Start(t.Context(), config(t)))(t)
	defer e.Close()
	s := fixture.Must(e.Open(t.Context(), path, o))(t)
	var tracks []int // in the last frame
	for {
		if look {
			s.Look(tracks...)
		}
		f, err := s.Next(t.Context())
		if errors.Is(err, io.EOF) {
			return all
		}
		fixture.Check(t, err)
		all = append(all, f)
		tracks = nil
		for _, x := range f.Samples {
			tracks = append(tracks, x.Track)
		}
		if testing.Short() && len(all) == 120 {
			return all
		}
	}
}

// An eye that spares work finds the same faces on the same tracks, and holds most of them. If it
// has to look at every frame, it holds none.
func TestSpare(t *testing.T) {
	path := fixture.Recordings(t, "faces/fast_videos/clm_default.wmv")
	all := seen(t, path, eye.Options{Gate: eye.Learn}, false)
	for _, look := range []bool{false, true} {
		held, faces := 0, 0
		for i, f := range seen(t, path, eye.Options{Gate: eye.Learn, Spare: true}, look) {
			if len(f.Samples) != len(all[i].Samples) || f.Time != all[i].Time {
				t.Fatalf("frame %d: %d faces, want %d", i, len(f.Samples), len(all[i].Samples))
			}
			for k, s := range f.Samples {
				if w := all[i].Samples[k]; s.Track != w.Track || face.Overlap(s.Box, w.Box) < .7 {
					t.Errorf("frame %d: track %d at %v, want %d at %v", i, s.Track, s.Box, w.Track,
						w.Box)
				}
				faces++
				if s.Held {
					held++
				}
			}
		}
		if look && held > 0 || !look && held < faces/2 {
			t.Errorf("asked for all: %t; %d of %d faces are held", look, held, faces)
		}
	}
}

// No eye holds faces for a login or an enrolment, or if liveness is scored.
func TestSpareLogin(t *testing.T) {
	path := fixture.Recordings(t, "faces/fast_videos/clm_default.wmv")
	for _, c := range []struct {
		gate     eye.Gate
		liveness bool
	}{{eye.Login, false}, {eye.Enrol, false}, {eye.Learn, true}} {
		config := config(t)
		config.Vision.Liveness = c.liveness
		e, err := eye.Start(t.Context(), config)
		fixture.Check(t, err)
		defer e.Close()
		_, err = e.Open(t.Context(), path, eye.Options{Gate: c.gate, Spare: true})
		if err == nil || !strings.Contains(err.Error(), "faces cannot be held for a login") {
			t.Errorf("%s, liveness %t: %v", c.gate, c.liveness, err)
		}
	}
}
