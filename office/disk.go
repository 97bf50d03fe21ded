// SPDX-License-Identifier: Apache-2.0

package office

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/office/logbook"
)

// Disk says how the writing of the logbook, of the strangers and of the gallery goes. What cannot be written does not
// end an office: it goes on in memory, and is written as soon as that is possible.
type Disk struct {
	Error string    `json:"error,omitempty"` // why it cannot be written; "" where there is no trouble
	Since time.Time `json:"since,omitzero"`  // when the trouble began
	Held  int       `json:"held"`            // events that are in memory alone, and are lost if the program ends
	Lost  int       `json:"lost"`            // events for which there was no room in memory
}

// faults are what could not be written last.
type faults struct {
	gallery, unknown, notes error
	tried                   time.Time
}

// retryEvery is how often what could not be written is tried again.
const retryEvery = 5 * time.Second

// guard has a function that saves note how that went. The lock is held where it is called.
func guard(save func() error, last *error) func() error {
	return func() error {
		*last = save()
		return *last
	}
}

// note keeps when people were seen last, tries again what could not be written, and tells of it where that is news.
func (w *Office) note() {
	if w.o.Book != nil {
		w.faults.notes = w.o.Book.Note(w.room.State())
	}
	if now := time.Now(); now.Sub(w.faults.tried) >= retryEvery {
		w.faults.tried = now
		w.saveAgain()
	}
	w.tellDisk()
}

// saveAgain tries again what could not be saved.
func (w *Office) saveAgain() {
	if w.faults.unknown != nil {
		w.o.SaveUnknown()
	}
	// Where another program has written the gallery, that would be lost.
	if err := w.faults.gallery; err != nil && !errors.Is(err, gallery.ErrChanged) {
		w.fail(w.saveGallery())
	}
}

// keepUnknown writes the strangers where there is something new of them.
func (w *Office) keepUnknown() {
	if w.unknown.Changed() {
		w.o.SaveUnknown()
	}
}

// tellDisk finds out how the writing goes, and tells of it where that is news.
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

// unsaved returns an error for what was never written.
func (w *Office) unsaved() error {
	if err := errors.Join(w.faults.gallery, w.faults.unknown); err != nil {
		return fmt.Errorf("what was said or seen of late is lost: %w", err)
	}
	return nil
}

// save writes what was said.
func (w *Office) save() error {
	if err := errors.Join(w.saveGallery(), w.o.SaveUnknown()); err != nil {
		return unsaved(err)
	}
	return nil
}

// saveGallery writes the gallery, and notes what was learned until then.
func (w *Office) saveGallery() error {
	if err := w.o.Save(); err != nil {
		return err
	}
	w.learned = w.gallery.Learner().Counts().Learned
	return w.noted()
}

// Save writes the gallery, with what was learned until now.
func (w *Office) Save() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.saveGallery()
}

// keepPast writes what was learned, where that is wanted and there is something new, and removes what is too old of the
// past. What cannot be written holds in memory, and is tried again.
func (w *Office) keepPast() {
	w.unkept = nil
	if w.o.Keep && w.gallery.Learner().Counts().Learned != w.learned {
		w.fail(w.saveGallery())
	}
	w.expire(w.o.Now())
}
