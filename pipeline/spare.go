// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"image"
	"math"
	"slices"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/internal/still"
	"github.com/faceauth/faceauth/models"
)

// steps is a detector that finds boxes first, and landmarks afterwards, only of the faces that need
// them.
type steps interface {
	Boxes(img *facedet.Picture, parts ...image.Rectangle) ([]facedet.Face, error)
	Points(img *facedet.Picture, box image.Rectangle) ([]face.Point, error)
	Looks() models.Description // how the detector looks
}

var _ steps = (*facedet.Network)(nil)

const (
	// calmLooks is the number of looks in a row that must find the same faces, without movement,
	// before frames are skipped. A detector sometimes misses a face. This must not happen in the
	// frame that stands for all following frames.
	calmLooks = 3
	// longestDoubt is the longest time for which looks without movement may disagree. After this
	// time the look with the most faces counts, because a face that is found in every second frame
	// is there.
	longestDoubt = time.Second
	// lookEvery is the interval of looks for faces while nothing moves.
	lookEvery = 3 * time.Second
	// longStill is the time without movement, and without looks that disagree, after which the
	// interval is lookStill.
	longStill = 30 * time.Second
	lookStill = 10 * time.Second
	// mostFollowed is the number of frames in a row in which known faces are found by their
	// landmarks alone. The network that finds faces takes four to nine times as long.
	mostFollowed = 2
	// furthest is the greatest move of such a face, as a share of the width of its box.
	furthest = .15
	// sameFace is the least overlap of the boxes of one face in two looks.
	sameFace = .5
)

// spare is the state with which a pipeline avoids work.
type spare struct {
	steps    steps // nil for a detector that finds boxes and landmarks in one step
	scene    still.Scene
	faces    still.Faces
	exposure exposure
	asked    []int // tracks of which the next frame needs a vector

	found  []facedet.Face // faces that the last look found
	tracks []int          // their tracks in the last frame
	calm   int            // looks in a row that agreed
	due    time.Duration  // time of the next look
	doubt  time.Duration  // time since which looks disagree
	most   []facedet.Face // most faces that a look found since then

	looks        int  // in large frames
	further      int  // of them, those at a further part
	coarse, fine int  // of these, those of each kind
	followed     int  // frames in a row in which known faces were followed without a look
	passed       bool // the last frame was skipped
}

// Passed reports whether the last frame was skipped because nothing moved in it. Its faces, if any,
// are the held faces of the frame before.
func (p *Pipeline) Passed() bool { return p.spare != nil && p.spare.passed }

var _ face.Holding = (*Pipeline)(nil)

// Look implements [face.Holding].
func (p *Pipeline) Look(tracks ...int) {
	if p.spare != nil {
		p.spare.asked = slices.Clone(tracks)
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
	var gain float64
	if p.brightens() {
		gain = s.exposure.see(grey)
	}
	s.scene.See(frame.Time, small, grey)
	moved, asked := s.scene.Moved(), s.faces.Ask(s.asked...)
	s.asked = nil
	s.passed = !moved && !asked && s.calm >= calmLooks && frame.Time < s.due
	if s.passed {
		return p.hold(frame), nil
	}
	img, err := expose(frame.Image, gain)
	if err != nil {
		return nil, err
	}
	defer img.Close()
	found, parts, err := p.search(img, moved)
	if err != nil {
		return nil, err
	}
	found = p.largest(found)
	// look needs the movement since the last look, so it comes before settle.
	samples, found, err := p.look(frame, img, found)
	if err != nil {
		return nil, err
	}
	s.settle(frame.Time, size, found, parts, moved)
	return samples, nil
}

// search finds the faces of a frame, and returns the parts of the frame in which it looked. Known
// faces that moved are followed, if they can be, and looked for otherwise.
func (p *Pipeline) search(img exposed,
	moved bool) (found []facedet.Face, parts []image.Rectangle, err error) {
	s, size := p.spare, img.Size()
	if s.steps == nil {
		found, err = p.detector.Detect(img.Picture)
		return found, []image.Rectangle{img.Bounds()}, err
	}
	windows := facedet.Windows(s.steps.Looks(), img.Bounds())
	known, further := s.parts(windows, size, moved)
	if moved && len(known) > 0 {
		now, ok, err := p.follow(img, len(windows) == 1)
		if err != nil {
			return nil, nil, err
		}
		if ok {
			parts = append(arounds(s.found), further...)
			s.found = now
			s.followed++
			if len(further) > 0 {
				found, err = s.steps.Boxes(img.Picture, further...)
			}
			return s.join(found, nil, size), parts, err
		}
		s.followed = 0
	}
	parts = append(known, further...)
	found, err = s.steps.Boxes(img.Picture, parts...)
	return s.join(found, parts, size), parts, err
}

// hold returns the faces of the last look as held samples.
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

// look returns samples of the faces that were found, and these without invented ones. Faces that
// may be new evidence get a vector.
func (p *Pipeline) look(frame *facedet.Frame, img exposed,
	found []facedet.Face) (samples []face.Sample, faces []facedet.Face, err error) {
	s := p.spare
	boxes := boxesOf(found)
	tracks := p.track(frame.Index, found)
	s.tracks = nil
	for i, track := range tracks {
		x, real, err := p.lookAt(frame, img, &found[i], track, still.Crowded(boxes, i))
		if err != nil {
			return nil, nil, err
		}
		if real {
			samples = append(samples, x)
			faces, s.tracks = append(faces, found[i]), append(s.tracks, track)
		}
	}
	s.faces.Keep(frame.Time)
	return samples, faces, nil
}

// lookAt returns the sample of a face that was found, and whether it is one. It adds the landmarks
// to the face if they are needed.
func (p *Pipeline) lookAt(frame *facedet.Frame, img exposed, f *facedet.Face, track int,
	crowded bool) (x face.Sample, real bool, err error) {
	s := p.spare
	if !crowded && !s.faces.Due(frame.Time, track, false) &&
		!s.scene.MovedIn(still.Around(f.Box), img.Size()) {
		x, ok := s.faces.Hold(frame.Time, track, f.Box, f.Score)
		if ok {
			return x, true, nil
		}
	}
	if s.steps != nil && f.Landmarks == nil {
		f.Landmarks, err = s.steps.Points(img.Picture, f.Box)
		if err != nil {
			return x, false, err
		}
	}
	l, err := p.glance(img, *f, track)
	if err != nil {
		return x, false, err
	}
	l.Crowded = crowded
	if !s.faces.Changed(frame.Time, l) {
		x, ok := s.faces.Hold(frame.Time, track, f.Box, f.Score)
		if ok {
			return x, true, nil
		}
	}
	err = p.complete(img, &l.Sample)
	if err != nil {
		return x, false, err
	}
	invented, err := p.invented(img, l.Sample)
	if err != nil || invented {
		return x, false, err
	}
	s.faces.Made(frame.Time, l)
	return l.Sample, true, nil
}

// follow returns the known faces, those that moved at the places where their landmarks are now. Ok
// is false if the faces must be looked for: they were followed for long, or somebody came recently
// or near another one, or moved far or looks different, or something else moved in a frame that is
// looked at as a whole.
func (p *Pipeline) follow(img exposed, whole bool) (now []facedet.Face, ok bool, err error) {
	s, size := p.spare, img.Size()
	if len(s.found) == 0 || len(s.tracks) != len(s.found) || s.followed >= mostFollowed {
		return nil, false, nil
	}
	boxes := boxesOf(s.found)
	around := arounds(s.found)
	if whole && !s.scene.MovedOnlyIn(around, size) {
		return nil, false, nil
	}
	for i, track := range s.tracks {
		if still.Crowded(boxes, i) || s.scene.MovedIn(around[i], size) && !s.faces.Settled(track) {
			return nil, false, nil
		}
	}
	now = slices.Clone(s.found)
	for i, track := range s.tracks {
		if !s.scene.MovedIn(around[i], size) {
			continue
		}
		ok, err = p.move(img, &now[i], track)
		if !ok || err != nil {
			return nil, false, err
		}
	}
	return now, true, nil
}

// move moves a face to the place where its landmarks are now. Ok is false if that is far away, or
// if it is not the same face there.
func (p *Pipeline) move(img exposed, f *facedet.Face, track int) (ok bool, err error) {
	s := p.spare
	landmarks, err := s.steps.Points(img.Picture, f.Box)
	if err != nil {
		return false, err
	}
	by, ok := shift(f.Landmarks, landmarks)
	box := f.Box.Add(by)
	if !ok || float64(max(by.X, -by.X, by.Y, -by.Y)) > furthest*float64(f.Box.Dx()) ||
		!box.In(img.Bounds()) {
		return false, nil
	}
	seen, err := patch(img.Picture, box)
	if err != nil || !s.faces.Same(track, seen) {
		return false, err
	}
	f.Box, f.Landmarks = box, landmarks
	return true, nil
}

// arounds returns the boxes of faces with their surroundings.
func arounds(faces []facedet.Face) []image.Rectangle {
	all := boxesOf(faces)
	for i, box := range all {
		all[i] = still.Around(box)
	}
	return all
}

// shift returns how far the centre of the landmarks has moved. Ok is false if there are no
// landmarks to compare.
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

// glance measures a face without a vector, to compare it with its earlier state.
func (p *Pipeline) glance(img exposed, f facedet.Face, track int) (l still.Look, err error) {
	l.Sample, err = p.measured(img, f, track)
	if err == nil {
		l.Patch, err = patch(img.Picture, f.Box)
	}
	return l, err
}

// patch returns the grey values of the face, or nil if the face is too small.
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

// settle takes in the result of a look, and decides whether the following frames may be skipped.
func (s *spare) settle(at time.Duration, size image.Point, found []facedet.Face,
	parts []image.Rectangle, moved bool) {
	same := agree(s.found, found)
	if moved && same {
		s.scene.Nothing(boxesOf(found), size, parts...)
	}
	for _, part := range parts {
		s.scene.Looked(part, size)
	}
	switch {
	case moved:
		s.calm, s.doubt, s.most = 0, at, found
	case same:
		s.calm++
	case s.calm >= calmLooks: // the looks agreed until now
		s.calm, s.doubt, s.most = 0, at, found
	default:
		s.calm = 0
	}
	if len(found) > len(s.most) {
		s.most = found
	}
	s.found = found
	if s.calm < calmLooks && at-s.doubt > longestDoubt && !moved {
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
