// SPDX-License-Identifier: Apache-2.0

package office

import (
	"slices"
	"time"

	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/sighting"
)

// progress is the progress of a sink.
type progress struct {
	done, lost uint64 // number of the last event that it has got or that was dropped, and how many were dropped
	changed    bool
	more       chan struct{} // gets a value when there may be new events; nil: the sink is not there in this run
}

// events has what is not written yet of the events of an office, the people in it, and what sinks have got.
type events struct {
	s       PastSettings
	state   roomState
	present bool    // who is present is not written
	waiting []Event // not written, the oldest first
	stored  uint64  // the last event in the database
	open    uint64  // the last event that sinks may get: it is written, or cannot be written
	lost    int     // events that were dropped and never written
	sinks   map[string]*progress
}

func newEvents(s PastSettings) *events { return &events{s: s, sinks: make(map[string]*progress)} }

// read reads who is present in an office, and what sinks have got.
func (b *events) read(t *gallery.Tx, office int64) error {
	last, err := t.Int("select last from office where id = ?", office)
	if err != nil {
		return err
	}
	b.state.Last, b.stored, b.open = uint64(last), uint64(last), uint64(last)
	const people = "select person, since, last, camera, trust from present where office = ? order by person"
	err = t.Query(people, func(r gallery.Row) error {
		b.state.People = append(b.state.People, Presence{ID: r.ColumnInt64(0), Since: moment(r.ColumnInt64(1)),
			Last: moment(r.ColumnInt64(2)), Camera: r.ColumnText(3), Trust: sighting.Trust(r.ColumnText(4))})
		return nil
	}, office)
	if err != nil {
		return err
	}
	return t.Query("select sink, done, lost from delivery where office = ?", func(r gallery.Row) error {
		b.sinks[r.ColumnText(0)] = &progress{done: uint64(r.ColumnInt64(1)), lost: uint64(r.ColumnInt64(2))}
		return nil
	}, office)
}

// record adds events and the state of the room after them.
func (b *events) record(s roomState, all []Event) {
	b.present = b.present || !slices.Equal(s.People, b.state.People)
	b.state = s
	b.waiting = append(b.waiting, all...)
	if over := len(b.waiting) - max(b.s.Events, b.s.Waiting); over > 0 {
		b.lost += over
		b.waiting = slices.Delete(b.waiting, 0, over)
	}
	for _, p := range b.sinks {
		b.shed(p)
	}
}

// shed drops the oldest events of a sink of this run that has too many.
func (b *events) shed(p *progress) {
	if over := int(b.state.Last) - b.s.Waiting - int(p.done); p.more != nil && over > 0 {
		p.done, p.lost, p.changed = p.done+uint64(over), p.lost+uint64(over), true
	}
}

// write writes what is not written.
func (b *events) write(t *gallery.Tx, office int64) {
	for _, e := range b.waiting {
		// Of a person whom another program has forgotten there are no events.
		t.Exec(`insert or replace into event(office, number, kind, person, stranger, camera, trust, at, known)
			select ?1, ?2, ?3, nullif(?4, 0), ?5, ?6, ?7, ?8, ?9 where ?4 = 0 or exists (select 1 from person where id = ?4)`,
			office, int64(e.ID), string(e.Kind), e.Person, int64(e.Group), e.Camera, string(e.Trust), nanoseconds(e.At),
			nanoseconds(e.Known))
	}
	if len(b.waiting) > 0 {
		t.Exec("update office set last = ? where id = ?", int64(b.state.Last), office)
		t.Exec("delete from event where office = ? and number <= ?", office,
			int64(b.state.Last)-int64(max(b.s.Events, b.s.Waiting)))
	}
	if b.present {
		t.Exec("delete from present where office = ?", office)
		for _, p := range b.state.People {
			t.Exec(`insert into present(office, person, since, last, camera, trust)
				select ?1, ?2, ?3, ?4, ?5, ?6 where exists (select 1 from person where id = ?2)`, office, p.ID,
				nanoseconds(p.Since), nanoseconds(p.Last), p.Camera, string(p.Trust))
		}
	}
	for name, p := range b.sinks {
		if p.changed {
			t.Exec("insert or replace into delivery(office, sink, done, lost) values(?, ?, ?, ?)", office, name,
				int64(p.done), int64(p.lost))
		}
	}
}

// written notes that write was committed, or that it could not be: then sinks get the events all the same.
func (b *events) written(committed bool) {
	b.open = b.state.Last
	if committed {
		b.stored, b.waiting, b.present = b.state.Last, nil, false
		for _, p := range b.sinks {
			p.changed = false
		}
	}
	for _, p := range b.sinks {
		select {
		case p.more <- struct{}{}:
		default:
		}
	}
}

// dirty reports whether anything is not written.
func (b *events) dirty() bool {
	dirty := b.present || len(b.waiting) > 0
	for _, p := range b.sinks {
		dirty = dirty || p.changed
	}
	return dirty
}

// Events returns the last n events that are wanted before the event with the given number (0: before none), the newest
// first. Nil wants all.
func (w *Office) Events(id uint64, n int, wanted func(Event) bool) []Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	p, all := w.past, []Event{}
	take := func(e Event) error {
		if wanted == nil || wanted(e) {
			all = append(all, e)
		}
		if len(all) >= n {
			return errEnough
		}
		return nil
	}
	for _, e := range slices.Backward(p.events.waiting) {
		e.Name = p.nameOf(e.Kind, e.Person, e.Name)
		if int64(e.ID) < before(id) && take(e) != nil {
			return all
		}
	}
	oldest := max(0, int64(p.events.state.Last)-int64(p.s.Events))
	p.look(func(t *gallery.Tx) error {
		return p.rows(t, "number < ? and number > ? order by number desc", take, before(id), oldest)
	})
	return all
}

// rows calls each with the written events for which a condition holds.
func (p *Past) rows(t *gallery.Tx, condition string, each func(Event) error, args ...any) error {
	return t.Query(`select number, kind, coalesce(event.person, 0), stranger, camera, trust, at, known, coalesce(name, '')
		from event left join person on person.id = event.person where office = ? and `+condition,
		func(r gallery.Row) error {
			e := Event{ID: uint64(r.ColumnInt64(0)), Kind: EventKind(r.ColumnText(1)), Person: r.ColumnInt64(2),
				Group: uint64(r.ColumnInt64(3)), Camera: r.ColumnText(4), Trust: sighting.Trust(r.ColumnText(5)),
				At: moment(r.ColumnInt64(6)), Known: moment(r.ColumnInt64(7))}
			if e.Name = p.nameOf(e.Kind, e.Person, r.ColumnText(8)); e.Name == "" {
				e.Person = 0
			}
			return each(e)
		}, append([]any{p.id}, args...)...)
}

// nameOf returns the name of the person of an event. Who has no faces any more keeps the last name, except as a stranger
// who was named.
func (p *Past) nameOf(kind EventKind, person int64, last string) string {
	name := p.g.Name(person)
	if name == "" && kind != Unknown {
		name = last
	}
	return name
}

// Queue holds the events that a sink has not got yet. It is safe for concurrent use by one sink.
type Queue struct {
	p        *Past
	progress *progress
}

// Queue returns the queue of a sink: all events since Queue was first called for it, in this run or an earlier one.
func (p *Past) Queue(sink string) *Queue {
	p.mu.Lock()
	defer p.mu.Unlock()
	q := p.events.sinks[sink]
	if q == nil {
		q = &progress{done: p.events.state.Last, changed: true}
		p.events.sinks[sink] = q
	}
	q.more = make(chan struct{}, 1)
	p.events.shed(q)
	return &Queue{p, q}
}

// Next returns the oldest event in the queue. Ok is false for an empty queue. An event of an unknown person has no
// name, also if the person has got one since.
func (q *Queue) Next() (e Event, ok bool) {
	q.p.mu.Lock()
	defer q.p.mu.Unlock()
	b, done := q.p.events, q.progress.done
	if done < b.stored {
		q.p.look(func(t *gallery.Tx) error {
			return q.p.rows(t, "number > ? order by number limit 1", func(x Event) error {
				e, ok = x, true
				return nil
			}, int64(done))
		})
	}
	for _, x := range b.waiting {
		if !ok && x.ID > done && x.ID <= b.open {
			x.Name = q.p.nameOf(x.Kind, x.Person, x.Name)
			e, ok = x, true
		}
	}
	if e.Kind == Unknown {
		e.Name, e.Person = "", 0
	}
	return e, ok
}

// Done records that the sink has got all events up to a number. It is written with the next save: after a crash the
// sink may get the last events once more.
func (q *Queue) Done(id uint64) {
	q.p.mu.Lock()
	defer q.p.mu.Unlock()
	if id > q.progress.done {
		q.progress.done, q.progress.changed = id, true
	}
}

// More returns a channel that gets a value when there may be new events in the queue.
func (q *Queue) More() <-chan struct{} { return q.progress.more }

// Waiting returns the numbers of waiting and of dropped events.
func (q *Queue) Waiting() (waiting, lost int) {
	q.p.mu.Lock()
	defer q.p.mu.Unlock()
	b, done := q.p.events, q.progress.done
	q.p.look(func(t *gallery.Tx) error {
		n, err := t.Int("select count(*) from event where office = ? and number > ?", q.p.id, int64(done))
		waiting = int(n)
		return err
	})
	for _, e := range b.waiting {
		if e.ID > done {
			waiting++
		}
	}
	return waiting, int(q.progress.lost)
}

// nanoseconds returns a time for the database.
func nanoseconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// moment is the opposite of nanoseconds.
func moment(ns int64) time.Time {
	if ns == 0 {
		return time.Time{}
	}
	return time.Unix(0, ns).UTC()
}
