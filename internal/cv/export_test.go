// SPDX-License-Identifier: Apache-2.0

package cv

// Unexported functions for the tests of this package.
var (
	Classify    = classify
	CountFrames = countFrames
	Measure     = measure
)

// Bare reports whether a picture has no pixels yet.
func Bare(m *Image) bool { return m.later != nil && m.mat.Ptr() == nil }

// Packed reports whether they are a JPEG.
func Packed(m *Image) bool {
	_, ok := m.later.(*packed)
	return ok && Bare(m)
}
