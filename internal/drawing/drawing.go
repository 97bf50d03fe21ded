// SPDX-License-Identifier: Apache-2.0

// Package drawing shows or films pictures with boxes in them, in a process of its own, because this
// needs OpenCV. [Answers] tells whether there is a display.
//
// [Start] starts the process, which calls [Read] for each [Frame].
package drawing

import (
	"cmp"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"image"
	"image/color"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Frame is a picture and what is drawn in it.
type Frame struct {
	Size  image.Point // in which the boxes are
	JPEG  []byte      // the picture, perhaps smaller
	Boxes []Box
}

// Box is a rectangle with a line of text above it.
type Box struct {
	Rect   image.Rectangle
	Text   string
	Colour color.RGBA
}

// Unknown is the colour of strangers.
var Unknown = color.RGBA{160, 160, 160, 255}

// Colours are distinguishable with any colour vision (Okabe and Ito 2008).
var Colours = []color.RGBA{
	{0, 158, 115, 255}, {0, 114, 178, 255}, {230, 159, 0, 255}, {204, 121, 167, 255},
	{86, 180, 233, 255},
	{213, 94, 0, 255},
}

// ErrEnded is returned by [Process.Draw] if the process has ended without an error: the user closed
// the window.
var ErrEnded = errors.New("the window was closed")

// Process draws frames. One goroutine at a time may use it.
type Process struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	frame *gob.Encoder
	words strings.Builder
	ended bool
	err   error
}

// Start starts a process with this command line. The caller closes it.
func Start(ctx context.Context, command ...string) (*Process, error) {
	p := &Process{cmd: exec.CommandContext(ctx, command[0], command[1:]...)}
	p.cmd.Stderr = &p.words
	var err error
	p.in, err = p.cmd.StdinPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("drawing: %w", err)
	}
	p.frame = gob.NewEncoder(p.in)
	return p, nil
}

// Draw draws a frame. The error is [ErrEnded], or what the process says.
func (p *Process) Draw(f Frame) error {
	if err := p.frame.Encode(f); err != nil {
		return cmp.Or(p.Close(), ErrEnded)
	}
	return nil
}

// Close waits until all frames are drawn, and ends the process. It may be called twice.
func (p *Process) Close() error {
	if p.ended {
		return p.err
	}
	p.ended = true
	p.in.Close()
	if err := p.cmd.Wait(); err != nil {
		p.err = err
		if p.words.Len() > 0 {
			p.err = errors.New(strings.TrimSpace(p.words.String()))
		}
	}
	return p.err
}

// Read calls draw with each frame until the input ends or draw returns false.
func Read(r io.Reader, draw func(Frame) (more bool, err error)) error {
	in := gob.NewDecoder(r)
	for {
		var f Frame
		if err := in.Decode(&f); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if more, err := draw(f); !more || err != nil {
			return err
		}
	}
}

// ErrNoDisplay is wrapped by the errors of [Answers].
var ErrNoDisplay = errors.New("no display to open a window on")

// Answers returns nil if the display named by the environment answers. Otherwise the error wraps
// [ErrNoDisplay].
func Answers() error {
	try := func(network, address string) bool {
		c, err := net.DialTimeout(network, address, 2*time.Second)
		if err == nil {
			c.Close()
		}
		return err == nil
	}
	if name := os.Getenv("WAYLAND_DISPLAY"); name != "" {
		if !filepath.IsAbs(name) {
			name = filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), name)
		}
		if try("unix", name) {
			return nil
		}
	}
	display := os.Getenv("DISPLAY")
	if display == "" {
		return fmt.Errorf("%w: neither DISPLAY nor WAYLAND_DISPLAY is set", ErrNoDisplay)
	}
	host, number, ok := strings.Cut(display, ":")
	number, _, _ = strings.Cut(number, ".")
	if ok && host == "" && try("unix", "/tmp/.X11-unix/X"+number) {
		return nil
	}
	var port int
	if _, err := fmt.Sscanf(number, "%d", &port); ok && host != "" && err == nil && port >= 0 &&
		port < 60000 &&
		try("tcp", net.JoinHostPort(host, fmt.Sprint(6000+port))) {
		return nil
	}
	return fmt.Errorf("%w: DISPLAY=%s does not answer", ErrNoDisplay, display)
}
