// SPDX-License-Identifier: Apache-2.0

package cv

import (
	"slices"

	"github.com/faceauth/faceauth/internal/exif"
)

// ended returns a picture's file so that its end can be found, and whether all of it came. Without
// an end marker, OpenCV's decoder from memory stops where the data stop: OpenCV 4.10 leaves the
// rows below as that memory was, which may be another person's picture, and 4.6 refuses a
// progressive picture. After an end marker the rest is grey.
func ended(data []byte) (file []byte, whole bool) {
	if !exif.IsJPEG(data) {
		return data, true
	}
	came, whole := exif.Segments(data, func(byte, []byte) bool { return true })
	if whole {
		return data, true
	}
	return append(slices.Clone(data[:came]), 0xff, exif.End), false
}
