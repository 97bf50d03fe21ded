// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"errors"
	"fmt"
	"slices"

	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/online"
)

// TakeLessons gives the gallery's learner the lessons of other devices, and removes the lessons that were withdrawn. It
// reports whether the gallery has changed and must be saved. Lessons that do not fit into the learner, or that it
// cannot use, add a sentence to [Reconciled].Refused.
func (r *Reconciled) TakeLessons(g *gallery.Gallery) (changed bool) {
	l := g.Learner()
	withdrawn := slices.Clone(r.outdated)
	for _, source := range l.Sources() {
		if len(r.Lessons[source.Name]) == 0 {
			withdrawn = append(withdrawn, source.Name)
		}
	}
	for _, source := range withdrawn {
		if l.WithdrawLessons(source) == nil {
			// Lessons of others that were learned through it are gone as well. Those that still count are taken again.
			r.d.noteTaken(nil, "", nil)
			changed = true
		}
	}
	for source, taught := range r.Lessons {
		all := slices.DeleteFunc(slices.Clone(taught), func(x online.Lesson) bool { return !l.Knows(x.Name) })
		if r.d.hasTaken(l, source, all) {
			continue
		}
		if err := l.TakeLessons(source, all); err != nil {
			r.Refused = append(r.Refused, err.Error())
			continue
		}
		r.d.noteTaken(l, source, all)
		changed = true
	}
	r.Changed = r.Changed || changed
	return changed
}

// taken are the hashes of the lessons that a learner took while this program runs.
type taken struct {
	learner *online.Learner
	lessons map[string][32]byte // by source
}

func hashLessons(all []online.Lesson) [32]byte {
	var names []string
	for _, x := range all {
		names = append(names, x.Name)
	}
	return hashOf("taken", append(encode(names), encodeLessons(all)...))
}

// hasTaken reports whether a learner has taken exactly these lessons.
func (d *Device) hasTaken(l *online.Learner, source string, all []online.Lesson) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	before, there := d.taken.lessons[source]
	return there && d.taken.learner == l && before == hashLessons(all)
}

// noteTaken notes the lessons that a learner has taken from a source. Without a learner, all are taken again.
func (d *Device) noteTaken(l *online.Learner, source string, all []online.Lesson) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.taken.learner != l {
		d.taken = taken{l, make(map[string][32]byte)}
	}
	if l != nil {
		d.taken.lessons[source] = hashLessons(all)
	}
}

// TeachLessons publishes the lessons of a gallery's learner ([online.Learner.Lessons]). People maps the names in the
// gallery to the fleet's numbers; a lesson that the fleet has already is left out. It returns the number of people with
// new lessons. The errors of [Device.Teach] are joined.
func (d *Device) TeachLessons(g *gallery.Gallery, people map[string]ID) (taught int, err error) {
	lessons := make(map[string][]online.Lesson)
	for _, x := range g.Learner().Lessons() {
		lessons[x.Name] = append(lessons[x.Name], x)
	}
	for name, id := range people {
		p, e := d.Find(id.String())
		if e != nil {
			continue // forgotten meanwhile
		}
		did, e := d.Teach(p.ID, lessons[name])
		if e != nil {
			if !errors.Is(e, ErrForgotten) && !errors.Is(e, ErrScope) {
				err = errors.Join(err, fmt.Errorf("publishing the lessons about %s: %w", name, e))
			}
			continue
		}
		if did {
			taught++
		}
	}
	return taught, err
}
