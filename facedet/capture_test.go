// SPDX-License-Identifier: Apache-2.0

package facedet

import (
	"context"
	"errors"
	"image"
	"image/color"
	"io"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/cv"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/network"
	"github.com/faceauth/faceauth/models"
)

// device is a camera that a test controls.
type device struct {
	frames   int           // number of frames
	hang     chan struct{} // the read after the last frame waits for this
	released chan struct{}
}

func (d *device) Read() (*cv.Image, time.Duration, error) {
	if d.frames == 0 {
		<-d.hang
		return nil, 0, nil
	}
	d.frames--
	img, err := cv.NewImage(image.Pt(4, 4), color.RGBA{})
	return img, 0, err
}

func (d *device) About() cv.About { return cv.About{Frames: -1} }
func (d *device) Close() error    { close(d.released); return nil }

func newDevice(frames int) *device {
	return &device{frames: frames, hang: make(chan struct{}), released: make(chan struct{})}
}

func (d *device) open(t *testing.T, o Options, live bool) *capture {
	t.Helper()
	c := fixture.Must(openCapture(context.Background(), o.defaults(), live, func() (grabber,
		error) {
		return d, nil
	}))(t)
	return c
}

// A film of one frame is a photograph: AVIF and a GIF that does not move come as films.
func TestOneFrame(t *testing.T) {
	for frames := range 3 {
		d := newDevice(frames)
		close(d.hang)
		c := d.open(t, Options{}, false)
		for i := range frames {
			f := fixture.Must(c.Next(context.Background()))(t)
			if f.Index != i || f.Still != (frames == 1) {
				t.Errorf("of %d, frame %d: %d, %t", frames, i, f.Index, f.Still)
			}
			f.Close()
		}
		if _, err := c.Next(context.Background()); frames > 0 && err != io.EOF {
			t.Errorf("after %d: %v", frames, err)
		}
		c.Close()
	}
	d := newDevice(2) // it is closed with a frame read ahead
	c := d.open(t, Options{}, false)
	f := fixture.Must(c.Next(context.Background()))(t)
	f.Close()
	c.Close()
}

// A read that hangs is abandoned, and the camera is released when the read returns.
func TestReadHangs(t *testing.T) { synctest.Test(t, testReadHangs) }

func testReadHangs(t *testing.T) {
	d := newDevice(3)
	c := d.open(t, Options{Timeout: 50 * time.Millisecond}, true)
	for range 3 {
		f := fixture.Must(c.Next(context.Background()))(t)
		f.Close()
	}
	if _, err := c.Next(context.Background()); !errors.Is(err, face.ErrTimeout) {
		t.Fatalf("error %v", err)
	}
	select {
	case <-d.released:
		t.Fatal("released while the read hangs")
	default:
	}
	close(d.hang)
	<-d.released
	c.Close()
}

// The camera is released in every case.
func TestReleased(t *testing.T) {
	for name, end := range map[string]func(c *capture, d *device){
		"closed at once": func(c *capture, d *device) { c.Close() },
		"closed twice":   func(c *capture, d *device) { c.Close(); c.Close() },
		"after a frame":  func(c *capture, d *device) { next(c); c.Close() },
		"at the end": func(c *capture, d *device) {
			close(d.hang)
			next(c)
			next(c)
			next(c)
		},
		"context cancelled": func(c *capture, d *device) { c.Next(cancelled()) },
	} {
		d := newDevice(2)
		c := d.open(t, Options{}, true)
		end(c, d)
		select {
		case <-d.released:
		case <-time.After(time.Minute):
			t.Errorf("%s: not released", name)
		}
	}
}

func next(c *capture) {
	if f, err := c.Next(context.Background()); err == nil {
		f.Close()
	}
}

func cancelled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// Frames of a live source have the time of the clock. Frames of a recording without times follow
// its rate, or 25 a second.
func TestTimes(t *testing.T) {
	now := time.Unix(1000, 0)
	c := newDevice(3).open(t, Options{Now: func() time.Time { return now }}, true)
	for i := range 3 {
		now = now.Add(time.Second)
		f := fixture.Must(c.Next(context.Background()))(t)
		if want := time.Duration(i+1) * time.Second; f.Time != want {
			t.Errorf("live frame %d at %v, want %v", i, f.Time, want)
		}
		f.Close()
	}
	c.Close()
	c = newDevice(3).open(t, Options{}, false)
	for i := range 3 {
		f := fixture.Must(c.Next(context.Background()))(t)
		if want := time.Duration(i) * 40 * time.Millisecond; f.Time != want {
			t.Errorf("frame %d at %v, want %v", i, f.Time, want)
		}
		f.Close()
	}
	c.Close()
}

// Outputs that no picture could give are errors or nothing, never a crash.
func TestDecodeBoxes(t *testing.T) {
	n := &Network{boxes: &network.Network{Description: models.Description{Threshold: .5, NMS: .4}}}
	size := image.Pt(100, 50)
	nan := float32(0)
	nan /= nan
	tensor := func(shape []int, data ...float32) cv.Tensor {
		return cv.Tensor{Shape: shape, Data: data}
	}
	got, err := n.decode([]cv.Tensor{
		tensor([]int{1, 5, 4}, .1, .2, .5, .8, -9, -9, 9, 9, .9, .9, .1, .1, nan, 0, 1, 1, .2, .2,
			.2, .2),
		tensor([]int{1, 5, 2}, .1, .9, 0, .6, 0, nan, 0, .3, 0, .9),
	}, size, size, n.boxes.Threshold)
	fixture.Check(t, err)
	if len(got) != 2 || got[0].Box != image.Rect(0, 0, 100, 50) ||
		got[1].Box != image.Rect(10, 10, 50, 40) {
		t.Errorf("%v", got)
	}
	for _, out := range [][]cv.Tensor{
		{tensor([]int{1, 2, 4}), tensor([]int{1, 3, 2})},
		{tensor([]int{4}), tensor([]int{1, 1, 2})},
		{tensor([]int{1, 1, 3}), tensor([]int{1, 1, 2})},
		{tensor(nil), tensor(nil)},
	} {
		if _, err := n.decode(out, size, size, n.boxes.Threshold); err == nil {
			t.Errorf("shapes %v and %v gave no error", out[0].Shape, out[1].Shape)
		}
	}
}

// The outputs of YuNet and SCRFD, in the shapes of their networks, give the boxes that were written
// into them.
func TestLayouts(t *testing.T) {
	const side = 640
	fed := image.Pt(side, side)
	// in a picture of 1280x640, of which the network sees 640x640
	at := image.Rect(100, 40, 180, 160)
	for layout, c := range map[string]struct{ outputs, anchors int }{"yunet": {9, 1},
		"scrfd": {6, 2}} {
		for level := range 3 {
			cell := float32(int(8) << level)
			n := &Network{boxes: &network.Network{Description: models.Description{Layout: layout,
				NMS: .4, Threshold: .6, Outputs: make([]string, c.outputs),
				Input: models.Input{Width: side, Height: side}}}}
			var out []cv.Tensor
			for i := range c.outputs {
				cells := (side >> (3 + i%3)) * (side >> (3 + i%3)) * c.anchors
				values := 1
				if i >= c.outputs-3 {
					values = 4
				}
				out = append(out, cv.Tensor{Shape: []int{cells, values},
					Data: make([]float32, cells*values)})
			}
			// Left, top, right and bottom in the input, and the cell of the centre.
			l, top, r, b := float32(50), float32(40), float32(90), float32(160)
			x, y := float32(int(70/cell)), float32(int(100/cell))
			i := (int(y)*side/int(cell) + int(x)) * c.anchors
			write := func(i int) {
				box := out[c.outputs-3+level].Data[4*i:]
				if layout == "yunet" {
					out[level].Data[i], out[3+level].Data[i] = .9, .9
					box[0], box[1] = (l+r)/2/cell-x, (top+b)/2/cell-y
					box[2], box[3] = float32(math.Log(float64((r-l)/cell))),
						float32(math.Log(float64((b-top)/cell)))
					return
				}
				out[level].Data[i] = .9
				box[0], box[1], box[2], box[3] = x-l/cell, y-top/cell, r/cell-x, b/cell-y
			}
			write(i)
			if c.anchors == 2 {
				write(i + 1) // the second box of the cell is the same face
			}
			faces, err := n.decode(out, fed, image.Pt(2*side, side), n.boxes.Threshold)
			if err != nil || len(faces) != 1 || faces[0].Box != at ||
				math.Abs(float64(faces[0].Score)-.9) > 1e-6 {
				t.Errorf("%s, level %d: %v, %v; want one face at %v", layout, level, faces, err, at)
			}
			n.boxes.Threshold = .95
			faces, err = n.decode(out, fed, image.Pt(2*side, side), n.boxes.Threshold)
			if err != nil || len(faces) > 0 {
				t.Errorf("%s: a weak face is found: %v, %v", layout, faces, err)
			}
			out[level].Data = out[level].Data[1:]
			_, err = n.decode(out, fed, fed, n.boxes.Threshold)
			if !errors.Is(err, models.ErrShape) {
				t.Errorf("%s: outputs of another shape: %v", layout, err)
			}
		}
	}
}
