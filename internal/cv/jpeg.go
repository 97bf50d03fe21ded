// SPDX-License-Identifier: Apache-2.0

package cv

import (
	"bytes"
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
