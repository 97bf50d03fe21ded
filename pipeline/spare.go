// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"image"
	"math"
	"slices"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/still"
)

// steps is a detector that finds boxes first, and landmarks of the faces that need them.
type steps interface {
	Boxes(img *facedet.Picture) ([]facedet.Face, error)
	Points(img *facedet.Picture, box image.Rectangle) ([]face.Point, error)
}

var _ steps = (*facedet.Network)(nil)

const (
	// calmLooks is how many looks in a row must find the same faces, without movement, before frames are passed over. A
	// detector misses a face now and then, and must not do so in the frame that stands for all that follow.
	calmLooks = 3
	// longestDoubt is for how long looks without movement may disagree: then the one with the most faces counts, as a
	// face that is found in every other frame is there.
	longestDoubt = time.Second
	// lookEvery is how often faces are looked for where nothing moves.
	lookEvery = 3 * time.Second
	// longStill is after what time without movement, and without looks that disagree, faces are looked for only every
	// lookStill.
	longStill = 30 * time.Second
	lookStill = 10 * time.Second
	// mostFollowed is how many frames in a row may do with landmarks of the faces that were found before, where nothing but
	// these faces moved: the network that finds faces takes three times as long as the one that finds landmarks.
	mostFollowed = 2
	// furthest is how far a face may have moved then, by the width of its box.
	furthest = .15
	// sameFace is the least overlap of the boxes of one face in two looks.
	sameFace = .5
)

// spare is what a pipeline remembers to spare work.
type spare struct {
	steps steps // nil for a detector that finds all at once
	scene still.Scene
	faces still.Faces
	asked bool // vectors of all faces in the next frame

	found  []facedet.Face // by the last look
	tracks []int          // of them, in the last frame
	calm   int            // looks in a row that agreed
	due    time.Duration  // of the next look
	doubt  time.Duration  // when looks began to disagree
	most   []facedet.Face // of the looks since then

	followed int  // frames in a row in which faces were followed, and not looked for
	passed   bool // the last frame was passed over
}

// Passed reports whether the last frame was passed over, as nothing moved in it: its faces, if any, are those of the
// frame before, and are held.
func (p *Pipeline) Passed() bool { return p.spare != nil && p.spare.passed }

// Look asks for a vector of each face in the next frame, where some would be held.
func (p *Pipeline) Look() {
	if p.spare != nil {
		p.spare.asked = true
	}
}

// spared returns the samples of a frame, some of which may be held.
func (p *Pipeline) spared(frame *facedet.Frame) ([]face.Sample, error) {
	s := p.spare
	size := frame.Image.Size()
	small := still.Shrunk(size)
	grey, err := frame.Image.Thumbnail(small)
	if err != nil {
		return nil, err
	}
	s.scene.See(frame.Time, small, grey)
	moved, asked := s.scene.Moved(), s.asked
	s.asked = false
	s.passed = !moved && !asked && s.calm >= calmLooks && frame.Time < s.due
	if s.passed {
		return p.hold(frame), nil
	}
	if moved && !asked {
		if samples, ok, err := p.follow(frame); ok || err != nil {
			return samples, err
		}
	}
	s.followed = 0
	var found []facedet.Face
	if s.steps != nil {
		found, err = s.steps.Boxes(frame.Image)
	} else {
		found, err = p.detector.Detect(frame.Image)
	}
	if err != nil {
		return nil, err
	}
	found = p.largest(found)
	// What moved is asked of the scene as it was at the last look.
	samples, err := p.look(frame, found, asked)
	if err != nil {
		return nil, err
	}
	s.settle(frame.Time, size, found, moved)
	return samples, nil
}

// hold returns the faces that were found last.
func (p *Pipeline) hold(frame *facedet.Frame) []face.Sample {
	s := p.spare
	var samples []face.Sample
	s.tracks = p.track(frame.Index, s.found)
	for i, track := range s.tracks {
		if x, ok := s.faces.Hold(frame.Time, track, s.found[i].Box, s.found[i].Score); ok {
			samples = append(samples, x)
		}
	}
	return samples
}

// look returns samples of the faces that were found, with vectors of those that may say something new.
func (p *Pipeline) look(frame *facedet.Frame, found []facedet.Face, asked bool) (samples []face.Sample, err error) {
	s, img := p.spare, frame.Image
	boxes := boxesOf(found)
	s.tracks = p.track(frame.Index, found)
	for i, track := range s.tracks {
		f := found[i]
		near := still.Crowded(boxes, i)
		if !asked && !near && !s.faces.Old(frame.Time, track) && !s.scene.MovedIn(still.Around(f.Box), img.Size()) {
			if x, ok := s.faces.Hold(frame.Time, track, f.Box, f.Score); ok {
				samples = append(samples, x)
				continue
			}
		}
		if s.steps != nil && f.Landmarks == nil {
			if f.Landmarks, err = s.steps.Points(img, f.Box); err != nil {
				return nil, err
			}
			found[i].Landmarks = f.Landmarks
		}
		l, err := p.glance(img, f, track)
		if err != nil {
			return nil, err
		}
		l.Crowded = near
		if !asked && !s.faces.Changed(frame.Time, l) {
			if x, ok := s.faces.Hold(frame.Time, track, f.Box, f.Score); ok {
				samples = append(samples, x)
				continue
			}
		}
		if err := p.complete(img, &l.Sample); err != nil {
			return nil, err
		}
		s.faces.Made(frame.Time, l)
		samples = append(samples, l.Sample)
	}
	s.faces.Keep(frame.Time)
	return samples, nil
}

// follow returns the faces that were found before where their landmarks are now, without looking for others. Ok is
// false where something else moved, or where one of them should be looked at closely.
func (p *Pipeline) follow(frame *facedet.Frame) (samples []face.Sample, ok bool, err error) {
	s, img, size := p.spare, frame.Image, frame.Image.Size()
	if s.steps == nil || len(s.found) == 0 || s.followed >= mostFollowed {
		return nil, false, nil
	}
	boxes := boxesOf(s.found)
	around := make([]image.Rectangle, len(boxes))
	for i, b := range boxes {
		if around[i] = still.Around(b); still.Crowded(boxes, i) {
			return nil, false, nil
		}
	}
	if !s.scene.MovedOnlyIn(around, size) {
		return nil, false, nil
	}
	for i := range s.found { // landmarks are not looked for where a vector is made in any case
		if i < len(s.tracks) && s.scene.MovedIn(around[i], size) && s.faces.Due(frame.Time, s.tracks[i]) {
			return nil, false, nil
		}
	}
	now := slices.Clone(s.found)
	for i, f := range now {
		if !s.scene.MovedIn(around[i], size) {
			continue
		}
		if now[i].Landmarks, err = s.steps.Points(img, f.Box); err != nil {
			return nil, false, err
		}
		by, ok := shift(f.Landmarks, now[i].Landmarks)
		now[i].Box = f.Box.Add(by)
		if !ok || float64(max(by.X, -by.X, by.Y, -by.Y)) > furthest*float64(f.Box.Dx()) ||
			!now[i].Box.In(img.Bounds()) {
			return nil, false, nil
		}
	}
	tracks := p.track(frame.Index, now)
	s.tracks = tracks
	for i, f := range now {
		if !s.scene.MovedIn(around[i], size) {
			if s.faces.Old(frame.Time, tracks[i]) {
				return nil, false, nil
			}
			continue
		}
		l, err := p.glance(img, f, tracks[i])
		if err != nil {
			return nil, false, err
		}
		if s.faces.Changed(frame.Time, l) {
			return nil, false, nil
		}
	}
	for i, f := range now {
		x, ok := s.faces.Hold(frame.Time, tracks[i], f.Box, f.Score)
		if !ok {
			return nil, false, nil
		}
		samples = append(samples, x)
	}
	s.faces.Keep(frame.Time)
	s.scene.Looked()
	s.followed++
	s.found, s.calm, s.doubt, s.most, s.due = now, 0, frame.Time, now, frame.Time+lookEvery
	return samples, true, nil
}

// shift returns how far the middle of landmarks has moved. Ok is false where there are none to compare.
func shift(before, now []face.Point) (by image.Point, ok bool) {
	if len(before) == 0 || len(before) != len(now) {
		return by, false
	}
	var x, y float64
	for i := range now {
		x += float64(now[i].X - before[i].X)
		y += float64(now[i].Y - before[i].Y)
	}
	n := float64(len(now))
	return image.Pt(int(math.Round(x/n)), int(math.Round(y/n))), true
}

// glance returns a face as it is compared with how it was: measured, without a vector.
func (p *Pipeline) glance(img *facedet.Picture, f facedet.Face, track int) (l still.Look, err error) {
	if l.Sample, err = p.measured(img, f, track); err == nil {
		l.Patch, err = patch(img, f.Box)
	}
	return l, err
}

// patch returns the face in grey values, or nil for one that is too small.
func patch(img *facedet.Picture, box image.Rectangle) ([]uint8, error) {
	if box.Dx() < still.Patch || box.Dy() < still.Patch {
		return nil, nil
	}
	crop, err := img.Crop(box)
	if err != nil {
		return nil, err
	}
	defer crop.Close()
	return crop.Thumbnail(image.Pt(still.Patch, still.Patch))
}

// settle takes in what a look found, and decides whether the frames that follow may be passed over.
func (s *spare) settle(at time.Duration, size image.Point, found []facedet.Face, moved bool) {
	same := agree(s.found, found)
	if moved && same {
		s.scene.Nothing(boxesOf(found), size)
	}
	s.scene.Looked()
	switch {
	case moved:
		s.calm, s.doubt, s.most = 0, at, found
	case same:
		s.calm++
	case s.calm >= calmLooks: // they agreed until now
		s.calm, s.doubt, s.most = 0, at, found
	default:
		s.calm = 0
	}
	if len(found) > len(s.most) {
		s.most = found
	}
	if s.found = found; s.calm < calmLooks && at-s.doubt > longestDoubt && !moved {
		s.calm, s.found, s.tracks = calmLooks, s.most, nil
	}
	s.due = at + lookEvery
	if at-s.doubt >= longStill {
		s.due = at + lookStill
	}
}

// agree reports whether two looks found the same faces.
func agree(a, b []facedet.Face) bool {
	if len(a) != len(b) {
		return false
	}
	taken := make([]bool, len(b))
	for _, f := range a {
		found := false
		for j, g := range b {
			if !taken[j] && face.Overlap(f.Box, g.Box) >= sameFace {
				taken[j], found = true, true
				break
			}
		}
		if !found {
			return false
		}
	}
	return true
}
