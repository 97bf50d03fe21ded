// SPDX-License-Identifier: Apache-2.0

package cv

import (
	"bytes"
	"encoding/binary"
	"slices"
)

// Markers of JPEG (ITU-T T.81, table B.1).
const (
	markerStart   = 0xd8
	markerEnd     = 0xd9
	markerScan    = 0xda
	markerApp1    = 0xe1
	markerRestart = 0xd0 // the first of eight
	markerStuffed = 0x00
	markerTEM     = 0x01
)

func isJPEG(data []byte) bool {
	return len(data) > 3 && data[0] == 0xff && data[1] == markerStart && data[2] == 0xff
}

// segments calls each for each marker segment of a JPEG, with the segment's content, until it
// returns false. It returns where the last incomplete part begins, and whether the end marker came.
// A picture inside a segment, such as the thumbnail in EXIF, does not count.
func segments(data []byte, each func(marker byte, content []byte) bool) (place int, whole bool) {
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
		case marker == markerEnd:
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

// ended returns a picture's file so that its end can be found, and whether all of it came. Without
// an end marker, OpenCV's decoder from memory stops where the data stop: OpenCV 4.10 leaves the
// rows below as that memory was, which may be another person's picture, and 4.6 refuses a
// progressive picture. After an end marker the rest is grey.
func ended(data []byte) (file []byte, whole bool) {
	if !isJPEG(data) {
		return data, true
	}
	came, whole := segments(data, func(byte, []byte) bool { return true })
	if whole {
		return data, true
	}
	return append(slices.Clone(data[:came]), 0xff, markerEnd), false
}

// orientationOf returns the EXIF orientation of a JPEG or WebP file, 1 to 8; 0 for another file, or
// if there is none.
func orientationOf(data []byte) (orientation int) {
	if !isJPEG(data) {
		return webpOrientation(data)
	}
	segments(data, func(marker byte, content []byte) bool {
		if marker == markerApp1 && bytes.HasPrefix(content, []byte("Exif\x00")) {
			orientation = exifOrientation(content)
			return false
		}
		return marker != markerScan
	})
	return orientation
}
