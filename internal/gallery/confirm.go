// SPDX-License-Identifier: Apache-2.0

package gallery

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/quantized"
)

// ErrNotOffered is wrapped by the error of [Gallery.Confirm] for a face that [Gallery.Unconfirmed]
// does not return.
var ErrNotOffered = errors.New("no such face waits to be confirmed; the gallery may have changed")

// mostConfirmed is the largest number of learned faces that [Gallery.Confirm] enrols.
const mostConfirmed = 8

// Offered is a learned face that [Gallery.Confirm] may enrol.
type Offered struct {
	online.Stored
	Distance float64 // to the nearest enrolled face of the person
}

// Unconfirmed returns the learned faces that [Gallery.Confirm] may enrol: at most eight faces of
// the person, each beyond the anchor distance of all enrolled faces and of the other returned
// faces. They are chosen in the order of the faces that they stand for, and the farthest from the
// enrolled faces comes first.
//
// In a space with measured false match rates, only faces of turned heads are offered. A frontal
// face beyond the anchor distance may be a blend of two people: it looks right to a user, and
// enrolled it confirms the other person (lab/NOTES.md, "Morphs"). Enrol such a face before a
// camera. The error wraps [online.ErrUnknown].
func (g *Gallery) Unconfirmed(name string) ([]Offered, error) {
	l := &g.learner
	person, err := g.Find(name)
	if err != nil {
		return nil, err
	}
	measured := g.Space().Stills.Measured()
	stored := slices.DeleteFunc(l.Stored(), func(s online.Stored) bool {
		return s.Labelled || s.Person != person || s.Frontal && measured
	})
	slices.SortStableFunc(stored, func(a, b online.Stored) int {
		return cmp.Compare(b.Points, a.Points)
	})
	var far []Offered
	for _, s := range stored {
		nearest, err := l.Nearest(s.Vector, person)
		if err != nil {
			return nil, err
		}
		d := nearest
		for _, f := range far {
			d = min(d, quantized.Distance(s.Vector, f.Vector, g.Space().Scale))
		}
		if d > l.Radii().Anchor && len(far) < mostConfirmed {
			far = append(far, Offered{s, nearest})
		}
	}
	slices.SortStableFunc(far, func(a, b Offered) int {
		return cmp.Compare(b.Distance, a.Distance)
	})
	return far, nil
}

// Confirm enrols faces that [Gallery.Unconfirmed] returns, all or none, because the user says that
// they show this person. The error wraps [online.ErrUnknown], or [ErrNotOffered] if a face is not
// returned (now), or comes from [Gallery.Enroll]. On error g is unchanged.
func (g *Gallery) Confirm(name string, ids []int64, now time.Time) error {
	far, err := g.Unconfirmed(name)
	if err != nil || len(ids) == 0 {
		return err
	}
	faces, pictures := make([][]float32, len(ids)), make([][]byte, len(ids))
	for i, id := range ids {
		at := slices.IndexFunc(far, func(s Offered) bool { return s.ID == id })
		if at < 0 {
			return fmt.Errorf("confirming %s, face %d: %w", name, id, ErrNotOffered)
		}
		faces[i], pictures[i] = slices.Clone(far[at].Vector), g.learner.Picture(id)
	}
	// A head that turns far is unlike the enrolled faces, and the user was asked about exactly
	// this.
	_, err = g.Enroll(name, faces, now, Enrolment{Add: true, Force: true, Pictures: pictures})
	return err
}
