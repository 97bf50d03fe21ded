// SPDX-License-Identifier: Apache-2.0

// Package demo makes a recording out of a few stills, so that the program can be tried without a
// camera: people whose faces move, come nearer, turn darker and blur.
//
// The stills are those of three people that ship with the gocv module, from the ORL Database of
// Faces of AT&T Laboratories Cambridge. [Find] finds them, [Write] makes the recordings, and
// [Script.Score] counts how many faces of the recording were given the right name.
package demo

import (
	"errors"
	"fmt"
	"image"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/faceauth/faceauth/internal/recordings/replay"
	"github.com/faceauth/faceauth/internal/xdg"
)

// ErrNoStills is returned by [Find] if the stills are not on this machine.
var ErrNoStills = errors.New("the demo's stills are not on this machine")

// Find returns the folder of the stills: $FACEAUTH_DEMO_FACES, or the folder of the package
// faceauth, or the gocv module in Go's module cache.
func Find() (string, error) {
	tried := []string{os.Getenv("FACEAUTH_DEMO_FACES")}
	if tried[0] == "" {
		cache := filepath.Join(os.Getenv("HOME"), "go", "pkg", "mod")
		if out, err := exec.Command("go", "env", "GOMODCACHE").Output(); err == nil {
			cache = strings.TrimSpace(string(out))
		}
		for _, dir := range xdg.Shared() {
			tried = append(tried, filepath.Join(dir, "faceauth", "demo"))
		}
		cached, _ := filepath.Glob(filepath.Join(cache, "gocv.io", "x", "gocv@*", "contrib",
			"att_faces"))
		tried = append(tried, cached...)
	}
	for _, dir := range tried {
		if info, err := os.Stat(filepath.Join(dir, "s1")); err == nil && info.IsDir() {
			return dir, nil
		}
	}
	return "", fmt.Errorf(
		"%w; the package faceauth has them; with Go installed run: go mod download "+
			"gocv.io/x/gocv@latest, or name a folder that holds s1, s2 and s3 of the ORL "+
			"Database of Faces with "+
			"FACEAUTH_DEMO_FACES", ErrNoStills)
}

// Script describes the recordings: their paths, and the people in each frame.
type Script struct {
	Stills    string // their folder
	Recording string
	Enrolment []Enrolment
	Frames    int
	Cast      [][]Actor // by frame
}

// Enrolment is the recording from which a person is enrolled.
type Enrolment struct{ Name, Path string }

// Actor is a face in a frame.
type Actor struct {
	Name string // "" for the stranger
	Box  image.Rectangle
}

// Score counts the faces that a replay found: right and wrong names for enrolled people, and
// strangers with and without a name.
type Score struct {
	Known, Right, Wrong int
	Strangers, Accepted int
}

// Score compares the events of one frame with the script. A face belongs to the actor whose centre
// it covers.
func (s Script) Score(sum *Score, frame int, events []replay.Event) {
	if frame >= len(s.Cast) {
		return
	}
	for _, e := range events {
		box := image.Rect(e.Box[0], e.Box[1], e.Box[0]+e.Box[2], e.Box[1]+e.Box[3])
		for _, a := range s.Cast[frame] {
			if !a.Box.Min.Add(a.Box.Max).Div(2).In(box) {
				continue
			}
			switch {
			case a.Name == "":
				sum.Strangers++
				if e.Label != "" {
					sum.Accepted++
				}
			default:
				sum.Known++
				if e.Label == a.Name {
					sum.Right++
				} else if e.Label != "" {
					sum.Wrong++
				}
			}
		}
	}
}
