// SPDX-License-Identifier: Apache-2.0

package logbook

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/faceauth/faceauth/office/presence"
)

// Trouble describes a logbook that cannot be written, for example on a full disk. Events stay in memory and are written
// as soon as possible.
type Trouble struct {
	Err   error     // error of the last try; nil: no trouble
	Since time.Time // when it began
	Held  int       // number of events in memory only
	Lost  int       // number of events that were dropped for lack of memory, in this trouble and earlier ones
}

// retryEvery is the pause between two tries of a logbook in trouble, because each try writes all waiting events.
const retryEvery = 2 * time.Second

// hold is the state of events that are in memory and not in the file.
type hold struct {
	err     error
	since   time.Time
	tried   time.Time
	written uint64 // number of the last event in the file
	lost    int
}

// put writes a line and applies it. A line that cannot be written stays in memory, within limits, and [Book.Trouble]
// returns the error. The error of put is about an entry that can never be written.
func (b *Book) put(e entry) error {
	if _, err := json.Marshal(e); err != nil {
		return err
	}
	b.apply(e)
	if b.hold.err != nil {
		b.stale = b.stale || e.Names != nil // the file may have names that have changed meanwhile
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

// kept records that the file has everything.
func (b *Book) kept() {
	b.hold.written = b.lastEvent()
	if b.file.Lines() > b.s.Lines || b.stale {
		b.rewrite() // after an error the file is unchanged, and the next line tries again
	}
}

// retry writes the waiting events: in one line, or the whole file if it has a name that must be removed.
func (b *Book) retry(now bool) {
	if b.hold.err == nil || !now && time.Since(b.hold.tried) < retryEvery {
		return
	}
	var err error
	if b.stale {
		err = b.rewrite()
	} else {
		err = b.file.Append(entry{State: &b.state, Events: b.shown(b.held()), Queues: b.queues, Names: b.names})
	}
	b.hold.err, b.hold.tried = err, time.Now()
	if err == nil {
		b.kept()
	}
}

// held returns the events that are not in the file.
func (b *Book) held() []presence.Event { return b.waiting(progress{Done: b.hold.written}) }

// shedEvents forgets the changed names of the oldest events, which are being dropped, and counts the events that were
// never written. Over is the number of dropped events.
func (b *Book) shedEvents(over int) {
	for _, e := range b.events[:over] {
		if e.ID > b.hold.written {
			b.hold.lost++
		}
		delete(b.names, e.ID)
		delete(b.gone, e.ID)
	}
}

// Trouble returns the state of writing, and tries again to write waiting events. Call it every few seconds.
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
