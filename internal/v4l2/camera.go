// SPDX-License-Identifier: Apache-2.0

package v4l2

import (
	"errors"
	"fmt"
	"image"
	"os"
	"slices"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The structures of linux/videodev2.h, with their names there.
type (
	fmtdesc struct {
		index, kind, flags uint32
		description        [32]byte
		pixelformat, mbus  uint32
		_                  [3]uint32
	}
	format struct {
		kind uint32
		_    [0]uintptr
		pix  struct {
			width, height, pixelformat, field, bytesperline, sizeimage uint32
			_                                                          [44]uint32
		}
	}
	requestbuffers struct{ count, kind, memory, _, _ uint32 }
	buffer         struct {
		index, kind, bytesused, flags, field uint32
		timestamp                            unix.Timeval
		timecode                             [4]uint32
		sequence, memory                     uint32
		offset                               uintptr
		length, _, _                         uint32
	}
)

// Requests of ioctl, without their size. Kinds and flags are of linux/videodev2.h.
const (
	write, readWrite = 1 << 30, 3 << 30

	enumFmt, setFmt, reqbufs, querybuf, qbuf, dqbuf, streamon = 2, 5, 8, 9, 15, 17, 18

	capture, mmapped = 1, 1
	damaged          = 0x40 // V4L2_BUF_FLAG_ERROR
)

// driver is what a camera needs of the kernel.
type driver interface {
	ioctl(request uintptr, argument unsafe.Pointer) error
	mmap(offset int64, length int) ([]byte, error)
	wait(time.Duration) error // until a frame is there
	close() error
}

// device is a camera of the kernel.
type device struct {
	file   *os.File
	mapped [][]byte
}

func (d *device) ioctl(request uintptr, argument unsafe.Pointer) error {
	for {
		_, _, e := unix.Syscall(unix.SYS_IOCTL, d.file.Fd(), request, uintptr(argument))
		switch e {
		case unix.EINTR:
		case 0:
			return nil
		default:
			return e
		}
	}
}

func (d *device) mmap(offset int64, length int) ([]byte, error) {
	b, err := unix.Mmap(int(d.file.Fd()), offset, length, unix.PROT_READ, unix.MAP_SHARED)
	if err == nil {
		d.mapped = append(d.mapped, b)
	}
	return b, err
}

func (d *device) wait(limit time.Duration) error {
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(d.file.Fd()), Events: unix.POLLIN}},
			int(limit.Milliseconds()))
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return err
		case n == 0:
			return fmt.Errorf("the camera sent nothing for %v", limit)
		default:
			return nil
		}
	}
}

func (d *device) close() error {
	for _, b := range d.mapped {
		unix.Munmap(b)
	}
	return d.file.Close()
}

// call makes a request with a structure.
func call[T any](d driver, direction, number uintptr, argument *T) error {
	return d.ioctl(direction|unsafe.Sizeof(*argument)<<16|'V'<<8|number, unsafe.Pointer(argument))
}

// mostListed bounds the list that a driver gives.
const mostListed = 64

func formats(d driver) (all []Format) {
	for i := range uint32(mostListed) {
		f := fmtdesc{index: i, kind: capture}
		if call(d, readWrite, enumFmt, &f) != nil {
			break
		}
		all = append(all, formatOf(f.pixelformat))
	}
	return all
}

// Formats returns what a camera offers.
func Formats(path string) ([]Format, error) {
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return formats(&device{file: f}), nil
}

// Camera is an infrared camera that sends frames.
type Camera struct {
	driver  driver
	timeout time.Duration
	layout  *layout
	size    image.Point
	stride  int
	frames  [][]byte // memory of the driver
}

// Open begins to read a camera, in the first of the known formats that it offers, and of the size
// nearest to 640x480. Timeout is the longest wait for a frame. Close the camera.
func Open(path string, timeout time.Duration) (*Camera, error) {
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	d := &device{file: f}
	c, err := open(d, timeout)
	if err != nil {
		d.close()
	}
	return c, err
}

func open(d driver, timeout time.Duration) (*Camera, error) {
	c := &Camera{driver: d, timeout: timeout}
	offered := formats(d)
	preferred := slices.IndexFunc(layouts, func(l layout) bool {
		return slices.Contains(offered, l.format)
	})
	if preferred < 0 {
		return nil, fmt.Errorf("it offers %q, and an infrared camera is read as one of %s", offered,
			Known())
	}
	c.layout = &layouts[preferred]
	f := format{kind: capture}
	f.pix.width, f.pix.height, f.pix.pixelformat = 640, 480, c.layout.format.number()
	if err := call(d, readWrite, setFmt, &f); err != nil {
		return nil, fmt.Errorf("choosing the format: %w", err)
	}
	c.size, c.stride = image.Pt(int(f.pix.width), int(f.pix.height)), int(f.pix.bytesperline)
	if f.pix.pixelformat != c.layout.format.number() || min(c.size.X, c.size.Y) < 1 ||
		max(c.size.X, c.size.Y) > mostSide {
		return nil, fmt.Errorf("it offers %s, but gives %s of %dx%d pixels", c.layout.format,
			formatOf(f.pix.pixelformat), c.size.X, c.size.Y)
	}
	r := requestbuffers{count: 4, kind: capture, memory: mmapped}
	if err := call(d, readWrite, reqbufs, &r); err != nil {
		return nil, fmt.Errorf("asking for memory: %w", err)
	}
	for i := range min(r.count, 32) {
		b := buffer{index: i, kind: capture, memory: mmapped}
		if err := call(d, readWrite, querybuf, &b); err != nil {
			return nil, fmt.Errorf("asking for memory: %w", err)
		}
		frame, err := d.mmap(int64(uint32(b.offset)), int(b.length))
		if err != nil {
			return nil, fmt.Errorf("asking for memory: %w", err)
		}
		c.frames = append(c.frames, frame)
		if err := call(d, readWrite, qbuf, &b); err != nil {
			return nil, fmt.Errorf("giving memory to the camera: %w", err)
		}
	}
	kind := int32(capture)
	if err := call(d, write, streamon, &kind); err != nil {
		return nil, fmt.Errorf("starting the camera: %w", err)
	}
	return c, nil
}

// Read returns the pixels of the next frame: blue, green and red, row by row. It passes over frames
// that arrived damaged.
func (c *Camera) Read() (image.Point, []byte, error) {
	for end := time.Now().Add(c.timeout); time.Now().Before(end); {
		if err := c.driver.wait(c.timeout); err != nil {
			return c.size, nil, err
		}
		b := buffer{kind: capture, memory: mmapped}
		switch err := call(c.driver, readWrite, dqbuf, &b); {
		case errors.Is(err, unix.EAGAIN):
			continue
		case err != nil:
			return c.size, nil, fmt.Errorf("taking a frame: %w", err)
		case int(b.index) >= len(c.frames):
			return c.size, nil, fmt.Errorf("taking a frame: the driver names memory %d of %d",
				b.index, len(c.frames))
		}
		frame := c.frames[b.index]
		pix, err := c.layout.picture(frame[:min(int(b.bytesused), len(frame))], c.size, c.stride)
		if e := call(c.driver, readWrite, qbuf, &b); e != nil {
			return c.size, nil, fmt.Errorf("giving memory to the camera: %w", e)
		}
		if b.flags&damaged == 0 && err == nil {
			return c.size, pix, nil
		}
	}
	return c.size, nil, fmt.Errorf("the camera sent no whole frame for %v", c.timeout)
}

// Position implements a live source: the program has the clock.
func (c *Camera) Position() time.Duration { return 0 }

// Frames returns -1, because a camera has no end.
func (c *Camera) Frames() int { return -1 }

// Close releases the camera.
func (c *Camera) Close() error { return c.driver.close() }
