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
type Renaming struct {
	From, To string
	// Merge is the entry that says so where From and To are one person now, for [Device.Unmerge]. Zero for another
	// name.
	Merge ledger.Ref
}

// Difference returns what was added to labels and what was removed. Renamed are the names that changed in between.
func Difference(before, after map[int64]Label, renamed ...Renaming) (c Change) {
	c.Renamed = renamed
	c.Added, c.Removed = gallery.Difference(before, after)
	return c
}

// Say tells the fleet the changes of a gallery. People has the numbers of the gallery's names that the fleet knows, as
// [Reconciled] gave them; other names are enrolled. A change of something that the fleet has not got any more is passed
// over.
func (d *Device) Say(space string, people map[string]ledger.ID, c Change) (err error) {
	people = maps.Clone(people)
	find := func(name string) (ledger.ID, bool) { return d.called(people, name) }
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

// called returns the person of the fleet who has a name in a gallery.
func (d *Device) called(people map[string]ledger.ID, name string) (ledger.ID, bool) {
	if id, known := people[name]; known && !d.Forgotten(id) {
		return id, true
	}
	p, err := d.Find(name)
	return p.ID, err == nil
}

// SayMerged tells the fleet that two people of a gallery are one, who has the name to. People are as in [Device.Say].
// It returns the entry that says so, for [Device.Unmerge]: of another device, where that has said it already. It has
// the errors of [Device.Merge], and one that wraps [ErrUnknown] where the fleet does not know both.
func (d *Device) SayMerged(people map[string]ledger.ID, from, to string) (ledger.Ref, error) {
	var ids [2]ledger.ID
	for i, name := range []string{from, to} {
		id, known := d.called(people, name)
		if !known {
			return ledger.Ref{}, fmt.Errorf("telling the fleet who is one person: %w: %s", ErrUnknown, name)
		}
		ids[i] = id
	}
	by, err := d.Merge(ids[0], ids[1])
	if errors.Is(err, ledger.ErrNoEffect) {
		for _, id := range ids {
			if by, merged := d.mergedBy(id); merged {
				return by, nil
			}
		}
	}
	if err != nil {
		err = fmt.Errorf("telling the fleet who is one person: %w", err)
	}
	return by, err
}

// Unmerge tells the fleet that two people are not one, as an entry said. Where that was undone already, nothing is
// said. It has the errors of [Device.Undo].
func (d *Device) Unmerge(merge ledger.Ref) error {
	if says, undone := d.merged(merge); !says {
		return fmt.Errorf("telling the fleet who is not one person: %w", ledger.ErrNoEntry)
	} else if undone {
		return nil
	}
	if _, err := d.Undo(merge); err != nil && !errors.Is(err, ledger.ErrNoEffect) {
		return fmt.Errorf("telling the fleet who is not one person: %w", err)
	}
	return nil
}

// Unmerged reports whether it was undone that two people are one, as an entry said.
func (d *Device) Unmerged(merge ledger.Ref) bool {
	says, undone := d.merged(merge)
	return says && undone
}

func (d *Device) mergedBy(id ledger.ID) (ledger.Ref, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.now().MergedBy(id)
}

func (d *Device) merged(merge ledger.Ref) (says, undone bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.now().Merged(merge)
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
