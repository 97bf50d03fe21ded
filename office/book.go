// SPDX-License-Identifier: Apache-2.0

package office

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/sighting"
)

// EventLimits limit a book. A zero field means the default.
type EventLimits struct {
	Events  int // number of kept events, the newest. Default 5,000
	Waiting int // greatest number of waiting events of a sink; the oldest are dropped. Default 10,000
}

// progress is the progress of a sink.
type progress struct {
	done uint64 // number of the last event that it has got or that was dropped
	lost int    // number of dropped events
}

// pages are changes of a book that are not written.
type pages struct {
	events  map[uint64]bool // written anew, or deleted if they are gone
	queues  map[string]bool
	present bool
}

func newPages() pages { return pages{events: make(map[uint64]bool), queues: make(map[string]bool)} }

// book has the events of an office, the people in it, and the events that sinks have not got yet. It is safe for
// concurrent use.
type book struct {
	s EventLimits

	mu      sync.Mutex
	state   roomState
	events  []Event // the oldest first
	dropped uint64  // number of the last event that was dropped as too old
	queues  map[string]progress
	more    map[string]chan struct{} // signals for the sinks of this run
	changed pages
	writing pages  // of the last write
	stored  uint64 // the last event in the database
	open    uint64 // the last event that sinks may get: it is written, or cannot be written
	memory  bool   // there is no database
	lost    int    // events that were dropped and never written
}

func newBook(s EventLimits) *book {
	s.Events, s.Waiting = cmp.Or(s.Events, 5000), cmp.Or(s.Waiting, 10000)
	return &book{s: s, queues: make(map[string]progress), more: make(map[string]chan struct{}), changed: newPages()}
}

// read reads the book of an office.
func (b *book) read(t *gallery.Transaction, office int64, last uint64) error {
	b.state.Last = last
	err := t.Query("select number, kind, person, stranger, camera, trust, at, known from event where office = ? "+
		"order by number", func(r gallery.Row) error {
		name, person := t.Name(r.ColumnInt64(2))
		e := Event{ID: uint64(r.ColumnInt64(0)), Kind: EventKind(r.ColumnText(1)),
			Name: name, Person: person, Group: uint64(r.ColumnInt64(3)), Camera: r.ColumnText(4),
			Trust: sighting.Trust(r.ColumnText(5)), At: moment(r.ColumnInt64(6)), Known: moment(r.ColumnInt64(7))}
		b.events = append(b.events, e)
		return nil
	}, office)
	if err == nil {
		const people = "select person, since, last, camera, trust from present where office = ?"
		err = t.Query(people, func(r gallery.Row) error {
			name, _ := t.Name(r.ColumnInt64(0))
			b.state.People = append(b.state.People, Presence{Name: name,
				Since: moment(r.ColumnInt64(1)), Last: moment(r.ColumnInt64(2)), Camera: r.ColumnText(3),
				Trust: sighting.Trust(r.ColumnText(4))})
			return nil
		}, office)
	}
	if err == nil {
		err = t.Query("select sink, done, lost from delivery where office = ?", func(r gallery.Row) error {
			b.queues[r.ColumnText(0)] = progress{uint64(r.ColumnInt64(1)), int(r.ColumnInt64(2))}
			return nil
		}, office)
	}
	slices.SortFunc(b.state.People, func(p, q Presence) int { return cmp.Compare(p.Name, q.Name) })
	b.state.Last = max(b.state.Last, b.lastEvent())
	b.stored, b.open = b.state.Last, b.state.Last
	return err
}

// lastEvent returns the number of the last event, or 0.
func (b *book) lastEvent() uint64 {
	if n := len(b.events); n > 0 {
		return b.events[n-1].ID
	}
	return 0
}

// write implements part.
func (b *book) write(t *gallery.Transaction, office int64) error {
	b.mu.Lock()
	b.writing, b.changed = b.changed, newPages()
	w, state, queues := b.writing, b.state, maps.Clone(b.queues)
	events := make(map[uint64]Event, len(w.events))
	for id := range w.events {
		if i, there := b.find(id); there {
			events[id] = b.events[i]
		}
	}
	b.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(w.events)) {
		e, there := events[id]
		if !there {
			if err := t.Exec("delete from event where office = ? and number = ?", office, int64(id)); err != nil {
				return err
			}
			continue
		}
		var who any
		var err error
		if e.Name != "" {
			who, err = b.person(t, e)
		}
		if errors.Is(err, gallery.ErrForgotten) {
			continue // the office will hear of it, and delete the event
		}
		if err == nil {
			err = t.Exec("insert or replace into event(office, number, kind, person, stranger, camera, trust, at, "+
				"known) values(?, ?, ?, ?, ?, ?, ?, ?, ?)", office, int64(id), string(e.Kind), who, int64(e.Group),
				e.Camera, string(e.Trust), nanoseconds(e.At), nanoseconds(e.Known))
		}
		if err != nil {
			return err
		}
	}
	if w.present {
		if err := t.Exec("delete from present where office = ?", office); err != nil {
			return err
		}
		for _, p := range state.People {
			who, err := t.Person(p.Name)
			if errors.Is(err, gallery.ErrForgotten) {
				continue
			}
			if err == nil {
				err = t.Exec("insert into present(office, person, since, last, camera, trust) values(?, ?, ?, ?, ?, ?)",
					office, who, nanoseconds(p.Since), nanoseconds(p.Last), p.Camera, string(p.Trust))
			}
			if err != nil {
				return err
			}
		}
	}
	for name := range w.queues {
		p := queues[name]
		if err := t.Exec("insert or replace into delivery(office, sink, done, lost) values(?, ?, ?, ?)", office, name,
			int64(p.done), int64(p.lost)); err != nil {
			return err
		}
	}
	return nil
}

// person returns the number of the person of an event.
func (b *book) person(t *gallery.Transaction, e Event) (int64, error) {
	who, err := t.Person(e.Name)
	b.mu.Lock()
	defer b.mu.Unlock()
	if i, there := b.find(e.ID); there && b.events[i].Name == e.Name {
		b.events[i].Person = who
	}
	return who, err
}

// written implements part.
func (b *book) written(committed, _ bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if w := b.writing; !committed && w.events != nil {
		maps.Copy(b.changed.events, w.events)
		maps.Copy(b.changed.queues, w.queues)
		b.changed.present = b.changed.present || w.present
	} else if committed {
		for id := range w.events {
			b.stored = max(b.stored, id)
		}
	}
	for id := range b.writing.events {
		b.open = max(b.open, id)
	}
	b.signal()
	b.writing = pages{}
}

// signal tells the sinks that there may be new events.
func (b *book) signal() {
	for _, more := range b.more {
		select {
		case more <- struct{}{}:
		default:
		}
	}
}

// dirty implements part.
func (b *book) dirty() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.changed.present || len(b.changed.events)+len(b.changed.queues) > 0
}

// State returns the last recorded state of the room.
func (b *book) State() roomState {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state
}

// Record adds events, whose numbers must rise, and the state of the room after them. Otherwise the error says so, and
// nothing has changed.
func (b *book) Record(s roomState, events []Event) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	last := b.lastEvent()
	for _, e := range events {
		if e.ID <= last {
			return fmt.Errorf("event %d follows %d", e.ID, last)
		}
		last = e.ID
	}
	b.changed.present = b.changed.present || !slices.Equal(s.People, b.state.People)
	b.state = s
	for _, e := range events {
		b.changed.events[e.ID] = true
	}
	b.events = append(b.events, events...)
	if over := len(b.events) - max(b.s.Events, b.s.Waiting); over > 0 {
		for _, e := range b.events[:over] {
			if b.changed.events[e.ID] = true; e.ID > b.stored {
				b.lost++
			}
		}
		b.dropped = b.events[over-1].ID
		b.events = slices.Delete(b.events, 0, over)
	}
	for name := range b.more {
		b.shed(name)
	}
	if b.memory {
		b.open = b.lastEvent()
		b.signal()
	}
	return nil
}

// Held returns the number of events in memory only, and the number that were dropped and never written.
func (b *book) Held() (held, lost int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.memory {
		return 0, 0
	}
	return len(b.waiting(progress{done: b.stored})), b.lost
}

// find returns the index of an event.
func (b *book) find(id uint64) (int, bool) {
	return slices.BinarySearchFunc(b.events, id, func(e Event, id uint64) int { return cmp.Compare(e.ID, id) })
}

// shed drops the oldest events of a queue that is too long.
func (b *book) shed(name string) {
	p := b.queues[name]
	was := p
	if b.dropped > p.done {
		p.lost, p.done = p.lost+int(b.dropped-p.done), b.dropped
	}
	if waiting := b.waiting(p); len(waiting) > b.s.Waiting {
		over := len(waiting) - b.s.Waiting
		p.lost, p.done = p.lost+over, waiting[over-1].ID
	}
	if p != was {
		b.queues[name], b.changed.queues[name] = p, true
	}
}

// waiting returns the events that a sink has not got yet.
func (b *book) waiting(p progress) []Event {
	i, _ := b.find(p.done + 1)
	return b.events[i:]
}

// Events returns the last n events before the event with the given number (0: before none), the newest first.
func (b *book) Events(before uint64, n int) []Event {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := []Event{}
	kept := b.events[max(0, len(b.events)-b.s.Events):]
	for _, e := range slices.Backward(kept) {
		if (before == 0 || e.ID < before) && len(all) < n {
			all = append(all, e)
		}
	}
	return all
}

// Rename gives past events other names, by number. Person returns the number of a person.
func (b *book) Rename(names map[uint64]string, person func(name string) int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for id, name := range names {
		if i, there := b.find(id); there {
			b.events[i].Name, b.events[i].Person = name, person(name)
			b.changed.events[id] = true
		}
	}
}

// Forget removes the events of a person. An event of an unknown person that got the name later is an event of an
// unknown person again.
func (b *book) Forget(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.events = slices.DeleteFunc(b.events, func(e Event) bool {
		if e.Name == name {
			b.changed.events[e.ID] = true
		}
		return e.Name == name && e.Kind != Unknown
	})
	for i := range b.events {
		if b.events[i].Name == name {
			b.events[i].Name, b.events[i].Person = "", 0
		}
	}
	b.state.People = slices.DeleteFunc(slices.Clone(b.state.People),
		func(p Presence) bool { return p.Name == name })
	b.changed.present = true
}

// Queue holds the events that a sink has not got yet. It is safe for concurrent use by one sink.
type Queue struct {
	b    *book
	name string
	more chan struct{}
}

// Queue returns the queue of a sink: all events since Queue was first called for it, in this run or an earlier one.
func (b *book) Queue(sink string) *Queue {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, there := b.queues[sink]; !there {
		b.queues[sink], b.changed.queues[sink] = progress{done: max(b.state.Last, b.lastEvent())}, true
	}
	b.shed(sink)
	q := &Queue{b: b, name: sink, more: make(chan struct{}, 1)}
	b.more[sink] = q.more
	return q
}

// Next returns the oldest event in the queue. Ok is false for an empty queue. An event of an unknown person has no
// name, also if the person has got one since.
func (q *Queue) Next() (e Event, ok bool) {
	q.b.mu.Lock()
	defer q.b.mu.Unlock()
	b := q.b
	waiting := b.waiting(b.queues[q.name])
	if len(waiting) == 0 || waiting[0].ID > b.open {
		return e, false
	}
	if e = waiting[0]; e.Kind == Unknown {
		e.Name, e.Person = "", 0
	}
	return e, true
}

// Done records that the sink has got all events up to a number. It is written with the next save: after a crash the
// sink may get the last events once more.
func (q *Queue) Done(id uint64) {
	q.b.mu.Lock()
	defer q.b.mu.Unlock()
	if p := q.b.queues[q.name]; id > p.done {
		q.b.queues[q.name], q.b.changed.queues[q.name] = progress{id, p.lost}, true
	}
}

// More returns a channel that gets a value when there may be new events in the queue.
func (q *Queue) More() <-chan struct{} { return q.more }

// Waiting returns the numbers of waiting and of dropped events.
func (q *Queue) Waiting() (waiting, lost int) {
	q.b.mu.Lock()
	defer q.b.mu.Unlock()
	p := q.b.queues[q.name]
	return len(q.b.waiting(p)), p.lost
}
