// SPDX-License-Identifier: Apache-2.0

package dataset_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/draw"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/faceauth/faceauth/eye"
	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/footage"
	"github.com/faceauth/faceauth/lab/dataset"
	"github.com/faceauth/faceauth/pipeline"
	"github.com/faceauth/faceauth/preprocess"
)

// whole is a detector that reports every picture, but for its border, as a face.
type whole struct{}

func (whole) Detect(p *facedet.Picture) ([]facedet.Face, error) {
	return []facedet.Face{{Box: p.Bounds().Inset(15), Score: 1}}, nil
}
func (whole) Close() error { return nil }

// write makes files below a folder: pictures of noise, or text if the name is not a picture's name.
func write(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		path := filepath.Join(dir, name)
		fixture.Check(t, os.MkdirAll(filepath.Dir(path), 0o700))
		data := []byte("a note")
		if filepath.Ext(name) == ".jpg" {
			m := image.NewGray(image.Rect(0, 0, 100, 100))
			for i := range m.Pix {
				m.Pix[i] = uint8(i * i >> 3)
			}
			p, err := facedet.FromImage(m)
			if err != nil {
				t.Fatal(err)
			}
			if data, err = p.JPEG(90); err != nil {
				t.Fatal(err)
			}
			p.Close()
		}
		fixture.Check(t, os.WriteFile(path, data, 0o600))
	}
}

func reader(warnings *[]string) *dataset.Reader {
	return &dataset.Reader{
		Detector: whole{}, Extractor: preprocess.Pixels, Warn: func(s string) {
			*warnings = append(*warnings, s)
		},
	}
}

func TestIdentities(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "ann/1.jpg", "ann/2.jpg", "bob/day2/1.jpg", "bob/day10/1.jpg", "bob/fake/1.jpg",
		"bob/fake/2.jpg", "notes.txt", ".hidden/1.jpg")
	var warnings, begun []string
	r := reader(&warnings)
	steps := 0
	r.Begin = func(name string, frames int) (step, end func()) {
		begun = append(begun, fmt.Sprintf("%s %d", name, frames))
		return func() { steps++ }, func() {}
	}
	names, err := dataset.Names(dir)
	if want := []string{"ann", "bob", "notes"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("names %q, %v, want %q", names, err, want)
	}
	ids, err := r.Identities(context.Background(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(ids) != 2 || ids[0].Name != "ann" || len(ids[0].Faces) != 2 || ids[1].Name != "bob" ||
		len(ids[1].Faces) != 2 {
		t.Errorf("%d identities", len(ids))
	}
	if want := []string{"ann 2", "bob 1", "bob 1"}; !slices.Equal(begun, want) || steps != 4 {
		t.Errorf("%q and %d steps, want %q and 4", begun, steps, want)
	}
	if len(warnings) != 2 || !strings.Contains(warnings[0], "fake is an attack by its name") ||
		!strings.Contains(warnings[1], "notes.txt is neither") {
		t.Errorf("warnings %q", warnings)
	}

	var seen []string
	err = r.Each(dir, func(person, path string, attack bool) error {
		frames, err := r.Frames(context.Background(), person, path, pipeline.Options{})
		if err == nil {
			seen = append(seen, fmt.Sprintf("%s %s %t %d", person, filepath.Base(path), attack,
				len(frames)))
		}
		return err
	})
	want := []string{"ann ann false 2", "bob day2 false 1", "bob day10 false 1", "bob fake true 2"}
	if err != nil || !slices.Equal(seen, want) {
		t.Errorf("%q, %v; want %q", seen, err, want)
	}
	attacks, err := r.Replays(context.Background(), dir, 1, nil)
	if err != nil || len(attacks) != 1 {
		t.Errorf("%d replays, %v", len(attacks), err)
	}
}

// Thousands of files that are not recordings do not cause thousands of warnings.
func TestManyWarnings(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "ann/1.jpg")
	for i := range 25 {
		write(t, dir, fmt.Sprintf("note%d.txt", i))
	}
	var warnings []string
	if _, err := reader(&warnings).Identities(context.Background(), dir, nil); err != nil {
		t.Fatal(err)
	}
	if len(warnings) != 11 || warnings[10] != "15 more files were passed over or cut off" {
		t.Errorf("%d warnings, the last %q", len(warnings), warnings[len(warnings)-1])
	}
}

func TestBadFolders(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "notes/a.txt", "broken/b.avi", "twice/ann/1.jpg", "twice/ann.avi/1.jpg",
		"twice/ann.jpg")
	var warnings []string
	r := reader(&warnings)
	for name, want := range map[string]string{
		"none": "no such file", "notes": "holds neither folders of images nor videos",
		"broken": "b.avi",
		"twice":  `two recordings of "ann"`,
	} {
		if _, err := r.Identities(context.Background(), filepath.Join(dir, name),
			nil); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", name, err, want)
		}
	}
	if _, err := r.Replays(context.Background(), filepath.Join(dir, "twice"), 1,
		nil); !errors.Is(err,
		footage.ErrNone) {
		t.Errorf("no replays: error %v", err)
	}
	stop, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := r.Identities(stop, filepath.Join(dir, "twice"), nil); !errors.Is(err,
		context.Canceled) {
		t.Errorf("cancelled: error %v", err)
	}
}

// An enrolment refuses more than learning does: what its gate refuses, and what is doubtful.
func TestRefused(t *testing.T) {
	space := face.Space{LearnNorm: 2, ClearNorm: 2.8}
	good := face.Quality{Size: 90, Sharpness: 60, Brightness: 120, Contrast: 40, Eyes: 1, Mouth: 1,
		Norm: 3}
	for want, change := range map[face.Reason]func(*face.Sample){
		"":              func(*face.Sample) {},
		face.Unclear:    func(x *face.Sample) { x.Quality.Norm = 2.5 },
		face.TooDark:    func(x *face.Sample) { x.Quality.Gain = 5 },
		face.TooSmall:   func(x *face.Sample) { x.Quality.Size = face.LeastSide },
		face.TurnedAway: func(x *face.Sample) { x.Quality.Turn = 1 },
		face.NoVector:   func(x *face.Sample) { x.Vector, x.Reason = nil, face.NoVector },
	} {
		x := face.Sample{Vector: []float32{1}, Quality: good}
		change(&x)
		if preprocess.LearnGate.Check(x.Quality) != "" {
			t.Errorf("%q is not learned either", want)
		}
		if got := dataset.Refused(x, space); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A held picture moves, by its seed alone, and the source ends. Paper is darker than what is white
// in the picture, and not black.
func TestHeld(t *testing.T) {
	m := image.NewGray(image.Rect(0, 0, 60, 60))
	draw.Draw(m, image.Rect(25, 25, 35, 35), image.White, image.Point{}, draw.Src)
	picture := fixture.Must(facedet.FromImage(m))(t)
	for _, c := range []struct {
		species string
		seed    uint64
	}{{dataset.Photo, 0}, {dataset.Print, 0}, {dataset.Print, 1}, {dataset.Print, 2},
		{dataset.Screen, 0}} {
		s := fixture.Must(dataset.Held(picture, c.species, c.seed))(t)
		again := fixture.Must(dataset.Held(picture, c.species, c.seed))(t)
		other := fixture.Must(dataset.Held(picture, c.species, c.seed+3))(t)
		seen, alike, frames := map[string]bool{}, 0, 25
		if c.species == dataset.Photo {
			frames = 300
		}
		for range frames {
			f, err := s.Next(context.Background())
			pixels := func(f *facedet.Frame, err error) []byte {
				fixture.Check(t, err)
				defer f.Close()
				return fixture.Must(f.Image.BGR())(t)
			}
			got := pixels(f, err)
			if !bytes.Equal(got, pixels(again.Next(context.Background()))) {
				t.Fatalf("%+v, frame %d: not the same again", c, f.Index)
			}
			if bytes.Equal(got, pixels(other.Next(context.Background()))) {
				alike++
			}
			if len(seen) == 0 && c.species == dataset.Print && (slices.Min(got) < 20 ||
				slices.Max(got) > 250) {
				t.Errorf("%+v: light from %d to %d", c, slices.Min(got), slices.Max(got))
			}
			seen[string(got)] = true
		}
		if n := s.Count(); n.Declared != 300 || n.Read != frames || len(seen) < frames*9/10 {
			t.Errorf("%+v: %+v, %d differ", c, n, len(seen))
		}
		if c.species == dataset.Photo { // it moves evenly, to its end
			_, err := s.Next(context.Background())
			if alike -= frames; !errors.Is(err, io.EOF) {
				t.Errorf("after the end: error %v", err)
			}
		}
		if alike != 0 {
			t.Errorf("%+v: %d frames are alike by another seed", c, alike)
		}
	}
	fixture.Check(t, picture.Close())
	if _, err := dataset.Held(picture, dataset.Print, 0); !errors.Is(err, facedet.ErrClosed) {
		t.Errorf("a closed picture: error %v", err)
	}
}

// broken is a recording that an eye does not finish.
type broken struct{ dataset.Stream }

func (b broken) Next(context.Context) (face.Frame, error) {
	b.Close()
	return face.Frame{}, eye.ErrBroken
}

// An eye that breaks leaves no recording out: it is read again, or the figures end.
func TestBroken(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "ann/1.jpg", "bob/1.jpg", "bob/2.jpg")
	for _, c := range []struct{ breaks, opened int }{{0, 2}, {1, 3}, {2, 3}} {
		var warnings []string
		at := reader(&warnings)
		opened := 0
		r := reader(&warnings)
		r.Open = func(ctx context.Context, path string, o pipeline.Options, _ func(string)) (
			dataset.Stream, error) {
			opened++
			source, err := facedet.Open(ctx, path, at.Source)
			if err != nil {
				return nil, err
			}
			s := here{pipeline.New(source, at.Detector, at.Extractor, o), source}
			if opened > 1 && opened <= 1+c.breaks {
				return broken{s}, nil
			}
			return s, nil
		}
		ids, err := r.Identities(context.Background(), dir, nil)
		if opened != c.opened || len(warnings) != min(c.breaks, 1) {
			t.Errorf("%+v: %d recordings were opened; %q", c, opened, warnings)
		}
		if c.breaks > 1 {
			if !errors.Is(err, eye.ErrBroken) || !strings.Contains(err.Error(), "bob") {
				t.Errorf("%+v: %v", c, err)
			}
			continue
		}
		if err != nil || len(ids) != 2 || len(ids[1].Faces) != 2 {
			t.Errorf("%+v: %v, %v", c, ids, err)
		}
	}
}

type here struct {
	*pipeline.Pipeline
	source facedet.Source
}

func (h here) Count() face.Count { return h.source.Count() }
func (h here) Close() error      { return h.source.Close() }
