// SPDX-License-Identifier: Apache-2.0

package fleet

// Crash closes the files of a device and saves nothing, as the end of a program that is killed does.
func (d *Device) Crash() { d.closeFiles() }

// CloseRing has the keys of people not be written any more.
func (d *Device) CloseRing() { d.ring.Close() }

// CloseOutbox has nothing be written that is said.
func (d *Device) CloseOutbox() { d.outbox.Close() }
