// SPDX-License-Identifier: Apache-2.0

package office

// Minute does the work that an office does once a minute.
func Minute(w *Office) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.keepPast()
}
