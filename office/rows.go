// SPDX-License-Identifier: Apache-2.0

package office

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/internal/vector"
	"github.com/faceauth/faceauth/office/presence"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/sighting"
)

// faceOf returns the face in the columns number, camera, at, sharp, vector and jpeg of a row, from a column on.
func faceOf(r gallery.Row, from int) sighting.Face {
	return sighting.Face{ID: uint64(r.ColumnInt64(from)), Camera: r.ColumnText(from + 1),
		At: moment(r.ColumnInt64(from + 2)), Sharp: r.ColumnFloat(from + 3), Vector: vector.Floats(r.ColumnRawBlob(from + 4)),
		JPEG: slices.Clone(r.ColumnRawBlob(from + 5))}
}

// putFace writes a face of a sighting, or of a group of unknown faces; 0 keeps what it is.
func putFace(t *gallery.Tx, f sighting.Face, office int64, of, stranger uint64) error {
	return t.Exec(`insert into face(number, office, sighting, stranger, camera, at, sharp, vector, jpeg)
		values(?1, ?2, nullif(?3, 0), ?4, ?5, ?6, ?7, ?8, nullif(?9, x'')) on conflict(number) do update set
		sighting = iif(?3 > 0, ?3, sighting), stranger = iif(?4 > 0, ?4, stranger)`,
		int64(f.ID), office, int64(of), int64(stranger), f.Camera, nanoseconds(f.At), f.Sharp, vector.Bytes(f.Vector),
		f.JPEG)
}

// put writes a sighting with its faces. Of a person whom another program has forgotten there are no sightings.
func (s *sighted) put(t *gallery.Tx, office int64) {
	there, _ := t.Int("select ?1 = 0 or exists (select 1 from person where id = ?1)", s.Person)
	if there == 0 {
		return
	}
	size := 0
	for _, f := range s.album.Faces {
		size += 4*len(f.Vector) + len(f.JPEG)
	}
	t.Exec(`insert into sighting(id, office, camera, first, last, person, trust, wrong, stranger, size)
		values(?1, ?2, ?3, ?4, ?5, nullif(?6, 0), ?7, ?8, ?9, ?10) on conflict(id) do update set first = ?4, last = ?5,
		person = nullif(?6, 0), trust = ?7, wrong = ?8, stranger = ?9, size = ?10`,
		int64(s.ID), office, s.Camera, nanoseconds(s.First), nanoseconds(s.Last), s.Person,
		string(s.Trust), s.wrong, int64(s.Group), int64(size))
	// What users have said counts more, also what another program has just heard.
	t.Found(gallery.WhoOf, int64(s.ID), gallery.Value{Person: s.Person, Text: string(s.Trust), Value: s.wrong}, !s.said)
	t.Found(gallery.GroupOf, int64(s.ID), gallery.Value{Value: int64(s.Group)}, !s.placed)
	for _, f := range s.album.Faces {
		if f.ID > s.saved {
			putFace(t, f, office, s.ID, 0)
		}
	}
	if s.written { // the album may have dropped faces since
		t.Exec(`update face set sighting = null where sighting = ? and number not in (select value from json_each(?))`,
			int64(s.ID), ids(numbersOf(s.album.Faces)))
	}
}

// ids returns numbers as JSON, for json_each.
func ids[N int64 | uint64](all []N) string {
	text, _ := json.Marshal(append([]N{}, all...)) // numbers can be encoded
	return string(text)
}

// facesOf returns the faces of a sighting, in the order in which they were seen.
func facesOf(t *gallery.Tx, id uint64) (all []sighting.Face, err error) {
	err = t.Query("select number, camera, at, sharp, vector, jpeg from face where sighting = ? order by number",
		func(r gallery.Row) error {
			all = append(all, faceOf(r, 0))
			return nil
		}, int64(id))
	return all, err
}

// sightings calls each with the sightings in the rows for which a condition holds.
func (w *keeper) sightings(t *gallery.Tx, condition string, each func(Sighting) error, args ...any) error {
	live := make(map[uint64]bool)
	w.live(func(s *sighted, _ *view) { live[s.ID] = true })
	return t.Query(`select id, camera, first, last, coalesce(person, 0), trust, stranger,
		coalesce((select min(number) from face where sighting = sighting.id), 0), coalesce((select pictures from film
		where film.sighting = sighting.id), 0) from sighting where office = ? and `+condition,
		func(r gallery.Row) error {
			id := uint64(r.ColumnInt64(0))
			return each(w.show(Sighting{ID: id, Camera: r.ColumnText(1), First: moment(r.ColumnInt64(2)),
				Last: moment(r.ColumnInt64(3)), Live: live[id], Person: r.ColumnInt64(4),
				Trust: sighting.Trust(r.ColumnText(5)), Group: uint64(r.ColumnInt64(6)), Face: uint64(r.ColumnInt64(7)),
				Clip: int(r.ColumnInt64(8))}))
		}, append([]any{w.past.id}, args...)...)
}

// reload brings memory in line with the rows, after whatever has changed them.
func (w *keeper) reload() error {
	w.turn, w.rows = w.gallery.Turn(), nil
	return w.gallery.Look(func(t *gallery.Tx) error {
		if err := w.unknown.read(t, w.past.id, w.gallery.Name); err != nil {
			return err
		}
		return w.reloadLive(t)
	})
}

// leave lets people leave who are nobody any more.
func (w *keeper) leave() {
	for _, p := range w.room.People() {
		if w.gallery.Name(p.ID) == "" {
			w.tell(w.room.Leave(p.ID))
		}
	}
}

// reloadLive brings the sightings in view in line with the rows.
func (w *keeper) reloadLive(t *gallery.Tx) error {
	w.live(func(s *sighted, v *view) {
		w.rejudge(s, v)
		if s.written {
			w.reread(t, s)
		}
		there, err := t.Int("select ?1 = 0 or exists (select 1 from person where id = ?1)", s.Person)
		if err == nil && (there == 0) { // so was the person
			w.wipe(s)
		}
		if s.Group != 0 && w.unknown.Get(s.Group) == nil {
			s.ungroup()
		}
		w.deny(t, s, v)
	})
	return t.Err()
}

// rejudge forgets the evidence about somebody in view if the face is somebody else's now. Other changes of people, which
// may be many in a second, leave it.
func (w *keeper) rejudge(s *sighted, v *view) {
	if n := len(s.album.Faces); n > 0 {
		is, err := w.gallery.Learner().Judge(s.album.Faces[n-1].Vector)
		if err == nil && is.Person == s.believed {
			return
		}
	}
	v.people.Reset(s.track)
	s.looks = nil
}

// reread takes over what a user said about a sighting in view. Of what nobody has said, the camera knows more than the
// row.
func (w *keeper) reread(t *gallery.Tx, s *sighted) {
	const said = `exists (select 1 from said join statement on statement.id = said.statement
		where of = ?1 and not undone and what = `
	named, moved := s.said, s.placed
	s.written = false
	err := t.Query("select coalesce(person, 0), trust, wrong, stranger, "+said+"'sighting'), "+said+`'group'),
		exists (select 1 from statement where stranger = ?2 and not undone) from sighting where id = ?1`,
		func(r gallery.Row) error {
			s.written, s.said, s.placed = true, r.ColumnInt64(4) == 1, r.ColumnInt64(5) == 1
			if named || s.said {
				s.Person, s.Trust, s.wrong = r.ColumnInt64(0), sighting.Trust(r.ColumnText(1)), r.ColumnInt64(2) == 1
			}
			if moved || s.placed {
				s.Group, s.began = uint64(r.ColumnInt64(3)), false
			}
			s.began = s.began && r.ColumnInt64(6) == 0 // otherwise a user may have added others to its group
			return nil
		}, int64(s.ID), int64(s.Group))
	if err == nil && !s.written { // it was forgotten
		w.wipe(s)
	}
}

// wipe removes everything about a person from a sighting in view, and what others' films show of them.
func (w *keeper) wipe(s *sighted) {
	for _, o := range w.fresh() {
		if slices.Contains(o.film.with, s) {
			o.film = film{}
		}
	}
	s.Person, s.Trust, s.wrong, s.said, s.placed = 0, sighting.Nobody, false, false, false
	delete(w.learned, s.ID)
	s.album, s.film = sighting.Album{}, film{}
	s.ungroup()
}

// deny tells a camera who a person in view is not.
func (w *keeper) deny(t *gallery.Tx, s *sighted, v *view) {
	now, err := t.Ints(`select other from statement where kind = 'denied' and sighting = ? and not undone and
		other is not null`, int64(s.ID))
	if err != nil || slices.Equal(now, s.denied) {
		return
	}
	for _, person := range s.denied {
		v.people.Allow(s.track, person)
	}
	for _, person := range now {
		v.people.Deny(s.track, person)
	}
	s.denied = now
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
	if len(w.ended) > 0 {
		w.limit(t, w.ended[len(w.ended)-1].Last)
	}
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
			if w.rows != nil {
				w.rows.saw(w.show(s.Sighting))
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

// writeLearned writes which observations taught something, in a transaction that saves what was learned.
func (w *keeper) writeLearned(t *gallery.Tx) error {
	for id, r := range w.learned {
		was, err := w.taught(t, "sighting", int64(id))
		if err != nil {
			return err
		}
		t.Exec("update sighting set learned = ? where id = ?", was.With(r).Encoded(), int64(id))
	}
	return t.Err()
}

// taught returns the observations that a row of a table has.
func (w *keeper) taught(t *gallery.Tx, table string, id int64) (online.Ranges, error) {
	b, err := t.Blob("select learned from "+table+" where id = ?", id)
	if err != nil {
		return nil, err
	}
	return online.DecodeRanges(b)
}

// limit removes sightings that are too many or too old.
func (w *keeper) limit(t *gallery.Tx, now time.Time) {
	t.Exec("delete from sighting where office = ? and last < ?", w.past.id, nanoseconds(now.Add(-w.past.s.Age)))
	t.Exec(`delete from sighting where id in (select id from sighting where office = ? order by id desc limit -1
		offset ?)`, w.past.id, int64(w.past.s.Records))
}

// expire removes what is too old or too much.
func (w *keeper) expire(t *gallery.Tx, now time.Time) error {
	p, s := w.past, w.past.s
	before := func(age time.Duration) int64 { return nanoseconds(now.Add(-age)) }
	w.rows = nil
	w.limit(t, now)
	t.Exec(`delete from sighting where id in (select id from (select id, sum(size + 1024) over (order by id desc) as
		total from sighting where office = ?) where total > ?)`, p.id, s.Bytes)
	var live []uint64
	w.live(func(s *sighted, _ *view) { live = append(live, s.ID) })
	t.Exec(`delete from film where sighting in (select id from sighting where office = ?1 and last < ?2) or
		sighting in (select film from film_with x where not exists (select 1 from sighting where id = x.sighting) and
			x.sighting not in (select value from json_each(?3))) or
		sighting in (select sighting from (select film.sighting, sum(film.size + 1024) over (order by film.sighting desc) as
			total from film join sighting on sighting.id = film.sighting where office = ?1) where total > ?4)`,
		p.id, before(s.Age), ids(live), s.Clips)
	old, _ := t.Ints(`select id from statement where office = ?1 and (at < ?2 or id not in (select id from statement
		where office = ?1 order by id desc limit ?3)) and (undone or kind not in ('alike', 'pictured')) order by id`, p.id,
		before(correctionsAge), int64(mostStatements))
	t.Settle(old...)
	if len(old) > 0 {
		t.SettleDone()
	}
	t.Exec(`delete from face where office = ? and sighting is null and stranger = 0 and
		not exists (select 1 from said where what = 'face' and of = number) and
		not exists (select 1 from label where label.number = face.number)`, p.id)
	return t.Sweep()
}

// keeper keeps the rows in line with what cameras see, and memory in line with the rows.
type keeper struct {
	o       Options
	mu      *sync.Mutex // guards the fields below, those of the other parts, and the order of events; that of the Past
	gallery *gallery.Gallery
	past    *Past
	unknown *groups
	room    *presence.Room
	views   []*view
	seen    bool                     // somebody was seen, which is not written yet
	ended   []*sighted               // sightings that are not written since they ended
	writing []*sighted               // sightings of the present transaction
	learned map[uint64]online.Ranges // observations by which sightings taught the learner, and which are not saved yet
	rows    *rows                    // nil if they may have changed
	turn    uint64                   // of the gallery, as far as the office has taken it in
	kept    int64                    // number of learned faces at the last save of the gallery
	tried   time.Time                // when writing was last tried
	fault   error                    // the last error of writing; nil: all is written
	broken  error                    // the error that ends the run
	disk    Disk
}

// Disk tells whether the database can be written. A failure does not end an office: what cameras see stays in memory,
// within limits, and is written as soon as possible. Corrections are refused meanwhile.
type Disk struct {
	Error string `json:"error,omitempty"` // why writing fails; "" if it works
	Held  int    `json:"held"`            // number of events in memory only; they are lost if the program ends
	Lost  int    `json:"lost"`            // number of events that were dropped for lack of memory
}

// Sentence describes the state for a person.
func (d Disk) Sentence() string {
	switch {
	case d.Error != "":
		return d.Error + "; what cameras see stays in memory, and is written when there is room; corrections wait"
	case d.Lost > 0:
		return fmt.Sprintf("the state is written again; events that are lost: %d", d.Lost)
	}
	return "the state is written again, and nothing is lost"
}

// retryEvery is the pause between two tries after a failure.
const retryEvery = 2 * time.Second

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
	w.leave()
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
		if err := w.writeLearned(t); err != nil {
			return err
		}
		return do(t)
	})
	switch {
	case errors.Is(err, errChanged):
		return w.said(do)
	case err != nil:
		return err
	}
	w.written(true)
	w.learned, w.kept = make(map[uint64]online.Ranges), w.gallery.Learner().Counts().Learned
	return nil
}

// keep writes what is not written, except what was learned. Lazily does not wait for the disk. After a failure it tries
// again after a pause.
func (w *keeper) keep(lazily bool) {
	dirty := w.seen || w.past.dirty() || w.unknown.dirty() || len(w.ended) > 0
	if (dirty || w.fault != nil) && (w.fault == nil || time.Since(w.tried) >= retryEvery) {
		w.tried = time.Now()
		w.fault = w.gallery.Records(lazily, w.write)
		w.written(w.fault == nil)
	}
	w.tellDisk()
}

// look reads the rows, after it has written what cameras have seen. An error gives less, and is noted.
func (w *keeper) look(do func(t *gallery.Tx) error) {
	w.keep(true)
	if err := w.gallery.Look(do); !errors.Is(err, errEnough) {
		w.note(err)
	}
}

// Save writes everything, with all faces that were learned until now.
func (w *keeper) Save() error { return w.change(func(*gallery.Tx) error { return nil }) }

// heed takes in what other programs have changed in the gallery. The lock must be held.
func (w *keeper) heed() {
	w.note(w.gallery.Update())
	if now := w.gallery.Renumbered(); len(now) > 0 {
		for id, r := range w.learned {
			w.learned[id] = r.Renumbered(now)
		}
	}
	if w.gallery.Turn() == w.turn {
		return
	}
	if w.unknown.dirty() {
		w.keep(true)
	}
	w.turn = w.gallery.Turn()
	if !w.unknown.dirty() { // otherwise the rows lack strangers: the disk is full
		w.note(w.reload())
		w.leave()
	}
}

// latest writes the last sightings of people, and what could not be written before, and tells about trouble.
func (w *keeper) latest() {
	w.heed()
	w.record(nil)
	w.keep(true)
}

// tellDisk updates the state of writing, and calls the option Disk if it has changed.
func (w *keeper) tellDisk() {
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

// minute saves newly learned faces if Keep is set, and removes what is too old.
func (w *keeper) minute() {
	w.unknown.Expire(w.o.Now())
	w.latest()
	if w.fault == nil {
		w.note(w.gallery.Records(true, func(t *gallery.Tx) error { return w.expire(t, w.o.Now()) }))
	}
	if w.o.Keep && w.gallery.Learner().Counts().Learned != w.kept {
		w.note(w.said(func(*gallery.Tx) error { return nil }))
	}
}

// tell records events, writes them with the state of the room, and then reports them.
func (w *keeper) tell(events []presence.Event) {
	if len(events) == 0 {
		return
	}
	w.record(events)
	w.keep(false)
	for _, e := range events { // they are written, or held because they cannot be written
		call(w.o.Event, e)
	}
}

// record records events and the state of the room.
func (w *keeper) record(events []presence.Event) {
	w.room.Name(w.gallery.Name)
	for i, e := range events {
		events[i].Name = cmp.Or(w.gallery.Name(e.Person), e.Name)
	}
	w.past.record(w.room.State(), events)
}
