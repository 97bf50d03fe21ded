// SPDX-License-Identifier: Apache-2.0

package office

import (
	"fmt"
	"time"
)

// Disk tells whether the database can be written. A failure does not end an office: what cannot be written stays in
// memory, and is written as soon as possible.
type Disk struct {
	Error string    `json:"error,omitempty"` // why writing fails; "" if it works
	Since time.Time `json:"since,omitzero"`  // when the trouble began
	Held  int       `json:"held"`            // number of events in memory only; they are lost if the program ends
	Lost  int       `json:"lost"`            // number of events that were dropped for lack of memory
}

// Sentence describes the state for a person.
func (d Disk) Sentence() string {
	switch {
	case d.Error != "":
		return d.Error + "; all goes on in memory, and is written when there is room"
	case d.Lost == 1:
		return "the state is written again; 1 event is lost"
	case d.Lost > 0:
		return fmt.Sprintf("the state is written again; %d events are lost", d.Lost)
	}
	return "the state is written again, and nothing is lost"
}

// saving is the state of writing.
type saving struct {
	later bool  // a correction is being made, or another program's changes are taken in: everything is saved at the end
	owed  bool  // the gallery has changes that could not be written
	fault error // the last error; nil: all is written
	tried time.Time
}

// retryEvery is the pause between two tries after a failure.
const retryEvery = 2 * time.Second

// keep writes what has changed beside the gallery, and reports new events. Lazy does not wait for the disk. After a
// failure it tries again after a pause.
func (w *Office) keep(lazy bool) {
	if w.saving.later {
		return
	}
	if w.saving.fault == nil || time.Since(w.saving.tried) >= retryEvery {
		w.saving.tried = time.Now()
		if w.saving.owed {
			w.save()
		} else if w.o.Past.Dirty() || w.saving.fault != nil {
			w.saving.fault = w.gallery.SaveRecords(lazy)
		}
	}
	w.tellDisk()
	w.reportEvents()
}

// before is called before each write.
func (w *Office) before() {
	w.heed()
	w.noteFault(w.o.Past.noteStrangers())
}

// save writes the gallery, with all faces that were learned until now, and everything else that has changed, in one
// transaction. After an error all of it holds in memory, and is written later.
func (w *Office) save() error {
	if w.gallery.Path() == "" {
		return nil
	}
	err := w.gallery.Save(w.gallery.Path())
	if w.saving.fault, w.saving.owed = err, err != nil; err != nil {
		w.saving.tried = time.Now()
		return fmt.Errorf("the change could not be saved; it holds until the program ends: %w", err)
	}
	w.learned = w.gallery.Learner().Counts().Learned
	return nil
}

// noteFault records an error of the database.
func (w *Office) noteFault(err error) {
	if err != nil {
		w.saving.fault = err
	}
}

// note stores the last sightings of people, writes what could not be written before, and tells about trouble.
func (w *Office) note() {
	w.heed()
	w.record(nil)
	w.noteFault(w.o.Past.noteStrangers())
	w.keep(true)
}

// tellDisk updates the state of writing, and calls the option Disk if it has changed.
func (w *Office) tellDisk() {
	var d Disk
	d.Held, d.Lost = w.o.Past.Held()
	if err := w.saving.fault; err != nil {
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

// Save writes the gallery, with all faces that were learned until now, and everything else that has changed.
func (w *Office) Save() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.save()
}

// keepPast saves newly learned faces if Keep is set, and removes old records.
func (w *Office) keepPast() {
	w.unknown.Expire(w.o.Now())
	w.expire(w.o.Now())
	w.note()
	if w.o.Keep && w.gallery.Learner().Counts().Learned != w.learned {
		w.save()
		w.tellDisk()
	}
}
