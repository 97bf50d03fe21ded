// SPDX-License-Identifier: Apache-2.0

// Package demo makes a recording out of a few stills, so that the program can be tried without a
// camera: people whose faces move, come nearer, turn darker and blur.
//
// The stills are those of three people that ship with the gocv module, from the ORL Database of
// Faces of AT&T Laboratories Cambridge. [Find] finds them, [Write] makes the recordings, and
// [Script.Score] counts how many faces of the recording were given the right name.
package demo

import (
	"context"
	"errors"
	"fmt"
	"image"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/internal/cv"
	"github.com/faceauth/faceauth/replay"
)

// ErrNoStills is returned by [Find] if the stills are not on this machine.
var ErrNoStills = errors.New("the demo's stills are not on this machine")

// Find returns the folder of the stills: $FACEAUTH_DEMO_FACES, or the folder of the gocv module in Go's module cache.
func Find() (string, error) {
	var tried []string
	if dir := os.Getenv("FACEAUTH_DEMO_FACES"); dir != "" {
		tried = append(tried, dir)
	} else {
		cache := filepath.Join(os.Getenv("HOME"), "go", "pkg", "mod")
		if out, err := exec.Command("go", "env", "GOMODCACHE").Output(); err == nil {
			cache = strings.TrimSpace(string(out))
		}
		tried = append(tried, filepath.Join(cache, "gocv.io", "x", "gocv@"+gocvVersion(), "contrib", "att_faces"))
	}
	for _, dir := range tried {
		if info, err := os.Stat(filepath.Join(dir, "s1")); err == nil && info.IsDir() {
			return dir, nil
		}
	}
	return "", fmt.Errorf("%w: there is no %s; with Go installed run: go mod download gocv.io/x/gocv@%s, "+
		"or name a folder "+
		"that holds s1, s2 and s3 of the ORL Database of Faces with FACEAUTH_DEMO_FACES", ErrNoStills,
		filepath.Join(tried[0], "s1"), gocvVersion())
}

// gocvVersion returns the version of gocv that this program was built with.
func gocvVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == "gocv.io/x/gocv" {
				return m.Version
			}
		}
	}
	return "v0.31.0" // a test binary may not know its modules
}

const (
	width, height = 640, 480
	fps           = 15
	still         = 24  // frames for which a still is shown
	fading        = 16. // of these, frames in which it fades into the next
	enrolled      = 2   // number of stills in a person's enrolment
)

// Script describes the recordings: their paths, and the people in each frame.
type Script struct {
	Recording string
	Enrolment []Enrolment
	Frames    int
	cast      [][]actor // by frame
}

// Enrolment is the recording from which a person is enrolled.
type Enrolment struct{ Name, Path string }

// actor is a face in a frame.
type actor struct {
	name string // "" for the stranger
	box  image.Rectangle
}

// Write makes the recordings in out from the stills in dir. The same stills give the same bytes.
func Write(ctx context.Context, dir, out string) (Script, error) {
	var s Script
	people := []struct{ folder, name string }{{"s2", "alice"}, {"s1", ""}, {"s3", "bob"}}
	first := map[string][]*photo{}
	later := map[string][]*photo{}
	for _, p := range people {
		photos, err := load(ctx, filepath.Join(dir, p.folder))
		if err != nil {
			return s, fmt.Errorf("making the demo's recording: %w", err)
		}
		if p.name != "" {
			if len(photos) <= enrolled {
				return s, fmt.Errorf("making the demo's recording: %s has %d stills, want more than %d", p.folder,
					len(photos), enrolled)
			}
			// The recording begins with the last still of the enrolment and turns into those that follow.
			first[p.name], photos = photos[:enrolled], photos[enrolled-1:]
		}
		later[p.name] = photos
	}
	for _, name := range []string{"alice", "bob"} {
		e := Enrolment{name, filepath.Join(out, name+".avi")}
		if _, err := film(ctx, e.Path, scene{{name, first[name], .5}}); err != nil {
			return s, err
		}
		s.Enrolment = append(s.Enrolment, e)
	}
	s.Recording = filepath.Join(out, "recording.avi")
	var err error
	s.cast, err = film(ctx, s.Recording,
		scene{{"alice", later["alice"], .5}},
		scene{{"", later[""], .5}},
		scene{{"bob", later["bob"], .5}},
		scene{{"alice", later["alice"][:2], .27}, {"", later[""][2:], .73}},
		scene{{"bob", later["bob"][5:], .27}, {"alice", later["alice"], .73}},
	)
	s.Frames = len(s.cast)
	return s, err
}

// A scene shows one or more people at once, each in a part of the width.
type scene []role

type role struct {
	name   string
	photos []*photo
	place  float64
}

// film shows the scenes one after another, a still of each role at a time.
func film(ctx context.Context, path string, scenes ...scene) (cast [][]actor, err error) {
	rec := facedet.NewRecorder(path, fps)
	defer func() {
		if e := rec.Close(); err == nil {
			err = e
		}
	}()
	for _, sc := range scenes {
		shots := len(sc[0].photos)
		for i := range shots * still {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			f := newCanvas()
			var actors []actor
			for _, r := range sc {
				n := i / still
				p, following := r.photos[n%len(r.photos)], r.photos[(n+1)%len(r.photos)]
				fade := max(0, float64(i%still-still+fading)/fading)
				actors = append(actors, actor{r.name, f.draw(p.towards(following, fade), r.place, len(cast))})
			}
			f.light(len(cast))
			img, err := f.picture()
			if err != nil {
				return nil, err
			}
			err = rec.Write(img)
			img.Close()
			if err != nil {
				return nil, err
			}
			cast = append(cast, actors)
		}
	}
	return cast, nil
}

// Score counts the faces that a replay found: right and wrong names for enrolled people, and strangers with and without
// a name.
type Score struct {
	Known, Right, Wrong int
	Strangers, Accepted int
}

// Score compares the events of one frame with the script. A face belongs to the actor whose centre it covers.
func (s Script) Score(sum *Score, frame int, events []replay.Event) {
	if frame >= len(s.cast) {
		return
	}
	for _, e := range events {
		box := image.Rect(e.Box[0], e.Box[1], e.Box[0]+e.Box[2], e.Box[1]+e.Box[3])
		for _, a := range s.cast[frame] {
			if !a.box.Min.Add(a.box.Max).Div(2).In(box) {
				continue
			}
			switch {
			case a.name == "":
				sum.Strangers++
				if e.Label != "" {
					sum.Accepted++
				}
			default:
				sum.Known++
				if e.Label == a.name {
					sum.Right++
				} else if e.Label != "" {
					sum.Wrong++
				}
			}
		}
	}
}

// load reads the stills of one person in natural order.
func load(ctx context.Context, dir string) ([]*photo, error) {
	src, err := facedet.Open(ctx, dir, facedet.Options{})
	if err != nil {
		return nil, err
	}
	defer src.Close()
	var photos []*photo
	for {
		f, err := src.Next(ctx)
		if err != nil {
			if len(photos) > 0 && ctx.Err() == nil {
				return photos, nil
			}
			return nil, err
		}
		g := (*cv.Image)(f.Image).Gray()
		photos = append(photos, newPhoto(g.Size(), g.Bytes()))
		g.Close()
		f.Close()
	}
}

// wave oscillates between -1 and 1, with a period in frames.
func wave(frame int, period, phase float64) float64 {
	return math.Sin(2 * math.Pi * (float64(frame)/period + phase))
}
