// SPDX-License-Identifier: Apache-2.0

package network

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/faceauth/faceauth/internal/cv"
	"github.com/faceauth/faceauth/models"
)

// ErrSlower is returned by [Network.Runs] if [Prefer] kept that OpenCV is faster.
var ErrSlower = errors.New("OpenCV was faster on this processor when faceauth doctor measured both")

// Cost is the time of one run of a network in each engine: the least of several, which a busy machine disturbs least.
// Runtime is 0 if ONNX Runtime does not run it.
type Cost struct{ Runtime, OpenCV time.Duration }

// Measure runs a network by turns in ONNX Runtime and in OpenCV. The errors are those of [Open].
func Measure(d models.Description, dir string) (c Cost, err error) {
	opencv, err := open(d, d.Kind, dir, ErrChosen)
	if err != nil {
		return c, err
	}
	defer opencv.Close()
	ort, err := open(d, d.Kind, dir, nil)
	if err != nil {
		return c, err
	}
	defer ort.Close()
	for range 8 {
		if ort.refused == nil {
			if err := ort.least(&c.Runtime); err != nil {
				return c, err
			}
		}
		if err := opencv.least(&c.OpenCV); err != nil {
			return c, err
		}
	}
	return c, nil
}

// least runs the network once, and keeps the time if it is the least.
func (n *Network) least(took *time.Duration) error {
	before := cv.ForwardTime()
	err := n.Try(func(blank *cv.Image) error { _, err := n.Forward(blank); return err })
	if t := cv.ForwardTime() - before; *took == 0 || t < *took {
		*took = t
	}
	return err
}

// faster is the file beside the networks that says that OpenCV is faster, and on what. Every eye reads it there, also
// that of a daemon of another user, and only doctor changes it: the choice is the same in all runs between.
const faster = "opencv-is-faster"

// on names what the comparison holds for: a machine with another processor or other libraries compares anew.
func on() string {
	return fmt.Sprintf("%s, OpenCV %s, ONNX Runtime %s\n", cv.Processor(), cv.Version(), models.RuntimeVersion)
}

// opencvFirst returns nil, or why OpenCV runs the networks of a folder.
func opencvFirst(dir string) error {
	if os.Getenv(Variable) == "opencv" {
		return ErrChosen
	}
	if kept, err := os.ReadFile(filepath.Join(dir, faster)); err == nil && string(kept) == on() {
		return ErrSlower
	}
	return nil
}

// Prefer keeps in the folder of the networks whether OpenCV runs them from now on, and reports whether that is new. An
// error says that the folder cannot be written.
func Prefer(dir string, opencv bool) (changed bool, err error) {
	path := filepath.Join(dir, faster)
	kept, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	switch is := err == nil && string(kept) == on(); {
	case is == opencv:
		return false, nil
	case opencv:
		return true, os.WriteFile(path, []byte(on()), 0o644)
	}
	return true, os.Remove(path)
}
