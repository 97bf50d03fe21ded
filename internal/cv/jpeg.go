// SPDX-License-Identifier: Apache-2.0

package cv

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"image"
	"slices"

	"github.com/faceauth/faceauth/internal/exif"
)

// ended returns a picture's file so that its end can be found, what follows the picture in the
// file, and whether all of it came. Without an end marker, OpenCV's decoder from memory stops where
// the data stop: OpenCV 4.10 leaves the rows below as that memory was, which may be another
// person's picture, and 4.6 refuses a progressive picture. After an end marker the rest is grey.
func ended(data []byte) (file, rest []byte, whole bool) {
	if !exif.IsJPEG(data) {
		return data, nil, true
	}
	came, whole := exif.Segments(data, func(byte, []byte) bool { return true })
	if whole {
		return data, data[came+2:], true
	}
	return append(slices.Clone(data[:came]), 0xff, exif.End), nil, false
}

const (
	mostHalved = 4 * maxPixels // of a JPEG that is read at half its width and height
	// mostHeld limits the bytes of the coefficients of such a JPEG, which a decoder holds at once
	// if they come in several scans.
	mostHeld = 768 << 20
)

// measure returns the size of a JPEG (ITU-T T.81, section B.2.2) if it is read at half of it, and
// otherwise 0. The error wraps [ErrTooLarge].
func measure(data []byte) (full image.Point, err error) {
	var frame []byte
	several := false // scans
	exif.Segments(data, func(marker byte, b []byte) bool {
		switch {
		case marker == exif.Scan:
			several = several || len(b) > 0 && len(frame) > 5 && b[0] < frame[5]
		case marker == 0xc0 || marker > 0xc0 && marker <= 0xcf && marker%4 != 0:
			frame, several = b, marker%4 == 2
		}
		return marker != exif.Scan
	})
	if len(frame) < 6 || len(frame) < 6+3*int(frame[5]) {
		return full, nil // the decoder finds no picture
	}
	full.Y = int(binary.BigEndian.Uint16(frame[1:]))
	full.X = int(binary.BigEndian.Uint16(frame[3:]))
	pixels, wide, high, blocks := full.X*full.Y, 1, 1, 0
	for i := 7; i < 6+3*int(frame[5]); i += 3 { // how each component is sampled
		h, v := int(frame[i]>>4), int(frame[i]&15)
		wide, high, blocks = max(wide, h), max(high, v), blocks+h*v
	}
	switch held := 2 * pixels / (wide * high) * blocks; {
	case pixels <= maxPixels:
		return image.Point{}, nil
	case pixels > mostHalved:
		return full, fmt.Errorf("%w: %dx%d pixels; at most %d million of a JPEG are read",
			ErrTooLarge, full.X, full.Y, mostHalved/1_000_000)
	case several && held > mostHeld:
		return full, fmt.Errorf("%w: %dx%d pixels of a progressive JPEG; save it as a baseline one",
			ErrTooLarge, full.X, full.Y)
	}
	return full, nil
}

// films are the first brands of the films in motion photographs (MP4 and MOV).
var films = []string{"isom", "iso2", "iso4", "iso5", "iso6", "mp41", "mp42", "qt  ", "avc1"}

// moving reports whether what follows a picture in its file holds a film.
func moving(rest []byte) bool {
	for {
		_, after, found := bytes.Cut(rest, []byte("ftyp"))
		if !found || len(after) < 4 {
			return false
		}
		if slices.Contains(films, string(after[:4])) {
			return true
		}
		rest = after
	}
}
