// SPDX-License-Identifier: Apache-2.0

package cv

// Unexported functions for the tests of this package.
var (
	Classify    = classify
	CountFrames = countFrames
)
