// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"image"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/facedet"
)

// leastPulse is the least pulse, in grey levels, of a face that the emitter lights. The noise of
// the mean over a face is below one level.
const leastPulse = 12

// pulsed returns a sample of each face in the lit picture of an infrared frame, and the pulse. It
// keeps the lit picture as the frame's picture. Which one is lit is decided where the largest face
// is, or else in the middle: a window or a lamp behind a person makes the mean of the whole picture
// useless.
func (p *Pipeline) pulsed(frame *facedet.Frame) (samples []face.Sample, pulse float64, err error) {
	swap := func() { frame.Image, frame.Before = frame.Before, frame.Image }
	faces, err := p.detector.Detect(frame.Image)
	if err == nil && len(faces) == 0 {
		swap()
		faces, err = p.detector.Detect(frame.Image)
	}
	if err != nil {
		return nil, 0, err
	}
	size := frame.Image.Size()
	region := frame.Image.Bounds().Inset(min(size.X, size.Y) / 4)
	if len(faces) > 0 {
		region = faces[0].Box
	}
	lit, dark, err := levels(frame, region)
	if err != nil {
		return nil, 0, err
	}
	pulse = lit - dark
	if pulse < 0 {
		swap()
		pulse = -pulse
		if len(faces) > 0 { // it can be seen without the emitter, too
			faces, err = p.detector.Detect(frame.Image)
			if err != nil {
				return nil, 0, err
			}
		}
	}
	faces = p.largest(faces)
	img := exposed{frame.Image, frame.Image, 0}
	for i, track := range p.track(frame.Index, faces) {
		s, err := p.measured(img, faces[i], track)
		if err == nil {
			err = p.complete(img, &s)
		}
		if err != nil {
			return nil, 0, err
		}
		live, err := litness(frame, s.Box)
		if err != nil {
			return nil, 0, err
		}
		s.Liveness = &live
		samples = append(samples, s)
	}
	return samples, pulse, nil
}

// litness returns the liveness of a face in a lit picture: f/(f+s), where f is by which share of
// itself the face gets brighter, and s the same of its surroundings, which are the strips beside
// the upper half of the head. Such a share does not depend on how light a skin or a wall is. The
// emitter's light falls with the square of the distance, so a person gains more of it than the
// room; a lamp that flickers, or another exposure, changes both alike. It is 0 if the pulse is less
// than leastPulse: a screen sends no infrared light, and what the sun lights does not change. It is
// also 0 if the face leaves no room for surroundings.
func litness(frame *facedet.Frame, box image.Rectangle) (float32, error) {
	lit, dark, err := levels(frame, box)
	if err != nil || lit-dark < leastPulse {
		return 0, err
	}
	w := box.Dx()
	strip := image.Rect(box.Min.X-w/2, box.Min.Y, box.Min.X-w/8, box.Min.Y+box.Dy()/2)
	var sum, n float64
	for _, r := range []image.Rectangle{strip, strip.Add(image.Pt(w+w/8+w/2, 0))} {
		r = r.Intersect(frame.Image.Bounds())
		if r.Empty() {
			continue
		}
		litRoom, darkRoom, err := levels(frame, r)
		if err != nil {
			return 0, err
		}
		sum, n = sum+max(0, gain(litRoom, darkRoom)), n+1
	}
	if n == 0 {
		return 0, nil
	}
	f := gain(lit, dark)
	return float32(f / (f + sum/n)), nil
}

// gain returns by which share of itself a level rises. One is added to both levels, because black
// is only noise.
func gain(lit, dark float64) float64 { return (lit - dark) / (dark + 1) }

// levels returns the mean grey levels of a rectangle of the frame's picture and of the picture
// before.
func levels(frame *facedet.Frame, r image.Rectangle) (lit, dark float64, err error) {
	for i, to := range []*float64{&lit, &dark} {
		part, err := []*facedet.Picture{frame.Image, frame.Before}[i].Crop(r)
		if err != nil {
			return 0, 0, err
		}
		pixels, err := part.Thumbnail(part.Size())
		part.Close()
		if err != nil {
			return 0, 0, err
		}
		for _, v := range pixels {
			*to += float64(v)
		}
		*to /= float64(len(pixels))
	}
	return lit, dark, nil
}
