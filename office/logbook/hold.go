// SPDX-License-Identifier: Apache-2.0

package logbook

import (
	"errors"
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
	torn    bool   // the file may end with a part of a line
	written uint64 // number of the last event in the file
	lost    int
}

// put appends a line of what has changed, and takes that in. What cannot be written is held in memory, as far as that is
// bounded, and the error is kept for [Book.Trouble]. The error is that of an entry that cannot be written at all.
func (b *Book) put(e entry) error {
	text, err := line(e)
	if err != nil {
		return err
	}
	b.apply(e)
	if b.hold.err != nil {
		b.retry(false)
		return nil
	}
	if err := b.append(text); err != nil {
		b.hold.err, b.hold.since, b.hold.tried = err, time.Now(), time.Now()
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
	if n := len(b.events); n > 0 {
		b.hold.written = b.events[n-1].ID
	}
	if b.lines > b.s.Lines {
		b.rewrite() // what fails leaves the file as it is, and is tried with the next line
	}
}

// append writes a line, which is on disk when it returns. On error the file is as it was, or torn.
func (b *Book) append(text []byte) error {
	if b.hold.torn {
		if err := b.cut(); err != nil {
			return err
		}
		b.hold.torn = false
	}
	_, err := b.file.Write(text)
	if err == nil {
		err = b.file.Sync()
	}
	if err != nil {
		if cut := b.cut(); cut != nil {
			b.hold.torn = true
			return errors.Join(err, cut)
		}
		return err
	}
	b.size += int64(len(text))
	b.lines++
	return nil
}

// retry writes what is held, in one line.
func (b *Book) retry(now bool) {
	if b.hold.err == nil || !now && time.Since(b.hold.tried) < retryEvery {
		return
	}
	text, err := line(entry{State: &b.state, Events: b.held(), Queues: b.queues})
	if err == nil {
		err = b.append(text)
	}
	b.hold.err, b.hold.tried = err, time.Now()
	if err == nil {
		b.kept()
	}
}

// held returns the events that are not in the file.
func (b *Book) held() []presence.Event { return b.waiting(progress{Done: b.hold.written}) }

// shedEvents counts those of the oldest events that are dropped before they were written. Over is how many are dropped.
func (b *Book) shedEvents(over int) {
	for _, e := range b.events[:over] {
		if e.ID > b.hold.written {
			b.hold.lost++
		}
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
