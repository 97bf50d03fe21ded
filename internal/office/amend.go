// SPDX-License-Identifier: Apache-2.0

package office

import (
	"github.com/faceauth/faceauth/internal/gallery"
	"github.com/faceauth/faceauth/internal/office/presence"
	"github.com/faceauth/faceauth/sighting"
)

// amend adds the events that correct earlier ones: those of which something else was told than is
// so now, whatever has changed it, and sightings that a user has named and of which nothing was
// told. It is part of the transaction that changes them.
func (w *Office) amend(t *gallery.Tx) error {
	type correction struct {
		presence.Event       // what is so now
		told           int64 // the person of whom it was told
		known          bool  // this person has faces
	}
	var all []correction
	// A person is known who has faces.
	for r := range t.Rows(`select number, camera, at, sighting, stranger, told,
		exists (select 1 from label where person = told and not rejected and valid),
		iif(exists (select 1 from label where person = event.person and not rejected and valid),
			person, 0) as now
		from event where office = ? and kind in ('arrived', 'seen', 'unknown', 'was') and of = 0
		and (now <> told or now = 0 and stranger <> told_stranger) order by number`, w.past.id) {
		all = append(all, correction{presence.Event{Kind: presence.Was,
			Of: uint64(r.ColumnInt64(0)), Camera: r.ColumnText(1), At: moment(r.ColumnInt64(2)),
			Sighting: uint64(r.ColumnInt64(3)), Group: uint64(r.ColumnInt64(4)),
			Who: sighting.Who{Person: r.ColumnInt64(7)}}, r.ColumnInt64(5), r.ColumnInt64(6) == 1})
	}
	for _, c := range all {
		if c.told != 0 && (c.known || c.Person == 0) {
			wrong := c.Event
			wrong.Kind, wrong.Person, wrong.Group = presence.Mistake, c.told, 0
			w.correct(t, wrong)
		}
		if c.Person != 0 {
			c.Group = 0
		}
		if c.Person != 0 || c.told == 0 {
			w.correct(t, c.Event)
		}
		t.Exec(`update event set told = ?, told_stranger = stranger
			where office = ? and number = ?`,
			c.Person, w.past.id, int64(c.Of))
	}
	for _, x := range w.sightings(t, sightingsOfStatement, w.stated) {
		if x.Live { // the room tells of them
			continue
		}
		if x.Name != "" && !w.covered(t, x) {
			w.correct(t, presence.Event{Kind: presence.Was, Sighting: x.ID, Camera: x.Camera,
				Who: sighting.Who{Person: x.Person, Trust: sighting.Confirmed}, At: x.First})
		}
	}
	return t.Err()
}

// correct writes an event that corrects others.
func (w *Office) correct(t *gallery.Tx, e presence.Event) {
	e.ID, e.Known = w.room.Number(), w.o.Now()
	w.past.record(w.room.State(), nil)
	t.Exec("update office set last = ? where id = ?", int64(e.ID), w.past.id)
	w.past.put(t, e)
	w.amended = append(w.amended, e)
}

// announce reports the corrections that were committed.
func (w *Office) announce() {
	for _, e := range w.amended {
		e.Name = w.gallery.Name(e.Person)
		if e.Name == "" && e.Person != 0 {
			w.look(func(t *gallery.Tx) {
				for r := range t.Rows("select name from person where id = ?", e.Person) {
					e.Name = r.ColumnText(0)
				}
			})
		}
		call(w.o.Event, e)
	}
	w.amended = nil
}

// covered reports whether an event tells of the visit of somebody known to which a sighting
// belongs.
func (w *Office) covered(t *gallery.Tx, s Sighting) (told bool) {
	away := w.o.Presence.Away
	for r := range t.Rows(
		`select kind, at from event where office = ? and person = ? and of = 0 and at <= ?
		order by at desc, number desc limit 1`,
		w.past.id, s.Person, nanoseconds(s.Last.Add(away))) {
		kind := presence.EventKind(r.ColumnText(0))
		stays := kind == presence.Arrived || kind == presence.Saw
		told = stays || r.ColumnInt64(1) >= nanoseconds(s.First.Add(-away))
	}
	return told
}

// move has another sighting of a stay stand for the one with which it began, and tells when that
// was.
func (w *Office) move(t *gallery.Tx, s, other Sighting) {
	all, _ := t.Ints(`update event set sighting = ?3, at = iif(kind = 'left', at, ?4), camera = ?5,
		zone = '' where office = ?6 and sighting = ?1 and person = ?2 and of = 0 and
		exists (select 1 from label where label.person = ?2 and not rejected and valid)
		returning iif(kind = 'left', 0, number)`,
		int64(s.ID), s.Person, int64(other.ID), nanoseconds(other.First), other.Camera, w.past.id)
	for _, of := range all {
		if of != 0 {
			w.correct(t, presence.Event{Kind: presence.Was, Of: uint64(of),
				Who: sighting.Who{Person: s.Person}, Sighting: other.ID, Camera: other.Camera,
				At: other.First})
		}
	}
}

// stays returns the first other sighting of a person in the stay that began with a sighting.
func (w *Office) stays(t *gallery.Tx, s Sighting) (other Sighting) {
	var from, to int64
	for r := range t.Rows(
		`select at, coalesce((select at from event x where x.office = event.office and
		x.sighting = event.sighting and x.person = event.person and kind = 'left'
		order by number desc limit 1), 0)
		from event where office = ? and sighting = ? and person = ? and
		kind in ('arrived', 'seen', 'was') and of = 0 order by number limit 1`,
		w.past.id, int64(s.ID), s.Person) {
		from, to = r.ColumnInt64(0), r.ColumnInt64(1)
	}
	if from == 0 {
		return other
	}
	wanted := func(x Sighting) bool {
		return x.Person == s.Person && x.ID != s.ID && !x.Last.Before(moment(from)) &&
			(to == 0 || !x.First.After(moment(to)))
	}
	for _, x := range w.list(t, wanted, visitsOfPerson, from, to, s.Person) {
		if wanted(x) && (other.ID == 0 || x.First.Before(other.First)) {
			other = x
		}
	}
	return other
}
