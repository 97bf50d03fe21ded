// SPDX-License-Identifier: Apache-2.0

package cv

import (
	"github.com/faceauth/faceauth/internal/drawing"
	"gocv.io/x/gocv"
)

// Window shows images.
type Window struct{ w *gocv.Window }

// NewWindow opens a window. Without a display OpenCV's window toolkit would end the process, so the
// display is tried first.
func NewWindow(title string) (*Window, error) {
	if err := drawing.Answers(); err != nil {
		return nil, err
	}
	return &Window{gocv.NewWindow(title)}, nil
}

// Show shows the image and handles events of the window for a millisecond. It returns false after
// the user has closed the window or pressed Escape or q.
func (w *Window) Show(img *Image) bool {
	if img.check() == nil {
		w.w.IMShow(img.mat)
	}
	key := w.w.WaitKey(1)
	return key != 27 && key != 'q' && w.w.GetWindowProperty(gocv.WindowPropertyVisible) >= 1
}

// Close closes the window.
func (w *Window) Close() error { return w.w.Close() }
