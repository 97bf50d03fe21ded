// SPDX-License-Identifier: Apache-2.0

package office

import (
	"errors"
	"slices"
	"time"

	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/internal/office/presence"
)

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
	w.follow()
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
		return do(t)
	})
	switch {
	case errors.Is(err, errChanged):
		return w.said(do)
	case err != nil:
		return err
	}
	w.written(true)
	w.kept = w.gallery.Learner().Counts().Learned
	return nil
}

// Save writes everything, with all faces that were learned until now.
func (w *keeper) Save() error { return w.change(func(*gallery.Tx) error { return nil }) }

// look reads the rows, after it has written what cameras have seen. An error gives less, and is noted.
func (w *keeper) look(do func(t *gallery.Tx)) {
	w.keep(true)
	w.note(w.gallery.Look(func(t *gallery.Tx) error {
		do(t)
		return t.Err()
	}))
}

// retryEvery is the pause between two tries after a failure.
const retryEvery = 2 * time.Second

// keep writes what is not written, except what was learned. Lazily does not wait for the disk. After a failure it tries
// again after a pause. It calls the option Disk if writing fails or works again.
func (w *keeper) keep(lazily bool) {
	w.past.record(w.room.State(), nil)
	dirty := w.seen || w.past.present || len(w.past.waiting)+len(w.ended) > 0 || w.unknown.dirty()
	if (dirty || w.fault != nil) && (w.fault == nil || time.Since(w.tried) >= retryEvery) {
		w.tried = time.Now()
		w.fault = w.gallery.Records(lazily, w.write)
		w.written(w.fault == nil)
	}
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

// write writes everything that is not written yet, except what was learned.
func (w *keeper) write(t *gallery.Tx) error {
	w.past.write(t)
	w.writing = nil
	for _, s := range w.fresh() {
		switch decided := s.done || s.Person != 0 || s.Group != 0; {
		case decided && w.keeps(s):
			s.put(t, w.past.id)
			if w.filmed(s) {
				s.film.put(t, s.ID)
			}
			w.writing = append(w.writing, s)
		case s.written:
			t.Exec("delete from sighting where id = ?", int64(s.ID))
			s.written, w.rows = false, nil
		}
	}
	w.unknown.write(t, w.past.id)
	return t.Err()
}

// written notes that write was committed, or that it could not be.
func (w *keeper) written(committed bool) {
	w.past.written(committed)
	if committed {
		w.unknown.written()
		for _, s := range w.writing {
			s.written = true
			if w.filmed(s) {
				s.film.written = len(s.film.pictures)
			}
			if n := len(s.album.Faces); n > 0 {
				s.Face, s.saved = s.album.Faces[0].ID, s.album.Faces[n-1].ID
			}
			x := w.show(s.Sighting)
			for i := range w.rows {
				w.rows[i].saw(x)
			}
		}
		w.ended, w.seen = nil, false
		return
	}
	if over := len(w.ended) - mostEnded; over > 0 {
		w.ended = slices.Delete(w.ended, 0, over)
	}
}

// mostEnded is the greatest number of sightings that are only in memory while the database cannot be written.
const mostEnded = 64

// heed takes in what other programs have changed in the gallery. The lock must be held.
func (w *keeper) heed() {
	w.note(w.gallery.Update())
	if w.gallery.Turn() == w.turn {
		return
	}
	if w.unknown.dirty() {
		w.keep(true)
	}
	w.turn = w.gallery.Turn()
	if !w.unknown.dirty() { // otherwise the rows lack strangers: the disk is full
		w.note(w.reload())
		w.follow()
	}
}

// follow lets the room follow changes of people: who has no faces any more is whom they were found to be,
// or nobody.
func (w *keeper) follow() {
	w.tell(w.room.Follow(func(person int64) (is int64, name string) {
		is, name = person, w.gallery.Name(person)
		if name == "" {
			is, _ = w.gallery.Int(`select person from statement where kind = 'renamed' and other = ?
				and not undone order by id desc limit 1`, person)
			name = w.gallery.Name(is)
		}
		if name == "" {
			is = 0
		}
		return is, name
	}))
}

// minute saves newly learned faces if Keep is set, and removes what is too old.
func (w *keeper) minute() {
	w.unknown.Expire(w.o.Now())
	w.heed()
	w.keep(true)
	if w.fault == nil {
		w.note(w.gallery.Records(true, func(t *gallery.Tx) error { return w.expire(t, w.o.Now()) }))
	}
	if w.o.Keep && w.gallery.Learner().Counts().Learned != w.kept {
		w.note(w.said(func(*gallery.Tx) error { return nil }))
	}
}

// Corrections are kept for a time, the latest of them.
const (
	correctionsAge = 90 * 24 * time.Hour
	mostStatements = 20000
)

// expire removes what is too old or too much.
func (w *keeper) expire(t *gallery.Tx, now time.Time) error {
	p, s := w.past, w.past.s
	w.rows = nil
	// The newest number, not the latest time, which a wrong clock may have put far into the future.
	t.Exec(`delete from sighting where office = ?1 and last < max(?2,
		(select last from sighting where office = ?1 order by id desc limit 1)) - ?3`,
		p.id, nanoseconds(now), int64(s.Age))
	t.Exec(`delete from sighting where id in (select id from (select id,
		row_number() over latest as n, sum(size + 1024) over latest as total
		from sighting where office = ? window latest as (order by id desc)) where n > ? or total > ?)`,
		p.id, int64(s.Records), s.Bytes)
	var live []uint64
	w.live(func(s *sighted, _ *view) { live = append(live, s.ID) })
	t.Exec(`delete from film where
		sighting in (select film from film_with x where not exists (select 1 from sighting where id = x.sighting) and
			x.sighting not in (select value from json_each(?2))) or
		sighting in (select id from (select id, sum(sum(length(jpeg)) + 1024) over (order by id desc) as total
			from film join sighting on id = sighting where office = ?1 group by id) where total > ?3)`,
		p.id, ids(live), s.Clips)
	old, _ := t.Ints(`select id from statement where office = ?1 and (at < ?2 or id not in (select id from statement
		where office = ?1 order by id desc limit ?3)) and (undone or kind not in ('alike', 'pictured')) order by id`, p.id,
		nanoseconds(now.Add(-correctionsAge)), int64(mostStatements))
	t.Settle(old...)
	t.Exec(`delete from face where office = ? and sighting is null and stranger = 0 and
		not exists (select 1 from said where what = 'face' and of = number) and
		not exists (select 1 from label where label.number = face.number)`, p.id)
	return t.Sweep()
}

// tell records events, writes them with the state of the room, and then reports them.
func (w *keeper) tell(events []presence.Event) {
	if len(events) == 0 {
		return
	}
	w.past.record(w.room.State(), events)
	w.keep(false)
	for _, e := range events { // they are written, or held because they cannot be written
		call(w.o.Event, e)
	}
}
