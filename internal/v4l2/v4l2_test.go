// SPDX-License-Identifier: Apache-2.0

package v4l2

import (
	"bytes"
	"errors"
	"image"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/faceauth/faceauth/internal/fixture"
)

// raw returns a frame of a format in which the pixel x of each line has the value of ramp.
func raw(f Format, size image.Point, stride int) []byte {
	l := layoutOf(f)
	stride = max(stride, l.line(size.X))
	b := make([]byte, stride*size.Y)
	for y := range size.Y {
		line := b[y*stride:]
		for x := range size.X {
			v := uint(ramp(x))
			switch f {
			case "GREY", "Y8  ", "NV12":
				line[x] = byte(v)
			case "Y10 ", "Y12 ", "Y14 ", "Y16 ":
				v = v<<(l.bits-8) | 3 // low bits do not count
				line[2*x], line[2*x+1] = byte(v), byte(v>>8)
			case "Y10P":
				line[x/4*5+x%4] = byte(v)
				line[x/4*5+4] = 0xff
			case "Y12P":
				line[x/2*3+x%2] = byte(v)
				line[x/2*3+2] = 0xff
			case "ip3y":
				for bit := range 10 {
					if (v<<2|3)>>bit&1 != 0 {
						at := x/25*256 + x%25*10 + bit
						line[at/8] |= 1 << (at % 8)
					}
				}
			case "YUYV":
				line[2*x], line[2*x+1] = byte(v), 0x80
			case "UYVY":
				line[2*x+1], line[2*x] = byte(v), 0x80
			}
		}
	}
	if f == "NV12" {
		b = append(b, bytes.Repeat([]byte{0x80}, len(b)/2)...)
	}
	return b
}

func ramp(x int) byte { return byte(7 * x) }

func checkRamp(t *testing.T, size image.Point, pix []byte) {
	t.Helper()
	if len(pix) != 3*size.X*size.Y {
		t.Fatalf("%d bytes for %v", len(pix), size)
	}
	for i, v := range pix {
		if want := ramp(i / 3 % size.X); v != want {
			t.Fatalf("pixel %d is %d, want %d", i/3, v, want)
		}
	}
}

// kernel is a camera as the driver of a test shows it.
type kernel struct {
	formats []Format
	stride  int
	memory  [4][]byte
	queued  []uint32
	chosen  Format
	on      bool
	sent    int
	spoil   map[int]string // by number of the frame
	closed  bool
}

func (k *kernel) ioctl(request uintptr, argument unsafe.Pointer) error {
	size := image.Pt(52, 4)
	// The whole numbers are those of linux/videodev2.h on a machine of 64 bits.
	switch request {
	case 0xc0405602:
		f := (*fmtdesc)(argument)
		if int(f.index) >= len(k.formats) || f.kind != capture {
			return unix.EINVAL
		}
		f.pixelformat = k.formats[f.index].number()
	case 0xc0d05605:
		f := (*format)(argument)
		k.chosen = formatOf(f.pix.pixelformat)
		f.pix.width, f.pix.height, f.pix.bytesperline = uint32(size.X), uint32(size.Y),
			uint32(k.stride)
	case 0xc0145608:
		(*requestbuffers)(argument).count = uint32(len(k.memory))
	case 0xc0585609:
		b := (*buffer)(argument)
		b.offset, b.length = uintptr(b.index)<<12, 4096
	case 0xc058560f:
		k.queued = append(k.queued, (*buffer)(argument).index)
	case 0xc0585611:
		b := (*buffer)(argument)
		if !k.on || len(k.queued) == 0 {
			return unix.EAGAIN
		}
		b.index, k.queued = k.queued[0], k.queued[1:]
		b.bytesused = uint32(copy(k.memory[b.index], raw(k.chosen, size, k.stride)))
		b.flags = 0
		switch k.spoil[k.sent] {
		case "short":
			b.bytesused = 5
		case "error":
			b.flags = damaged
		case "index":
			b.index = 99
		case "long":
			b.bytesused = 1 << 30
		case "unplugged":
			return unix.ENODEV
		}
		k.sent++
	case 0x40045612:
		k.on = true
	default:
		return errors.New("unknown request")
	}
	return nil
}

func (k *kernel) mmap(offset int64, length int) ([]byte, error) {
	k.memory[offset>>12] = make([]byte, length)
	return k.memory[offset>>12], nil
}

func (k *kernel) wait(time.Duration) error { return nil }

func (k *kernel) close() error { k.closed = true; return nil }

func TestEveryFormat(t *testing.T) {
	if unsafe.Sizeof(uintptr(0)) != 8 {
		t.Skip("the numbers of the requests are those of machines of 64 bits")
	}
	for _, l := range layouts {
		t.Run(strings.TrimSpace(string(l.format)), func(t *testing.T) {
			for _, stride := range []int{0, 192} { // lines may be longer than their pixels
				k := &kernel{formats: []Format{"MJPG", l.format}, stride: stride}
				c := fixture.Must(open(k, time.Second))(t)
				for range 6 { // more than there is memory for
					size, pix, err := c.Read()
					fixture.Check(t, err)
					checkRamp(t, size, pix)
				}
				if c.Close(); !k.closed {
					t.Error("the camera was not released")
				}
			}
			size := image.Pt(52, 4)
			name := filepath.Join(t.TempDir(), "ramp.52x4."+strings.TrimSpace(string(l.format)))
			frame := raw(l.format, size, 0)
			// A last frame that was cut off is none.
			fixture.Check(t, os.WriteFile(name, append(append(frame, frame...), 1, 2, 3), 0o600))
			r := fixture.Must(OpenRecording(name))(t)
			defer r.Close()
			for range 2 {
				size, pix, err := r.Read()
				fixture.Check(t, err)
				checkRamp(t, size, pix)
			}
			if _, pix, err := r.Read(); pix != nil || err != nil {
				t.Errorf("after the end: %d bytes, %v", len(pix), err)
			}
		})
	}
}

// More than the stated bits are white, and not dark again.
func TestTooManyBits(t *testing.T) {
	pix, err := layoutOf("Y10 ").picture([]byte{0xff, 0x0f}, image.Pt(1, 1), 0)
	if err != nil || pix[0] != 255 {
		t.Errorf("%v, %v", pix, err)
	}
}

func TestFaultyDriver(t *testing.T) {
	grey := []Format{"GREY"}
	for name, want := range map[string]string{
		"index":     "taking a frame: the driver names memory 99 of 4",
		"unplugged": "taking a frame: no such device",
		"short":     "", "error": "", "long": "", // the next frame comes
	} {
		c := fixture.Must(open(&kernel{formats: grey, spoil: map[int]string{0: name}},
			time.Second))(t)
		size, pix, err := c.Read()
		if want == "" {
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			checkRamp(t, size, pix)
		} else if err == nil || err.Error() != want {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := open(&kernel{formats: []Format{"MJPG"}}, time.Second)
	if err == nil || !strings.HasPrefix(err.Error(),
		`it offers ["MJPG"], and an infrared camera is read as`) {
		t.Error(err)
	}
}

func TestNamesOfRecordings(t *testing.T) {
	for _, bad := range []string{"GREY", "a.GREY", "a.640x480.MJPG", "a.0x480.GREY",
		"a.640x-1.GREY", "a.640x480x.GREY",
		"a.99999x99999.GREY", "640x480.GREY"} {
		if _, err := OpenRecording(bad); err == nil ||
			!strings.HasPrefix(err.Error(), "an infrared recording has") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
