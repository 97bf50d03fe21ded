// SPDX-License-Identifier: Apache-2.0

package cv

// What tests of this package see.
var (
	Classify    = classify
	CountFrames = countFrames
)
