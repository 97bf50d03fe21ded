// SPDX-License-Identifier: Apache-2.0

// Package pipeline turns a source of frames into a stream of plain samples. It is the whole way
// from the camera to values that need no OpenCV.
//
// An embedding needs landmarks. A detector of your own that finds boxes alone gets them from
// [facedet.Network.Points]; a face without landmarks has the reason [face.NoVector], and no vector.
//
// [New] joins a source, a detector and an extractor, and [Pipeline.Next] returns the samples of one
// frame. Package replay and other packages that judge samples need not know where the samples come
// from.
package pipeline

import (
	"context"
	"errors"
	"fmt"
	"image"
	"slices"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/preprocess"
	"github.com/faceauth/faceauth/sighting"
)

// Options of a pipeline.
type Options struct {
	// Gate says which faces may be learned; its MinNorm is that of the extractor's space. Its
	// MaxGain also decides how dim frames are examined: if it is above 1, they are brightened for
	// the detector and the extractor. Otherwise frames are judged as they are. A face that is found
	// only in a brightened frame then gets the reason [face.TooDark], and no vector.
	Gate preprocess.Gate
	// side of the JPEG of each face, as the extractor sees it, in pixels; 0 for none
	Picture  int
	Liveness *preprocess.Liveness // scores each face in the frame as it is; nil for none
	Faces    int                  // most faces of a frame, the largest first; 0 for all
	// Spare looks for faces only where something moved, or at intervals, and holds faces that did
	// not change: see package still. It is for programs that follow people, and not for logins:
	// with Liveness, New panics.
	Spare bool
	// Turns measures the norms of a face that may be labelled also when it is turned, so that an
	// enrolment can see whether the camera is turned.
	Turns bool
	// Righted takes each unclear face of a photograph as it is in the turn in which it is clear.
	Righted bool
	// Near leaves out faces that have less than a quarter of the height of the largest: people far
	// behind the one at the camera, whom only a large frame shows.
	Near bool
	// Mask are parts of a frame, as it is turned, that are made black before anybody looks at it. A
	// face whose centre is in one is left out, too.
	Mask []face.Polygon
	// Frame, if it is not nil, is called for each frame. If it returns true, the frame gets a
	// picture of the whole frame, at most Width pixels wide.
	Frame   func() bool
	Width   int
	NoFaces bool // looks for none
	// Show, if it is not nil, gets the picture and the samples of each frame before Next returns.
	// It must not keep the picture.
	Show func(img *facedet.Picture, f face.Frame) error
}

// Pipeline is a stream of frames of samples. One goroutine at a time may use it. It does not close
// the source, the detector and the extractor; the caller who made them does.
type Pipeline struct {
	source    facedet.Source
	detector  facedet.Detector
	extractor preprocess.Extractor
	o         Options
	tracker   *sighting.Tracker
	sure      map[int]bool // tracks of which a face was clear, or was found twice
	spare     *spare       // nil if every frame is examined
	turned    int          // Turned of the last frame
}

// New returns the pipeline over a source.
func New(s facedet.Source, d facedet.Detector, e preprocess.Extractor, o Options) *Pipeline {
	o.Gate.MinNorm = e.Space().LearnNorm
	p := &Pipeline{source: s, detector: d, extractor: e, o: o, tracker: sighting.NewBoxTracker(),
		sure: make(map[int]bool)}
	if o.Spare {
		if o.Liveness != nil {
			panic("pipeline: liveness is scored in every frame, and Spare passes over some")
		}
		p.spare = &spare{}
		p.spare.steps, _ = d.(steps)
	}
	return p
}

// Next returns the samples of the next frame, or io.EOF after the last frame. If no vector can be
// made of a face, its sample has a Reason. Other errors come from the source, or from a network
// that does not fit its description; that of a frame without a picture wraps [facedet.ErrClosed].
func (p *Pipeline) Next(ctx context.Context) (face.Frame, error) {
	frame, err := p.source.Next(ctx)
	if err != nil {
		return face.Frame{}, err
	}
	defer frame.Close()
	if frame == nil {
		return face.Frame{}, fmt.Errorf("the source gave no frame: %w", facedet.ErrClosed)
	}
	if frame.Image.Size() == (image.Point{}) {
		_, err := frame.Image.BGR() // says why
		return face.Frame{}, fmt.Errorf("frame %d: the source gave no picture: %w", frame.Index,
			err)
	}
	err = frame.Image.Blacken(p.o.Mask)
	if err != nil {
		return face.Frame{}, fmt.Errorf("frame %d: the mask: %w", frame.Index, err)
	}
	f := face.Frame{Index: frame.Index, Time: frame.Time, Size: frame.Image.Size(),
		Turned: frame.Turned, Still: frame.Still, File: frame.File, Partial: !frame.Image.Whole(),
		Film: frame.Image.Film()}
	if p.spare != nil && frame.Turned != p.turned { // its pictures of the scene lie otherwise
		p.spare = &spare{steps: p.spare.steps}
	}
	p.turned = frame.Turned
	switch {
	case p.o.NoFaces:
	case frame.Before != nil:
		f.Samples, f.Pulse, err = p.pulsed(frame)
	case p.spare != nil && !frame.Still:
		f.Samples, err = p.spared(frame)
	default:
		f.Samples, err = p.all(frame)
	}
	if err != nil {
		return f, fmt.Errorf("frame %d: %w", frame.Index, err)
	}
	f.Samples = slices.DeleteFunc(f.Samples, func(s face.Sample) bool {
		return slices.ContainsFunc(p.o.Mask, func(m face.Polygon) bool {
			return m.Has(s.Box, f.Size)
		})
	})
	if p.o.Frame != nil && p.o.Frame() {
		f.JPEG, err = scaled(frame.Image, min(1, float64(p.o.Width)/float64(f.Size.X)))
		if err != nil {
			return f, fmt.Errorf("frame %d: %w", frame.Index, err)
		}
	}
	if p.o.Show != nil {
		err = p.o.Show(frame.Image, f)
	}
	enlarge(&f, frame.Full)
	return f, err
}

// enlarge says where faces are in the file of a picture that was read at half its size, full.
func enlarge(f *face.Frame, full image.Point) {
	if full == (image.Point{}) {
		return
	}
	f.Size = full
	for i := range f.Samples {
		s := &f.Samples[i]
		s.Box.Min, s.Box.Max = s.Box.Min.Mul(2), s.Box.Max.Mul(2)
		s.Box = s.Box.Intersect(image.Rectangle{Max: full})
		for k, x := range s.Landmarks {
			s.Landmarks[k] = face.Point{X: 2 * x.X, Y: 2 * x.Y}
		}
	}
}

// all returns a sample of each face in the frame. Faces that are found only if the frame is
// brightened, where that is not wanted, have no vector: they tell a person why nobody is
// recognised.
func (p *Pipeline) all(frame *facedet.Frame) ([]face.Sample, error) {
	gain, err := gainOf(frame.Image)
	if err != nil {
		return nil, err
	}
	first := gain
	if !p.brightens() {
		first = 0
	}
	img, faces, err := p.find(frame.Image, first)
	dark := err == nil && len(faces) == 0 && first != gain
	if dark {
		img, faces, err = p.find(frame.Image, gain)
	}
	if err != nil {
		return nil, err
	}
	defer img.Close()
	faces = p.largest(faces)
	if p.o.Near {
		faces = slices.DeleteFunc(faces, func(f facedet.Face) bool {
			return 4*f.Box.Dy() < faces[0].Box.Dy()
		})
	}
	var samples []face.Sample
	tracks := p.track(frame.Index, faces)
	if frame.Still { // the next picture has other people, or the same ones elsewhere
		p.tracker.Restart()
	}
	for i, track := range tracks {
		s, err := p.measured(img, faces[i], track)
		if dark {
			s.Reason = face.TooDark
		} else if err == nil {
			err = p.complete(img, &s)
		}
		if err == nil && p.o.Righted && frame.Still && s.Vector != nil {
			err = p.righted(img, &s)
		}
		invented := false
		if err == nil {
			invented, err = p.invented(img, s)
		}
		if err != nil {
			return nil, err
		}
		if !invented {
			samples = append(samples, s)
		}
	}
	return samples, nil
}

// find finds the faces in a frame that is brightened by a gain.
func (p *Pipeline) find(frame *facedet.Picture,
	gain float64) (img exposed, faces []facedet.Face, err error) {
	img, err = expose(frame, gain)
	if err != nil {
		return img, nil, err
	}
	faces, err = p.detector.Detect(img.Picture)
	if err != nil {
		img.Close()
	}
	return img, faces, err
}

// largest returns the first Options.Faces faces.
func (p *Pipeline) largest(faces []facedet.Face) []facedet.Face {
	if p.o.Faces > 0 && len(faces) > p.o.Faces {
		return faces[:p.o.Faces]
	}
	return faces
}

// track returns the number of the track of each face.
func (p *Pipeline) track(index int, faces []facedet.Face) []int {
	samples := make([]face.Sample, len(faces))
	for i, f := range faces {
		samples[i].Box = f.Box
	}
	return p.tracker.Update(time.Duration(index), samples)
}

func boxesOf(faces []facedet.Face) []image.Rectangle {
	boxes := make([]image.Rectangle, len(faces))
	for i := range faces {
		boxes[i] = faces[i].Box
	}
	return boxes
}

// measured returns the sample of a face with its quality, and without vector, liveness and picture.
func (p *Pipeline) measured(img exposed, f facedet.Face, track int) (s face.Sample, err error) {
	s = face.Sample{Track: track, Box: f.Box, Score: f.Score, Landmarks: f.Landmarks,
		Space: p.extractor.Space().ID}
	s.Quality, err = preprocess.Measure(img.Picture, f.Box, f.Landmarks)
	if err != nil {
		return s, err
	}
	s.Quality.Gain = img.gain
	s.Reason = p.o.Gate.Check(s.Quality)
	return s, nil
}

// extract adds the vector of a face, and the face as it is aligned if stills are told by it.
func (p *Pipeline) extract(img exposed, s *face.Sample) error {
	aligned, err := p.extractor.Align(img.Picture, s.Box, s.Landmarks)
	if err != nil {
		return err
	}
	defer aligned.Close()
	s.Vector, s.Quality.Norm, err = p.extractor.Vector(aligned)
	if err != nil || p.extractor.Space().Look == 0 {
		return err
	}
	s.Aligned, err = preprocess.Aligned(aligned)
	return err
}

// complete adds the vector, the liveness and the picture to a sample.
func (p *Pipeline) complete(img exposed, s *face.Sample) (err error) {
	if p.o.Liveness != nil {
		s.Quality.Noise, err = preprocess.ColourNoise(img.frame, s.Box)
		if err != nil {
			return err
		}
	}
	err = p.extract(img, s)
	switch {
	case errors.Is(err, preprocess.ErrLandmarks):
		s.Vector, s.Reason = nil, face.NoVector
	case err != nil:
		return err
	default:
		s.Reason = p.o.Gate.Check(s.Quality) // now with the norm
	}
	// A turned face may seem unclear, covered or moved.
	if p.o.Turns && slices.Contains([]face.Reason{"", face.Unclear, face.Covered, face.Moved},
		s.Reason) {
		s.Turns, err = p.turns(img.Picture, s)
		if err != nil {
			return err
		}
	}
	if p.o.Liveness != nil {
		score, err := p.o.Liveness.Score(img.frame, s.Box)
		if err != nil {
			return err
		}
		s.Liveness = &score
	}
	if p.o.Picture > 0 {
		s.JPEG, err = picture(img.Picture, s.Box, p.o.Picture)
		if err != nil {
			return err
		}
	}
	return nil
}

// picture returns the face with a margin around it as a JPEG.
func picture(img *facedet.Picture, box image.Rectangle, side int) ([]byte, error) {
	crop, err := img.Crop(box.Inset(-max(box.Dx(), box.Dy()) / 8))
	if err != nil {
		return nil, err
	}
	defer crop.Close()
	return scaled(crop, float64(side)/float64(max(crop.Size().X, crop.Size().Y)))
}

func scaled(img *facedet.Picture, scale float64) ([]byte, error) {
	size := img.Size()
	small, err := img.Resize(image.Pt(max(1, int(scale*float64(size.X)+.5)),
		max(1, int(scale*float64(size.Y)+.5))))
	if err != nil {
		return nil, err
	}
	defer small.Close()
	return small.JPEG(80)
}
