// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"errors"
	"fmt"
	"slices"

	"github.com/faceauth/faceauth/fleet/ledger"
	"github.com/faceauth/faceauth/gallery"
)

// Label is a labelled face of a gallery. A negative label states that the face is not this person's.
type Label struct {
	Name     string
	Negative bool
	Vector   []float32
}

// Labels returns the labelled faces of a gallery by label number.
func Labels(g *gallery.Gallery) map[int64]Label {
	l := g.Learner()
	all := make(map[int64]Label)
	for _, x := range l.Labels() {
		all[x.ID] = Label{x.Name, x.Negative, slices.Clone(l.Vector(x.ID))}
	}
	return all
}

// Change lists the changes that a program made to the people of a gallery. [Device.Reconcile] finds additions by
// itself. Removals must be told: if something is missing, Reconcile takes the gallery for an old copy.
type Change struct {
	Gallery        string // as in [Reconciling]
	Renamed        []Renaming
	Forgotten      []string
	Added, Removed []Label
}

// Renaming is a new name for a person.
type Renaming struct {
	From, To string
	// Merge is the entry that merged From into To, for [Device.Unmerge]. It is zero if the person only has a new name.
	Merge ledger.Ref
}

// Difference returns the labels that were added and removed between before and after. Renamed lists the names that
// changed in between.
func Difference(before, after map[int64]Label, renamed ...Renaming) (c Change) {
	c.Renamed = renamed
	c.Added, c.Removed = gallery.Difference(before, after)
	return c
}

// Say publishes the changes of a gallery to the fleet. People maps the gallery's names to the fleet's numbers, as
// [Reconciled] or [Device.Shared] has it, and Say brings it up to date. It must not be nil. Other names are enrolled.
// Say skips changes of people and faces that the fleet no longer has. Do not call it while the gallery is reconciled.
// The errors are those of the methods that write the entries, joined.
func (d *Device) Say(space string, people map[string]ledger.ID, c Change) (err error) {
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
		delete(people, name)
	}
	for _, r := range c.Renamed {
		if id, known := find(r.From); known {
			_, e := d.Rename(id, r.To)
			note(e)
		}
		if id, known := people[r.From]; known {
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
	var had common
	var unread error
	if len(c.Added) > 0 {
		had, unread = d.common(c.Gallery)
		note(unread)
	}
	gone := d.lately(had)
	made := make(map[string][]ledger.Face)
	for _, x := range c.Added {
		if gone[ledger.NewFaceID(space, x.Vector)] {
			continue // the program did not know yet that the face's person is forgotten
		}
		id, known := find(x.Name)
		if !known {
			id, known = d.newcomer(people, x.Name)
		}
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
	// Reconcile finds new people, too, except those whose faces another person had before: it takes these for an old
	// copy.
	if unread == nil && len(made) > 0 {
		note(d.offer(had, space, made, people))
	}
	if err != nil {
		return fmt.Errorf("telling the fleet: %w", err)
	}
	return nil
}

// lately returns the faces that a gallery still shares with people whom the fleet has forgotten.
func (d *Device) lately(had common) map[ledger.FaceID]bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	gone := make(map[ledger.FaceID]bool)
	for id, h := range had.People {
		if d.current().Forgotten(id) {
			for _, face := range h.Faces {
				gone[face] = true
			}
		}
	}
	return gone
}

// called returns the number of the person with this name in a gallery, unless the fleet has forgotten the person. The
// fleet's own names do not count: another device may have given this one to somebody else.
func (d *Device) called(people map[string]ledger.ID, name string) (ledger.ID, bool) {
	id, known := people[name]
	return id, known && !d.Forgotten(id)
}

// newcomer returns the person of the fleet with this name, whom the gallery does not have yet: the same person was
// enrolled at another device a moment ago.
func (d *Device) newcomer(people map[string]ledger.ID, name string) (ledger.ID, bool) {
	p, err := d.Find(name)
	if _, had := people[name]; had || err != nil {
		return p.ID, false
	}
	for _, id := range people {
		if slices.Contains(p.IDs, id) {
			return p.ID, false
		}
	}
	people[name] = p.ID
	return p.ID, true
}

// Shared returns the people whom a gallery shares with the fleet, by name, as they were when the gallery was last
// reconciled. Gallery is as in [Reconciling]. The error wraps [ErrDamaged], or comes from the disk.
func (d *Device) Shared(gallery string) (map[string]ledger.ID, error) {
	had, err := d.common(gallery)
	if err != nil {
		return nil, err
	}
	people := make(map[string]ledger.ID)
	for id, h := range had.People {
		if h.Next != "" {
			people[h.Next] = id
		}
	}
	for id, h := range had.People {
		people[h.Name] = id
	}
	return people, nil
}

// SayMerged publishes that two people of a gallery are one, with the name to. People is as in [Device.Say]. It returns
// the entry of the merge for [Device.Unmerge]; this may be another device's entry if that device merged them first. The
// errors are those of [Device.Merge]; the error wraps [ErrUnknown] if the fleet does not know both people.
func (d *Device) SayMerged(people map[string]ledger.ID, from, to string) (ledger.Ref, error) {
	var ids [2]ledger.ID
	for i, name := range []string{from, to} {
		id, known := d.called(people, name)
		if !known {
			return ledger.Ref{}, fmt.Errorf("merging two people in the fleet: %w: %s", ErrUnknown, name)
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
		err = fmt.Errorf("merging two people in the fleet: %w", err)
	}
	return by, err
}

// Unmerge undoes a merge entry in the fleet. If it is undone already, no entry is written. The errors are those of
// [Device.Undo].
func (d *Device) Unmerge(merge ledger.Ref) error {
	if isMerge, undone := d.merged(merge); !isMerge {
		return fmt.Errorf("undoing a merge in the fleet: %w", ledger.ErrNoEntry)
	} else if undone {
		return nil
	}
	if _, err := d.Undo(merge); err != nil && !errors.Is(err, ledger.ErrNoEffect) {
		return fmt.Errorf("undoing a merge in the fleet: %w", err)
	}
	return nil
}

// Unmerged reports whether a merge entry was undone.
func (d *Device) Unmerged(merge ledger.Ref) bool {
	isMerge, undone := d.merged(merge)
	return isMerge && undone
}

func (d *Device) mergedBy(id ledger.ID) (ledger.Ref, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.current().MergedBy(id)
}

func (d *Device) merged(merge ledger.Ref) (isMerge, undone bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.current().Merged(merge)
}

// undeny takes back that a face is not this person's. Other faces of the same entry stay denied.
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
	return d.current().Forgotten(person)
}
