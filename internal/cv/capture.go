// SPDX-License-Identifier: Apache-2.0

package cv

/*
#include <stdlib.h>
#include "safe.h"
*/
import "C"

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"math"
	"path/filepath"
	"strings"
	"sync"
	"time"
	"unsafe"

	"gocv.io/x/gocv"
)

// Capture reads frames from a video file, a stream or a camera. Its methods can block for ever: for a deadline, call
// them from a goroutine. It is not safe for concurrent use, and its frames are.
//
// A frame is converted into pixels when somebody asks for them, or before the next frame is read: frames that are
// closed before are only decoded.
type Capture struct {
	p      unsafe.Pointer
	packed bool    // the source gives JPEGs
	avi    *chunks // the file of these JPEGs, if it is a file; FFmpeg gives no times with them
	number int     // of the last frame in it
	first  *Image  // the first frame, if it was read already

	turn    int     // degrees clockwise by which frames are turned
	stretch float64 // width of a pixel by its height
	others  int

	mu     sync.Mutex
	newest *Image // the last frame, while it has no pixels
}

// OpenVideo opens a file or URL with FFmpeg. FFmpeg applies the timeout to connecting and to each read; some protocols
// ignore it. Frames of motion JPEG are decoded when their pixels are asked for, except those of files that are not AVI.
//
// Frames are what a player shows: turned as the container says, with square pixels, and those of the film and not of a
// cover.
func OpenVideo(url string, timeout time.Duration) (*Capture, error) {
	name, others := url, 0
	if filepath.IsAbs(url) {
		name, others = choose(url)
	}
	c, err := openVideo(name, timeout)
	if err != nil && name != url {
		name, others = url, 0
		c, err = openVideo(url, timeout)
	}
	if err == nil {
		c.others = others
		c.shape()
	}
	if err != nil || !c.motionJPEG() || c.turn != 0 || c.stretch != 1 || name != url {
		return c, err
	}
	if filepath.IsAbs(url) {
		avi, err := openChunks(url)
		if err != nil {
			return c, nil
		}
		var head [12]byte
		if avi.f.ReadAt(head[:], 0); string(head[:4])+string(head[8:]) != "RIFFAVI " {
			avi.f.Close()
			return c, nil
		}
		c.avi, c.number = avi, -1
	}
	// Two fields in one packet, limited colours, and headers that Go does not know are left to FFmpeg.
	size := image.Pt(int(c.property(gocv.VideoCaptureFrameWidth)), int(c.property(gocv.VideoCaptureFrameHeight)))
	if c.packed = c.set(gocv.VideoCaptureFormat, -1); c.packed { // packets as they are
		c.first, err = c.read()
	}
	if err != nil || c.first.Size() != size || bytes.Contains(c.first.packed.jpeg, []byte("CS=ITU601")) {
		c.Close()
		if c, err = openVideo(url, timeout); err == nil {
			c.others = others
			c.shape()
		}
		return c, err
	}
	return c, nil
}

// Properties that gocv has no names for.
const (
	sarNum, sarDen  = 40, 41
	orientationMeta = 48 // degrees by which the container says to turn frames
	orientationAuto = 49
)

// shape finds out how frames are to be turned and stretched. OpenCV does not turn them: before 4.7 it turns those of
// phones the wrong way.
func (c *Capture) shape() {
	c.turn, c.stretch = 0, 1
	c.set(orientationAuto, 0)
	turn := int(c.property(orientationMeta))
	if C.fa_turns_back() != 0 {
		turn = -turn
	}
	if turn = (turn%360 + 360) % 360; turn%90 == 0 {
		c.turn = turn
	}
	ratio := c.property(sarNum) / c.property(sarDen)
	if ratio > 1./mostStretched && ratio < mostStretched && math.Abs(ratio-1) > .01 {
		c.stretch = ratio
	}
}

// mostStretched is the greatest ratio of the sides of a pixel that is believed.
const mostStretched = 8.

// shaped returns a frame as a player shows it. It owns the frame.
func (c *Capture) shaped(m *Image) (*Image, error) {
	if c.stretch != 1 {
		round, err := m.Stretch(c.stretch)
		m.Close()
		if err != nil {
			return nil, err
		}
		m = round
	}
	if c.turn == 0 {
		return m, nil
	}
	turned, err := m.Turn(c.turn)
	m.Close()
	return turned, err
}

// Others returns the number of further films in the file, which are not read.
func (c *Capture) Others() int { return c.others }

// motionJPEG reports whether each packet of the source is a JPEG.
func (c *Capture) motionJPEG() bool {
	code := uint32(c.property(gocv.VideoCaptureFOURCC))
	name := strings.ToUpper(string(binary.LittleEndian.AppendUint32(nil, code)))
	return name == "MJPG" || name == "MJPE" || name == "JPEG"
}

func (c *Capture) set(p gocv.VideoCaptureProperties, value float64) bool {
	var fail *C.char
	ok := C.fa_capture_set(c.p, C.int(p), C.double(value), &fail)
	return failure(fail) == nil && ok != 0
}

func openVideo(url string, timeout time.Duration) (*Capture, error) {
	name := C.CString(url)
	defer C.free(unsafe.Pointer(name))
	var fail *C.char
	p := C.fa_capture_file(name, C.int(min(timeout.Milliseconds(), math.MaxInt32)), &fail)
	if err := failure(fail); err != nil {
		return nil, err
	}
	return &Capture{p: p, stretch: 1}, nil
}

// OpenCamera opens the video device with this index.
func OpenCamera(index int) (*Capture, error) {
	var fail *C.char
	p := C.fa_capture_device(C.int(index), &fail)
	if err := failure(fail); err != nil {
		return nil, err
	}
	c := &Capture{p: p, stretch: 1}
	c.packed = c.motionJPEG() && c.set(gocv.VideoCaptureConvertRGB, 0)
	return c, nil
}

// mostDamaged is the number of damaged JPEGs in a row after which a source has ended.
const mostDamaged = 512

// Read returns the next frame, or nil at the end. It skips damaged frames.
func (c *Capture) Read() (img *Image, err error) {
	if c.p == nil {
		return nil, fmt.Errorf("capture: %w", ErrClosed)
	}
	if c.first != nil {
		img, c.first = c.first, nil
		return img, nil
	}
	for range mostDamaged {
		if img, err = c.read(); !c.packed || !errors.Is(err, ErrNotImage) {
			return img, err
		}
	}
	return nil, nil
}

func (c *Capture) read() (*Image, error) {
	c.pass()
	var fail *C.char
	ok := C.fa_capture_grab(c.p, &fail)
	if err := failure(fail); err != nil || ok == 0 {
		return nil, err
	}
	if !c.packed {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.newest = &Image{of: c}
		return c.newest, nil
	}
	m, err := c.retrieve()
	if err != nil {
		return nil, err
	}
	defer m.Close()
	if m.Empty() {
		return nil, nil
	}
	if c.avi != nil {
		c.number += 1 + c.avi.empty()
	}
	return FromJPEG(m.ToBytes())
}

// retrieve returns the content of the frame that was read.
func (c *Capture) retrieve() (gocv.Mat, error) {
	m := gocv.NewMat()
	var fail *C.char
	C.fa_capture_retrieve(c.p, unsafe.Pointer(m.Ptr()), &fail)
	if err := failure(fail); err != nil {
		m.Close()
		return gocv.Mat{}, err
	}
	return m, nil
}

// convert gives the last frame its pixels, unless it has them or was closed.
func (c *Capture) convert() {
	m := c.newest
	if c.newest = nil; m == nil {
		return
	}
	mat, err := c.retrieve()
	if err == nil {
		var whole *Image
		if whole, err = adopt(mat); err == nil {
			whole, err = c.shaped(whole)
		}
		if err == nil {
			m.mat = whole.mat
		}
	}
	m.failed = err
}

// open gives a frame its pixels. The error says why it has none.
func (c *Capture) open(m *Image) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.newest == m {
		c.convert()
	}
	return m.failed
}

// pass converts the last frame unless it was closed: the next frame takes its place in the decoder.
func (c *Capture) pass() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.convert()
}

// forget takes note that a frame was closed.
func (c *Capture) forget(m *Image) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.newest == m {
		c.newest = nil
	}
}

// Frames returns the number of frames in the container's header, or -1.
func (c *Capture) Frames() int {
	if n := c.property(gocv.VideoCaptureFrameCount); n >= 1 && n < 1<<40 {
		return int(n)
	}
	return -1
}

// Rate returns the frames per second in the source's header, or 0.
func (c *Capture) Rate() float64 {
	if r := c.property(gocv.VideoCaptureFPS); r > 0 && r <= 1000 {
		return r
	}
	return 0
}

// Position returns the time of the last frame, if the source knows it.
func (c *Capture) Position() time.Duration {
	if rate := c.Rate(); c.avi != nil && rate > 0 {
		return time.Duration(float64(c.number) / rate * float64(time.Second))
	}
	ms := c.property(gocv.VideoCapturePosMsec)
	if !(ms > 0 && ms < 1e12) {
		return 0
	}
	return time.Duration(ms * float64(time.Millisecond))
}

func (c *Capture) property(p gocv.VideoCaptureProperties) float64 {
	if c.p == nil {
		return 0
	}
	var fail *C.char
	x := float64(C.fa_capture_get(c.p, C.int(p), &fail))
	if failure(fail) != nil {
		return 0
	}
	return x
}

// Close releases the source. It may be called twice.
func (c *Capture) Close() error {
	c.pass()
	c.first.Close()
	c.first = nil
	if c.avi != nil {
		c.avi.f.Close()
	}
	if c.p != nil {
		C.fa_capture_close(c.p)
		c.p = nil
	}
	return nil
}

// VideoWriter writes frames of one size into an AVI container.
type VideoWriter struct {
	w      *gocv.VideoWriter
	path   string
	size   [2]int
	frames int
}

// NewVideoWriter begins a file of motion JPEG at path.
func NewVideoWriter(path string, fps float64, width, height int) (*VideoWriter, error) {
	return newVideoWriter(path, "MJPG", fps, width, height)
}

// NewH264Writer begins an H.264 file at path. Network cameras send such streams. Not every build of FFmpeg can write
// H.264.
func NewH264Writer(path string, fps float64, width, height int) (*VideoWriter, error) {
	return newVideoWriter(path, "H264", fps, width, height)
}

func newVideoWriter(path, codec string, fps float64, width, height int) (*VideoWriter, error) {
	if !(fps > 0 && fps <= 1000) || width < 1 || height < 1 || width > 1<<14 || height > 1<<14 {
		return nil, fmt.Errorf("writing video %s: %dx%d pixels at %g frames a second", path, width, height, fps)
	}
	w, err := gocv.VideoWriterFile(path, codec, fps, width, height, true)
	if err != nil {
		return nil, fmt.Errorf("writing video %s: %w", path, err)
	}
	if !w.IsOpened() {
		w.Close()
		return nil, fmt.Errorf("writing video %s: the file cannot be created", path)
	}
	return &VideoWriter{w: w, path: path, size: [2]int{width, height}}, nil
}

// Write appends a frame, which must have the size of the video.
func (v *VideoWriter) Write(img *Image) error {
	if v.w == nil {
		return fmt.Errorf("video: %w", ErrClosed)
	}
	if err := img.check(); err != nil {
		return fmt.Errorf("writing video: %w", err)
	}
	if s := img.Size(); s.X != v.size[0] || s.Y != v.size[1] {
		return fmt.Errorf("writing video: frame of %dx%d pixels in a video of %dx%d", s.X, s.Y, v.size[0], v.size[1])
	}
	if err := v.w.Write(img.mat); err != nil {
		return err
	}
	v.frames++
	return nil
}

// Close ends the file. The error wraps [ErrCutOff] if the file has fewer frames than were written. It may be called
// twice.
func (v *VideoWriter) Close() error {
	if v.w == nil {
		return nil
	}
	err := v.w.Close()
	v.w = nil
	if err != nil {
		return fmt.Errorf("writing video %s: %w", v.path, err)
	}
	n, err := countFrames(v.path)
	if err != nil {
		return fmt.Errorf("writing video %s: %w", v.path, err)
	}
	if n < v.frames {
		return fmt.Errorf("writing video %s: %w: it holds %d of %d frames; is the disk full?", v.path, ErrCutOff, n,
			v.frames)
	}
	return nil
}
