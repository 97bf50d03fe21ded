// SPDX-License-Identifier: Apache-2.0

package pipeline

// What package pipeline looks at of a picture.
var (
	Fit   = fit
	Shown = shown
)
