// SPDX-License-Identifier: Apache-2.0

package office

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/faceauth/faceauth/office/logbook"
)

// Disk tells whether the logbook, the strangers and the gallery can be written. A failure does not end an office: data
// stays in memory and is written as soon as possible.
type Disk struct {
	Error string    `json:"error,omitempty"` // why writing fails; "" if it works
	Since time.Time `json:"since,omitzero"`  // when the trouble began
	Held  int       `json:"held"`            // number of events in memory only; they are lost if the program ends
	Lost  int       `json:"lost"`            // number of events that were dropped for lack of memory
}

// faults are the last errors of writing.
type faults struct {
	gallery, unknown, notes error
	tried                   time.Time
}

// retryEvery is the pause between two tries after a failure.
const retryEvery = 5 * time.Second

// guard returns save, extended to store its last error. The lock must be held in calls.
func guard(save func() error, last *error) func() error {
	return func() error {
		*last = save()
		return *last
	}
}

// note stores the last sightings of people, repeats failed writes, and reports changes with tellDisk.
func (w *Office) note() {
	if w.o.Book != nil {
		w.faults.notes = w.o.Book.Note(w.room.State())
	}
	w.heed()
	if now := time.Now(); now.Sub(w.faults.tried) >= retryEvery {
		w.faults.tried = now
		w.saveAgain()
	}
	w.tellDisk()
}

// saveAgain repeats failed saves.
func (w *Office) saveAgain() {
	if w.faults.unknown != nil {
		w.o.SaveUnknown()
	}
	if w.faults.gallery != nil {
		w.noteUnkept(w.saveGallery())
	}
}

// keepUnknown saves the strangers if they have changed.
func (w *Office) keepUnknown() {
	if w.unknown.Changed() {
		w.o.SaveUnknown()
	}
}

// tellDisk updates the state of writing, and calls the option Disk if it has changed.
func (w *Office) tellDisk() {
	var t logbook.Trouble
	if w.o.Book != nil {
		t = w.o.Book.Trouble()
	}
	d := Disk{Held: t.Held, Lost: t.Lost}
	if err := cmp.Or(t.Err, w.faults.gallery, w.faults.unknown, w.faults.notes, w.unkept); err != nil {
		d.Error = err.Error()
		if d.Since = w.disk.Since; d.Since.IsZero() {
			d.Since = w.o.Now()
		}
	}
	news := (d.Error == "") != (w.disk.Error == "")
	w.disk = d
	if news {
		w.o.Disk(d)
	}
}

// unsaved returns an error if data was never written.
func (w *Office) unsaved() error {
	if err := errors.Join(w.faults.gallery, w.faults.unknown); err != nil {
		return fmt.Errorf("the latest corrections and faces could not be saved and are lost: %w", err)
	}
	return nil
}

// save writes the gallery and the strangers.
func (w *Office) save() error {
	if err := errors.Join(w.saveGallery(), w.o.SaveUnknown()); err != nil {
		return unsaved(err)
	}
	return nil
}

// saveGallery writes the gallery, and records its content.
func (w *Office) saveGallery() error {
	if err := w.o.Save(); err != nil {
		return err
	}
	w.learned = w.gallery.Learner().Counts().Learned
	return w.recordSaved()
}

// Save writes the gallery, with all faces that were learned until now.
func (w *Office) Save() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.saveGallery()
}

// keepPast saves newly learned faces if Keep is set, and removes old records. Data that cannot be written stays in
// memory, and the next call tries again.
func (w *Office) keepPast() {
	w.unkept = nil
	if w.o.Keep && w.gallery.Learner().Counts().Learned != w.learned {
		w.noteUnkept(w.saveGallery())
	}
	w.expire(w.o.Now())
}
