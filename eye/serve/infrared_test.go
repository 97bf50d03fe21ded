// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"errors"
	"fmt"
	"image"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/faceauth/faceauth/eye"
	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/models"
)

// sitter returns a frame of a person in grey, and where the face is.
func sitter(t *testing.T) (grey []byte, size image.Point, box image.Rectangle) {
	t.Helper()
	src := fixture.Must(facedet.Open(t.Context(),
		filepath.Join(fixture.Recordings(t, "faces/vidtimit_rot"), standIn(t)),
		facedet.Options{}))(t)
	defer src.Close()
	f := fixture.Must(src.Next(t.Context()))(t)
	defer f.Close()
	dir := fixture.Models(t)
	d := fixture.Must(facedet.NewNetwork(models.Default(models.Detector),
		models.Default(models.Landmarks), dir))(t)
	defer d.Close()
	faces, err := d.Detect(f.Image)
	if err != nil || len(faces) != 1 {
		t.Fatalf("%d faces, %v", len(faces), err)
	}
	size = f.Image.Size()
	grey = fixture.Must(f.Image.Thumbnail(size))(t)
	return grey, size, faces[0].Box
}

// standIn returns the name of one recording.
func standIn(t *testing.T) string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(fixture.Recordings(t, "faces/vidtimit_rot"), "*"))
	if err != nil || len(all) == 0 {
		t.Fatal(err)
	}
	return filepath.Base(all[0])
}

// light says how bright the person and the room are in a picture, as shares of the scene, what is
// added everywhere, and whether a window shines at the left.
type light struct {
	person, room, more float64
	window             bool
}

// film writes pictures, and returns the name of the recording.
func film(
	t *testing.T,
	dir, format string,
	grey []byte,
	size image.Point,
	box image.Rectangle,
	pictures ...light,
) string {
	t.Helper()
	var b []byte
	body := box.Inset(-box.Dx() / 16)
	for _, l := range pictures {
		for y := range size.Y {
			for x := range size.X {
				share := l.room
				shoulders := y > body.Max.Y && x > body.Min.X-box.Dx() && x < body.Max.X+box.Dx()
				if shoulders || image.Pt(x, y).In(body) {
					share = l.person
				}
				v := share*float64(grey[y*size.X+x]) + l.more
				if l.window && x < box.Min.X-box.Dx()/2 {
					v = 255
				}
				switch c := byte(min(v, 255)); format {
				case "GREY":
					b = append(b, c)
				case "Y16":
					b = append(b, 77, c)
				}
			}
		}
	}
	name := filepath.Join(dir, fmt.Sprintf("film.%dx%d.%s", size.X, size.Y, format))
	fixture.Check(t, os.WriteFile(name, b, 0o600))
	return name
}

func repeat(n int, pictures ...light) (all []light) {
	for range n {
		all = append(all, pictures...)
	}
	return all
}

func TestInfrared(t *testing.T) {
	grey, size, box := sitter(t)
	lit, dark := light{person: 1, room: .25}, light{person: .02, room: .02}
	const least = .55 // of a login
	e := fixture.Must(eye.Start(t.Context(), infraredConfig(t)))(t)
	defer e.Close()
	dir := t.TempDir()
	formats := []string{"GREY", "Y16"}
	for _, c := range []struct {
		name     string
		pictures []light
		faces    bool
		live     bool
	}{
		{"a dark room", repeat(2, lit, dark), true, true},
		{"the dark picture first", repeat(2, dark, lit), true, true},
		// The mean of the picture is that of the window, and a person before it is lit by daylight,
		// too.
		{"a window", repeat(2, light{1, .3, 0, true}, light{.3, .25, 0, true}), true, true},
		{"a lit room", repeat(2, light{person: 1, room: .6}, light{person: .5, room: .5}), true,
			true},
		{"no emitter", repeat(2, light{person: .8, room: .6}), true, false},
		{"the sun outshines it", repeat(2, light{1, .9, 10, false}, light{.97, .9, 10, false}),
			true, false},
		{"a lamp that flickers", repeat(2, light{1, 1, 0, false}, light{.8, .8, 0, false}), true,
			false},
		{"changing exposure", repeat(2, light{.9, .9, 40, false}, light{.9, .9, 0, false}), true,
			false},
		// A screen is black in infrared, and reflects a little of the emitter.
		{"a screen", repeat(2, light{0, .3, 30, false}, light{0, .02, 5, false}), false, false},
		{"night without an emitter", repeat(2, dark), false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, format := range formats {
				frames := look(t, e, film(t, dir, format, grey, size, box, c.pictures...), dir)
				if want := len(c.pictures) / 2; len(frames) != want {
					t.Fatalf("%d frames of %d pairs", len(frames), want)
				}
				for _, f := range frames {
					if found := len(f.Samples) == 1; found != c.faces {
						t.Fatalf("%d faces", len(f.Samples))
					}
					for _, x := range f.Samples {
						if x.Vector == nil || x.Liveness == nil ||
							(*x.Liveness >= least) != c.live {
							t.Errorf("%s: lit %v, pulse %.0f, reason %q", format, *x.Liveness,
								f.Pulse, x.Reason)
						}
						if c.live {
							t.Logf("%s: lit %.2f, pulse %.0f", format, *x.Liveness, f.Pulse)
						}
						if x.Space != models.Default(models.Embedding).Space().Infrared().ID {
							t.Errorf("a face of the space %s", x.Space)
						}
					}
				}
			}
		})
		formats = formats[:1]
	}
}

// look returns the frames that an infrared eye sees in a recording.
func look(t *testing.T, e *eye.Eye, name, dir string) (all []face.Frame) {
	t.Helper()
	s, err := e.Open(t.Context(), name,
		eye.Options{Gate: eye.Login, AsIs: true, Faces: 8, Roots: []string{dir}})
	fixture.Check(t, err)
	for {
		f, err := s.Next(t.Context())
		if errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, f)
	}
}

func infraredConfig(t *testing.T) eye.Config {
	return eye.Config{
		Space: models.Default(models.Embedding).Space().Infrared(),
		Vision: eye.Vision{Features: "embedding", Detector: "network", Models: fixture.Models(t),
			Infrared: true},
	}
}

// Vectors of an infrared eye are refused where colour is expected, and the other way round.
func TestInfraredIsAnotherSpace(t *testing.T) {
	for _, infrared := range []bool{true, false} {
		c := infraredConfig(t)
		if c.Vision.Infrared = infrared; infrared {
			c.Space = models.Default(models.Embedding).Space()
		}
		e := fixture.Must(eye.Start(t.Context(), c))(t)
		if _, err := e.Open(t.Context(), "x", eye.Options{}); !errors.Is(err, eye.ErrBroken) {
			t.Errorf("infrared %t: %v", infrared, err)
		}
		e.Close()
	}
}
