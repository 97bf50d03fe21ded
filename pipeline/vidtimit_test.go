// SPDX-License-Identifier: Apache-2.0

package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/pipeline"
	"github.com/faceauth/faceauth/preprocess"
)

// recorded is a person of vidtimit_rot as the networks see them.
type recorded struct {
	name      string
	frames    []face.Frame
	portraits []*facedet.Picture // aligned, of the first four faces to enrol from
}

var seen struct {
	sync.Mutex
	people []recorded
}

// vidtimit returns the six people of vidtimit_rot. Their 1,600 frames take half a minute, so all tests share the
// result.
func vidtimit(t *testing.T, d facedet.Detector, e preprocess.Extractor) []recorded {
	t.Helper()
	seen.Lock()
	defer seen.Unlock()
	for i := len(seen.people); i < 6; i++ {
		p := recorded{name: fmt.Sprintf("p%d", i)}
		src, err := facedet.Open(context.Background(), fixture.Recordings(t, "faces/vidtimit_rot/"+p.name),
			facedet.Options{})
		if err != nil {
			t.Fatal(err)
		}
		stream := pipeline.New(src, d, e, pipeline.Options{
			Gate: preprocess.LearnGate,
			Show: func(img *facedet.Picture, f face.Frame) error {
				if len(p.portraits) == 4 || len(f.Samples) == 0 || !preprocess.EnrolGate.Passes(f.Samples[0].Quality) {
					return nil
				}
				aligned, err := e.Align(img, f.Samples[0].Box, f.Samples[0].Landmarks)
				if err == nil {
					p.portraits = append(p.portraits, aligned)
				}
				return err
			},
		})
		for {
			f, err := stream.Next(context.Background())
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			p.frames = append(p.frames, f)
		}
		src.Close()
		seen.people = append(seen.people, p)
	}
	return seen.people
}

// played is a stream of frames that were seen before.
type played struct{ frames []face.Frame }

func (s *played) Next(context.Context) (face.Frame, error) {
	if len(s.frames) == 0 {
		return face.Frame{}, io.EOF
	}
	f := s.frames[0]
	s.frames = s.frames[1:]
	return f, nil
}
