// SPDX-License-Identifier: Apache-2.0

package anomaly

// SetDirect sets the size up to which components are solved directly, and returns a function that
// sets it back.
func SetDirect(n int) func() {
	before := direct
	direct = n
	return func() { direct = before }
}
