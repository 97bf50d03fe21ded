// SPDX-License-Identifier: Apache-2.0

// Package logbook stores the events of a room, the people in it, and the events that sinks have not got yet. A program
// that is killed and started again continues from it.
//
// [Open] opens a [Book]. [Book.Record] writes events and the new state together. [Book.Queue] returns the events for
// one sink in order. All sizes are limited.
//
// # File format
//
// A line is the CRC-32C of the rest as eight hexadecimal digits, a space, and JSON. The first line has the version.
// Each other line has changes: the people present, events, and the progress of sinks. A line is written with one call
// and synced. An incomplete last line was never confirmed, and is removed. When there are many lines, the file is
// replaced by a new one with the valid content. The same happens when a person is forgotten: of their events only
// numbers and times stay. The file has names and times, and no faces. Only the owner can read it.
//
// The file with ".seen" after its name has the latest sightings: see [Book.Note].
package logbook

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/faceauth/faceauth/internal/lines"
	"github.com/faceauth/faceauth/office/presence"
)

// Errors of [Open] and of the methods of [Book].
var (
	ErrVersion = lines.ErrVersion
	ErrDamaged = errors.New("damaged logbook")
	ErrBusy    = errors.New("another program is using the logbook")
)

const version = 1

// Settings of a [Book]. A zero field means the default.
type Settings struct {
	Events  int // number of kept events, the newest. Default 5,000
	Waiting int // greatest number of waiting events of a sink; the oldest are dropped. Default 10,000
	Lines   int // number of lines after which the file is replaced. Default 20,000
}

// entry is a line with changes.
type entry struct {
	Version int                 `json:"version,omitempty"` // in the first line
	State   *presence.State     `json:"state,omitempty"`
	Events  []presence.Event    `json:"events,omitempty"`
	Queues  map[string]progress `json:"queues,omitempty"`
	Names   map[uint64]string   `json:"names,omitempty"` // new names of events, by number; "" for the original name
}

// forgotten is the kind of an event of a forgotten person: only number and time are left.
const forgotten presence.Kind = "forgotten"

// progress is the progress of a sink.
type progress struct {
	Done uint64 `json:"done"` // number of the last event that it has got or that was dropped
	Lost int    `json:"lost"` // number of dropped events
}

// Book is an open logbook. It is safe for concurrent use. The caller closes it.
type Book struct {
	s    Settings
	path string

	mu     sync.Mutex
	file   *lines.File
	notes  notes
	hold   hold
	state  presence.State
	events []presence.Event // the oldest first
	queues map[string]progress
	names  map[uint64]string        // changed names of events
	gone   map[uint64]bool          // events of forgotten people
	stale  bool                     // the file still has a forgotten name, because it could not be replaced
	more   map[string]chan struct{} // signals for the sinks of this run
}

// Open opens the logbook at path, and makes a missing one. The error wraps [ErrVersion], [ErrDamaged], or [ErrBusy] if
// another program uses the file for more than two seconds.
func Open(path string, s Settings) (*Book, error) {
	s.Events, s.Waiting, s.Lines = cmp.Or(s.Events, 5000), cmp.Or(s.Waiting, 10000), cmp.Or(s.Lines, 20000)
	b := &Book{
		s:      s,
		path:   path,
		queues: make(map[string]progress),
		names:  make(map[uint64]string),
		gone:   make(map[uint64]bool),
		more:   make(map[string]chan struct{}),
	}
	if err := b.open(); err != nil {
		if b.file != nil {
			b.file.Close()
		}
		return nil, fmt.Errorf("opening logbook %s: %w", path, err)
	}
	return b, nil
}

func (b *Book) open() (err error) {
	b.file, err = lines.Open(b.path, lines.Options{Version: version}, func(line []byte) error {
		var e entry
		if err := json.Unmarshal(line, &e); err != nil {
			return fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		if err := b.check(e); err != nil {
			return err
		}
		b.apply(e)
		return nil
	})
	switch {
	case errors.Is(err, lines.ErrBusy):
		return ErrBusy
	case errors.Is(err, lines.ErrDamaged):
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	case err != nil:
		return err
	}
	if err := b.notes.open(b.path+".seen", b.state.People); err != nil {
		return err
	}
	b.hold = hold{}
	b.kept()
	return nil
}

// check returns nil for an entry that may follow the present state.
func (b *Book) check(e entry) error {
	last := b.lastEvent()
	for _, x := range e.Events {
		if x.ID <= last {
			return fmt.Errorf("%w: event %d follows %d", ErrDamaged, x.ID, last)
		}
		last = x.ID
	}
	return nil
}

// apply applies the changes of a line.
func (b *Book) apply(e entry) {
	if e.State != nil {
		b.state = *e.State
	}
	for _, x := range e.Events {
		if x.Kind == forgotten {
			b.gone[x.ID] = true
		}
	}
	b.events = append(b.events, e.Events...)
	for id, name := range e.Names {
		if b.names[id] = name; name == "" {
			delete(b.names, id)
		}
	}
	if over := len(b.events) - max(b.s.Events, b.s.Waiting); over > 0 {
		b.shedEvents(over)
		b.events = slices.Delete(b.events, 0, over)
	}
	for name, p := range e.Queues {
		b.queues[name] = p
	}
}

// rewrite replaces the file by one with the valid content.
func (b *Book) rewrite() error {
	err := b.file.Rewrite(entry{Version: version},
		entry{State: &b.state, Events: b.shown(b.events), Queues: b.queues, Names: b.names})
	if err == nil {
		b.stale, b.hold.err = false, nil
		b.hold.written = b.lastEvent()
	}
	return err
}

// shown returns events as they are written: without the names of forgotten people.
func (b *Book) shown(events []presence.Event) []presence.Event {
	kept := slices.Clone(events)
	for i, e := range kept {
		if b.gone[e.ID] {
			kept[i] = presence.Event{ID: e.ID, Kind: forgotten, At: e.At}
		}
	}
	return kept
}

// lastEvent returns the number of the last event, or 0.
func (b *Book) lastEvent() uint64 {
	if n := len(b.events); n > 0 {
		return b.events[n-1].ID
	}
	return 0
}

// State returns the last recorded state of the room.
func (b *Book) State() presence.State {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state
}

// Record writes the state of the room and the events that led to it, whose numbers must rise. Both are on disk when
// Record returns, or neither. If the disk cannot be written they are in memory, and [Book.Trouble] returns the reason.
// The error is about numbers that do not rise; nothing has changed then.
func (b *Book) Record(s presence.State, events []presence.Event) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := entry{State: &s, Events: events}
	err := b.check(e)
	if err == nil {
		err = b.put(e)
	}
	if err != nil {
		return fmt.Errorf("writing the logbook: %w", err)
	}
	for name, more := range b.more {
		b.shed(name)
		if len(events) > 0 {
			select {
			case more <- struct{}{}:
			default:
			}
		}
	}
	return nil
}

// shed drops the oldest events of a queue that is too long. The next line stores this; until then they are dropped
// again after a restart.
func (b *Book) shed(name string) {
	p := b.queues[name]
	waiting := b.waiting(p)
	if over := len(waiting) - b.s.Waiting; over > 0 {
		waiting = waiting[over:]
	}
	if len(waiting) > 0 && waiting[0].ID > p.Done+1 {
		p.Lost += int(waiting[0].ID - 1 - p.Done)
		p.Done = waiting[0].ID - 1
		b.queues[name] = p
	}
}

// waiting returns the events that a sink has not got yet.
func (b *Book) waiting(p progress) []presence.Event {
	i, _ := slices.BinarySearchFunc(b.events, p.Done+1,
		func(e presence.Event, id uint64) int { return cmp.Compare(e.ID, id) })
	return b.events[i:]
}

// Events returns the last n events before the event with the given number (0: before none), the newest first.
func (b *Book) Events(before uint64, n int) []presence.Event {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := []presence.Event{}
	kept := b.events[max(0, len(b.events)-b.s.Events):]
	for _, e := range slices.Backward(kept) {
		if (before == 0 || e.ID < before) && len(all) < n && !b.gone[e.ID] {
			e.Name = cmp.Or(b.names[e.ID], e.Name)
			all = append(all, e)
		}
	}
	return all
}

// Rename gives past events new names, by number; "" restores the original name. [Book.Events] shows them from now on.
// Sinks get events with their original names. The change is on disk when Rename returns, or in memory as for
// [Book.Record].
func (b *Book) Rename(names map[uint64]string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(names) == 0 {
		return nil
	}
	if err := b.put(entry{Names: names}); err != nil {
		return fmt.Errorf("writing the logbook: %w", err)
	}
	return nil
}

// Forget removes a name and the events of the person who has it: the file is replaced by one without them. An event of
// an unknown person that got the name later is an event of an unknown person again. While the program runs, a sink may
// still get an event that it has not got yet.
//
// After an error the file still has them. They are no longer shown, and the next write tries again.
func (b *Book) Forget(name string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.events {
		e := &b.events[i]
		shown, renamed := b.names[e.ID]
		switch {
		case renamed && shown != name && e.Name == name: // another person had the name before
			e.Name = shown
			delete(b.names, e.ID)
		case renamed && shown != name || !renamed && e.Name != name:
		case e.Name == "":
			delete(b.names, e.ID)
		default:
			b.gone[e.ID] = true
			delete(b.names, e.ID)
		}
	}
	b.state.People = slices.DeleteFunc(slices.Clone(b.state.People),
		func(p presence.Person) bool { return p.Name == name })
	b.stale = true
	b.notes.empty(nil)
	if err := b.rewrite(); err != nil {
		return fmt.Errorf("writing the logbook: %w", err)
	}
	return nil
}

// Close writes waiting events, and closes the file.
func (b *Book) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.retry(true)
	err := b.hold.err
	if err != nil {
		err = fmt.Errorf("writing the logbook: %w; %d events are lost", err, len(b.held()))
	}
	return errors.Join(err, b.file.Close(), b.notes.close())
}

// Queue holds the events that a sink has not got yet. It is safe for concurrent use by one sink.
type Queue struct {
	b    *Book
	name string
	more chan struct{}
}

// Queue returns the queue of a sink: all events since Queue was first called for it, in this run or an earlier one.
func (b *Book) Queue(sink string) (*Queue, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, there := b.queues[sink]; !there {
		last := max(b.state.Last, b.lastEvent())
		if err := b.put(entry{Queues: map[string]progress{sink: {Done: last}}}); err != nil {
			return nil, fmt.Errorf("opening the queue of %s: %w", sink, err)
		}
	}
	b.shed(sink)
	q := &Queue{b: b, name: sink, more: make(chan struct{}, 1)}
	b.more[sink] = q.more
	return q, nil
}

// Next returns the oldest event in the queue. Ok is false for an empty queue.
func (q *Queue) Next() (e presence.Event, ok bool) {
	q.b.mu.Lock()
	defer q.b.mu.Unlock()
	for _, e := range q.b.waiting(q.b.queues[q.name]) {
		if e.Kind != forgotten {
			return e, true
		}
	}
	return e, false
}

// Done records that the sink has got all events up to a number. If the disk cannot be written this is kept in memory.
func (q *Queue) Done(id uint64) error {
	q.b.mu.Lock()
	defer q.b.mu.Unlock()
	p := q.b.queues[q.name]
	if id <= p.Done {
		return nil
	}
	if err := q.b.put(entry{Queues: map[string]progress{q.name: {Done: id, Lost: p.Lost}}}); err != nil {
		return fmt.Errorf("writing the logbook: %w", err)
	}
	return nil
}

// More returns a channel that gets a value when there may be new events in the queue.
func (q *Queue) More() <-chan struct{} { return q.more }

// Waiting returns the numbers of waiting and of dropped events.
func (q *Queue) Waiting() (waiting, lost int) {
	q.b.mu.Lock()
	defer q.b.mu.Unlock()
	p := q.b.queues[q.name]
	for _, e := range q.b.waiting(p) {
		if e.Kind != forgotten {
			waiting++
		}
	}
	return waiting, p.Lost
}
