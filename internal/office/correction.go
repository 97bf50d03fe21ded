// SPDX-License-Identifier: Apache-2.0

package office

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/faceauth/faceauth/internal/gallery"
)

// Errors of corrections to an [Office]. Errors of packages gallery and online pass through.
var (
	ErrNoSighting = errors.New("sighting not found; it may be too long ago")
	ErrNobody     = errors.New("nobody was recognised in this sighting")
	ErrSame       = errors.New("the sighting has this name already")
	ErrMoved      = errors.New("the sighting has another name by now; look again")
	ErrOthers     = errors.New(
		"other faces would be enrolled now than those that were shown; look again")
	ErrNoFaces = errors.New("no picture of this person was good enough")
)

// Errors of corrections to groups of unknown faces.
var (
	ErrNoGroup    = errors.New("no such group of unknown faces")
	ErrNotInGroup = errors.New("no such face in the group")
	ErrAll        = errors.New("a group keeps at least one of its faces")
)

// Errors of [Office.Undo].
var (
	ErrNoCorrection = errors.New("correction not found; it may be too old")
	ErrUndone       = errors.New("this correction is undone already")
	ErrFinal        = errors.New("a forgotten person cannot be brought back")
)

// CorrectionKind is the kind of a correction.
type CorrectionKind string

// Kinds of corrections.
const (
	// a group of unknown faces, or an unknown sighting, got a name
	Named CorrectionKind = "named"
	// a person got a new name, or was found to be another person
	Renamed   CorrectionKind = "renamed"
	Merged    CorrectionKind = "merged"    // two groups of unknown faces were merged
	Denied    CorrectionKind = "denied"    // a sighting was not the recognised person
	Confirmed CorrectionKind = "confirmed" // a sighting was the recognised person
	Ignored   CorrectionKind = "ignored"   // a group is ignored
	Noticed   CorrectionKind = "noticed"   // a group is no longer ignored
	Split     CorrectionKind = "split"     // some faces of a group show another person
	// one of two contradicting labels was removed, or all of one side
	Unlabelled  CorrectionKind = "unlabelled"
	Alike       CorrectionKind = "alike"    // two people who look alike are two
	Pictured    CorrectionKind = "pictured" // a picture was chosen for a person
	ForgotGroup CorrectionKind = "forgot-group"
	Forgot      CorrectionKind = "forgot"
)

// Correction is an entry in the journal of corrections.
type Correction struct {
	ID       uint64         `json:"id"`
	At       time.Time      `json:"at"`
	Kind     CorrectionKind `json:"kind"`
	Person   int64          `json:"person,omitempty"`   // whom it names
	Other    int64          `json:"other,omitempty"`    // who it was taken for
	Name     string         `json:"name"`               // the name that it gave
	Was      string         `json:"was,omitempty"`      // the name before
	Group    uint64         `json:"group,omitempty"`    // its group of unknown faces
	Sighting uint64         `json:"sighting,omitempty"` // its sighting
	Face     uint64         `json:"face,omitempty"`     // the picture that was chosen
	Undone   bool           `json:"undone"`
	CanUndo  bool           `json:"can_undo"`
}

// state writes a correction, which has made the new labels, and returns its number.
func (w *Office) state(t *gallery.Tx, c Correction) int64 {
	said, _ := t.Int(
		`insert into statement(office, at, kind, person, other, name, was, stranger, sighting, face)
		values(?, ?, ?, nullif(?, 0), nullif(?, 0), ?, ?, ?, ?, ?) returning id`,
		w.past.id, nanoseconds(w.o.Now()), string(c.Kind), c.Person, c.Other, c.Name, c.Was,
		int64(c.Group), int64(c.Sighting), int64(c.Face))
	t.Made(said)
	w.stated = said
	return said
}

// Statements that find corrections of an office.
const (
	corrections = `select statement.id, at, kind, statement.name, was, stranger, sighting, face,
		undone, coalesce(person, 0), coalesce(other, 0), coalesce(p.name, ''), coalesce(o.name, '')
		from statement left join person p on p.id = person left join person o on o.id = other
		where office = ? and `
	correctionByNumber = corrections + "statement.id = ?"
	lastCorrections    = corrections + "statement.id < ? order by statement.id desc limit ?"
)

// corrections returns the corrections that a statement finds.
func (w *Office) corrections(t *gallery.Tx, statement string, args ...any) (all []Correction) {
	for r := range t.Rows(statement, append([]any{w.past.id}, args...)...) {
		c := Correction{ID: uint64(r.ColumnInt64(0)), At: moment(r.ColumnInt64(1)),
			Kind: CorrectionKind(r.ColumnText(2)),
			Name: r.ColumnText(3), Was: r.ColumnText(4), Group: uint64(r.ColumnInt64(5)),
			Sighting: uint64(r.ColumnInt64(6)),
			Face:     uint64(r.ColumnInt64(7)), Undone: r.ColumnInt64(8) != 0,
			Person: r.ColumnInt64(9), Other: r.ColumnInt64(10)}
		if c.Kind != Renamed {
			c.Name = cmp.Or(w.gallery.Name(c.Person), r.ColumnText(11))
			c.Was = cmp.Or(w.gallery.Name(c.Other), r.ColumnText(12))
		}
		c.CanUndo = !c.Undone && c.Kind != Forgot && c.Kind != ForgotGroup
		all = append(all, c)
	}
	return all
}

// Corrections returns the last n entries of the journal before the entry with the given number (0:
// before none), the newest first.
func (w *Office) Corrections(id uint64, n int) []Correction {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := []Correction{}
	w.look(func(t *gallery.Tx) {
		all = append(all, w.corrections(t, lastCorrections, before(id), int64(n))...)
	})
	return all
}

// Undo takes back a correction, in any order with others: afterwards labels, names of people, of
// past sightings and of events, and groups of unknown faces are as if it had never been made. If
// two people have one name then, the second has a number beside it. Faces that were learned through
// its labels are taken back; those that the learner forgot because of the correction do not come
// back.
//
// The error wraps [ErrNoCorrection], [ErrUndone] or [ErrFinal], or comes from the database. Nothing
// has changed then.
func (w *Office) Undo(id uint64) error {
	_, err := w.change(func(t *gallery.Tx) error {
		found := w.corrections(t, correctionByNumber, int64(id))
		switch {
		case t.Err() != nil:
			return t.Err()
		case len(found) == 0:
			return fmt.Errorf("%w: %d", ErrNoCorrection, id)
		case found[0].Undone:
			return fmt.Errorf("%w: %d", ErrUndone, id)
		case !found[0].CanUndo:
			return ErrFinal
		}
		t.Learner().Unlearn(-int64(id))
		return t.Undo(int64(id))
	})
	return err
}

// changeGroup makes a correction to a group of unknown faces. The error wraps [ErrNoGroup].
func (w *Office) changeGroup(group uint64,
	do func(t *gallery.Tx, g *Stranger) error) (Correction, error) {
	return w.change(func(t *gallery.Tx) error {
		g := w.unknown.Get(group)
		if g == nil {
			return fmt.Errorf("%w: %d; it may have been named, merged or forgotten", ErrNoGroup,
				group)
		}
		return do(t, g)
	})
}

// Ignore sets whether a group of unknown faces is ignored. The error wraps [ErrNoGroup], or comes
// from the database.
func (w *Office) Ignore(group uint64, ignored bool) (Correction, error) {
	return w.changeGroup(group, func(t *gallery.Tx, g *Stranger) error {
		if g.Ignored == ignored {
			return nil
		}
		kind := Ignored
		if !ignored {
			kind = Noticed
		}
		said := w.state(t, Correction{Kind: kind, Group: group})
		return t.Say(said, gallery.IgnoredOf, []uint64{group}, gallery.Value{Value: ignored})
	})
}

// Merge merges two groups of unknown faces that show one person. The error wraps [ErrNoGroup], or
// comes from the database.
func (w *Office) Merge(into, from uint64) (Correction, error) {
	return w.changeGroup(from, func(t *gallery.Tx, g *Stranger) error {
		switch {
		case w.unknown.Get(into) == nil:
			return fmt.Errorf("%w: %d", ErrNoGroup, into)
		case into == from:
			return nil
		}
		said := w.state(t, Correction{Kind: Merged, Group: into})
		t.Exec("update stranger set last = max(last, ?) where id = ?", nanoseconds(g.Last),
			int64(into))
		for what, statement := range map[string]string{gallery.FaceGroup: facesOfGroup,
			gallery.GroupOf: sightingsOfGroup, gallery.EventGroup: eventsOfGroup} {
			t.Say(said, what, numbers(t, statement, int64(from)), gallery.Value{Value: int64(into)})
		}
		return nil
	})
}

// Split moves some faces of a group into a new group: they show another person. The error wraps
// [ErrNoGroup], [ErrNotInGroup], or [ErrAll] if one of the two groups would be empty, or comes from
// the database.
func (w *Office) Split(group uint64, faces []uint64) (Correction, error) {
	return w.changeGroup(group, func(t *gallery.Tx, g *Stranger) error {
		all := numbersOf(g.Faces)
		for _, f := range faces {
			if !slices.Contains(all, f) {
				return fmt.Errorf("%w: %d", ErrNotInGroup, f)
			}
		}
		stays := func(f uint64) bool { return !slices.Contains(faces, f) }
		if len(faces) == 0 || !slices.ContainsFunc(all, stays) {
			return ErrAll
		}
		made := w.newGroup(t, g.Last, g.Ignored)
		said := w.state(t, Correction{Kind: Split, Group: group})
		return t.Say(said, gallery.FaceGroup, faces, gallery.Value{Value: made})
	})
}

// newGroup makes a group of unknown faces, and returns its number.
func (w *Office) newGroup(t *gallery.Tx, last time.Time, ignored bool) int64 {
	made, _ := t.Next("stranger", 1)
	t.Exec("insert into stranger(id, office, last, ignored) values(?, ?, ?, ?)", made, w.past.id,
		nanoseconds(last), ignored)
	return made
}

// ForgetGroup removes a group of unknown faces and its past sightings. It cannot be undone. The
// error wraps [ErrNoGroup], or comes from the database.
func (w *Office) ForgetGroup(group uint64) (Correction, error) {
	return w.changeGroup(group, func(t *gallery.Tx, _ *Stranger) error {
		w.forgetGroup(t, group)
		w.state(t, Correction{Kind: ForgotGroup, Group: group})
		return nil
	})
}

// forgetGroup removes a group of unknown faces with its sightings and everything that was said
// about it.
func (w *Office) forgetGroup(t *gallery.Tx, group uint64) {
	w.erase(t, "select id from sighting where office = ? and stranger = ?", int64(group))
	t.Exec("delete from face where stranger = ?", int64(group))
	t.Exec("delete from stranger where id = ?", int64(group))
	// What was said about its faces, while they were in it or before.
	said, _ := t.Ints(
		`select id from statement where stranger = ?1 or id in (select statement from said where
		what in ('face', 'group', 'egroup') and value = ?1) order by id`, int64(group))
	t.Settle(said...)
}

// forgottenAtOnce is the number of sightings that are removed in one transaction while a person is
// forgotten: cameras wait for it.
const forgottenAtOnce = 8

// forgetPast removes the oldest sightings of a person that are past, if there are many, and returns
// how many.
func (w *Office) forgetPast(name string) (gone int, err error) {
	err = w.untilFree(func() error {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.heed()
		person, err := w.gallery.Find(name)
		if err != nil {
			return err
		}
		return w.gallery.Rows().Write(true, func(t *gallery.Tx) error {
			_, others := w.current()
			var all []int64
			for r := range t.Rows(
				"select id from sighting where office = ? and person = ? order by last limit ?",
				w.past.id,
				person, int64(2*forgottenAtOnce)) {
				if !others[uint64(r.ColumnInt64(0))] {
					all = append(all, r.ColumnInt64(0))
				}
			}
			gone = max(0, len(all)-forgottenAtOnce)
			w.remove(t, all[:gone])
			w.known = nil
			return t.Err()
		})
	})
	return gone, err
}

// erase removes the sightings of the office that a statement finds, with their faces and what was
// said about them.
func (w *Office) erase(t *gallery.Tx, statement string, args ...any) {
	t.Erase()
	all, _ := t.Ints(statement, append([]any{w.past.id}, args...)...)
	w.remove(t, all)
}

// remove removes sightings with their faces and what was said about them.
func (w *Office) remove(t *gallery.Tx, all []int64) {
	if len(all) == 0 {
		return
	}
	these := ids(all)
	said, _ := t.Ints(
		"select id from statement where sighting in (select value from json_each(?)) order by id",
		these)
	t.Settle(said...)
	t.Exec(`delete from face where sighting in (select value from json_each(?)) and
		not exists (select 1 from label where label.number = face.number and valid)`, these)
	t.Exec("delete from sighting where id in (select value from json_each(?))", these)
}

// KeepUnknown sets whether faces of strangers are kept. Switching it off also removes those of the
// past. The error comes from the database.
func (w *Office) KeepUnknown(on bool) error {
	_, err := w.change(func(t *gallery.Tx) error {
		if err := t.Exec("update office set off = ? where id = ?", !on, w.past.id); err != nil ||
			on {
			return err
		}
		for _, g := range w.unknown.groups {
			if !g.Ignored {
				w.forgetGroup(t, g.ID)
			}
		}
		w.erase(t, `select id from sighting where office = ? and (person is null or person not in
			(select person from label where valid and not rejected)) and
			stranger not in (select id from stranger where ignored)`)
		return nil
	}, func() { w.past.off = !on })
	return err
}

// Forget removes a person with all learned faces, and the person's name, faces, sightings, clips,
// events and corrections of the past, and strangers who look like this person, and overwrites their
// bytes, while cameras go on. An event that a sink is just sending may still arrive. It cannot be
// undone. The error wraps [online.ErrUnknown], or comes from the database: then the person is still
// known, and some of their past sightings may be gone. If bytes could not be overwritten, there is
// no error, and [Disk].Left says why.
func (w *Office) Forget(name string) (Correction, error) {
	for gone := 1; gone > 0; {
		var err error
		gone, err = w.forgetPast(name)
		if err != nil {
			return Correction{}, err
		}
	}
	return w.change(func(t *gallery.Tx) error {
		person, err := w.gallery.Find(name)
		if err != nil {
			return err
		}
		for _, g := range w.unknown.groups {
			if w.seems(g.Faces) == person {
				w.forgetGroup(t, g.ID)
			}
		}
		w.erase(t, "select id from sighting where office = ? and person = ?", person)
		t.Forget(person)
		w.state(t, Correction{Kind: Forgot})
		return nil
	})
}
