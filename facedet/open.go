// SPDX-License-Identifier: Apache-2.0

package facedet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/cv"
	"github.com/faceauth/faceauth/internal/footage"
	"github.com/faceauth/faceauth/internal/input"
)

// Options of [Open]. Zero values mean defaults.
type Options struct {
	Timeout time.Duration    // to open a camera or URL, and for each frame of it. Default 10 s
	Now     func() time.Time // clock of a live source. Default time.Now
	From    int              // index of the first picture of Files or of a folder that is wanted
	Files   []string         // photographs to open instead of what the name says
	Series  face.Series      // whether the pictures of a folder are a film. Default [face.Followed]

	// Address, if it is not empty, is the IP address of the host of a URL, for a process that
	// cannot look up names. The program still sends the name of the host to an HTTP server.
	Address string

	// Damaged, if it is not nil, is called for each image file of a folder that cannot be read and
	// is skipped.
	Damaged func(path string, err error)
}

func (o Options) defaults() Options {
	if o.Timeout <= 0 {
		o.Timeout = 10 * time.Second
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// Open opens a source by name. A name is the number of a camera ("0") or its device
// ("/dev/video0"), a video, an image, a folder of images, or an http, https, rtsp or rtsps URL. The
// images of a folder come in natural order.
func Open(ctx context.Context, name string, o Options) (Source, error) {
	o = o.defaults()
	if len(o.Files) > 0 {
		return openImages(o.Files, o)
	}
	if scheme, _, ok := strings.Cut(name, "://"); ok {
		return openURL(ctx, name, scheme, o)
	}
	if index, ok := input.Camera(name); ok {
		return openCamera(ctx, index, o, func() (grabber, error) { return cv.OpenCamera(index) })
	}
	info, err := os.Stat(name)
	if err != nil {
		return nil, input.Unopened(name, err)
	}
	if info.IsDir() {
		return openFolder(name, o)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("opening source %s: %w", name, face.ErrNotVideo)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, input.Unopened(name, err)
	}
	f.Close()
	// FFmpeg would take a name with a colon for a protocol; an absolute path never is one.
	path, err := filepath.Abs(name)
	if err != nil {
		return nil, fmt.Errorf("opening source: %w", err)
	}
	if footage.IsPicture(path) {
		return openImages([]string{path}, o)
	}
	patient := o
	patient.Timeout = 0 // a file comes late only because the machine is slow
	s, err := openCapture(ctx, patient, false, func() (grabber, error) {
		return cv.OpenFilm(path, "", "", 0)
	})
	if err == nil {
		s.file = filepath.Base(path)
		return s, nil
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("opening source %s: %w", name, err)
	}
	// An image under another name is still an image.
	return openImages([]string{path}, o)
}

func openCamera(ctx context.Context, index int, o Options,
	open func() (grabber, error)) (Source, error) {
	device := fmt.Sprintf("/dev/video%d", index)
	f, err := os.OpenFile(device, os.O_RDWR, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		others, _ := filepath.Glob("/dev/video*")
		have := "this machine has none"
		if len(others) > 0 {
			have = "there are " + strings.Join(others, ", ")
		}
		return nil, fmt.Errorf("opening camera %d: %w: there is no %s; %s", index, face.ErrNoCamera,
			device, have)
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf(
			"opening camera %d: %w; add yourself to the group video and log in again", index, err)
	case err != nil:
		return nil, fmt.Errorf("opening camera %d: %w", index, err)
	}
	f.Close()
	s, err := openCapture(ctx, o, true, open)
	if err != nil {
		return nil, fmt.Errorf("opening camera %d (%s): %w; is another program using it?", index,
			device, err)
	}
	return s, nil
}
