// SPDX-License-Identifier: Apache-2.0

// Package v4l2 reads the grey formats of infrared cameras. OpenCV reads some of them, by rules that
// depend on its version, and not those with packed bits.
package v4l2

import (
	"fmt"
	"image"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Format is a four-character code of Video4Linux, such as "GREY" or "Y16 ".
type Format string

func (f Format) number() uint32 {
	return uint32(f[0]) | uint32(f[1])<<8 | uint32(f[2])<<16 | uint32(f[3])<<24
}

func formatOf(n uint32) Format {
	return Format([]byte{byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24)})
}

// layout says how a line of grey values lies in memory.
type layout struct {
	format Format
	bits   int                           // of a value, whose highest eight are used
	line   func(width int) int           // least bytes of a line
	value  func(line []byte, x int) uint // the value of a pixel
}

func wide(bytes, pixels int) func(int) int {
	return func(w int) int { return (w + pixels - 1) / pixels * bytes }
}

func short(line []byte, x int) uint { return uint(line[2*x]) | uint(line[2*x+1])<<8 }

// layouts are the formats that can be read, the preferred ones first. Y8 is an older name of GREY.
// The names with a p, and of the IPU3, are packed: the high bytes of some pixels come together,
// then their low bits; ip3y is a stream of 25 values of 10 bits in 32 bytes. Of formats with colour
// only the brightness is used.
var layouts = []layout{
	{"GREY", 8, wide(1, 1), func(l []byte, x int) uint { return uint(l[x]) }},
	{"Y8  ", 8, wide(1, 1), func(l []byte, x int) uint { return uint(l[x]) }},
	{"Y10 ", 10, wide(2, 1), short},
	{"Y12 ", 12, wide(2, 1), short},
	{"Y14 ", 14, wide(2, 1), short},
	{"Y16 ", 16, wide(2, 1), short},
	{"Y10P", 8, wide(5, 4), func(l []byte, x int) uint { return uint(l[x/4*5+x%4]) }},
	{"Y12P", 8, wide(3, 2), func(l []byte, x int) uint { return uint(l[x/2*3+x%2]) }},
	{"ip3y", 10, wide(32, 25), func(l []byte, x int) uint {
		at := x/25*256 + x%25*10
		return short(l[at/8:], 0) >> (at % 8) & 1023
	}},
	{"YUYV", 8, wide(2, 1), func(l []byte, x int) uint { return uint(l[2*x]) }},
	{"UYVY", 8, wide(2, 1), func(l []byte, x int) uint { return uint(l[2*x+1]) }},
	{"NV12", 8, wide(1, 1), func(l []byte, x int) uint { return uint(l[x]) }},
}

// layoutOf returns the layout of a format, or nil.
func layoutOf(f Format) *layout {
	if i := slices.IndexFunc(layouts, func(l layout) bool { return l.format == f }); i >= 0 {
		return &layouts[i]
	}
	return nil
}

// Readable reports whether frames of this format can be read.
func (f Format) Readable() bool { return layoutOf(f) != nil }

// mostSide is the greatest width and height of a frame.
const mostSide = 1 << 13

// picture returns the frame as blue, green and red, which are all the grey value. Of a value of n
// bits the highest eight count, so 1023 of Y10 and 65535 of Y16 are white. A value of more than n
// bits is white, too.
func (l *layout) picture(b []byte, size image.Point, stride int) ([]byte, error) {
	need := l.line(size.X)
	stride = max(stride, need)
	if len(b) < (size.Y-1)*stride+need {
		return nil, fmt.Errorf("frame of %d bytes, too short for %dx%d pixels of %s", len(b),
			size.X, size.Y, l.format)
	}
	pix := make([]byte, 0, 3*size.X*size.Y)
	for y := range size.Y {
		line := b[y*stride:]
		for x := range size.X {
			v := byte(min(l.value(line, x)>>(l.bits-8), 255))
			pix = append(pix, v, v, v)
		}
	}
	return pix, nil
}

// Recording is a file of raw frames, one after the other, at 30 frames a second. Its name ends with
// size and format, as in lit.640x480.Y16.
type Recording struct {
	file   *os.File
	layout *layout
	size   image.Point
	bytes  int
	frames int
	read   int
}

// Parse returns size and format of a recording by its name.
func Parse(name string) (size image.Point, f Format, ok bool) {
	parts := strings.Split(filepath.Base(name), ".")
	if len(parts) < 3 {
		return size, "", false
	}
	f = Format(fmt.Sprintf("%-4s", parts[len(parts)-1]))
	s := parts[len(parts)-2]
	if _, err := fmt.Sscanf(s, "%dx%d", &size.X, &size.Y); err != nil ||
		fmt.Sprintf("%dx%d", size.X, size.Y) != s {
		return size, "", false
	}
	return size, f, f.Readable() && min(size.X, size.Y) > 0 && max(size.X, size.Y) <= mostSide
}

// OpenRecording opens a recording.
func OpenRecording(name string) (*Recording, error) {
	size, f, ok := Parse(name)
	if !ok {
		return nil, fmt.Errorf(
			"an infrared recording has a name that ends with its size and format, as in "+
				"lit.640x480.GREY; formats are %s", Known())
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err != nil {
		file.Close()
		return nil, err
	}
	r := &Recording{file: file, layout: layoutOf(f), size: size}
	r.bytes = r.layout.line(size.X) * size.Y
	if f == "NV12" {
		r.bytes += r.bytes / 2
	}
	r.frames = int(info.Size() / int64(r.bytes))
	return r, nil
}

// Known returns the formats that can be read, for a message.
func Known() string {
	var all []string
	for _, l := range layouts {
		all = append(all, strings.TrimSpace(string(l.format)))
	}
	return strings.Join(all, ", ")
}

// Read returns the pixels of the next frame, or nil at the end: blue, green and red, row by row.
func (r *Recording) Read() (image.Point, []byte, error) {
	if r.read == r.frames {
		return r.size, nil, nil
	}
	b := make([]byte, r.bytes)
	if _, err := r.file.ReadAt(b, int64(r.read)*int64(r.bytes)); err != nil {
		return r.size, nil, err
	}
	r.read++
	pix, err := r.layout.picture(b, r.size, 0)
	return r.size, pix, err
}

// Position returns the time of the last frame.
func (r *Recording) Position() time.Duration { return time.Duration(r.read-1) * time.Second / 30 }

// Frames returns the number of frames.
func (r *Recording) Frames() int { return r.frames }

// Close closes the file.
func (r *Recording) Close() error { return r.file.Close() }
