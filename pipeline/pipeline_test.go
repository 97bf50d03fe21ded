// SPDX-License-Identifier: Apache-2.0

package pipeline_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"image"
	"io"
	"os"
	"sync"
	"testing"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/internal/cv"
	"github.com/faceauth/faceauth/internal/demo"
	"github.com/faceauth/faceauth/internal/demo/film"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/models"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/pipeline"
	"github.com/faceauth/faceauth/preprocess"
)

var folder string // of the recordings

func TestMain(m *testing.M) {
	var err error
	if folder, err = os.MkdirTemp("", "pipeline"); err != nil {
		panic(err)
	}
	code := m.Run()
	os.RemoveAll(folder)
	os.Exit(code)
}

// makeDemo makes the demo's recordings, once.
var makeDemo = sync.OnceValues(func() (demo.Script, error) {
	dir, err := demo.Find()
	if err != nil {
		return demo.Script{}, err
	}
	return film.Write(context.Background(), dir, folder)
})

func recordings(t testing.TB) demo.Script {
	t.Helper()
	return fixture.Must(makeDemo())(t)
}

// network opens the networks.
func network(t testing.TB) (facedet.Detector, preprocess.Extractor) {
	t.Helper()
	dir := fixture.Models(t)
	d := fixture.Must(facedet.NewNetwork(models.Default(models.Detector),
		models.Default(models.Landmarks), dir))(t)
	t.Cleanup(func() { d.Close() })
	e := fixture.Must(preprocess.NewEmbedding(models.Default(models.Embedding), dir))(t)
	t.Cleanup(func() { e.Close() })
	return d, e
}

// loop plays images over and over.
type loop struct {
	images []*facedet.Picture
	next   int
	last   int // frames in all; 0 for ever
}

func (l *loop) Next(context.Context) (*facedet.Frame, error) {
	if l.last > 0 && l.next == l.last {
		return nil, io.EOF
	}
	img, err := l.images[l.next%len(l.images)].Clone()
	if err != nil {
		return nil, err
	}
	l.next++
	return &facedet.Frame{Index: l.next - 1, Image: img}, nil
}

func (l *loop) Count() face.Count { return face.Count{Declared: -1, Read: l.next} }
func (l *loop) Close() error      { return nil }

// load reads the frames of a recording into memory.
func load(t testing.TB, path string) []*facedet.Picture {
	t.Helper()
	src := fixture.Must(facedet.Open(context.Background(), path, facedet.Options{}))(t)
	defer src.Close()
	var images []*facedet.Picture
	t.Cleanup(func() {
		for _, m := range images {
			m.Close()
		}
	})
	for {
		f, err := src.Next(context.Background())
		if errors.Is(err, io.EOF) {
			return images
		}
		fixture.Check(t, err)
		images = append(images, f.Image)
	}
}

// A sample has all values that the later stages need. The same recording gives the same samples.
func TestSamples(t *testing.T) {
	s := recordings(t)
	d, e := network(t)
	read := func() []byte {
		src := fixture.Must(facedet.Open(context.Background(), s.Enrolment[0].Path,
			facedet.Options{}))(t)
		defer src.Close()
		p := pipeline.New(src, d, e, pipeline.Options{Gate: preprocess.LearnGate, Picture: 64})
		var frames []face.Frame
		for {
			f, err := p.Next(context.Background())
			if errors.Is(err, io.EOF) {
				break
			}
			fixture.Check(t, err)
			frames = append(frames, f)
		}
		for _, f := range frames {
			if len(f.Samples) != 1 {
				t.Fatalf("frame %d has %d faces", f.Index, len(f.Samples))
			}
			x := f.Samples[0]
			if x.Track != 1 || x.Reason != "" || len(x.Landmarks) != 68 ||
				x.Space != e.Space().ID ||
				x.Quality.Size < 60 {
				t.Fatalf("frame %d: track %d, reason %q, %d landmarks, space %s, %d pixels",
					f.Index, x.Track, x.Reason, len(x.Landmarks), x.Space, x.Quality.Size)
			}
			fixture.Check(t, e.Space().Check(x.Vector))
			if img, err := cv.DecodeImage(x.JPEG); err != nil ||
				max(img.Size().X, img.Size().Y) != 64 {
				t.Fatalf("frame %d: the JPEG has another size than 64 pixels: %v", f.Index, err)
			} else {
				img.Close()
			}
		}
		return fixture.Must(json.Marshal(frames))(t)
	}
	if !bytes.Equal(read(), read()) {
		t.Error("the same recording gave other samples")
	}
}

// If the extractor needs landmarks and there are none, or they cannot be used, the sample has the
// reason and no vector.
func TestNoVector(t *testing.T) {
	s := recordings(t)
	_, e := network(t)
	img := load(t, s.Enrolment[0].Path)[0]
	blind := &blind{box: img.Bounds().Inset(100)}
	next := func() (face.Frame, error) {
		return pipeline.New(&loop{images: []*facedet.Picture{img}}, blind, e,
			pipeline.Options{}).Next(context.Background())
	}
	// the second: all on one spot
	for _, blind.landmarks = range [][]face.Point{nil, make([]face.Point, 68)} {
		if f, err := next(); err != nil || f.Samples[0].Vector != nil ||
			f.Samples[0].Reason != face.NoVector {
			t.Errorf("%d landmarks: %+v, error %v", len(blind.landmarks), f, err)
		}
	}
}

// blind is a detector that always finds one face with the given box and landmarks.
type blind struct {
	box       image.Rectangle
	landmarks []face.Point
}

func (b *blind) Detect(*facedet.Picture) ([]facedet.Face, error) {
	return []facedet.Face{{Box: b.box, Score: 1, Landmarks: b.landmarks}}, nil
}

func (b *blind) Close() error { return nil }

// BenchmarkPath takes a frame of 640x480 pixels with one face from the decoded picture to the
// verdict. The metric x-forward is its time as a multiple of the networks' own forward passes.
func BenchmarkPath(b *testing.B) {
	s := recordings(b)
	d, e := network(b)
	images := load(b, s.Enrolment[0].Path)
	cv.OneThread() // as in an eye
	p := pipeline.New(&loop{images: images}, d, e, pipeline.Options{Gate: preprocess.LearnGate})
	l := fixture.Must(online.New(e.Space(), online.Settings{}))(b)
	step := func() {
		f := fixture.Must(p.Next(context.Background()))(b)
		if len(f.Samples) != 1 {
			b.Fatalf("%d faces", len(f.Samples))
		}
		if len(l.People()) == 0 {
			fixture.Check(b, l.Label(f.Samples[0].Vector, 1))
		}
		fixture.Must(l.Observe(f.Samples[0].Vector))(b)
	}
	for range 2 * len(images) { // the first forward pass of a network allocates
		step()
	}
	forward := cv.ForwardTime()
	for b.Loop() {
		step()
	}
	own := cv.ForwardTime() - forward
	b.ReportMetric(b.Elapsed().Seconds()/own.Seconds(), "x-forward")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "frames/s")
}

// broken is a source of frames without a picture.
type broken struct{ frame *facedet.Frame }

func (b *broken) Next(context.Context) (*facedet.Frame, error) { return b.frame, nil }
func (b *broken) Count() face.Count                            { return face.Count{Declared: -1} }
func (b *broken) Close() error                                 { return nil }

// If a source, a detector or an extractor of another module breaks its contract, Next returns an
// error and does not crash.
func TestBrokenParts(t *testing.T) {
	closed := fixture.Must(facedet.FromImage(image.NewGray(image.Rect(0, 0, 50, 50))))(t)
	closed.Close()
	for name, f := range map[string]*facedet.Frame{"no frame": nil, "no picture": {},
		"zero": {Image: &facedet.Picture{}}, "closed": {Image: closed}} {
		p := pipeline.New(&broken{f}, &blind{}, preprocess.Pixels, pipeline.Options{})
		if _, err := p.Next(context.Background()); !errors.Is(err, facedet.ErrClosed) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	for _, box := range []image.Rectangle{{}, image.Rect(60, 60, 70, 70), image.Rect(-9, -9, 0, 0),
		image.Rect(0, 0, 0, 9)} {
		open := fixture.Must(facedet.FromImage(image.NewGray(image.Rect(0, 0, 50, 50))))(t)
		p := pipeline.New(&broken{&facedet.Frame{Image: open}}, &blind{box: box},
			preprocess.Pixels,
			pipeline.Options{Picture: 32})
		if _, err := p.Next(context.Background()); err == nil {
			t.Errorf("a face at %v of a picture of 50x50 pixels gave no error", box)
		}
	}
	open := fixture.Must(facedet.FromImage(image.NewGray(image.Rect(0, 0, 50, 50))))(t)
	p := pipeline.New(&broken{&facedet.Frame{Image: open}}, &blind{box: open.Bounds()},
		nothing{preprocess.Pixels},
		pipeline.Options{})
	if _, err := p.Next(context.Background()); !errors.Is(err, facedet.ErrClosed) {
		t.Errorf("an extractor that aligns to nil: error %v", err)
	}
}

// nothing is an extractor that aligns no face: its picture is nil.
type nothing struct{ preprocess.Extractor }

func (nothing) Align(*facedet.Picture, image.Rectangle, []face.Point) (*facedet.Picture, error) {
	return nil, nil
}
