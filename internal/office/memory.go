// SPDX-License-Identifier: Apache-2.0

package office

import (
	"slices"
	"time"

	"github.com/faceauth/faceauth/internal/album"
	"github.com/faceauth/faceauth/internal/gallery"
	"github.com/faceauth/faceauth/sighting"
)

// view is the state of one camera. It continues after the camera fails, because the same people may
// still be in view.
type view struct {
	View
	camera  Camera
	counted int // frames when the rate was measured last
	trial   trial
	begun   time.Time
	people  *sighting.Watcher

	sightings map[int]*sighted // in view, by track
	lost      []*sighted       // of strangers, that have ended within presence.Settings.Away
	picture   []byte
	pictured  time.Time // the frame of the picture
	wanted    time.Time // last call of Picture
	farDay    string    // the day of Far
}

// farOn returns the number of people who were too far away on the day of a time.
func (v *view) farOn(at time.Time) int {
	if v.farDay != at.Format(time.DateOnly) {
		return 0
	}
	return v.Far
}

// Number returns the number of the person with a name, or 0.
func (w *Office) Number(name string) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.gallery.Number(name)
}

// note records an error of the database.
func (w *Office) note(err error) {
	if err != nil {
		w.fault = err
	}
}

// live calls do with each sighting that has not ended.
func (w *Office) live(do func(*sighted, *view)) {
	for _, v := range w.views {
		for _, s := range v.sightings {
			do(s, v)
		}
	}
}

// fresh returns the sightings in view, and those that are not written since they ended.
func (w *Office) fresh() []*sighted {
	all := slices.Clone(w.ended)
	w.live(func(s *sighted, _ *view) { all = append(all, s) })
	return all
}

// keeps reports whether a sighting is kept.
func (w *Office) keeps(s *sighted) bool {
	if w.gallery.Name(s.Person) != "" || s.written && (s.said || s.placed) {
		return true
	}
	return len(s.album.Faces) > 0 && !s.double && !w.past.off && !w.unknown.Ignored(s.Group)
}

// filmed reports whether the film of a sighting has pictures to write. Everybody else in it must be
// kept, too: when one of them is forgotten, the film goes.
func (w *Office) filmed(s *sighted) bool {
	return len(s.film.pictures) > s.film.written &&
		!slices.ContainsFunc(s.film.with, func(o *sighted) bool {
			return !w.keeps(o) || len(o.album.Faces) == 0
		})
}

// clip returns the pictures of the film of a sighting that are written, or may be.
func (w *Office) clip(s *sighted) [][]byte {
	if w.filmed(s) {
		return s.film.pictures
	}
	return s.film.pictures[:s.film.written]
}

// show returns a sighting with the present name of its person. Who is nobody any more is unknown.
func (w *Office) show(x Sighting) Sighting {
	x.Name = w.gallery.Name(x.Person)
	if x.Name == "" {
		x.Person, x.Trust = 0, sighting.Nobody
	} else {
		x.Group = 0
	}
	if x.Group != 0 && !x.Live && w.unknown.Get(x.Group) == nil {
		x.Group = 0
	}
	return x
}

// current returns the sightings that are better known than their rows say, which may be a minute
// old or missing: those in view, and those that are not written since they ended. Others are of no
// list, though they may have a row.
func (w *Office) current() (all []Sighting, others map[uint64]bool) {
	others = make(map[uint64]bool)
	for _, s := range w.fresh() {
		others[s.ID] = true
		if !w.decided(s) || !w.keeps(s) {
			continue
		}
		x := s.Sighting
		x.Live, x.Clip = !s.done, len(w.clip(s))
		best := s.album.Clearest()
		x.Face, x.sharp = best.ID, best.Sharp
		all = append(all, w.show(x))
	}
	return all, others
}

// list returns the sightings in the rows that a statement finds, and the current ones that are
// wanted.
func (w *Office) list(t *gallery.Tx, wanted func(Sighting) bool, statement string,
	args ...any) []Sighting {
	current, others := w.current()
	all := slices.DeleteFunc(append([]Sighting{}, current...), func(x Sighting) bool {
		return !wanted(x)
	})
	for _, x := range w.sightings(t, statement, args...) {
		if !others[x.ID] {
			all = append(all, x)
		}
	}
	return all
}

// Statements that find sightings of an office.
const (
	sightings = `select id, camera, first, last, coalesce(person, 0), trust, stranger,
		(select count(*) from film where film.sighting = sighting.id),
		coalesce((select number from (select number, max(clear) from ` + clear + `)), 0),
		coalesce((select max(clear) from ` + clear + `), 0) from sighting `
	// The faces of a sighting, and how clear their pictures are.
	clear = `(select number, iif(jpeg is null, -1, sharp) as clear from face
		where sighting = sighting.id order by number)`
	sightingByNumber  = sightings + "where +office = ? and id = ?"
	sightingsByNumber = sightings + "where +office = ? and id in (select value from json_each(?))"
	lastSightings     = sightings + `where +office = ? and id < ? and exists
		(select 1 from face where sighting = sighting.id) order by id desc limit ?`
	sightingsOfStatement = sightings + `where +office = ? and id in
		(select of from said where what = 'sighting' and statement = ?)`

	visits = sightings +
		"where office = ?1 and last >= ?2 and (?3 = 0 or first < ?3) order by last desc"
	visitsOfPerson = sightings +
		`where office = ?1 and last >= ?2 and (?3 = 0 or first < ?3) and person = ?4
		order by last desc`
)

// sightings returns the sightings in the rows that a statement finds.
func (w *Office) sightings(t *gallery.Tx, statement string, args ...any) (all []Sighting) {
	live := make(map[uint64]bool)
	w.live(func(s *sighted, _ *view) { live[s.ID] = true })
	for r := range t.Rows(statement, append([]any{w.past.id}, args...)...) {
		id := uint64(r.ColumnInt64(0))
		all = append(all, w.show(Sighting{ID: id, Camera: r.ColumnText(1), Live: live[id],
			First: moment(r.ColumnInt64(2)), Last: moment(r.ColumnInt64(3)),
			Who:   sighting.Who{Person: r.ColumnInt64(4), Trust: sighting.Trust(r.ColumnText(5))},
			Group: uint64(r.ColumnInt64(6)),
			Clip:  int(r.ColumnInt64(7)), Face: uint64(r.ColumnInt64(8)), sharp: r.ColumnFloat(9)}))
	}
	return all
}

// seems returns the person that most of the faces look like, or 0.
func (w *Office) seems(faces []album.Face) int64 {
	var votes []int64
	for _, f := range faces {
		v, _ := w.gallery.Learner().Judge(f.Vector) // nobody, if it cannot be judged
		votes = append(votes, v.Person)
	}
	return majority(votes)
}

// reload brings memory in line with the rows, after whatever has changed them.
func (w *Office) reload() error {
	w.turn, w.known, w.litter = w.gallery.Rows().Turn(), nil, true
	return w.gallery.Rows().Look(func(t *gallery.Tx) error {
		w.unknown.read(t, w.past.id, w.gallery.Name)
		w.live(func(s *sighted, v *view) {
			w.rejudge(s, v)
			if s.written {
				w.reread(t, s)
			}
			there, err := t.Int("select ?1 = 0 or exists (select 1 from person where id = ?1)",
				s.Person)
			if err == nil && there == 0 { // they were forgotten
				w.wipe(s)
			}
			if s.Group != 0 && w.unknown.Get(s.Group) == nil {
				s.ungroup()
			}
			w.deny(t, s, v)
		})
		return t.Err()
	})
}

// rejudge forgets the evidence about somebody in view if the face is somebody else's now. Other
// changes of people, which may be many in a second, leave it.
func (w *Office) rejudge(s *sighted, v *view) {
	if n := len(s.album.Faces); n > 0 {
		is, err := w.gallery.Learner().Judge(s.album.Faces[n-1].Vector)
		if err == nil && is.Person == s.believed {
			return
		}
	}
	v.people.Reset(s.track)
	s.looks = nil
}

// reread takes over what a user said about a sighting in view. Of what nobody has said, the camera
// knows more than the row.
func (w *Office) reread(t *gallery.Tx, s *sighted) {
	const said = `exists (select 1 from said join statement on statement.id = said.statement
		where of = ?1 and not undone and what = `
	named, moved := s.said, s.placed
	s.written = false
	for r := range t.Rows("select coalesce(person, 0), trust, stranger, "+said+"'sighting'), "+said+
		`'group'),
		exists (select 1 from statement where stranger = ?2 and not undone)
			from sighting where id = ?1`,
		int64(s.ID), int64(s.Group)) {
		s.written, s.said, s.placed = true, r.ColumnInt64(3) == 1, r.ColumnInt64(4) == 1
		if named || s.said {
			s.Person, s.Trust = r.ColumnInt64(0), sighting.Trust(r.ColumnText(1))
		}
		if moved || s.placed {
			s.Group, s.began = uint64(r.ColumnInt64(2)), false
		}
		// otherwise a user may have added others to its group
		s.began = s.began && r.ColumnInt64(5) == 0
	}
	if t.Err() == nil && !s.written { // it was forgotten
		w.wipe(s)
	}
}

// wipe removes everything about a person from a sighting in view, and what others' films show of
// them.
func (w *Office) wipe(s *sighted) {
	for _, o := range w.fresh() {
		if slices.Contains(o.film.with, s) {
			o.film = film{}
		}
	}
	s.Person, s.Trust, s.said, s.placed = 0, sighting.Nobody, false, false
	s.album, s.film = album.Album{}, film{}
	s.ungroup()
}

// deny tells a camera who a person in view is not.
func (w *Office) deny(t *gallery.Tx, s *sighted, v *view) {
	now, err := t.Ints(
		`select other from statement where kind = 'denied' and sighting = ? and not undone and
		other is not null`, int64(s.ID))
	if err == nil {
		v.people.Deny(s.track, now...)
	}
}
