// SPDX-License-Identifier: Apache-2.0

package office

import (
	"cmp"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/faceauth/faceauth/gallery"
)

// keeper keeps the rows in line with what cameras see, and memory in line with the rows.
type keeper struct {
	o       Options
	mu      *sync.Mutex // guards the fields below, those of the other parts, and the order of events; that of the Past
	gallery *gallery.Gallery
	past    *Past
	unknown *groups
	room    *room
	views   []*view
	seen    bool              // somebody was seen, which is not written yet
	ended   []*sighted        // sightings that are not written since they ended
	writing []*sighted        // sightings of the present transaction
	learned map[uint64]ranges // observations by which sightings taught the learner, and which are not saved yet
	rows    *rows             // nil if they may have changed
	turn    uint64            // of the gallery, as far as the office has taken it in
	kept    int64             // number of learned faces at the last save of the gallery
	tried   time.Time         // when writing was last tried
	fault   error             // the last error of writing; nil: all is written
	broken  error             // the error that ends the run
	disk    Disk
}

// Disk tells whether the database can be written. A failure does not end an office: what cameras see stays in memory,
// within limits, and is written as soon as possible. Corrections are refused meanwhile.
type Disk struct {
	Error string `json:"error,omitempty"` // why writing fails; "" if it works
	Held  int    `json:"held"`            // number of events in memory only; they are lost if the program ends
	Lost  int    `json:"lost"`            // number of events that were dropped for lack of memory
}

// Sentence describes the state for a person.
func (d Disk) Sentence() string {
	switch {
	case d.Error != "":
		return d.Error + "; what cameras see stays in memory, and is written when there is room; corrections wait"
	case d.Lost > 0:
		return fmt.Sprintf("the state is written again; events that are lost: %d", d.Lost)
	}
	return "the state is written again, and nothing is lost"
}

// retryEvery is the pause between two tries after a failure.
const retryEvery = 2 * time.Second

// change makes a correction: one transaction, with everything that is not written yet. On error nothing has changed.
// Then is done after it, with the lock.
func (w *keeper) change(do func(t *gallery.Tx) error, then ...func()) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.said(do); err != nil {
		return err
	}
	w.fault = nil
	w.note(w.reload())
	for _, f := range then {
		f()
	}
	w.leave()
	w.keep(false)
	return nil
}

var errChanged = errors.New("another program has just changed people")

// said makes a transaction with everything that is not written yet. No other program changes people meanwhile.
func (w *keeper) said(do func(t *gallery.Tx) error) error {
	w.heed()
	err := w.gallery.Change(func(t *gallery.Tx) error {
		if w.gallery.Turn() != w.turn {
			return errChanged
		}
		w.write(t)
		if err := w.writeLearned(t); err != nil {
			return err
		}
		return do(t)
	})
	switch {
	case errors.Is(err, errChanged):
		return w.said(do)
	case err != nil:
		return err
	}
	w.written(true)
	w.learned, w.kept = make(map[uint64]ranges), w.gallery.Learner().Counts().Learned
	return nil
}

// keep writes what is not written, except what was learned. Lazily does not wait for the disk. After a failure it tries
// again after a pause.
func (w *keeper) keep(lazily bool) {
	dirty := w.seen || w.past.dirty() || w.unknown.dirty() || len(w.ended) > 0
	if (dirty || w.fault != nil) && (w.fault == nil || time.Since(w.tried) >= retryEvery) {
		w.tried = time.Now()
		w.fault = w.gallery.Records(lazily, w.write)
		w.written(w.fault == nil)
	}
	w.tellDisk()
}

// look reads the rows, after it has written what cameras have seen. An error gives less, and is noted.
func (w *keeper) look(do func(t *gallery.Tx) error) {
	w.keep(true)
	if err := w.gallery.Look(do); !errors.Is(err, errEnough) {
		w.note(err)
	}
}

// Save writes everything, with all faces that were learned until now.
func (w *keeper) Save() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.save()
}

func (w *keeper) save() error {
	w.fault, w.tried = w.said(func(*gallery.Tx) error { return nil }), time.Now()
	return w.fault
}

// heed takes in what other programs have changed in the gallery. The lock must be held.
func (w *keeper) heed() {
	w.note(w.gallery.Update())
	if now := w.gallery.Renumbered(); len(now) > 0 {
		for id, r := range w.learned {
			w.learned[id] = r.renumbered(now)
		}
	}
	if w.gallery.Turn() == w.turn {
		return
	}
	if w.unknown.dirty() {
		w.keep(true)
	}
	if !w.unknown.dirty() { // otherwise the rows lack strangers: the disk is full
		w.note(w.reload())
		w.leave()
	} else {
		w.turn = w.gallery.Turn()
	}
}

// latest writes the last sightings of people, and what could not be written before, and tells about trouble.
func (w *keeper) latest() {
	w.heed()
	w.record(nil)
	w.keep(true)
}

// tellDisk updates the state of writing, and calls the option Disk if it has changed.
func (w *keeper) tellDisk() {
	d := Disk{Held: len(w.past.waiting), Lost: w.past.lost}
	if w.fault != nil {
		d.Error = w.fault.Error()
	}
	news := (d.Error == "") != (w.disk.Error == "")
	w.disk = d
	if news {
		call(w.o.Disk, d)
	}
}

// minute saves newly learned faces if Keep is set, and removes what is too old.
func (w *keeper) minute() {
	w.unknown.Expire(w.o.Now())
	w.latest()
	if w.fault == nil {
		w.note(w.gallery.Records(true, func(t *gallery.Tx) error { return w.expire(t, w.o.Now()) }))
	}
	if w.o.Keep && w.gallery.Learner().Counts().Learned != w.kept {
		w.save()
	}
}

// tell records events, writes them with the state of the room, and then reports them.
func (w *keeper) tell(events []Event) {
	if len(events) == 0 {
		return
	}
	w.record(events)
	w.keep(false)
	for _, e := range events { // they are written, or held because they cannot be written
		call(w.o.Event, e)
	}
}

// record records events and the state of the room.
func (w *keeper) record(events []Event) {
	for id, p := range w.room.people {
		p.Name = cmp.Or(w.gallery.Name(id), p.Name) // the last one, of somebody who is forgotten
	}
	for i, e := range events {
		events[i].Name = cmp.Or(w.gallery.Name(e.Person), e.Name)
	}
	w.past.record(w.room.State(), events)
}
