// SPDX-License-Identifier: Apache-2.0

package eyecmd

import (
	"errors"
	"image"
	"io"
	"os"

	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/internal/cv"
	"github.com/faceauth/faceauth/internal/drawing"
)

// draw returns the picture of a frame with its boxes. The caller closes it.
func draw(f drawing.Frame) (*facedet.Picture, error) {
	img, err := facedet.FromBGR(f.Size, f.BGR)
	if err != nil {
		return nil, err
	}
	for _, b := range f.Boxes {
		img.DrawBox(b.Rect, b.Text, b.Colour)
	}
	return img, nil
}

// show shows frames in a window until the user closes it.
func show(frames io.Reader) error {
	w, err := cv.NewWindow("faceauth")
	if err != nil {
		return err
	}
	defer w.Close()
	return drawing.Read(frames, func(f drawing.Frame) (bool, error) {
		img, err := draw(f)
		if err != nil {
			return false, err
		}
		defer img.Close()
		return w.Show(img), nil
	})
}

// write writes frames to a video of 25 frames a second, which only its owner can read.
func write(frames io.Reader, path string) error {
	rec := facedet.NewRecorder(path, 25)
	var size image.Point // of the first frame
	err := drawing.Read(frames, func(f drawing.Frame) (bool, error) {
		img, err := draw(f)
		if err != nil {
			return false, err
		}
		defer img.Close()
		if size == (image.Point{}) {
			size = f.Size
		}
		if f.Size == size {
			return true, rec.Write(img)
		}
		same, err := img.Resize(size) // pictures of a folder may differ in size; frames of a video may not
		if err != nil {
			return false, err
		}
		defer same.Close()
		return true, rec.Write(same)
	})
	err = errors.Join(err, rec.Close())
	if err == nil && size != (image.Point{}) {
		err = os.Chmod(path, 0o600)
	}
	return err
}
