// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"errors"
	"fmt"
	"slices"

	"github.com/faceauth/faceauth/gallery"
)

// Change lists the changes that a program made to the people of a gallery. [Device.Reconcile] finds additions by
// itself. Removals must be told: if something is missing, Reconcile takes the gallery for an old copy.
type Change struct {
	Gallery        string // as in [Reconciling]
	Renamed        []Renaming
	Forgotten      []string
	Added, Removed []gallery.Label
}

// Renaming is a new name for a person.
type Renaming struct {
	From, To string
	// Merge is the entry that merged From into To, for [Device.Unmerge]. It is zero if the person only has a new name.
	Merge Merge
}

// Say publishes the changes of a gallery to the fleet. People maps the gallery's names to the fleet's numbers, as
// [Reconciled] or [Device.Shared] has it, and Say brings it up to date. It must not be nil. Other names are enrolled.
// Say skips changes of people and faces that the fleet no longer has. Do not call it while the gallery is reconciled.
// The errors are those of the methods that write the entries, joined.
func (d *Device) Say(space string, people map[string]ID, c Change) (err error) {
	find := func(name string) (ID, bool) { return d.called(people, name) }
	note := func(e error) {
		if !errors.Is(e, ErrUnknown) && !errors.Is(e, ErrForgotten) && !errors.Is(e, ErrNoEffect) {
			err = errors.Join(err, e)
		}
	}
	for _, name := range c.Forgotten {
		if id, known := find(name); known {
			waits, e := d.Forget(id)
			note(e)
			if waits {
				d.s.Tell(fmt.Sprintf("the fleet forgets %s when another device forgets this person, too, or the "+
					"administrator runs faceauth fleet allow: one device alone can forget %d people a day", name,
					DailyForgets))
			}
		}
		delete(people, name)
	}
	for _, r := range c.Renamed {
		if id, known := find(r.From); known {
			e := d.Rename(id, r.To)
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
		face := NewFaceID(space, x.Vector)
		if !x.Negative {
			note(d.Retract(id, face))
			continue
		}
		note(d.Undeny(id, face))
	}
	var had common
	var unread error
	if len(c.Added) > 0 {
		d.mu.Lock()
		had, unread = d.common(c.Gallery)
		d.mu.Unlock()
		note(unread)
	}
	gone := d.lately(had)
	made := make(map[string][]Face)
	for _, x := range c.Added {
		if gone[NewFaceID(space, x.Vector)] {
			continue // the program did not know yet that the face's person is forgotten
		}
		id, known := find(x.Name)
		if !known {
			id, known = d.newcomer(people, x.Name)
		}
		if !known {
			if !x.Negative {
				made[x.Name] = append(made[x.Name], Face{Vector: x.Vector})
			}
			continue
		}
		say := d.Label
		if x.Negative {
			say = d.Deny
		}
		note(say(id, space, []Face{{Vector: x.Vector}}))
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
func (d *Device) lately(had common) map[FaceID]bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	gone := make(map[FaceID]bool)
	for id, h := range had.people {
		if d.forgotten(id) {
			for _, face := range h.Faces {
				gone[face] = true
			}
		}
	}
	return gone
}

// called returns the number of the person with this name in a gallery, unless the fleet has forgotten the person. The
// fleet's own names do not count: another device may have given this one to somebody else.
func (d *Device) called(people map[string]ID, name string) (ID, bool) {
	id, known := people[name]
	return id, known && !d.Forgotten(id)
}

// newcomer returns the person of the fleet with this name, whom the gallery does not have yet: the same person was
// enrolled at another device a moment ago.
func (d *Device) newcomer(people map[string]ID, name string) (ID, bool) {
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
func (d *Device) Shared(gallery string) (map[string]ID, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	had, err := d.common(gallery)
	if err != nil {
		return nil, err
	}
	people := make(map[string]ID)
	for id, h := range had.people {
		if h.Next != "" {
			people[h.Next] = id
		}
	}
	for id, h := range had.people {
		people[h.Name] = id
	}
	return people, nil
}

// SayMerged publishes that two people of a gallery are one, with the name to. People is as in [Device.Say]. It returns
// the entry of the merge for [Device.Unmerge]; this may be another device's entry if that device merged them first. The
// errors are those of [Device.Merge]; the error wraps [ErrUnknown] if the fleet does not know both people.
func (d *Device) SayMerged(people map[string]ID, from, to string) (Merge, error) {
	var ids [2]ID
	for i, name := range []string{from, to} {
		id, known := d.called(people, name)
		if !known {
			return Merge{}, fmt.Errorf("merging two people in the fleet: %w: %s", ErrUnknown, name)
		}
		ids[i] = id
	}
	by, err := d.Merge(ids[0], ids[1])
	if errors.Is(err, ErrNoEffect) {
		d.mu.Lock()
		defer d.mu.Unlock()
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
