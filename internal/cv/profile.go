// SPDX-License-Identifier: Apache-2.0

//go:build matprofile

package cv

import "gocv.io/x/gocv"

// LiveMats returns the number of gocv Mats that were made and not closed.
func LiveMats() (n int, ok bool) { return gocv.MatProfile.Count(), true }
