// SPDX-License-Identifier: Apache-2.0

package office

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/faceauth/faceauth/internal/gallery"
	"github.com/faceauth/faceauth/internal/office/presence"
	"github.com/faceauth/faceauth/internal/safefile"
	"github.com/faceauth/faceauth/sighting"
)

// ErrBusy is an error of [OpenPast].
var ErrBusy = errors.New("another program runs an office of this name")

// PastSettings limit a [Past]. A zero field means the default.
type PastSettings struct {
	Age time.Duration // greatest age of sightings and clips. Default 7 days
	// greatest size of all faces of sightings, plus 1 KB for each sighting. Default 256 MB
	Bytes   int64
	Records int // greatest number of sightings; 0 for no limit
	// Clips is the greatest size of clips: the beginnings of sightings as films, about 1 MB at most
	// each. With 0, the default, none are kept, and those of earlier runs are removed.
	Clips  int64
	Events int // number of kept events, the newest. Default 5,000
	// greatest number of waiting events of a sink; the oldest are dropped. Default 10,000
	Waiting int
	// a stranger who is not seen for this time is removed, unless ignored. Default 30 days
	Retention time.Duration
}

func (s PastSettings) defaults() PastSettings {
	s.Age, s.Retention = cmp.Or(s.Age, 7*24*time.Hour), cmp.Or(s.Retention, 30*24*time.Hour)
	s.Bytes = cmp.Or(s.Bytes, 256<<20)
	s.Events, s.Waiting = cmp.Or(s.Events, 5000), cmp.Or(s.Waiting, 10000)
	return s
}

// Past keeps the sightings of an [Office], so that they can be corrected, the corrections, so that
// they can be undone, the events, and the strangers, in the database of a gallery. [OpenPast] opens
// it; close it when the office has ended.
type Past struct {
	mu   sync.Mutex // guards the fields below, the gallery, and the office
	g    *gallery.Gallery
	s    PastSettings
	id   int64 // number in the database
	name string
	code string // of the office, which no other has
	off  bool   // faces of strangers are not kept
	lock *os.File

	temporary bool

	state   presence.State   // as it was recorded last
	present bool             // who is present is not written
	waiting []presence.Event // not written, the oldest first
	lost    int              // events that were dropped and never written
	queues  map[string]*Queue
}

// mostTemporary is the number of sightings that an office without a name keeps.
const mostTemporary = 64

// OpenPast opens what is kept of the office with a name in the database of a gallery. Of an office
// without a name nothing outlives the program: Close removes it, and after a crash the next
// OpenPast of any name does. The error wraps [ErrBusy] if another program runs an office of this
// name, or comes from the database.
func OpenPast(g *gallery.Gallery, name string, s PastSettings) (p *Past, err error) {
	var random [4]byte
	rand.Read(random[:])
	p = &Past{g: g, name: name, code: hex.EncodeToString(random[:]),
		queues: make(map[string]*Queue)}
	if name == "" {
		p.temporary, p.name, s.Records = true, "\n"+p.code, cmp.Or(s.Records, mostTemporary)
	}
	p.s = s.defaults()
	if g.Path() != "" {
		p.lock, err = safefile.OpenLocked(gallery.OfficeLock(g.Path(), p.name), 2*time.Second)
	}
	if errors.Is(err, safefile.ErrLocked) {
		err = ErrBusy
	}
	if err == nil {
		g.Rows().Reserve()
		err = g.Rows().Write(false, p.begin)
	}
	if err != nil {
		p.release()
		return nil, fmt.Errorf("opening office %q: %w", name, err)
	}
	return p, nil
}

// release lets other programs run an office of this name.
func (p *Past) release() error {
	if p.lock == nil {
		return nil
	}
	if p.temporary {
		os.Remove(p.lock.Name()) // nobody else has this name
	}
	return p.lock.Close()
}

// begin reads what is kept of the office, makes its row if there is none, and removes what ended
// programs have left behind.
func (p *Past) begin(t *gallery.Tx) error {
	for r := range t.Rows(
		`insert into office(name, code, temporary, off, last) values(?, ?, ?, 0, 0)
		on conflict(name) do update set name = name returning id, code, off, last`,
		p.name, p.code, p.temporary) {
		p.id, p.code = r.ColumnInt64(0), r.ColumnText(1)
		p.off, p.state.Last = r.ColumnInt64(2) == 1, uint64(r.ColumnInt64(3))
	}
	left := make(map[int64]string)
	for r := range t.Rows("select id, name from office where temporary and id <> ?", p.id) {
		left[r.ColumnInt64(0)] = r.ColumnText(1)
	}
	for id, name := range left {
		if f, err := safefile.OpenLocked(gallery.OfficeLock(p.g.Path(), name), 0); err == nil {
			t.Exec("delete from office where id = ?", id)
			os.Remove(f.Name())
			f.Close()
		}
	}
	if p.s.Clips == 0 { // nobody would remove those of earlier runs
		t.Exec("delete from film where sighting in (select id from sighting where office = ?)",
			p.id)
	}
	for r := range t.Rows(
		`select person, since, last, camera, trust, sighting, zone from present where office = ?
		order by person`, p.id) {
		p.state.People = append(p.state.People, presence.Presence{
			Who:   sighting.Who{Person: r.ColumnInt64(0), Trust: sighting.Trust(r.ColumnText(4))},
			Since: moment(r.ColumnInt64(1)), Last: moment(r.ColumnInt64(2)),
			Camera: r.ColumnText(3), Sighting: uint64(r.ColumnInt64(5)), Zone: r.ColumnText(6)})
	}
	for r := range t.Rows("select sink, done, lost from delivery where office = ?", p.id) {
		sink := r.ColumnText(0)
		p.queues[sink] = &Queue{p: p, sink: sink, done: uint64(r.ColumnInt64(1)),
			lost: uint64(r.ColumnInt64(2))}
	}
	return t.Err()
}

// ID returns the identifier of the office, which no other office has. It stays over restarts.
func (p *Past) ID() string { return p.code }

// Name returns the name of the office.
func (p *Past) Name() string { return p.name }

// Close writes the last events, and lets other programs run an office of this name.
func (p *Past) Close() (err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.id == 0 {
		return nil
	}
	p.g.Prompt(nil)
	err = p.g.Rows().Write(false, func(t *gallery.Tx) error {
		if p.temporary {
			t.Erase()
			return t.Exec("delete from office where id = ?", p.id)
		}
		p.write(t)
		return t.Err()
	})
	if errors.Is(err, gallery.ErrClosed) {
		err = nil // with the gallery everything was closed
	}
	p.id = 0
	return errors.Join(err, p.release())
}

// dirty reports whether anything is not written.
func (p *Past) dirty() bool {
	unsaved := func(q *Queue) bool { return q.unsaved }
	return p.present || len(p.waiting) > 0 ||
		slices.ContainsFunc(slices.Collect(maps.Values(p.queues)), unsaved)
}

// record adds events and the state of the room after them.
func (p *Past) record(s presence.State, all []presence.Event) {
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

// write writes what is not written.
func (p *Past) write(t *gallery.Tx) {
	for _, e := range p.waiting {
		p.put(t, e)
	}
	if len(p.waiting) > 0 {
		t.Exec("update office set last = ? where id = ?", int64(p.state.Last), p.id)
		t.Exec("delete from event where office = ? and number <= ?", p.id,
			int64(p.state.Last)-int64(max(p.s.Events, p.s.Waiting)))
	}
	for _, q := range p.queues {
		if q.unsaved {
			q.write(t)
		}
	}
	if p.present {
		t.Exec("delete from present where office = ?", p.id)
		for _, x := range p.state.People {
			t.Exec(`insert into present(office, person, since, last, camera, trust, sighting,
				zone) select ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8 where exists (select 1 from person
				where id = ?2)`, p.id, x.Person,
				nanoseconds(x.Since), nanoseconds(x.Last), x.Camera, string(x.Trust),
				int64(x.Sighting), x.Zone)
		}
	}
}

// put writes an event. Of a person whom another program has forgotten there are none.
func (p *Past) put(t *gallery.Tx, e presence.Event) {
	id, _ := t.Int(
		`insert or replace into event(office, number, kind, person, stranger, camera, trust,
		at, known, sighting, of, told, told_stranger, zone)
		select ?1, ?2, ?3, nullif(?4, 0), ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?4, ?5, ?12
		where ?4 = 0 or exists (select 1 from person where id = ?4) returning id`,
		p.id, int64(e.ID), string(e.Kind), e.Person, int64(e.Group), e.Camera, string(e.Trust),
		nanoseconds(e.At), nanoseconds(e.Known), int64(e.Sighting), int64(e.Of),
		e.Zone)
	if e.Sighting == 0 || e.Of != 0 {
		return
	}
	// What users have said about the sighting, and may take back, is said about the event, too.
	t.Exec(`insert or ignore into said(statement, what, of, person) select statement, 'event', ?1,
		person
		from said where what = 'sighting' and of = ?2 and ?1 > 0`, id, int64(e.Sighting))
	t.Found(gallery.EventWho, id, gallery.Value{}, false)
}

// written notes that write was committed, or that it could not be: then sinks get the events all
// the same.
func (p *Past) written(committed bool) {
	if committed {
		p.waiting, p.present = nil, false
	}
	for _, q := range p.queues {
		q.unsaved = q.unsaved && !committed
		select {
		case q.more <- struct{}{}:
		default:
		}
	}
}

// Statements that find events of an office.
const (
	events = `select number, kind, coalesce(event.person, 0), stranger, camera, trust, at, known,
		coalesce(name, ''), sighting, of, zone
		from event left join person on person.id = event.person
		where office = ? and `
	nextEvents = events + "number > ? order by number"
	lastEvents = events + "number < ? and number > ? order by number desc"
)

// events returns the written events that a statement finds.
func (p *Past) events(t *gallery.Tx, statement string, args ...any) iter.Seq[presence.Event] {
	rows := t.Rows(statement, append([]any{p.id}, args...)...)
	return func(yield func(presence.Event) bool) {
		for r := range rows {
			e := presence.Event{ID: uint64(r.ColumnInt64(0)),
				Kind: presence.EventKind(r.ColumnText(1)),
				Who: sighting.Who{Name: p.g.Name(r.ColumnInt64(2)), Person: r.ColumnInt64(2),
					Trust: sighting.Trust(r.ColumnText(5))},
				Group: uint64(r.ColumnInt64(3)), Camera: r.ColumnText(4),
				At: moment(r.ColumnInt64(6)), Known: moment(r.ColumnInt64(7)),
				Sighting: uint64(r.ColumnInt64(9)), Of: uint64(r.ColumnInt64(10)),
				Zone: r.ColumnText(11)}
			// it tells of the name of then, also of somebody who has no faces any more
			if e.Of != 0 {
				e.Name = cmp.Or(e.Name, r.ColumnText(8))
			}
			if e.Name == "" {
				e.Person = 0
				e.Void = e.Of == 0 && e.Kind != presence.Unknown && e.Kind != presence.Faceless
			}
			if !yield(e) {
				return
			}
		}
	}
}

// Queue holds the events that a sink has not got yet. It is safe for concurrent use by one sink.
type Queue struct {
	p    *Past
	sink string
	// number of the last event that it has got or that was dropped, and how many were dropped
	done, lost uint64
	unsaved    bool // these two are not written
	// gets a value when there may be new events; nil: the sink is not there in this run
	more chan struct{}
}

// Queue returns the queue of a sink: all events since Queue was first called for it, in this run or
// an earlier one.
func (p *Past) Queue(sink string) *Queue {
	p.mu.Lock()
	defer p.mu.Unlock()
	q := p.queues[sink]
	if q == nil {
		q = &Queue{p: p, sink: sink, done: p.state.Last}
		p.queues[sink] = q
		q.save()
	}
	q.more = make(chan struct{}, 1)
	q.shed()
	return q
}

// shed drops the oldest events of a sink of this run that has too many.
func (q *Queue) shed() {
	if over := int(q.p.state.Last) - q.p.s.Waiting - int(q.done); q.more != nil && over > 0 {
		q.done, q.lost = q.done+uint64(over), q.lost+uint64(over)
	}
}

// save writes what the sink has got. What cannot be written is written with the rest.
func (q *Queue) save() {
	q.unsaved = q.p.g.Rows().Write(true, func(t *gallery.Tx) error { return q.write(t) }) != nil
}

func (q *Queue) write(t *gallery.Tx) error {
	return t.Exec("insert or replace into delivery(office, sink, done, lost) values(?, ?, ?, ?)",
		q.p.id, q.sink, int64(q.done), int64(q.lost))
}

// Next returns the oldest event in the queue. Ok is false for an empty queue. An event of an
// unknown person has no name, also if the person has got one since: a [presence.Was] follows. What
// did not happen is passed over. The error comes from the database: then nobody knows whether it is
// empty.
func (q *Queue) Next() (e presence.Event, ok bool, err error) {
	q.p.mu.Lock()
	defer q.p.mu.Unlock()
	err = q.p.g.Rows().Look(func(t *gallery.Tx) error {
		for x := range q.p.events(t, nextEvents, int64(q.done)) {
			if !x.Void {
				e, ok = x, true
				break
			}
		}
		return t.Err()
	})
	if err != nil {
		return presence.Event{}, false, err
	}
	for _, x := range q.p.waiting {
		if !ok && x.ID > q.done {
			x.Name = cmp.Or(q.p.g.Name(x.Person), x.Name)
			e, ok = x, true
		}
	}
	if e.Kind == presence.Unknown {
		e.Name, e.Person = "", 0
	}
	return e, ok, nil
}

// Done records that the sink has got all events up to a number. After a crash the sink may get the
// last events once more.
func (q *Queue) Done(id uint64) {
	q.p.mu.Lock()
	defer q.p.mu.Unlock()
	if id > q.done {
		q.done = id
		q.save()
	}
}

// More returns a channel that gets a value when there may be new events in the queue.
func (q *Queue) More() <-chan struct{} { return q.more }

// Waiting returns the numbers of waiting and of dropped events. The error comes from the database.
func (q *Queue) Waiting() (waiting, lost int, err error) {
	q.p.mu.Lock()
	defer q.p.mu.Unlock()
	err = q.p.g.Rows().Look(func(t *gallery.Tx) error {
		n, err := t.Int("select count(*) from event where office = ? and number > ?", q.p.id,
			int64(q.done))
		waiting = int(n)
		return err
	})
	for _, e := range q.p.waiting {
		if e.ID > q.done {
			waiting++
		}
	}
	return waiting, int(q.lost), err
}
