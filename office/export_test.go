// SPDX-License-Identifier: Apache-2.0

package office

// Minute does what an office does each minute.
func Minute(w *Office) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.keepPast()
}
