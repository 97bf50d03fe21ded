// SPDX-License-Identifier: Apache-2.0

// Package exif reads how a camera was held, and the segments of a JPEG. It decodes nothing.
//
// [Orientation] reads JPEG and WebP files, [Change] says what it means, and [Segments] walks
// through a JPEG.
package exif

import (
	"bytes"
	"encoding/binary"
)

// Markers of JPEG (ITU-T T.81, table B.1). End is the last one, and Scan comes before pixels.
const (
	End           = 0xd9
	Scan          = 0xda
	markerStart   = 0xd8
	markerApp1    = 0xe1
	markerRestart = 0xd0 // the first of eight
	markerStuffed = 0x00
	markerTEM     = 0x01
)

// IsJPEG reports whether a file begins as a JPEG.
func IsJPEG(data []byte) bool {
	return len(data) > 3 && data[0] == 0xff && data[1] == markerStart && data[2] == 0xff
}

// Segments calls each for each marker segment of a JPEG, with the segment's content, until it
// returns false. It returns where the last incomplete part begins, and whether the end marker came.
// A picture inside a segment, such as the thumbnail in EXIF, does not count.
func Segments(data []byte, each func(marker byte, content []byte) bool) (place int, whole bool) {
	for at := 2; ; {
		next := bytes.IndexByte(data[at:], 0xff)
		if next < 0 {
			return len(data), false
		}
		place = at + next
		at = place + 1
		for at < len(data) && data[at] == 0xff {
			at++
		}
		if at == len(data) {
			return place, false
		}
		marker := data[at]
		at++
		switch {
		case marker == End:
			return place, true
		case marker == markerStuffed, marker == markerTEM, marker >= markerRestart &&
			marker <= markerStart:
			continue
		}
		if at+2 > len(data) {
			return place, false
		}
		length := int(binary.BigEndian.Uint16(data[at:]))
		if length < 2 || at+length > len(data) {
			return place, false
		}
		if !each(marker, data[at+2:at+length]) {
			return place, false
		}
		at += length
	}
}

// Change returns how a stored picture becomes the shown one (Exif 2.3, section 4.6.4): mirrored, so
// that left and right change places, and then turned clockwise.
func Change(orientation int) (mirror bool, degrees int) {
	switch orientation {
	case 2, 4, 5, 7:
		mirror = true
	}
	return mirror, map[int]int{3: 180, 4: 180, 5: 270, 6: 90, 7: 90, 8: 270}[orientation]
}

// Orientation returns the EXIF orientation of a JPEG or WebP file, 1 to 8; 0 for another file, or
// if there is none.
func Orientation(data []byte) (orientation int) {
	if !IsJPEG(data) {
		return webpOrientation(data)
	}
	Segments(data, func(marker byte, content []byte) bool {
		if marker == markerApp1 && bytes.HasPrefix(content, []byte("Exif\x00")) {
			orientation = exifOrientation(content)
			return false
		}
		return marker != Scan
	})
	return orientation
}

// webpOrientation returns the EXIF orientation of a WebP file, which OpenCV does not apply; 0 for
// other files.
func webpOrientation(data []byte) int {
	if len(data) < 12 || string(data[:4]) != "RIFF" || string(data[8:12]) != "WEBP" {
		return 0
	}
	for rest := data[12:]; len(rest) >= 8; {
		n := int64(binary.LittleEndian.Uint32(rest[4:]))
		if n > int64(len(rest)-8) {
			return 0
		}
		if string(rest[:4]) == "EXIF" {
			return exifOrientation(rest[8 : 8+n])
		}
		rest = rest[min(int64(len(rest)), 8+n+n%2):]
	}
	return 0
}

// exifOrientation returns the orientation in the first folder of EXIF, or 0.
func exifOrientation(b []byte) int {
	if len(b) >= 6 && string(b[:4]) == "Exif" {
		b = b[6:]
	}
	if len(b) < 8 {
		return 0
	}
	var order binary.ByteOrder = binary.LittleEndian
	if string(b[:2]) == "MM" {
		order = binary.BigEndian
	}
	at := int64(order.Uint32(b[4:]))
	if at > int64(len(b)-2) {
		return 0
	}
	n := int(order.Uint16(b[at:]))
	for entry := b[at+2:]; n > 0 && len(entry) >= 12; n, entry = n-1, entry[12:] {
		if order.Uint16(entry) == 0x112 {
			return int(order.Uint16(entry[8:]))
		}
	}
	return 0
}
