// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/faceauth/faceauth/fleet/ledger"
	"github.com/faceauth/faceauth/gallery"
)

// Label is a labelled face of a gallery, or one that is known not to be a person's.
type Label struct {
	Name     string
	Negative bool
	Vector   []float32
}

// Labels returns the labelled faces of a gallery, by their numbers there.
func Labels(g *gallery.Gallery) map[int64]Label {
	l := g.Learner()
	all := make(map[int64]Label)
	for _, x := range l.Labels() {
		all[x.ID] = Label{x.Name, x.Negative, slices.Clone(l.Vector(x.ID))}
	}
	return all
}

// Change is what somebody did to the people of a gallery. [Device.Reconcile] finds what was added by itself, and takes
// what is missing for an old copy; that a face was taken back, or somebody forgotten, must be said.
type Change struct {
	Renamed        []Renaming
	Forgotten      []string
	Added, Removed []Label
}

// Renaming is another name for a person.
type Renaming struct{ From, To string }

// Difference returns what was added to labels and what was removed. Renamed are the names that changed in between.
func Difference(before, after map[int64]Label, renamed ...Renaming) (c Change) {
	c.Renamed = renamed
	c.Added, c.Removed = gallery.Difference(before, after)
	return c
}

// Say tells the fleet what was done to the people of a gallery. People are those of its names whom the fleet knows, as
// [Reconciled] gave them; others are enrolled. What is not so in the fleet any more is passed over.
func (d *Device) Say(space string, people map[string]ledger.ID, c Change) (err error) {
	people = maps.Clone(people)
	find := func(name string) (ledger.ID, bool) {
		if id, known := people[name]; known && !d.Forgotten(id) {
			return id, true
		}
		p, err := d.Find(name)
		return p.ID, err == nil
	}
	note := func(e error) {
		if !errors.Is(e, ErrUnknown) && !errors.Is(e, ledger.ErrForgotten) && !errors.Is(e, ledger.ErrNoEffect) {
			err = errors.Join(err, e)
		}
	}
	for _, name := range c.Forgotten {
		if id, known := find(name); known {
			_, e := d.Forget(id)
			note(e)
		}
	}
	for _, r := range c.Renamed {
		if id, known := find(r.From); known {
			_, e := d.Rename(id, r.To)
			note(e)
			delete(people, r.From)
			people[r.To] = id
		}
	}
	for _, x := range c.Removed {
		id, known := find(x.Name)
		if !known || slices.Contains(c.Forgotten, x.Name) {
			continue
		}
		face := ledger.NewFaceID(space, x.Vector)
		if !x.Negative {
			_, e := d.Retract(id, face)
			note(e)
			continue
		}
		note(d.undeny(id, face))
	}
	made := make(map[string][]ledger.Face)
	for _, x := range c.Added {
		id, known := find(x.Name)
		if !known {
			if !x.Negative {
				made[x.Name] = append(made[x.Name], ledger.Face{Vector: x.Vector})
			}
			continue
		}
		say := d.Label
		if x.Negative {
			say = d.Deny
		}
		_, e := say(id, space, []ledger.Face{{Vector: x.Vector}})
		note(e)
	}
	// Reconcile would find them, too, but for faces that somebody else had once: it takes those for an old copy.
	for _, name := range slices.Sorted(maps.Keys(made)) {
		_, e := d.Enroll(name, space, made[name])
		note(e)
	}
	if err != nil {
		return fmt.Errorf("telling the fleet: %w", err)
	}
	return nil
}

// undeny says that a face is not said to be somebody else's any more. What was denied with it stays so.
func (d *Device) undeny(id ledger.ID, face ledger.FaceID) error {
	p, err := d.Find(id.String())
	if err != nil {
		return err
	}
	at := slices.IndexFunc(p.Denied, func(f ledger.PersonFace) bool { return f.ID == face })
	if at < 0 {
		return nil
	}
	by := p.Denied[at].By
	if _, err := d.Undo(by); err != nil {
		return err
	}
	for _, f := range p.Denied {
		if f.By == by && f.ID != face {
			if _, err := d.Deny(id, f.Space, []ledger.Face{f.Face}); err != nil {
				return err
			}
		}
	}
	return nil
}

// Forgotten reports whether a person was forgotten for ever.
func (d *Device) Forgotten(person ledger.ID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.now().Forgotten(person)
}
