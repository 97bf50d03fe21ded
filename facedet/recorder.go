// SPDX-License-Identifier: Apache-2.0

package facedet

import (
	"fmt"
	"image"

	"github.com/faceauth/faceauth/internal/cv"
)

// Recorder writes frames to a video file, motion JPEG in AVI. All frames must have the size of the first.
type Recorder struct {
	path string
	fps  float64
	w    *cv.VideoWriter
}

// NewRecorder returns a recorder. The first frame creates the file at path.
func NewRecorder(path string, fps float64) *Recorder { return &Recorder{path: path, fps: fps} }

// Write appends a picture.
func (r *Recorder) Write(img *Picture) error {
	size := img.Size()
	if size == (image.Point{}) {
		return fmt.Errorf("writing video %s: picture: %w", r.path, ErrClosed)
	}
	if r.w == nil {
		w, err := cv.NewVideoWriter(r.path, r.fps, size.X, size.Y)
		if err != nil {
			return err
		}
		r.w = w
	}
	return r.w.Write(img)
}

// Close ends the file.
func (r *Recorder) Close() error {
	if r.w == nil {
		return nil
	}
	return r.w.Close()
}
