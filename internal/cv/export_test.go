// SPDX-License-Identifier: Apache-2.0

package cv

// Unexported functions for the tests of this package.
var (
	Classify    = classify
	CountFrames = countFrames
	OpenDecoded = openVideo // FFmpeg decodes each frame
)

// Packed reports whether the pixels of a picture are not decoded yet.
func Packed(m *Image) bool { return m.packed != nil && m.mat.Ptr() == nil }

// Bare reports whether a frame has no pixels yet.
func Bare(m *Image) bool { return m.of != nil && m.mat.Ptr() == nil }
