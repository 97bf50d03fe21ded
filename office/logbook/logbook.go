// SPDX-License-Identifier: Apache-2.0

// Package logbook keeps on disk what has happened in a room, who is there, and what has not been delivered yet to those
// who want to know: a program that is killed and started again goes on from it.
//
// [Open] opens a [Book], [Book.Record] writes events and what the room came to as one, and [Book.Queue] gives the
// events for one sink in their order. All of it is bounded.
//
// # File format
//
// Lines of the CRC-32C of the rest as eight hexadecimal digits, a space, and JSON: the first has the version, each
// other one what has changed, who is there, events, and how far sinks have come. A line is written with one call and
// synced; a last line that is not whole was never said to be written, and is cut off. When the lines are many, the file
// is written anew with what still counts and put in the place of the old one. So it is, too, when somebody is forgotten:
// of their events numbers and times are left. It has names and times, and no faces. The owner alone can read it.
//
// The file beside it, with ".seen" after its name, has when people were seen since: see [Book.Note].
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
	ErrBusy    = errors.New("logbook that another program is using")
)

const version = 1

// Settings of a [Book]. The zero value of each field stands for its default.
type Settings struct {
	Events  int // kept, the newest. Default 5,000
	Waiting int // kept for a sink that does not take them, the newest. Default 10,000
	Lines   int // of the file, after which it is written anew. Default 20,000
}

// entry is a line: what has changed.
type entry struct {
	Version int                 `json:"version,omitempty"` // in the first line
	State   *presence.State     `json:"state,omitempty"`
	Events  []presence.Event    `json:"events,omitempty"`
	Queues  map[string]progress `json:"queues,omitempty"`
	Names   map[uint64]string   `json:"names,omitempty"` // that events have now, by their numbers; "" for the one they had
}

// forgotten is the kind of an event of which nothing but its number and its time is left.
const forgotten presence.Kind = "forgotten"

// progress is how far a sink has come.
type progress struct {
	Done uint64 `json:"done"` // number of the last event that it has got, or that there was no room for
	Lost int    `json:"lost"` // of the latter
}

// Book is an open logbook. It is safe for concurrent use. Close it.
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
	names  map[uint64]string        // of events that are shown under another name
	gone   map[uint64]bool          // events of people who were forgotten
	stale  bool                     // the file has a name that was forgotten, as it could not be written anew
	more   map[string]chan struct{} // of the sinks of this run
}

// Open opens the logbook at path and makes one where there is none. The error wraps [ErrVersion], [ErrDamaged], or
// [ErrBusy] when another program does not let go of the file for two seconds.
func Open(path string, s Settings) (*Book, error) {
	s.Events, s.Waiting, s.Lines = cmp.Or(s.Events, 5000), cmp.Or(s.Waiting, 10000), cmp.Or(s.Lines, 20000)
	b := &Book{s: s, path: path, queues: make(map[string]progress), names: make(map[uint64]string), gone: make(map[uint64]bool), more: make(map[string]chan struct{})}
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

// check returns nil for an entry that can follow what is known.
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

// apply takes in what has changed.
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

// rewrite writes the file anew, with what still counts.
func (b *Book) rewrite() error {
	err := b.file.Rewrite(entry{Version: version}, entry{State: &b.state, Events: b.shown(b.events), Queues: b.queues, Names: b.names})
	if err == nil {
		b.stale, b.hold.err = false, nil
		b.hold.written = b.lastEvent()
	}
	return err
}

// shown returns events as they are written: of people who were forgotten, numbers and times.
func (b *Book) shown(events []presence.Event) []presence.Event {
	kept := slices.Clone(events)
	for i, e := range kept {
		if b.gone[e.ID] {
			kept[i] = presence.Event{ID: e.ID, Kind: forgotten, At: e.At}
		}
	}
	return kept
}

// lastEvent returns the number of the last event, 0 where there is none.
func (b *Book) lastEvent() uint64 {
	if n := len(b.events); n > 0 {
		return b.events[n-1].ID
	}
	return 0
}

// State returns what was recorded of the room last.
func (b *Book) State() presence.State {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state
}

// Record writes what the room came to and the events that led there, whose numbers ascend. It is on disk when it
// returns, all or nothing; where the disk cannot be written it is in memory, and [Book.Trouble] says so. The error is
// the one of events whose numbers do not ascend; nothing has changed then.
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

// shed gives up the oldest events of a queue that has more than it may. That is written with what is written next:
// until then they are lost anew each time.
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

// waiting returns the events that a sink has not got.
func (b *Book) waiting(p progress) []presence.Event {
	i, _ := slices.BinarySearchFunc(b.events, p.Done+1, func(e presence.Event, id uint64) int { return cmp.Compare(e.ID, id) })
	return b.events[i:]
}

// Events returns the last n events before the one of a number, or of all where it is 0, the newest first.
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

// Rename gives events of the past other names, by their numbers, under which [Book.Events] shows them from now on; ""
// gives an event the name back that it was recorded with. Sinks get events as they were recorded. It is on disk when it
// returns, all or nothing, or in memory as for [Book.Record].
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

// Forget removes a name, and the events of the one who has it: the file is written anew without them. An event in which
// somebody unknown was given that name later is one of somebody unknown again. A sink that has not got an event yet may
// still get it while the program runs.
//
// On error the file has them still; they are shown no more, and the next write tries again.
func (b *Book) Forget(name string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.events {
		e := &b.events[i]
		shown, renamed := b.names[e.ID]
		switch {
		case renamed && shown != name && e.Name == name: // somebody else had that name before
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
	b.state.People = slices.DeleteFunc(slices.Clone(b.state.People), func(p presence.Person) bool { return p.Name == name })
	b.stale = true
	b.notes.empty(nil)
	if err := b.rewrite(); err != nil {
		return fmt.Errorf("writing the logbook: %w", err)
	}
	return nil
}

// Close writes what is held, and closes the file.
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

// Queue holds the events that a sink has not got yet. It is safe for concurrent use, by one sink.
type Queue struct {
	b    *Book
	name string
	more chan struct{}
}

// Queue returns the queue of a sink: what was recorded since it was first asked for, in this program or an earlier one.
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

// Next returns the oldest event in the queue. Ok is false where there is none.
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

// Done says that the sink has got the events up to that number. Where the disk cannot be written that is kept in memory.
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

// More is told when there may be something in the queue.
func (q *Queue) More() <-chan struct{} { return q.more }

// Waiting returns how many events are in the queue, and how many there was no room for.
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
