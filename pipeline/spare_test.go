// SPDX-License-Identifier: Apache-2.0

package pipeline_test

import (
	"context"
	"image"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/models"
	"github.com/faceauth/faceauth/pipeline"
	"github.com/faceauth/faceauth/preprocess"
)

// stage is a room with a face in it, the networks that see it, and counts of the calls of these
// networks.
type stage struct {
	t     *testing.T
	rnd   *rand.Rand
	index int
	face  image.Rectangle // drawn; empty for none
	grin  int             // changes the looks of the face
	boxes func(call int) []image.Rectangle

	norm, clear float64 // of the vectors, and from which they are clear
	lost        bool    // the face is not found in a part of the frame

	found, points, vectors, again int
}

func newStage(t *testing.T) *stage {
	s := &stage{t: t, rnd: rand.New(rand.NewPCG(3, 4))}
	s.boxes = func(int) []image.Rectangle {
		if s.face.Empty() {
			return nil
		}
		return []image.Rectangle{s.face}
	}
	return s
}

var stageSize = image.Pt(320, 240)

// Next draws a frame; there are ten frames in a second.
func (s *stage) Next(context.Context) (*facedet.Frame, error) {
	pix := make([]byte, 3*stageSize.X*stageSize.Y)
	for y := range stageSize.Y {
		for x := range stageSize.X {
			v := 60 + (x*3+y*5)%40
			if at := image.Pt(x, y); at.In(s.face) {
				d := at.Sub(s.face.Min)
				v = 120 + (d.X/8*37+d.Y/8*(53+s.grin))%90
			}
			for c := range 3 {
				pix[3*(y*stageSize.X+x)+c] = uint8(v + s.rnd.IntN(7) - 3)
			}
		}
	}
	img, err := facedet.FromBGR(stageSize, pix)
	if err != nil {
		return nil, err
	}
	s.index++
	return &facedet.Frame{Index: s.index - 1,
		Time: time.Duration(s.index-1) * 100 * time.Millisecond, Image: img}, nil
}

func (s *stage) Count() face.Count { return face.Count{Declared: -1, Read: s.index} }
func (s *stage) Close() error      { return nil }

func (s *stage) Detect(img *facedet.Picture) ([]facedet.Face, error) {
	faces, err := s.Boxes(img)
	for i := range faces {
		faces[i].Landmarks, _ = s.Points(img, faces[i].Box)
	}
	return faces, err
}

func (s *stage) Boxes(_ *facedet.Picture,
	parts ...image.Rectangle) (faces []facedet.Face, err error) {
	if len(parts) == 1 && parts[0].Size() != stageSize {
		s.again++
		if s.lost {
			return nil, nil
		}
	}
	s.found++
	for _, b := range s.boxes(s.found) {
		faces = append(faces, facedet.Face{Box: b, Score: .9})
	}
	return faces, nil
}

// Points returns the landmarks of the drawn face, for any given box.
func (s *stage) Looks() models.Description { return models.Default(models.Detector) }

func (s *stage) Points(*facedet.Picture, image.Rectangle) ([]face.Point, error) {
	s.points++
	points := fixture.Landmarks(0, .5, .3)
	for i := range points {
		points[i].X += float32(s.face.Min.X)
		points[i].Y += float32(s.face.Min.Y)
	}
	return points, nil
}

// eyes makes vectors.
type eyes struct{ s *stage }

func (e eyes) Space() face.Space {
	return face.Space{ID: "plane", Dim: 2, Scale: 1, ClearNorm: e.s.clear}
}
func (e eyes) Close() error { return nil }
func (e eyes) Vector(*facedet.Picture) ([]float32, float64, error) {
	e.s.vectors++
	return []float32{1, 2}, e.s.norm, nil
}
func (e eyes) Align(img *facedet.Picture, _ image.Rectangle,
	_ []face.Point) (*facedet.Picture, error) {
	return img.Clone()
}

func (s *stage) pipeline() *pipeline.Pipeline {
	return pipeline.New(s, s, eyes{s}, pipeline.Options{Gate: preprocess.LearnGate, Spare: true})
}

// frame returns the faces of the next frame. It checks that held faces have no vector, landmarks or
// picture.
func (s *stage) frame(p *pipeline.Pipeline) []face.Sample {
	s.t.Helper()
	f := fixture.Must(p.Next(s.t.Context()))(s.t)
	for _, x := range f.Samples {
		if x.Held && (x.Vector != nil || x.Landmarks != nil || x.JPEG != nil) || !x.Held &&
			x.Vector == nil ||
			x.Track < 1 {
			s.t.Fatalf("frame %d: %+v", f.Index, x)
		}
	}
	return f.Samples
}

// In an empty room the detector runs at the beginning, and then every three seconds.
func TestSpareEmpty(t *testing.T) {
	s := newStage(t)
	p := s.pipeline()
	for range 300 {
		if len(s.frame(p)) > 0 {
			t.Fatal("a face was found in an empty room")
		}
	}
	if s.found < 10 || s.found > 16 || s.points+s.vectors > 0 {
		t.Errorf("in 30 seconds the detector ran %d times", s.found)
	}
}

// After half a minute without movement the detector runs every ten seconds. A face that appears
// without any movement is found after that time. A face that moves is found at once.
func TestSpareLongStill(t *testing.T) {
	s := newStage(t)
	there := false
	s.boxes = func(int) []image.Rectangle {
		if there || !s.face.Empty() {
			return []image.Rectangle{image.Rect(100, 60, 180, 150)}
		}
		return nil
	}
	p := s.pipeline()
	for range 400 {
		s.frame(p)
	}
	before := s.found
	for range 600 {
		s.frame(p)
	}
	if n := s.found - before; n < 5 || n > 7 {
		t.Errorf("in a minute after forty still seconds the detector ran %d times", n)
	}
	there = true
	for range 101 {
		s.frame(p)
	}
	if n := len(s.frame(p)); n != 1 {
		t.Errorf("%d faces ten seconds after a face appeared, want 1", n)
	}
	there = false
	for range 500 {
		s.frame(p)
	}
	s.face = image.Rect(100, 60, 180, 150)
	if n := len(s.frame(p)); n != 1 {
		t.Errorf("%d faces in the frame in which a face came, want 1", n)
	}
}

// A person who sits still stays in view, on one track, and the networks hardly run.
func TestSpareSits(t *testing.T) {
	s := newStage(t)
	p := s.pipeline()
	for range 20 {
		s.frame(p)
	}
	s.face = image.Rect(100, 60, 180, 150)
	for i := range 600 {
		faces := s.frame(p)
		if len(faces) != 1 || faces[0].Track != 1 || faces[0].Box != s.face || i == 0 &&
			faces[0].Held {
			t.Fatalf("frame %d after the person came: %+v", i, faces)
		}
	}
	if s.found > 50 || s.vectors < 8+3 || s.vectors > 8+8 {
		t.Errorf("in a minute the detector ran %d times, and %d vectors were made", s.found,
			s.vectors)
	}
	s.face = image.Rectangle{}
	if faces := s.frame(p); len(faces) > 0 {
		t.Errorf("faces after the person went away: %+v", faces)
	}
}

// A face that the detector finds only every second time is in view all the time, except for single
// frames.
func TestSpareFlicker(t *testing.T) {
	s := newStage(t)
	s.face = image.Rect(100, 60, 180, 150)
	s.boxes = func(call int) []image.Rectangle {
		if call%2 == 0 {
			return nil
		}
		return []image.Rectangle{s.face}
	}
	p := s.pipeline()
	missed, there := 0, 0
	for i := range 300 {
		if len(s.frame(p)) == 0 {
			if missed++; missed > 1 {
				t.Fatalf("frame %d: the face is missing for %d frames", i, missed)
			}
		} else {
			missed, there = 0, there+1
		}
	}
	if there < 200 || s.found > 200 {
		t.Errorf("the face is there in %d of 300 frames, after %d looks", there, s.found)
	}
}

// A face that is asked for is not held in the next frame. A face beside it that does not change is,
// whatever else is asked for; what nobody has seen is nothing.
func TestSpareLook(t *testing.T) {
	s := newStage(t)
	s.face = image.Rect(20, 60, 100, 150)
	still := s.face.Add(image.Pt(190, 0))
	s.boxes = func(int) []image.Rectangle { return []image.Rectangle{s.face, still} }
	p := s.pipeline()
	for range 30 {
		p.Look(1, 2)
		s.frame(p)
	}
	for i := range 60 {
		asked := []int{-1, 99}
		for _, track := range []int{1, 2} {
			if s.rnd.IntN(3) == 0 {
				asked = append(asked, track)
			}
		}
		if i > 30 {
			s.face = s.face.Add(image.Pt(s.rnd.IntN(3)-1, 0))
		}
		p.Look(99)
		p.Look(asked...) // the last call counts
		faces := s.frame(p)
		if len(faces) != 2 {
			t.Fatalf("frame %d: %d faces", i, len(faces))
		}
		for _, x := range faces {
			if wanted := slices.Contains(asked, x.Track); wanted && x.Held ||
				!wanted && !x.Held && x.Box == still {
				t.Errorf("frame %d: asked for %v, track %d held %t", i, asked, x.Track, x.Held)
			}
		}
	}
}

// If only a face moves a little, it is followed: the detector runs in every third frame, also for a
// face that gets a vector each time. The looks of the face decide whether it gets one unasked, and
// what looks like somebody else is looked for again.
func TestSpareFollows(t *testing.T) {
	s := newStage(t)
	s.face = image.Rect(100, 60, 180, 150)
	p := s.pipeline()
	for range 30 {
		s.frame(p)
	}
	for _, c := range []struct {
		ask         bool
		least, most int // vectors
	}{{false, 14, 20}, {true, 60, 60}} {
		found, vectors := s.found, s.vectors
		for i := range 60 {
			if c.ask {
				p.Look(1)
			}
			s.face = s.face.Add(image.Pt(1-i/10%2*2, 0))
			faces := s.frame(p)
			if len(faces) != 1 || faces[0].Track != 1 || faces[0].Box != s.face {
				t.Fatalf("frame %d: %+v, want one face at %v", i, faces, s.face)
			}
		}
		found, vectors = s.found-found, s.vectors-vectors
		if found > 25 || vectors < c.least || vectors > c.most {
			t.Errorf("asked for: %t; in 60 frames the detector ran %d times, and %d vectors were "+
				"made", c.ask, found, vectors)
		}
	}
	found, vectors := s.found, s.vectors
	s.grin = 9 // another person in the same place
	if faces := s.frame(p); faces[0].Held || s.vectors != vectors+1 || s.found != found+1 {
		t.Error("a face that looks different is held, or was not looked for")
	}
}

// If something moves, two people near each other are looked at in every frame.
func TestSpareCrowded(t *testing.T) {
	s := newStage(t)
	s.face = image.Rect(60, 60, 140, 150)
	s.boxes = func(int) []image.Rectangle {
		return []image.Rectangle{s.face, s.face.Add(image.Pt(95, 0))}
	}
	p := s.pipeline()
	for i := range 60 {
		s.face = s.face.Add(image.Pt(1-i/10%2*2, 0))
		for _, x := range s.frame(p) {
			if x.Held {
				t.Fatalf("frame %d: a face is held although another face is near", i)
			}
		}
	}
}

// Liveness must be scored in each frame, so New panics if Spare and Liveness are set.
func TestSpareLiveness(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("New did not panic with Spare and Liveness")
		}
	}()
	s := newStage(t)
	pipeline.New(s, s, eyes{s}, pipeline.Options{Spare: true, Liveness: new(preprocess.Liveness)})
}

// hall is a camera of 1920x1080 at 10 frames a second, and a detector that finds what is large
// enough in a part.
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
			for x := range 3 * box.Dx() {
				pix[3*(y*size.X+box.Min.X)+x] = uint8(120 + (x*3+(y-box.Min.Y)*7+i*31)%120)
			}
		}
	}
	img, err := facedet.FromBGR(size, pix)
	h.frame++
	return &facedet.Frame{Index: h.frame - 1,
		Time: time.Duration(h.frame-1) * 100 * time.Millisecond, Image: img}, err
}

func (h *hall) Count() face.Count { return face.Count{Declared: -1, Read: h.frame} }
func (h *hall) Close() error      { return nil }

func (h *hall) Detect(img *facedet.Picture) ([]facedet.Face, error) {
	return h.Boxes(img, facedet.Windows(h.Looks(), img.Bounds())...)
}

func (h *hall) Boxes(_ *facedet.Picture,
	parts ...image.Rectangle) (found []facedet.Face, err error) {
	h.looks++
	h.runs += len(parts)
	for _, box := range h.people(h.frame - 1) {
		for _, p := range parts {
			if box.In(p) && pipeline.Shown(h.Looks(), box.Dy(), p) {
				found = append(found, facedet.Face{Box: box, Score: .9})
				break
			}
		}
	}
	return found, nil
}

func (h *hall) Looks() models.Description { return models.Default(models.Detector) }

// Points returns the landmarks of who is at a box, or some where nobody is.
func (h *hall) Points(_ *facedet.Picture, box image.Rectangle) ([]face.Point, error) {
	for _, b := range h.people(h.frame - 1) {
		if b.Overlaps(box) {
			box = b
		}
	}
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

// In a large frame faces are found wherever something moves, near and far at once, and a look costs
// little more than one run of the detector.
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
			t.Errorf("%s: %.2f of the faces, want %.2f; %.2f runs for each look, want %.2f", c.name,
				share, c.share, runs, c.runs)
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

// Nothing of a masked part is found, made a vector of or shown; what is beside it is.
func TestMask(t *testing.T) {
	left := face.Polygon{{}, {X: .5}, {X: .5, Y: 1}, {Y: 1}}
	for _, spare := range []bool{false, true} {
		s := newStage(t)
		p := pipeline.New(s, s, eyes{s}, pipeline.Options{Gate: preprocess.LearnGate, Spare: spare,
			Mask: []face.Polygon{left}, Frame: func() bool { return true }, Width: stageSize.X})
		for _, at := range []int{30, 130, 190} { // across the edge, the centre decides
			s.face = image.Rect(at, 60, at+90, 150)
			want := at+45 > 160
			f := fixture.Must(p.Next(t.Context()))(t)
			if (len(f.Samples) == 1) != want {
				t.Errorf("spare %t, at %d: %+v", spare, at, f.Samples)
			}
			m := fixture.Must(facedet.DecodePicture(f.JPEG))(t)
			inside, beside := mean(t, m, image.Rect(0, 0, 150, 240)), mean(t, m,
				image.Rect(170, 0, 320, 240))
			m.Close()
			if inside > 2 || beside < 40 {
				t.Errorf("spare %t, at %d: means %g and %g", spare, at, inside, beside)
			}
		}
	}
}

// Of a track that begins with a face that is hard to recognise, a face must be found twice; in a
// login this is not asked.
func TestInvented(t *testing.T) {
	for _, c := range []struct {
		name         string
		norm         float64
		lost         bool
		gate         preprocess.Gate
		faces, again int // in six frames
	}{
		{"clear", 3, true, preprocess.LearnGate, 6, 0},
		{"found again", 2, false, preprocess.LearnGate, 6, 1},
		{"not found again", 2, true, preprocess.LearnGate, 0, 6},
		{"login", 2, true, preprocess.LoginGate, 6, 0},
	} {
		for _, spare := range []bool{false, true} {
			s := newStage(t)
			s.face, s.norm, s.clear, s.lost = image.Rect(140, 100, 170, 136), c.norm, 2.8, c.lost
			p := pipeline.New(s, s, eyes{s}, pipeline.Options{Gate: c.gate, Spare: spare})
			faces := 0
			for range 6 {
				s.grin += 9 // otherwise frames are passed over
				faces += len(s.frame(p))
			}
			if faces != c.faces || s.again != c.again {
				t.Errorf("%s, spare %t: %d faces and %d further looks, want %d and %d", c.name,
					spare, faces, s.again, c.faces, c.again)
			}
			s.norm = 3
			s.grin += 9
			if n := len(s.frame(p)); n != 1 {
				t.Errorf("%s, spare %t: %d faces when it is clear", c.name, spare, n)
			}
		}
	}
}
