// SPDX-License-Identifier: Apache-2.0

package office

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/faceauth/faceauth/internal/gallery"
	"github.com/faceauth/faceauth/internal/office/presence"
)

// A correction that another program's write holds up is tried for ten seconds, while cameras go on.
const (
	mostTries = 200
	tryEvery  = 50 * time.Millisecond
)

// change makes a correction: one transaction, with everything that is not written yet. It returns
// the entry in the journal, if there is one. On error nothing has changed. Then is done after it,
// with the lock.
func (w *Office) change(do func(t *gallery.Tx) error, then ...func()) (c Correction, err error) {
	err = w.untilFree(func() (err error) {
		c, err = w.try(do, then...)
		return err
	})
	if err == nil {
		w.overwrite()
	}
	return c, err
}

// untilFree tries to write until no other program does.
func (w *Office) untilFree(write func() error) (err error) {
	for range mostTries {
		err = write()
		if !errors.Is(err, gallery.ErrBusy) {
			break
		}
		time.Sleep(tryEvery)
		w.erasing.Lock()
		//lint:ignore SA2001 it waits until our own erasing has ended, which does not count as a try
		w.erasing.Unlock()
	}
	return err
}

// try makes a correction if no other program writes. Otherwise the error wraps [gallery.ErrBusy].
func (w *Office) try(do func(t *gallery.Tx) error, then ...func()) (c Correction, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stated = 0
	err = w.said(do)
	if err != nil {
		return c, err
	}
	w.fault = nil
	w.note(w.reload())
	w.announce()
	for _, f := range then {
		f()
	}
	w.follow()
	w.keep(false)
	w.look(func(t *gallery.Tx) {
		for _, c = range w.corrections(t, correctionByNumber, w.stated) {
		}
	})
	return c, nil
}

// overwrite overwrites what was removed, if anything was, while cameras go on.
func (w *Office) overwrite() {
	w.erasing.Lock()
	defer w.erasing.Unlock()
	w.mu.Lock()
	due := w.removed || w.left != nil
	w.removed = false
	w.mu.Unlock()
	if !due {
		return
	}
	err := gallery.Erase(w.gallery.Path())
	w.mu.Lock()
	defer w.mu.Unlock()
	w.left = err
	w.again = true
	w.keep(true)
}

var errChanged = fmt.Errorf("%w: it changes people", gallery.ErrBusy)

// said makes a transaction with everything that is not written yet. No other program changes people
// meanwhile.
func (w *Office) said(do func(t *gallery.Tx) error) error {
	w.heed()
	err := w.gallery.Rows().Change(func(t *gallery.Tx) error {
		if w.gallery.Rows().Turn() != w.turn {
			return errChanged
		}
		w.write(t)
		return cmp.Or(do(t), w.amend(t))
	})
	if err != nil {
		w.amended = nil
		return err
	}
	w.written(true)
	w.learned()
	return nil
}

// Save writes everything, with all faces that were learned until now.
func (w *Office) Save() error {
	_, err := w.change(func(*gallery.Tx) error { return nil })
	return err
}

// look reads the rows. An error gives less, and is noted.
func (w *Office) look(do func(t *gallery.Tx)) {
	w.note(w.gallery.Rows().Look(func(t *gallery.Tx) error {
		do(t)
		return t.Err()
	}))
}

// mostRefused is how often, every two seconds, another program's write is in the way before it is
// told.
const mostRefused = 5

// keep writes what is not written, except what was learned. Lazily does not wait for the disk.
// After a failure of the disk it tries again when again is set. It calls the option Disk if writing
// fails or works again.
func (w *Office) keep(lazily bool) {
	w.past.record(w.room.State(), nil)
	dirty := w.seen || w.past.dirty() || len(w.ended) > 0 || w.unknown.dirty()
	if (dirty || w.fault != nil) && (w.fault == nil || w.again) {
		w.again = false
		w.fault = w.gallery.Rows().Write(lazily, w.write)
		w.written(w.fault == nil)
		switch {
		case w.fault == nil:
			w.refused = 0
		case errors.Is(w.fault, gallery.ErrBusy):
			w.again = true // to try costs nothing
		}
	}
	w.tellDisk()
}

// tellDisk calls the option Disk if writing fails or works again, or if it is news what is left to
// overwrite.
func (w *Office) tellDisk() {
	d := Disk{Held: len(w.past.waiting), Lost: w.past.lost + w.lost}
	if w.fault != nil && (!errors.Is(w.fault, gallery.ErrBusy) || w.refused >= mostRefused) {
		d.Error = w.fault.Error()
	}
	if w.left != nil {
		d.Left = w.left.Error()
	}
	news := (d.Error == "") != (w.disk.Error == "") || (d.Left == "") != (w.disk.Left == "")
	w.disk = d
	if news {
		call(w.o.Disk, d)
	}
}

// beat is called every two seconds: it takes in what others have changed, and writes what is new.
// That people are still in view is no news.
func (w *Office) beat() {
	w.heed()
	w.again = true
	if errors.Is(w.fault, gallery.ErrBusy) {
		w.refused++
	}
	if w.fault != nil || len(w.past.waiting)+len(w.ended) > 0 ||
		slices.ContainsFunc(w.fresh(), w.news) {
		w.keep(true)
	}
}

// news reports whether the row of a sighting says something else than the camera, apart from its
// last time, or its film is complete.
func (w *Office) news(s *sighted) bool {
	if !w.decided(s) || !w.keeps(s) {
		return s.written
	}
	return !s.written || s.row != s.facts() || w.filmed(s) && len(s.film.pictures) == clipPictures
}

// write writes everything that is not written yet, except what was learned.
func (w *Office) write(t *gallery.Tx) error {
	w.past.write(t)
	w.writing = nil
	for _, s := range w.fresh() {
		switch {
		case w.decided(s) && w.keeps(s):
			w.litter = s.put(t, w.past.id) || w.litter
			if w.filmed(s) {
				s.film.put(t, s.ID)
			}
			w.writing = append(w.writing, s)
		case s.written:
			t.Exec("delete from sighting where id = ?", int64(s.ID))
			w.known.lose(s.Person, s.ID)
			s.written, w.litter = false, true
		}
	}
	w.unknown.write(t, w.past.id)
	return t.Err()
}

// decided reports whether a sighting is somebody: a person, a stranger, or one who has gone without
// a name.
func (w *Office) decided(s *sighted) bool { return s.done || s.Person != 0 || s.Group != 0 }

// written notes that write was committed, or that it could not be.
func (w *Office) written(committed bool) {
	w.past.written(committed)
	if committed {
		w.unknown.written()
		for _, s := range w.writing {
			s.written, s.row = true, s.facts()
			if w.filmed(s) {
				s.film.written = len(s.film.pictures)
			}
			if n := len(s.album.Faces); n > 0 {
				s.Face, s.saved = s.album.Clearest().ID, s.album.Faces[n-1].ID
			}
			w.known.saw(w.show(s.Sighting))
			if g := w.unknown.Get(s.Group); g != nil && s.done {
				g.counted = false
			}
		}
		w.ended, w.seen = nil, false
		return
	}
	if over := len(w.ended) - mostEnded; over > 0 {
		w.lost += over
		w.ended = slices.Delete(w.ended, 0, over)
	}
}

// mostEnded is the greatest number of sightings that are only in memory while the database cannot
// be written.
const mostEnded = 64

// heed takes in what other programs have changed in the gallery. The lock must be held.
func (w *Office) heed() {
	w.note(w.gallery.Update())
	if w.gallery.Rows().Turn() == w.turn {
		return
	}
	if w.unknown.dirty() {
		w.keep(true)
	}
	w.turn = w.gallery.Rows().Turn()
	if !w.unknown.dirty() { // otherwise the rows lack strangers: the disk is full
		w.note(w.reload())
		w.note(w.gallery.Rows().Write(true, w.amend))
		w.announce()
		w.follow()
	}
}

// follow lets the room follow changes of people: who has no faces any more is whom they were found
// to be, or nobody. What was told of them is corrected ([Office.amend]).
func (w *Office) follow() {
	w.room.Follow(func(person int64) (is int64, name string) {
		is, name = person, w.gallery.Name(person)
		if name == "" {
			is, _ = w.gallery.Rows().Int(
				`select person from statement where kind = 'renamed' and other = ?
				and not undone order by id desc limit 1`, person)
			name = w.gallery.Name(is)
		}
		if name == "" {
			is = 0
		}
		return is, name
	})
}

// savePace is how many bytes a minute what was learned may take on the disk: a large gallery is
// saved less often than a small one.
const savePace = 32 << 10

// minute saves newly learned faces if Keep is set, and removes what is too old.
func (w *Office) minute() {
	w.unknown.Expire(w.o.Now())
	w.heed()
	w.keep(true)
	if w.fault == nil {
		w.note(w.gallery.Rows().Write(true, func(t *gallery.Tx) error {
			return w.expire(t, w.o.Now())
		}))
	}
	w.unsaved++
	if w.o.Keep && w.unsaved > w.gallery.SnapshotSize()/savePace &&
		w.gallery.Learner().Counts().Learned != w.kept {
		w.note(w.said(func(*gallery.Tx) error { return nil }))
	}
}

// learned notes that what was learned is saved.
func (w *Office) learned() {
	w.kept, w.unsaved = w.gallery.Learner().Counts().Learned, 0
}

// Corrections are kept for a time, the latest of them.
const (
	correctionsAge = 90 * 24 * time.Hour
	mostStatements = 20000
)

// expire removes what is too old or too much.
func (w *Office) expire(t *gallery.Tx, now time.Time) error {
	p, s := w.past, w.past.s
	// The newest number, not the latest time, which a wrong clock may have put far into the future.
	newest, _ := t.Int(
		`select last from sighting where +office = ? and id < ? order by id desc limit 1`, p.id,
		before(0))
	w.expired(t.Rows(
		`delete from sighting where office = ? and last < ? returning id, coalesce(person, 0)`,
		p.id,
		max(nanoseconds(now), newest)-int64(s.Age)))
	var n, total int64
	for r := range t.Rows("select count(*), sum(size + 1024) from sighting where office = ?",
		p.id) {
		n, total = r.ColumnInt64(0), r.ColumnInt64(1)
	}
	most := int64(cmp.Or(s.Records, math.MaxInt))
	if n > most || total > s.Bytes {
		last := int64(0)
		for r := range t.Rows(
			"select id, size + 1024 from sighting where +office = ? and id > 0 order by id", p.id) {
			if n <= most && total <= s.Bytes {
				break
			}
			last, n, total = r.ColumnInt64(0), n-1, total-r.ColumnInt64(1)
		}
		w.expired(t.Rows(`delete from sighting where +office = ? and id <= ?
			returning id, coalesce(person, 0)`, p.id, last))
	}
	if s.Clips > 0 {
		w.expireFilms(t)
	}
	old, _ := t.Ints(
		`select id from statement where office = ?1 and (at < ?2 or id not in (select id
			from statement
		where office = ?1 order by id desc limit ?3)) and (undone or kind not in ('alike',
			'pictured')) order by id`, p.id,
		nanoseconds(now.Add(-correctionsAge)), int64(mostStatements))
	t.Settle(old...)
	if !w.litter && len(old) == 0 {
		return t.Err()
	}
	w.litter = false
	t.Exec(`delete from face where office = ? and sighting is null and +stranger = 0 and
		not exists (select 1 from said where what = 'face' and of = number) and
		not exists (select 1 from label where label.number = face.number)`, p.id)
	return t.Sweep()
}

// expired takes in which sightings were removed: their numbers and people.
func (w *Office) expired(gone iter.Seq[gallery.Row]) {
	for r := range gone {
		w.litter = true
		w.known.lose(r.ColumnInt64(1), uint64(r.ColumnInt64(0)))
		w.unknown.recount()
	}
}

// expireFilms removes films with somebody whose sighting is gone, and the oldest beyond their
// limit.
func (w *Office) expireFilms(t *gallery.Tx) {
	var live []uint64
	w.live(func(s *sighted, _ *view) { live = append(live, s.ID) })
	t.Exec(`delete from film where sighting in (select film from film_with x where
		not exists (select 1 from sighting where id = x.sighting) and
		x.sighting not in (select value from json_each(?)))`, ids(live))
	total, last := int64(0), int64(0)
	for r := range t.Rows(`select film.sighting, sum(length(jpeg)) + 1024 from film
		join sighting on sighting.id = film.sighting where +sighting.office = ?
		group by film.sighting order by film.sighting desc`, w.past.id) {
		total += r.ColumnInt64(1)
		if total > w.past.s.Clips {
			last = r.ColumnInt64(0)
			break
		}
	}
	t.Exec(`delete from film where sighting <= ? and sighting in (select id from sighting
		where +office = ?
		and id <= ?1)`, last, w.past.id)
}

// tell records events, writes them with the state of the room, and then reports them.
func (w *Office) tell(events []presence.Event) {
	if len(events) == 0 {
		return
	}
	w.past.record(w.room.State(), events)
	w.keep(false)
	for _, e := range events { // they are written, or held because they cannot be written
		call(w.o.Event, e)
	}
}
