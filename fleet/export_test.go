// SPDX-License-Identifier: Apache-2.0

package fleet

import "fmt"

// Crash closes the files of a device and saves nothing, as the end of a program that is killed does.
func (d *Device) Crash() { d.closeFiles() }

// CloseRing has the keys of people not be written any more.
func (d *Device) CloseRing() { d.ring.Close() }

// CloseOutbox has nothing be written that is said.
func (d *Device) CloseOutbox() { d.outbox.Close() }

// Stuck says what waits, and what of it the log has taken.
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
