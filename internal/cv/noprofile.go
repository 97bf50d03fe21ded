// SPDX-License-Identifier: Apache-2.0

//go:build !matprofile

package cv

// LiveMats reports that the number of open Mats is unknown. It is known with the build tag matprofile.
func LiveMats() (n int, ok bool) { return 0, false }
