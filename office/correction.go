// SPDX-License-Identifier: Apache-2.0

package office

import (
	"errors"
	"fmt"
	"time"

	"github.com/faceauth/faceauth/gallery"
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
	Named       CorrectionKind = "named"      // a group of unknown faces, or an unknown sighting, got a name
	Renamed     CorrectionKind = "renamed"    // a person got a new name, or was found to be another person
	Merged      CorrectionKind = "merged"     // two groups of unknown faces were merged
	Denied      CorrectionKind = "denied"     // a sighting was not the recognised person
	Confirmed   CorrectionKind = "confirmed"  // a sighting was the recognised person
	Ignored     CorrectionKind = "ignored"    // a group is ignored
	Noticed     CorrectionKind = "noticed"    // a group is no longer ignored
	Split       CorrectionKind = "split"      // some faces of a group show another person
	Unlabelled  CorrectionKind = "unlabelled" // one of two contradicting labels was removed, or all of one side
	Alike       CorrectionKind = "alike"      // two people who look alike are two
	Pictured    CorrectionKind = "pictured"   // a picture was chosen for a person
	ForgotGroup CorrectionKind = "forgot-group"
	Forgot      CorrectionKind = "forgot"
)

// book takes in what users say.
type book struct{ *pictures }

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
func (w *book) state(t *gallery.Tx, c Correction) int64 {
	t.Exec(`insert into statement(office, at, kind, person, other, name, was, stranger, sighting, face)
		values(?, ?, ?, nullif(?, 0), nullif(?, 0), ?, ?, ?, ?, ?)`, w.past.id, nanoseconds(w.o.Now()), string(c.Kind),
		c.Person, c.Other, c.Name, c.Was, int64(c.Group), int64(c.Sighting), int64(c.Face))
	said := t.Last()
	t.Made(said)
	return said
}

// corrections calls each with the corrections for which a condition holds.
func (w *book) corrections(t *gallery.Tx, condition string, each func(Correction), args ...any) error {
	return t.Query(`select statement.id, at, kind, statement.name, was, stranger, sighting, face, undone,
		coalesce(person, 0), coalesce(other, 0), coalesce(p.name, ''), coalesce(o.name, '') from statement
		left join person p on p.id = person left join person o on o.id = other where office = ? and `+condition,
		func(r gallery.Row) error {
			c := Correction{ID: uint64(r.ColumnInt64(0)), At: moment(r.ColumnInt64(1)), Kind: CorrectionKind(r.ColumnText(2)),
				Name: r.ColumnText(3), Was: r.ColumnText(4), Group: uint64(r.ColumnInt64(5)), Sighting: uint64(r.ColumnInt64(6)),
				Face: uint64(r.ColumnInt64(7)), Undone: r.ColumnInt64(8) != 0, Person: r.ColumnInt64(9), Other: r.ColumnInt64(10)}
			if c.Kind != Renamed {
				c.Name = w.past.nameOf(Arrived, c.Person, r.ColumnText(11))
				c.Was = w.past.nameOf(Arrived, c.Other, r.ColumnText(12))
			}
			c.CanUndo = !c.Undone && c.Kind != Forgot && c.Kind != ForgotGroup
			each(c)
			return nil
		}, append([]any{w.past.id}, args...)...)
}

// Corrections returns the last n entries of the journal before the entry with the given number (0: before none), the
// newest first.
func (w *book) Corrections(id uint64, n int) []Correction {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := []Correction{}
	w.look(func(t *gallery.Tx) error {
		return w.corrections(t, "statement.id < ? order by statement.id desc limit ?", func(c Correction) {
			all = append(all, c)
		}, before(id), int64(n))
	})
	return all
}

// Undo takes back a correction, in any order with others: afterwards labels, names of people, of past sightings and of
// events, and groups of unknown faces are as if it had never been made. Faces that were learned through its labels are
// taken back; those that the learner forgot because of the correction do not come back.
//
// The error wraps [ErrNoCorrection], [ErrUndone] or [ErrFinal], or comes from the database. Nothing has changed then.
func (w *book) Undo(id uint64) error {
	return w.change(func(t *gallery.Tx) error {
		var c *Correction
		err := w.corrections(t, "statement.id = ?", func(x Correction) { c = &x }, int64(id))
		switch {
		case err != nil:
			return err
		case c == nil:
			return fmt.Errorf("%w: %d", ErrNoCorrection, id)
		case c.Undone:
			return fmt.Errorf("%w: %d", ErrUndone, id)
		case !c.CanUndo:
			return ErrFinal
		}
		learned, err := w.taught(t, "statement", int64(id))
		if err != nil {
			return err
		}
		t.Learner().Unlearn(learned)
		return t.Undo(int64(id))
	})
}
