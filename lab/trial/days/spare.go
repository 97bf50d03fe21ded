// SPDX-License-Identifier: Apache-2.0

package days

import (
	"bytes"
	"image"
	"image/color"
	"image/jpeg"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/still"
	"github.com/faceauth/faceauth/sighting"
)

// shown is a face with the picture that package still compares.
type shown struct {
	face.Sample
	patch []uint8
}

// spare holds the faces of one camera as package pipeline does if all of them move.
type spare struct {
	tracker *sighting.Tracker
	faces   still.Faces
	patches map[place][]uint8
	held    *int // counts them; cameras take turns
}

func newSpare(patches map[place][]uint8, held *int) *spare {
	return &spare{tracker: sighting.NewBoxTracker(), patches: patches, held: held}
}

// hold returns the faces of a frame; some of them may be held.
func (s *spare) hold(f face.Frame) []face.Sample {
	boxes, places := make([]image.Rectangle, len(f.Samples)), make([]face.Sample, len(f.Samples))
	for i, x := range f.Samples {
		boxes[i], places[i].Box = x.Box, x.Box
	}
	samples := make([]face.Sample, len(f.Samples))
	for i, track := range s.tracker.Update(time.Duration(f.Index), places) {
		l := still.Look{
			Sample:  f.Samples[i],
			Patch:   s.patches[place{f.Index, boxes[i]}],
			Crowded: still.Crowded(boxes, i),
		}
		l.Track = track
		if !s.faces.Changed(f.Time, l) {
			if x, ok := s.faces.Hold(f.Time, track, l.Box, l.Score); ok {
				samples[i] = x
				*s.held++
				continue
			}
		}
		s.faces.Made(f.Time, l)
		samples[i] = l.Sample
	}
	s.faces.Keep(f.Time)
	return samples
}

// patch returns the patch of a face from its small picture, which has a margin of an eighth of its
// longer side. It is nil without a picture: such a face is never held.
func patch(s face.Sample) []uint8 {
	img, err := jpeg.Decode(bytes.NewReader(s.JPEG))
	if err != nil {
		return nil
	}
	b := img.Bounds()
	long := float64(max(s.Box.Dx(), s.Box.Dy()))
	scale := float64(max(b.Dx(), b.Dy())) / (1.25 * long)
	edge := scale * long / 8
	p := make([]uint8, still.Patch*still.Patch)
	for y := range still.Patch {
		for x := range still.Patch {
			at := func(i, side int) int {
				return int(edge +
					(float64(i)+.5)/still.Patch*scale*float64(side))
			}
			g := color.GrayModel.Convert(img.At(b.Min.X+at(x, s.Box.Dx()),
				b.Min.Y+at(y, s.Box.Dy()))).(color.Gray)
			p[y*still.Patch+x] = g.Y
		}
	}
	return p
}
