// SPDX-License-Identifier: Apache-2.0

package pipeline_test

import (
	"context"
	"image"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/pipeline"
)

// hall is a camera of 1920x1080 at 10 frames a second, and a detector that finds what is large enough in a part.
type hall struct {
	people func(frame int) []image.Rectangle
	frame  int
	looks  int
	runs   int
}

func (h *hall) Next(context.Context) (*facedet.Frame, error) {
	size := image.Pt(1920, 1080)
	pix := make([]byte, 3*size.X*size.Y)
	for i, box := range h.people(h.frame) {
		for y := box.Min.Y; y < box.Max.Y; y++ {
			for x := 3 * box.Min.X; x < 3*box.Max.X; x++ {
				pix[3*y*size.X+x] = uint8(120 + (x*3+y*7+i*31)%120)
			}
		}
	}
	img, err := facedet.FromBGR(size, pix)
	h.frame++
	return &facedet.Frame{Index: h.frame - 1, Time: time.Duration(h.frame-1) * 100 * time.Millisecond, Image: img}, err
}

func (h *hall) Count() facedet.Count { return facedet.Count{Declared: -1, Read: h.frame} }
func (h *hall) Close() error         { return nil }

func (h *hall) Detect(img *facedet.Picture) ([]facedet.Face, error) {
	return h.Boxes(img, facedet.Windows(img.Bounds())...)
}

func (h *hall) Boxes(_ *facedet.Picture, parts ...image.Rectangle) (found []facedet.Face, err error) {
	h.looks++
	h.runs += len(parts)
	for _, box := range h.people(h.frame - 1) {
		for _, p := range parts {
			if box.In(p) && facedet.Shown(box.Dy(), p) {
				found = append(found, facedet.Face{Box: box, Score: .9})
				break
			}
		}
	}
	return found, nil
}

func (h *hall) Points(_ *facedet.Picture, box image.Rectangle) ([]face.Point, error) {
	points := fixture.Landmarks(0, .5, .3)
	for i := range points {
		points[i].X += float32(box.Min.X)
		points[i].Y += float32(box.Min.Y)
	}
	return points, nil
}

// walker is a face of a height that goes to and fro.
func walker(at image.Point, height, step int) func(int) image.Rectangle {
	return func(frame int) image.Rectangle {
		n := frame % 40
		from := at.Add(image.Pt(step*min(n, 40-n), 0))
		return image.Rectangle{from, from.Add(image.Pt(height*4/5, height))}
	}
}

// In a large frame faces are found wherever something moves, near and far at once, and a look costs little more than
// one run of the detector.
func TestLargeFrames(t *testing.T) {
	near := walker(image.Pt(300, 300), 400, 12)
	far, farther := walker(image.Pt(1500, 200), 48, 3), walker(image.Pt(40, 900), 44, 3)
	for _, c := range []struct {
		name   string
		people []func(int) image.Rectangle
		share  float64 // of the faces of the frames after the first two seconds
		runs   float64 // for each look
	}{
		{"far", []func(int) image.Rectangle{far}, .95, 1.6},
		{"near", []func(int) image.Rectangle{near}, .95, 1.6},
		{"at both ends", []func(int) image.Rectangle{far, farther}, .9, 2.6},
		{"near and far", []func(int) image.Rectangle{near, far, farther}, .9, 3.6},
	} {
		h := &hall{}
		h.people = func(frame int) (all []image.Rectangle) {
			for _, p := range c.people {
				all = append(all, p(frame))
			}
			return all
		}
		p := pipeline.New(h, h, eyes{&stage{}}, pipeline.Options{Spare: true})
		seen, all := 0, 0
		for frame := range 80 {
			f := fixture.Must(p.Next(t.Context()))(t)
			if frame < 20 {
				continue
			}
			for _, box := range h.people(frame) {
				all++
				for _, s := range f.Samples {
					if face.Overlap(s.Box, box) > .3 {
						seen++
						break
					}
				}
			}
			if len(f.Samples) > len(c.people) {
				t.Errorf("%s, frame %d: %d faces", c.name, frame, len(f.Samples))
			}
		}
		share, runs := float64(seen)/float64(all), float64(h.runs)/float64(h.looks)
		t.Logf("%s: %.2f of the faces, %.2f runs in each of %d looks", c.name, share, runs, h.looks)
		if share < c.share || runs > c.runs {
			t.Errorf("%s: %.2f of the faces, want %.2f; %.2f runs for each look, want %.2f", c.name, share, c.share, runs,
				c.runs)
		}
	}
}

// A face that was found in a part stays while looks are elsewhere, and goes when the person goes.
func TestLargeFrameForgets(t *testing.T) {
	h := &hall{people: func(frame int) []image.Rectangle {
		if frame >= 40 {
			return nil
		}
		return []image.Rectangle{walker(image.Pt(1500, 200), 48, 2)(min(frame, 20))}
	}}
	p := pipeline.New(h, h, eyes{&stage{}}, pipeline.Options{Spare: true})
	for frame := range 60 {
		f := fixture.Must(p.Next(t.Context()))(t)
		if frame >= 20 && frame < 40 && len(f.Samples) != 1 {
			t.Errorf("frame %d: %d faces of one person who stands still", frame, len(f.Samples))
		}
		if frame >= 45 && len(f.Samples) > 0 {
			t.Errorf("frame %d: %d faces where nobody is", frame, len(f.Samples))
		}
	}
}
