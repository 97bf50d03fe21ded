// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/internal/demo"
	"github.com/faceauth/faceauth/internal/demo/film"
)

// pixels counts how many pixels a detector looks at, and how many faces it finds.
type pixels struct {
	facedet.Detector
	looked, faces int
}

func (c *pixels) Detect(p *facedet.Picture) ([]facedet.Face, error) {
	c.looked += p.Size().X * p.Size().Y
	faces, err := c.Detector.Detect(p)
	c.faces += len(faces)
	return faces, err
}

// The detector finds nearly all faces that the inner detector finds, and searches fewer pixels.
func TestDetector(t *testing.T) {
	if testing.Short() {
		t.Skip("looks at seconds of video")
	}
	stills, err := demo.Find()
	if err != nil {
		t.Skip(err)
	}
	s, err := film.Write(context.Background(), stills, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	haar, err := facedet.Haar()
	if err != nil {
		t.Skip(err)
	}
	defer haar.Close()
	ctx := context.Background()
	count := func(d facedet.Detector, frames int) (faces int) {
		t.Helper()
		src, err := facedet.Open(ctx, s.Recording, facedet.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer src.Close()
		for range frames {
			f, err := src.Next(ctx)
			if err != nil {
				t.Fatal(err)
			}
			found, err := d.Detect(f.Image)
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range found {
				if x.Box.Empty() || !x.Box.In(f.Image.Bounds()) {
					t.Fatalf("frame %d: box %v in %v", f.Index, x.Box, f.Image.Bounds())
				}
			}
			faces += len(found)
			f.Close()
		}
		return faces
	}
	whole, part := &pixels{Detector: haar}, &pixels{Detector: haar}
	want, got := count(whole, 60), count(&nearby{Detector: part, every: 10}, 60)
	t.Logf("%d faces of %d, %d pixels of %d", got, want, part.looked, whole.looked)
	if want < 50 || got < want*9/10 || got > want*11/10 {
		t.Errorf("%d faces, the detector alone finds %d", got, want)
	}
	if 4*part.looked > 3*whole.looked {
		t.Errorf("it looked at %d pixels, the detector alone at %d", part.looked, whole.looked)
	}
	var out strings.Builder
	if err := run(ctx, &out, []string{s.Enrolment[0].Path}); err != nil {
		t.Fatal(err)
	}
	var frames, faces, good int
	if _, err := fmt.Sscanf(out.String(), "%d frames, %d faces, of which %d", &frames, &faces, &good); err != nil ||
		frames == 0 || faces == 0 {
		t.Errorf("it printed %q", &out)
	}
	if err := run(ctx, io.Discard, nil); err == nil || !strings.Contains(err.Error(), "usage:") {
		t.Errorf("error %v", err)
	}
}
