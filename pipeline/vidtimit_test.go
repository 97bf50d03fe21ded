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
	name   string
	frames []face.Frame
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
		stream := pipeline.New(src, d, e, pipeline.Options{Gate: preprocess.LearnGate})
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
