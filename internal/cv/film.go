// SPDX-License-Identifier: Apache-2.0

package cv

/*
#include <stdlib.h>
#include <libavutil/error.h>
#include "safe.h"
*/
import "C"

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"math"
	"syscall"
	"time"
	"unsafe"

	"gocv.io/x/gocv"

	"github.com/faceauth/faceauth/face"
)

// About is what a file or a stream says of itself.
type About struct {
	Frames int           // number of frames, or -1
	Rate   float64       // frames a second, or 0
	Length time.Duration // from the begin of the container to the end of the film, or 0
	Others int           // further films in the file, which are not read
	Ends   bool          // it has a length, as a file behind a URL, and is no camera
}

// Film reads frames from a file or URL with FFmpeg, which decodes them. It is not safe for
// concurrent use, and its frames are. A frame is converted into pixels when somebody asks for them;
// of motion JPEG, it is only decoded then.
//
// Frames are what a player shows: turned as the container says, with square pixels, and those of
// the film and not of a cover.
type Film struct {
	p       unsafe.Pointer
	about   About
	packed  bool
	size    image.Point // of stored frames
	turn    int         // degrees clockwise by which frames are turned
	stretch float64     // width of a pixel by its height
}

// mostStretched is the greatest ratio of the sides of a pixel that is believed.
const mostStretched = 8.

// OpenFilm opens a file or URL. The timeout is for opening, and for each frame; 0 for none. If the
// URL has the address of a server, host is its name with the port, for HTTP, and served without.
//
// The error wraps [face.ErrServer] if a server was reached that gives no video, [face.ErrRefused]
// or [face.ErrTimeout].
func OpenFilm(name, host, served string, timeout time.Duration) (*Film, error) {
	var texts [3]*C.char
	for i, s := range []string{name, host, served} {
		texts[i] = C.CString(s)
		defer C.free(unsafe.Pointer(texts[i]))
	}
	var about C.fa_film_about
	var failed C.int
	var fail *C.char
	var ms C.int
	if timeout > 0 {
		// the caller gives up before
		ms = C.int(min((timeout + time.Second).Milliseconds(), math.MaxInt32))
	}
	p := C.fa_film_open(texts[0], texts[1], texts[2], ms, &about, &failed, &fail)
	if err := failure(fail); err != nil {
		return nil, err
	}
	if p == nil {
		return nil, refusal(failed)
	}
	f := &Film{p: p, size: image.Pt(int(about.width), int(about.height)), stretch: 1}
	f.about = About{Frames: int(about.frames), Others: int(about.others), Ends: about.ends != 0}
	if s := float64(about.length); s > 0 && s < 1e6 {
		f.about.Length = time.Duration(s * float64(time.Second))
	}
	if r := float64(about.rate); r > 0 && r <= 1000 {
		f.about.Rate = r
	}
	if about.turn%90 == 0 {
		f.turn = int(about.turn)
	}
	if s := float64(about.stretch); s > 1./mostStretched && s < mostStretched &&
		math.Abs(s-1) > .01 {
		f.stretch = s
	}
	f.packed = about.jpeg != 0 && f.turn == 0 && f.stretch == 1
	return f, nil
}

// refusal returns the error for FFmpeg's number of one.
func refusal(code C.int) error {
	server := func(text string) error { return fmt.Errorf("%w: %s", face.ErrServer, text) }
	switch code {
	case C.AVERROR_EXIT, -C.ETIMEDOUT:
		return fmt.Errorf("%w: it does not answer in time", face.ErrTimeout)
	case C.AVERROR_HTTP_UNAUTHORIZED, C.AVERROR_HTTP_FORBIDDEN:
		return fmt.Errorf("%w; are those in the URL right?", face.ErrRefused)
	case C.AVERROR_HTTP_NOT_FOUND:
		return server("it has nothing at this path (404); is the path of the URL right?")
	case C.AVERROR_STREAM_NOT_FOUND:
		return server("the stream at this path has none")
	case C.AVERROR_DECODER_NOT_FOUND:
		return server("its codec cannot be decoded; choose H.264 in the camera")
	case C.FA_SPOILT:
		return server("its pictures have been damaged for two seconds; connect again")
	case C.AVERROR_INVALIDDATA:
		return server("what it sends is none; the URL of the video itself is needed, and an MP4 " +
			"with its index at the end must be downloaded first")
	}
	if code > -1000 {
		return fmt.Errorf("the server cannot be reached: %w", syscall.Errno(-code))
	}
	var text [128]C.char
	C.av_strerror(code, &text[0], C.size_t(len(text)))
	return server(C.GoString(&text[0]))
}

// About returns what the source says of itself.
func (f *Film) About() About { return f.about }

// mostDamaged is the number of damaged JPEGs in a row after which a source has ended.
const mostDamaged = 512

// Read returns the next frame and the time at which it is shown, or nil at the end. It skips
// damaged frames.
func (f *Film) Read() (*Image, time.Duration, error) {
	if f.p == nil {
		return nil, 0, fmt.Errorf("film: %w", ErrClosed)
	}
	for range mostDamaged {
		var shot C.fa_shot
		var fail *C.char
		var packets C.int
		if f.packed {
			packets = 1
		}
		got := C.fa_film_next(f.p, packets, &shot, &fail)
		if err := failure(fail); err != nil {
			return nil, 0, err
		}
		switch {
		case got == 0:
			return nil, 0, nil
		case got < 0:
			return nil, 0, refusal(got)
		}
		var at time.Duration
		if ms := float64(shot.ms); ms > 0 && ms < 1e12 {
			at = time.Duration(ms * float64(time.Millisecond))
		}
		if f.packed {
			jpeg := C.GoBytes(shot.data, shot.length)
			// the head of a part may come before
			jpeg = jpeg[max(0, bytes.Index(jpeg, []byte("\xff\xd8"))):]
			// Two fields in one packet, and limited colours, are left to FFmpeg.
			img, err := FromJPEG(jpeg)
			if err == nil && img.Size() == f.size && !bytes.Contains(jpeg, []byte("CS=ITU601")) {
				return img, at, nil
			}
			whole := img.Whole()
			img.Close()
			ok := C.fa_film_decode(f.p, &shot, &fail)
			if err := failure(fail); err != nil {
				return nil, 0, err
			}
			if ok == 0 {
				continue
			}
			if !whole {
				shot.damaged = 1
			}
		}
		img, err := f.frame(shot)
		return img, at, err
	}
	return nil, 0, nil
}

// frame returns a decoded frame.
func (f *Film) frame(shot C.fa_shot) (*Image, error) {
	d := &decoded{p: shot.frame, turn: f.turn, stretch: f.stretch}
	d.size = stretched(image.Pt(int(shot.width), int(shot.height)), f.stretch)
	if f.turn%180 != 0 {
		d.size.X, d.size.Y = d.size.Y, d.size.X
	}
	if err := checkSize(d.size); err != nil {
		d.close()
		return nil, err
	}
	return &Image{later: d, part: shot.damaged != 0}, nil
}

// Close releases the source. It may be called twice.
func (f *Film) Close() error {
	if f != nil && f.p != nil {
		C.fa_film_close(f.p)
		f.p = nil
	}
	return nil
}

// decoded is a frame that was decoded, before it is converted.
type decoded struct {
	p       unsafe.Pointer
	size    image.Point // as a player shows it
	turn    int
	stretch float64
}

func (d *decoded) bounds() image.Point { return d.size }

func (d *decoded) open() (gocv.Mat, error) {
	mat := gocv.NewMat()
	var fail *C.char
	C.fa_frame_bgr(d.p, unsafe.Pointer(mat.Ptr()), &fail)
	if err := failure(fail); err != nil {
		mat.Close()
		return gocv.Mat{}, err
	}
	img := &Image{mat: mat}
	if d.stretch != 1 {
		round, err := img.Stretch(d.stretch)
		img.Close()
		if err != nil {
			return gocv.Mat{}, err
		}
		img = round
	}
	if d.turn == 0 {
		return img.mat, nil
	}
	turned, err := img.Turn(d.turn)
	img.Close()
	if err != nil {
		return gocv.Mat{}, err
	}
	return turned.mat, nil
}

// thumbnail returns the stored grey values: no colours are made for it.
func (d *decoded) thumbnail(size image.Point) ([]byte, error) {
	if d.turn != 0 || d.stretch != 1 {
		return nil, errors.ErrUnsupported
	}
	mat := gocv.NewMat()
	defer mat.Close()
	var fail *C.char
	ok := C.fa_frame_grey(d.p, C.int(size.X), C.int(size.Y), unsafe.Pointer(mat.Ptr()), &fail)
	if err := failure(fail); err != nil {
		return nil, err
	}
	if ok == 0 {
		return nil, errors.ErrUnsupported
	}
	return mat.ToBytes(), nil
}

func (d *decoded) close() { C.fa_frame_free(d.p) }

// Camera reads frames from a video device. Its methods can block for ever: for a deadline, call
// them from a goroutine. It is not safe for concurrent use, and its frames are.
type Camera struct {
	p      unsafe.Pointer
	packed bool // it gives JPEGs
}

// OpenCamera opens the video device with this index.
func OpenCamera(index int) (*Camera, error) {
	var packed C.int
	var fail *C.char
	p := C.fa_camera_open(C.int(index), &packed, &fail)
	if err := failure(fail); err != nil {
		return nil, err
	}
	return &Camera{p, packed != 0}, nil
}

// About says that a camera has no end.
func (c *Camera) About() About { return About{Frames: -1} }

// Read returns the next frame, or nil if there is none any more. The time is 0: it comes now.
func (c *Camera) Read() (*Image, time.Duration, error) {
	if c.p == nil {
		return nil, 0, fmt.Errorf("camera: %w", ErrClosed)
	}
	for range mostDamaged {
		m := gocv.NewMat()
		var fail *C.char
		ok := C.fa_camera_read(c.p, unsafe.Pointer(m.Ptr()), &fail)
		err := failure(fail)
		if err != nil || ok == 0 || m.Empty() {
			m.Close()
			return nil, 0, err
		}
		if !c.packed {
			img, err := adopt(m)
			return img, 0, err
		}
		img, err := FromJPEG(m.ToBytes())
		m.Close()
		if err == nil {
			return img, 0, nil
		}
	}
	return nil, 0, nil
}

// Close releases the camera. It may be called twice.
func (c *Camera) Close() error {
	if c.p != nil {
		C.fa_camera_close(c.p)
		c.p = nil
	}
	return nil
}
