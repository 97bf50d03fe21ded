// SPDX-License-Identifier: Apache-2.0

package fleet

import "fmt"

// Crash closes the files of a device without saving anything, as when a program is killed.
func (d *Device) Crash() { d.closeFiles() }

// CloseRing makes every later write of the key ring fail.
func (d *Device) CloseRing() { d.ring.Close() }

// CloseOutbox makes every later write to the outbox fail.
func (d *Device) CloseOutbox() { d.outbox.Close() }

// Stuck describes the entries that wait in the outbox, and which of them the log has taken.
func (d *Device) Stuck() (s string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, w := range d.pending {
		s += fmt.Sprintf(" pending %s stored %v seen %d;", &w.e, w.stored, d.base.Last(d.id))
	}
	if d.aside != nil {
		for _, k := range d.aside.all {
			if !k.done {
				s += fmt.Sprintf(" aside %s stored %v until %d spent %v;", &k.e, k.stored, k.until, d.base.Spent(k.e))
			}
		}
	}
	return s
}
