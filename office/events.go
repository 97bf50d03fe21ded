// SPDX-License-Identifier: Apache-2.0

package office

import (
	"slices"
	"time"

	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/sighting"
)

// Queue holds the events that a sink has not got yet. It is safe for concurrent use by one sink.
type Queue struct {
	p          *Past
	done, lost uint64 // number of the last event that it has got or that was dropped, and how many were dropped
	changed    bool
	more       chan struct{} // gets a value when there may be new events; nil: the sink is not there in this run
}

// record adds events and the state of the room after them.
func (p *Past) record(s roomState, all []Event) {
	p.present = p.present || !slices.Equal(s.People, p.state.People)
	p.state = s
	p.waiting = append(p.waiting, all...)
	if over := len(p.waiting) - max(p.s.Events, p.s.Waiting); over > 0 {
		p.lost += over
		p.waiting = slices.Delete(p.waiting, 0, over)
	}
	for _, q := range p.queues {
		q.shed()
	}
}

// shed drops the oldest events of a sink of this run that has too many.
func (q *Queue) shed() {
	if over := int(q.p.state.Last) - q.p.s.Waiting - int(q.done); q.more != nil && over > 0 {
		q.done, q.lost, q.changed = q.done+uint64(over), q.lost+uint64(over), true
	}
}

// write writes what is not written.
func (p *Past) write(t *gallery.Tx) {
	for _, e := range p.waiting {
		// Of a person whom another program has forgotten there are no events.
		t.Exec(`insert or replace into event(office, number, kind, person, stranger, camera, trust, at, known)
			select ?1, ?2, ?3, nullif(?4, 0), ?5, ?6, ?7, ?8, ?9 where ?4 = 0 or exists (select 1 from person where id = ?4)`,
			p.id, int64(e.ID), string(e.Kind), e.Person, int64(e.Group), e.Camera, string(e.Trust), nanoseconds(e.At),
			nanoseconds(e.Known))
	}
	if len(p.waiting) > 0 {
		t.Exec("update office set last = ? where id = ?", int64(p.state.Last), p.id)
		t.Exec("delete from event where office = ? and number <= ?", p.id,
			int64(p.state.Last)-int64(max(p.s.Events, p.s.Waiting)))
	}
	if p.present {
		t.Exec("delete from present where office = ?", p.id)
		for _, x := range p.state.People {
			t.Exec(`insert into present(office, person, since, last, camera, trust)
				select ?1, ?2, ?3, ?4, ?5, ?6 where exists (select 1 from person where id = ?2)`, p.id, x.ID,
				nanoseconds(x.Since), nanoseconds(x.Last), x.Camera, string(x.Trust))
		}
	}
	for name, q := range p.queues {
		if q.changed {
			t.Exec("insert or replace into delivery(office, sink, done, lost) values(?, ?, ?, ?)", p.id, name,
				int64(q.done), int64(q.lost))
		}
	}
}

// written notes that write was committed, or that it could not be: then sinks get the events all the same.
func (p *Past) written(committed bool) {
	if committed {
		p.waiting, p.present = nil, false
	}
	for _, q := range p.queues {
		q.changed = q.changed && !committed
		select {
		case q.more <- struct{}{}:
		default:
		}
	}
}

// dirty reports whether anything is not written.
func (p *Past) dirty() bool {
	dirty := p.present || len(p.waiting) > 0
	for _, q := range p.queues {
		dirty = dirty || q.changed
	}
	return dirty
}

// Events returns the last n events that are wanted before the event with the given number (0: before none), the newest
// first. Nil wants all.
func (w *Office) Events(id uint64, n int, wanted func(Event) bool) []Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	p, all := w.past, []Event{}
	oldest := max(0, int64(p.state.Last)-int64(p.s.Events))
	w.look(func(t *gallery.Tx) error {
		return p.rows(t, "number < ? and number > ? order by number desc", func(e Event) error {
			if len(all) == n {
				return errEnough
			}
			if wanted == nil || wanted(e) {
				all = append(all, e)
			}
			return nil
		}, before(id), oldest)
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

// Queue returns the queue of a sink: all events since Queue was first called for it, in this run or an earlier one.
func (p *Past) Queue(sink string) *Queue {
	p.mu.Lock()
	defer p.mu.Unlock()
	q := p.queues[sink]
	if q == nil {
		q = &Queue{p: p, done: p.state.Last, changed: true}
		p.queues[sink] = q
	}
	q.more = make(chan struct{}, 1)
	q.shed()
	return q
}

// Next returns the oldest event in the queue. Ok is false for an empty queue. An event of an unknown person has no
// name, also if the person has got one since.
func (q *Queue) Next() (e Event, ok bool) {
	q.p.mu.Lock()
	defer q.p.mu.Unlock()
	q.p.g.Look(func(t *gallery.Tx) error {
		return q.p.rows(t, "number > ? order by number limit 1", func(x Event) error {
			e, ok = x, true
			return nil
		}, int64(q.done))
	})
	for _, x := range q.p.waiting {
		if !ok && x.ID > q.done {
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
	if id > q.done {
		q.done, q.changed = id, true
	}
}

// More returns a channel that gets a value when there may be new events in the queue.
func (q *Queue) More() <-chan struct{} { return q.more }

// Waiting returns the numbers of waiting and of dropped events.
func (q *Queue) Waiting() (waiting, lost int) {
	q.p.mu.Lock()
	defer q.p.mu.Unlock()
	q.p.g.Look(func(t *gallery.Tx) error {
		n, err := t.Int("select count(*) from event where office = ? and number > ?", q.p.id, int64(q.done))
		waiting = int(n)
		return err
	})
	for _, e := range q.p.waiting {
		if e.ID > q.done {
			waiting++
		}
	}
	return waiting, int(q.lost)
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
