// SPDX-License-Identifier: Apache-2.0

// Package raw finds the picture that cameras put into their raw files beside the values of the
// sensor: a JPEG, mostly of full size. It decodes nothing.
//
// [Is] tells raw files apart from others, and [Preview] finds the picture.
package raw

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"path/filepath"
	"slices"
	"strings"
)

// ErrNone is wrapped if a raw file holds no JPEG that can stand for its picture.
var ErrNone = errors.New("this raw picture cannot be read")

const (
	least = 480_000 // pixels of a JPEG that can stand for a picture: smaller ones are thumbnails
	// mostFound and mostSegments limit what is read of a file that is none.
	mostFound    = 4096 // beginnings of JPEGs
	mostSegments = 64   // of a JPEG before its size
)

// Endings of raw files.
var endings = []string{".3fr", ".arw", ".cr2", ".cr3", ".crw", ".dcr", ".dng", ".erf", ".fff",
	".gpr", ".iiq", ".kdc",
	".mef", ".mos", ".mrw", ".nef", ".nrw", ".orf", ".pef", ".raf", ".raw", ".rw2", ".rwl", ".sr2",
	".srf", ".srw", ".x3f"}

// Named reports whether a file is a raw picture by its name.
func Named(path string) bool {
	return slices.Contains(endings, strings.ToLower(filepath.Ext(path)))
}

// Begins reports whether a file begins as those of a camera, and as no other picture does.
func Begins(head []byte) bool {
	for _, magic := range []string{"FUJIFILMCCD-RAW", "IIRO", "IIRS", "MMOR", "IIU\x00", "FOVb",
		"\x00MRM",
		"II\x1a\x00\x00\x00HEAPCCDR"} {
		if bytes.HasPrefix(head, []byte(magic)) {
			return true
		}
	}
	return len(head) >= 12 && string(head[4:12]) == "ftypcrx "
}

// TIFF reports whether a file begins as a TIFF, which most raw files are.
func TIFF(head []byte) bool {
	return bytes.HasPrefix(head, []byte("II*\x00")) || bytes.HasPrefix(head, []byte("MM\x00*"))
}

// Is reports whether a file with this name is a raw picture. A TIFF is one if its first picture is
// a thumbnail, or has others below it.
func Is(path string, data []byte) bool {
	if Begins(data) {
		return true
	}
	if !TIFF(data) {
		return false
	}
	if Named(path) {
		return true
	}
	const newSubfileType, subIFDs, reduced = 254, 330, 1
	tags := first(data)
	// one may have smaller copies below it
	scan := strings.HasPrefix(strings.ToLower(filepath.Ext(path)), ".tif")
	return tags[newSubfileType]&reduced != 0 || tags[subIFDs] != 0 && !scan
}

// first returns values of the first folder of a TIFF: of the tags with one short or long value, and
// otherwise where the values lie.
func first(data []byte) map[int]uint32 {
	tags := map[int]uint32{}
	if len(data) < 8 {
		return tags
	}
	var order binary.ByteOrder = binary.LittleEndian
	if data[0] == 'M' {
		order = binary.BigEndian
	}
	at := int64(order.Uint32(data[4:]))
	if at > int64(len(data)-2) {
		return tags
	}
	n := int(order.Uint16(data[at:]))
	for entry := data[at+2:]; n > 0 && len(entry) >= 12; n, entry = n-1, entry[12:] {
		value := order.Uint32(entry[8:])
		if order.Uint16(entry[2:]) == 3 {
			value = uint32(order.Uint16(entry[8:]))
		}
		tags[int(order.Uint16(entry))] = value
	}
	return tags
}

// Preview returns the largest JPEG in a raw file, and how the camera was held: an EXIF orientation,
// or 0. Several of one size are tiles of the sensor's values, and none of them is the picture. The
// error wraps [ErrNone].
func Preview(data []byte) (jpeg []byte, orientation int, err error) {
	const tiles = 3
	begins := map[image.Point][]int{}
	largest := image.Point{}
	for at, n := 0, 0; n < mostFound; at, n = at+1, n+1 {
		next := bytes.Index(data[at:], []byte("\xff\xd8\xff"))
		if next < 0 {
			break
		}
		at += next
		size := sizeOf(data[at:])
		if size != (image.Point{}) {
			begins[size] = append(begins[size], at)
		}
	}
	for size, all := range begins {
		if len(all) < tiles && size.X*size.Y > largest.X*largest.Y {
			largest = size
		}
	}
	switch n := largest.X * largest.Y; {
	case n == 0:
		return nil, 0, fmt.Errorf("%w: no JPEG is in it; develop it", ErrNone)
	case n < least:
		return nil, 0, fmt.Errorf("%w: only a thumbnail of %dx%d pixels is in it; develop it",
			ErrNone, largest.X, largest.Y)
	}
	return data[begins[largest][0]:], Held(data), nil
}

// Held returns the EXIF orientation of a raw file, or 0.
func Held(data []byte) int {
	const orientation, longest = 274, 1 << 20
	at := bytes.Index(data[:min(len(data), longest)], []byte("CMT1"))
	if at >= 4 && string(data[4:8]) == "ftyp" {
		data = data[at+4:] // Canon's box with a TIFF
	}
	return int(first(data)[orientation])
}

// sizeOf returns the size of a JPEG of 8 bits as decoders read it (ISO/IEC 10918-1, annex B), or 0.
func sizeOf(b []byte) image.Point {
	b = b[2:]
	for n := 0; n < mostSegments && len(b) >= 9 && b[0] == 0xff; n++ {
		switch kind := b[1]; {
		case kind == 0xff:
			b = b[1:]
			continue
		case kind >= 0xc0 && kind <= 0xc2:
			if b[4] != 8 {
				return image.Point{}
			}
			return image.Pt(int(binary.BigEndian.Uint16(b[7:])),
				int(binary.BigEndian.Uint16(b[5:])))
		case kind <= 0xda && kind != 0xc4 && kind != 0xcc: // these two hold tables
			return image.Point{} // lossless, or the picture begins without a size
		}
		length := 2 + int(binary.BigEndian.Uint16(b[2:]))
		if length < 4 || length > len(b) {
			return image.Point{}
		}
		b = b[length:]
	}
	return image.Point{}
}
