// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"context"
	"errors"
	"image"
	"math"
	"slices"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/internal/still"
	"github.com/faceauth/faceauth/preprocess"
)

const (
	// votes is the number of frames with faces that decide how a source is turned.
	votes = 5
	// lead is the ratio by which another turn must be better than the frames as they are
	// (lab/NOTES.md).
	lead = 1.15
	// certain is how many times the norm of a clear face an upright one has of which no other turn
	// is tried: none of 540 faces that were not upright reached 1.21 (lab/NOTES.md).
	certain = 1.25
	// longestLook is the longer side of a photograph that is looked at in four turns, in pixels.
	// The faces that decide are found in an input of 320x240: they have a hundred pixels then, as
	// many as a vector needs.
	longestLook = 2048
	// mostWaiting and longestWaiting limit the frames that wait for the decision.
	mostWaiting    = 10
	longestWaiting = 5 * time.Second
)

// upright is a source whose frames are turned.
type upright struct {
	facedet.Source
	detector  facedet.Detector
	extractor preprocess.Extractor
	degrees   int
	undecided bool
	sums      face.Turns
	voted     int
	scene     still.Scene
	exposure  exposure
	empty     bool // nobody was in view when faces were looked for last
	waiting   []*facedet.Frame
	flush     bool  // the waiting frames go on without a decision
	ended     error // of the source, after the waiting frames
}

// Upright returns a source that turns the frames of s by r, which must be known. For [face.Auto],
// the first five frames with faces decide: each face is looked for in all four turns, and the
// greatest sum of the norms of the largest face wins if it leads by 15 %. A frame counts if a norm
// is that of a clear face. While nobody is in view, only frames in which something moved are
// searched. Frames wait for this decision, at most ten of them and at most five seconds. A source
// with fewer such frames is not turned, and neither is any source if the extractor has no norm.
// Each photograph is decided on its own. Closing it closes s.
func Upright(s facedet.Source, d facedet.Detector, e preprocess.Extractor,
	r face.Rotation) facedet.Source {
	degrees, auto, ok := r.Degrees()
	if !ok {
		panic("pipeline: unknown rotation")
	}
	auto = auto && hasNorm(e)
	if !auto && degrees == 0 {
		return s
	}
	return &upright{Source: s, detector: d, extractor: e, degrees: degrees, undecided: auto}
}

func (u *upright) Next(ctx context.Context) (*facedet.Frame, error) {
	for u.undecided && !u.flush && u.ended == nil {
		f, err := u.Source.Next(ctx)
		if err == nil && f != nil && f.Still {
			return u.still(f)
		}
		if ctx.Err() != nil {
			f.Close()
			return nil, ctx.Err()
		}
		// package pipeline refuses such a frame
		if err != nil || f == nil || f.Image.Size() == (image.Point{}) {
			u.ended = err
			if err == nil {
				u.waiting, u.flush = append(u.waiting, f), true
			}
			break
		}
		u.waiting = append(u.waiting, f)
		found, err := u.look(f)
		if err != nil {
			return nil, err
		}
		if !found && len(u.waiting) == 1 {
			break // nobody is in view
		}
		u.flush = len(u.waiting) >= mostWaiting || f.Time-u.waiting[0].Time >= longestWaiting
	}
	var f *facedet.Frame
	switch {
	case len(u.waiting) > 0:
		f, u.waiting = u.waiting[0], u.waiting[1:]
		u.flush = u.flush && len(u.waiting) > 0
	case u.ended != nil:
		return nil, u.ended
	default:
		var err error
		f, err = u.Source.Next(ctx)
		if err != nil || f == nil {
			return f, err
		}
	}
	return u.turn(f)
}

// still turns a photograph, as the norms of its largest face in the four turns say: each may have
// been held otherwise.
func (u *upright) still(f *facedet.Frame) (*facedet.Frame, error) {
	if f.Image.Size() == (image.Point{}) {
		return f, nil
	}
	degrees, err := u.upright(f.Image)
	if err != nil {
		f.Close()
		return nil, err
	}
	one := *u
	one.degrees = degrees
	return one.turn(f)
}

// upright returns the degrees by which a photograph is to be turned.
func (u *upright) upright(p *facedet.Picture) (int, error) {
	grey, err := p.Thumbnail(still.Shrunk(p.Size()))
	if err != nil {
		return 0, err
	}
	img, err := expose(p, new(exposure).see(grey))
	if err != nil {
		return 0, err
	}
	defer img.Close()
	look, err := img.Shrunk(longestLook)
	if err != nil {
		return 0, err
	}
	defer look.Close()
	clear := u.extractor.Space().ClearNorm
	t, err := u.norms(look, certain*clear)
	if err != nil || slices.Max(t[:]) < clear {
		return 0, err
	}
	return t.Best(lead), nil
}

// turn replaces the picture of a frame by the turned one.
func (u *upright) turn(f *facedet.Frame) (*facedet.Frame, error) {
	if u.degrees == 0 || f == nil || f.Image.Size() == (image.Point{}) {
		return f, nil
	}
	defer (&facedet.Frame{Image: f.Image, Before: f.Before}).Close()
	turned, err := f.Image.Turn(u.degrees)
	if err != nil {
		return nil, err
	}
	if f.Before != nil {
		f.Before, err = f.Before.Turn(u.degrees)
		if err != nil {
			turned.Close()
			return nil, err
		}
	}
	f.Image, f.Turned = turned, u.degrees
	if u.degrees%180 != 0 {
		f.Full.X, f.Full.Y = f.Full.Y, f.Full.X
	}
	return f, nil
}

// look counts a frame, and reports whether a face is in it in any turn. After nobody was in view it
// looks again only when something has moved: an empty room costs no search in four turns.
func (u *upright) look(f *facedet.Frame) (found bool, err error) {
	size := f.Image.Size()
	small := still.Shrunk(size)
	grey, err := f.Image.Thumbnail(small)
	if err != nil {
		return false, err
	}
	gain := u.exposure.see(grey)
	if u.scene.See(f.Time, small, grey); u.empty && !u.scene.Moved() {
		return false, nil
	}
	img, err := expose(f.Image, gain)
	if err != nil {
		return false, err
	}
	defer img.Close()
	found, err = u.vote(img.Picture)
	if err != nil {
		return false, err
	}
	u.empty = !found
	if u.empty {
		u.scene.Nothing(nil, size)
	}
	u.scene.Looked(f.Image.Bounds(), size)
	return found, nil
}

// vote counts a frame, and reports whether a face is in it in any turn.
func (u *upright) vote(img *facedet.Picture) (found bool, err error) {
	t, err := u.norms(img, math.Inf(1))
	if err != nil {
		return false, err
	}
	best := slices.Max(t[:])
	if best == 0 {
		return false, nil
	}
	// A profile, or a poor picture, may have a greater norm when it is turned.
	if best < u.extractor.Space().ClearNorm {
		return true, nil
	}
	u.sums.Add(t)
	if u.voted++; u.voted == votes {
		u.degrees, u.undecided = u.sums.Best(lead), false
	}
	return true, nil
}

// norms returns the norm of the largest face of a picture in each of its four turns. If the upright
// one is enough, no other turn is tried.
func (u *upright) norms(img *facedet.Picture, enough float64) (t face.Turns, err error) {
	for i := range t {
		t[i], err = u.norm(img, 90*i)
		if err != nil || t[0] >= enough {
			break
		}
	}
	return t, err
}

// norm returns the norm of the largest face of a turned picture, or 0 if there is none.
func (u *upright) norm(img *facedet.Picture, degrees int) (float64, error) {
	turned, err := img.Turn(degrees)
	if err != nil {
		return 0, err
	}
	defer turned.Close()
	faces, err := u.faces(turned)
	if err != nil || len(faces) == 0 {
		return 0, err
	}
	return normOf(u.extractor, turned, faces[0].Box, faces[0].Landmarks)
}

// faces returns the faces of a picture, of which only the first needs landmarks. Small ones in a
// large picture, which would take many runs of the detector, do not decide.
func (u *upright) faces(img *facedet.Picture) (faces []facedet.Face, err error) {
	d, ok := u.detector.(steps)
	if !ok {
		return u.detector.Detect(img)
	}
	faces, err = d.Boxes(img, img.Bounds())
	if err == nil && len(faces) > 0 && faces[0].Landmarks == nil {
		faces[0].Landmarks, err = d.Points(img, faces[0].Box)
	}
	return faces, err
}

// normOf returns the norm of a face, or 0 if no vector can be made of it.
func normOf(e preprocess.Extractor, img *facedet.Picture, box image.Rectangle,
	landmarks []face.Point) (float64,
	error) {
	_, norm, err := preprocess.Extract(e, img, box, landmarks)
	if errors.Is(err, preprocess.ErrLandmarks) {
		return 0, nil
	}
	return norm, err
}

func (u *upright) Close() error {
	for _, f := range u.waiting {
		f.Close()
	}
	u.waiting = nil
	return u.Source.Close()
}

// righted takes an unclear or tilted face of a photograph as it is found when its surroundings are
// turned, if that is better by far: on a page of an album, photographs lie in all directions. Its
// box and landmarks stay those of the page.
func (p *Pipeline) righted(img exposed, s *face.Sample) error {
	d, ok := p.detector.(steps)
	clear := p.extractor.Space().ClearNorm
	if !ok || !hasNorm(p.extractor) ||
		s.Quality.Norm >= clear && s.Reason != face.Tilted {
		return nil
	}
	least := max(clear, lead*s.Quality.Norm)
	crop, box, err := around(img.Picture, s.Box)
	if err != nil {
		return err
	}
	defer crop.Close()
	for range 3 { // each is the one before, turned further
		height := crop.Size().Y
		turned, err := crop.Turn(90)
		if err != nil {
			return err
		}
		defer turned.Close()
		crop, box = turned, quarter(box, height)
		faces, err := d.Boxes(crop, crop.Bounds())
		if err != nil {
			return err
		}
		// A box of a face that lies on its side is no good one.
		i := slices.IndexFunc(faces, func(f facedet.Face) bool {
			return face.Overlap(f.Box, box) > onSide
		})
		if i < 0 {
			continue
		}
		f := faces[i]
		f.Landmarks, err = d.Points(crop, f.Box)
		if err != nil {
			return err
		}
		upright := exposed{crop, crop, img.gain}
		better, err := p.measured(upright, f, s.Track)
		if err == nil {
			err = p.complete(upright, &better)
		}
		if err != nil {
			return err
		}
		if better.Vector != nil && better.Quality.Norm >= least {
			least = better.Quality.Norm
			better.Box, better.Landmarks, better.Liveness = s.Box, s.Landmarks, s.Liveness
			*s = better
		}
	}
	return nil
}

// onSide is the least overlap of the box of a face that lies on its side with its true box.
const onSide = .2

// turns returns the norms of a face that is turned, with landmarks found again, or nil if they
// cannot be measured.
func (p *Pipeline) turns(img *facedet.Picture, s *face.Sample) (*face.Turns, error) {
	d, ok := p.detector.(steps)
	if !ok || !hasNorm(p.extractor) {
		return nil, nil
	}
	crop, box, err := around(img, s.Box)
	if err != nil {
		return nil, err
	}
	defer crop.Close()
	t := face.Turns{s.Quality.Norm}
	for i := 1; i < len(t); i++ { // each is the one before, turned further
		height := crop.Size().Y
		turned, err := crop.Turn(90)
		if err != nil {
			return nil, err
		}
		defer turned.Close()
		crop, box = turned, quarter(box, height)
		landmarks, err := d.Points(crop, box)
		if err != nil {
			return nil, err
		}
		t[i], err = normOf(p.extractor, crop, box, landmarks)
		if err != nil {
			return nil, err
		}
	}
	return &t, nil
}

// around returns the part of a picture around a face, and the box of the face in it.
func around(img *facedet.Picture,
	box image.Rectangle) (crop *facedet.Picture, in image.Rectangle, err error) {
	part := box.Inset(-max(box.Dx(), box.Dy()) * 3 / 10).Intersect(img.Bounds())
	crop, err = img.Crop(part)
	return crop, box.Sub(part.Min), err
}

// quarter returns a box of a picture of that height when the picture is turned by 90 degrees.
func quarter(box image.Rectangle, height int) image.Rectangle {
	return image.Rect(height-box.Max.Y, box.Min.X, height-box.Min.Y, box.Max.X)
}

// hasNorm reports whether an extractor measures [face.Quality].Norm. The pixels of the thesis have
// no such norm.
func hasNorm(e preprocess.Extractor) bool { return e.Space().Unit }
