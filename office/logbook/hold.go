// SPDX-License-Identifier: Apache-2.0

package logbook

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/faceauth/faceauth/office/presence"
)

// Trouble says that a logbook cannot be written, as on a full disk. It goes on in memory, which is written as soon as
// that is possible.
type Trouble struct {
	Err   error     // of the last try; nil where there is no trouble
	Since time.Time // when it began
	Held  int       // events that are in memory alone
	Lost  int       // events of this trouble, and of those before, that there was no room for in memory
}

// retryEvery is how often a logbook in trouble is tried: events come faster, and each try writes all that is held.
const retryEvery = 2 * time.Second

// hold is what is in memory and not in the file.
type hold struct {
	err     error
	since   time.Time
	tried   time.Time
	written uint64 // number of the last event in the file
	lost    int
}

// put appends a line of what has changed, and takes that in. What cannot be written is held in memory, as far as that is
// bounded, and the error is kept for [Book.Trouble]. The error is that of an entry that cannot be written at all.
func (b *Book) put(e entry) error {
	if _, err := json.Marshal(e); err != nil {
		return err
	}
	b.apply(e)
	if b.hold.err != nil {
		b.stale = b.stale || e.Names != nil // the file may have names that were taken back meanwhile
		b.retry(false)
		return nil
	}
	if err := b.file.Append(e); err != nil {
		b.hold.err, b.hold.since, b.hold.tried = err, time.Now(), time.Now()
		b.stale = b.stale || e.Names != nil
		return nil
	}
	b.kept()
	if e.State != nil {
		b.notes.empty(e.State.People)
	}
	return nil
}

// kept says that the file has all that is known.
func (b *Book) kept() {
	b.hold.written = b.lastEvent()
	if b.file.Lines() > b.s.Lines || b.stale {
		b.rewrite() // what fails leaves the file as it is, and is tried with the next line
	}
}

// retry writes what is held, in one line.
func (b *Book) retry(now bool) {
	if b.hold.err == nil || !now && time.Since(b.hold.tried) < retryEvery {
		return
	}
	err := b.file.Append(entry{State: &b.state, Events: b.held(), Queues: b.queues, Names: b.names})
	b.hold.err, b.hold.tried = err, time.Now()
	if err == nil {
		b.kept()
	}
}

// held returns the events that are not in the file.
func (b *Book) held() []presence.Event { return b.waiting(progress{Done: b.hold.written}) }

// shedEvents lets go of the oldest events, over many, for which there is no room, and counts those that the file has not.
func (b *Book) shedEvents(over int) {
	for _, e := range b.events[:over] {
		if e.ID > b.hold.written {
			b.hold.lost++
		}
		delete(b.names, e.ID)
		delete(b.gone, e.ID)
	}
}

// Trouble says how the writing goes, and tries again what could not be written. Call it every few seconds.
func (b *Book) Trouble() Trouble {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.retry(false)
	t := Trouble{Lost: b.hold.lost}
	if b.hold.err != nil {
		t.Err, t.Since, t.Held = fmt.Errorf("writing the logbook: %w", b.hold.err), b.hold.since, len(b.held())
	}
	return t
}
