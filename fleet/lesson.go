// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"errors"
	"fmt"
	"slices"

	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/online"
)

// A ledger refuses a lesson with more sources than MaxThrough, so a learner must not give one.
const _ = uint(MaxThrough - online.MaxThrough)

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
			r.d.forgetTaken()
			changed = true
		}
	}
	for source, taught := range r.Lessons {
		var all []online.Lesson
		for _, t := range taught {
			if l.Knows(t.Name) {
				all = append(all, onlineLesson(t))
			}
		}
		if r.d.hasTaken(g, source, all) {
			continue
		}
		if err := l.TakeLessons(source, all); err != nil {
			r.Refused = append(r.Refused, err.Error())
			continue
		}
		r.d.noteTaken(g, source, all)
		changed = true
	}
	r.Changed = r.Changed || changed
	return changed
}

func onlineLesson(t Taught) online.Lesson {
	x := online.Lesson{
		Space: t.Lesson.Space, Name: t.Name, Through: t.Lesson.Through, Links: slices.Clone(t.Lesson.Links),
	}
	for _, c := range t.Lesson.Centroids {
		x.Centroids = append(x.Centroids, online.Centroid(c))
	}
	return x
}

func fleetLesson(s online.Lesson) Lesson {
	x := Lesson{Space: s.Space, Through: s.Through, Links: s.Links}
	for _, c := range s.Centroids {
		x.Centroids = append(x.Centroids, Centroid(c))
	}
	return x
}

func equalLessons(a, b []online.Lesson) bool {
	return slices.EqualFunc(a, b, func(x, y online.Lesson) bool {
		return x.Space == y.Space && x.Name == y.Name && slices.Equal(x.Through, y.Through) &&
			slices.Equal(x.Links, y.Links) &&
			slices.EqualFunc(x.Centroids, y.Centroids, func(p, q online.Centroid) bool {
				return p.Multiplicity == q.Multiplicity && p.Radius == q.Radius && slices.Equal(p.Vector, q.Vector)
			})
	})
}

// taken holds the lessons that a gallery's learner took while this program runs.
type taken struct {
	learner *online.Learner
	lessons map[string][]online.Lesson // by source
}

// hasTaken reports whether the learner of a gallery has taken exactly these lessons.
func (d *Device) hasTaken(g *gallery.Gallery, source string, all []online.Lesson) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	before, there := d.taken.lessons[source]
	return there && d.taken.learner == g.Learner() && equalLessons(before, all)
}

// noteTaken remembers the lessons that a learner has taken from a source.
func (d *Device) noteTaken(g *gallery.Gallery, source string, all []online.Lesson) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.taken.learner != g.Learner() {
		d.taken = taken{g.Learner(), make(map[string][]online.Lesson)}
	}
	d.taken.lessons[source] = all
}

// forgetTaken makes the learner take all lessons again.
func (d *Device) forgetTaken() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.taken = taken{}
}

// TeachLessons publishes the lessons of a gallery's learner ([online.Learner.Lessons]). People maps the names in the
// gallery to the fleet's numbers; a lesson that the fleet has already is left out. It returns the number of people with
// new lessons. The errors of [Device.Teach] are joined.
func (d *Device) TeachLessons(g *gallery.Gallery, people map[string]ID) (taught int, err error) {
	lessons := make(map[string][]Lesson)
	for _, x := range g.Learner().Lessons() {
		lessons[x.Name] = append(lessons[x.Name], fleetLesson(x))
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
