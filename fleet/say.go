// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"slices"

	"github.com/faceauth/faceauth/fleet/ledger"
	"github.com/faceauth/faceauth/online"
)

// A statement is an entry before it is signed, and its content.
type statement struct {
	e       ledger.Entry
	content any
}

// writableID returns a number under which the device may write about a person. A merged person has several numbers, and
// a limited device may write about some of them only.
func (d *Device) writableID(id ledger.ID) (ledger.ID, error) {
	view := d.current()
	if view.Forgotten(id) {
		return id, fmt.Errorf("%w: %s", ledger.ErrForgotten, id)
	}
	if !view.Known(id) {
		return id, fmt.Errorf("%w: %s", ErrUnknown, id)
	}
	if m, known := view.Device(d.id); !known || !m.Revoked && m.Scope.All {
		return id, nil
	} else if m.Revoked {
		return id, ledger.ErrRevoked
	}
	for _, other := range view.Group(id) {
		if view.MayWrite(d.id, other) {
			return other, nil
		}
	}
	return id, fmt.Errorf("%w: %s", ledger.ErrScope, id)
}

// say writes entries, all or none, and they count for this device at once. It returns the reference of the last entry.
func (d *Device) say(all ...statement) (ledger.Ref, error) {
	view := d.current()
	if m, known := view.Device(d.id); known && m.Revoked {
		return ledger.Ref{}, ledger.ErrRevoked
	}
	keys := make(map[ledger.ID]ledger.Key) // new keys
	var b batch
	var made []waiting
	n := d.last
	for _, s := range all {
		e := s.e
		n++
		e.Device, e.N, e.Time = d.id, n, d.s.Now()
		if e.Kind.Sealed() {
			key, ok := view.WriteKey(e.Person, d.ring)
			if !ok {
				if key, ok = keys[e.Person]; !ok {
					key = ledger.NewKey()
					keys[e.Person] = key
				}
			}
			e.Seal(d.fleet, key, s.content)
		} else if s.content != nil {
			e.Put(s.content)
		}
		if err := e.Sign(d.fleet, d.key); err != nil {
			return ledger.Ref{}, err
		}
		data := e.Encode()
		b.Entries = append(b.Entries, data)
		made = append(made, waiting{e: e, data: data})
	}
	// A key that is saved and not used does no harm; an entry without its key would be lost. So the keys are saved
	// first.
	for id, key := range keys {
		d.ungiven[d.ring.AddOwn(id, key)] = id
		d.ringStale = true
	}
	if err := d.saveRing(); err != nil {
		return ledger.Ref{}, err
	}
	if err := d.keepOutbox(b); err != nil {
		return ledger.Ref{}, fmt.Errorf("saving entries in the outbox: %w", err)
	}
	if len(d.pending) == 0 && d.aside == nil {
		d.view = d.base.With()
	}
	d.pending, d.last, d.names = append(d.pending, made...), n, nil
	if d.view != nil {
		for _, w := range made {
			d.view.Say(w.data)
		}
	}
	signal(d.wake)
	return made[len(made)-1].e.Ref(), nil
}

// mostLine is the greatest size of a line of the outbox with several entries, in bytes of entries.
const mostLine = 8 << 20

// keepOutbox writes entries that belong together into one line, so that a killed program has written all or none. Very
// many faces take several lines.
func (d *Device) keepOutbox(b batch) error {
	for len(b.Entries) > 0 {
		n, size := 1, len(b.Entries[0])
		for n < len(b.Entries) && size+len(b.Entries[n]) <= mostLine {
			size += len(b.Entries[n])
			n++
		}
		if err := d.outbox.Append(batch{Entries: b.Entries[:n]}); err != nil {
			return err
		}
		b.Entries = b.Entries[n:]
	}
	return nil
}

// mostOf is the greatest size of the vectors in one entry, in bytes.
const mostOf = ledger.MaxEntry - 100_000

// portions cuts n items of the given size into ranges that fit into one entry each.
func portions(n, bytes int) (all [][2]int) {
	each := max(1, mostOf/max(bytes+32, 1))
	for from := 0; from < n; from += each {
		all = append(all, [2]int{from, min(n, from+each)})
	}
	return all
}

// faces makes statements about faces of a person, as many as are needed.
func (d *Device) faces(kind ledger.Kind, id ledger.ID, space string, faces []ledger.Face) (all []statement, err error) {
	if len(faces) == 0 {
		return nil, fmt.Errorf("%s: no faces given", kind)
	}
	for _, f := range faces {
		if len(f.Vector) == 0 || len(f.Vector) != len(faces[0].Vector) {
			return nil, fmt.Errorf("%s: a face has %d values; all faces of an entry need the same number, at least 1",
				kind, len(f.Vector))
		}
	}
	for _, p := range portions(len(faces), 4*len(faces[0].Vector)) {
		all = append(all,
			statement{ledger.Entry{Kind: kind, Person: id}, ledger.Faces{Space: space, Faces: faces[p[0]:p[1]]}})
	}
	return all, nil
}

// Enroll adds a person with a name and faces to the fleet. The error comes from [online.CheckName], or comes from the
// disk.
func (d *Device) Enroll(name, space string, faces []ledger.Face) (ledger.ID, error) {
	if err := online.CheckName(name); err != nil {
		return ledger.ID{}, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	o := offer{id: ledger.NewID(), space: space, faces: faces, shared: sharedPerson{Name: name}}
	_, err := d.enroll(o)
	return o.id, err
}

func (d *Device) sayFaces(kind ledger.Kind, person ledger.ID, space string, faces []ledger.Face) (ledger.Ref, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	id, err := d.writableID(person)
	if err != nil {
		return ledger.Ref{}, err
	}
	all, err := d.faces(kind, id, space, faces)
	if err != nil {
		return ledger.Ref{}, err
	}
	return d.say(all...)
}

// Label adds labelled faces to a person. The errors of this and the next methods wrap [ErrUnknown],
// [ledger.ErrForgotten], [ledger.ErrScope] or [ledger.ErrRevoked], or come from the disk; no entry is written then.
func (d *Device) Label(person ledger.ID, space string, faces []ledger.Face) (ledger.Ref, error) {
	return d.sayFaces(ledger.Label, person, space, faces)
}

// Confirm confirms that faces are still this person's: learned faces become labelled faces.
func (d *Device) Confirm(person ledger.ID, space string, faces []ledger.Face) (ledger.Ref, error) {
	return d.sayFaces(ledger.Confirm, person, space, faces)
}

// Deny states that faces are not this person's.
func (d *Device) Deny(person ledger.ID, space string, faces []ledger.Face) (ledger.Ref, error) {
	return d.sayFaces(ledger.Deny, person, space, faces)
}

// sayOf writes one entry about a person.
func (d *Device) sayOf(kind ledger.Kind, person ledger.ID, content any) (ledger.Ref, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	id, err := d.writableID(person)
	if err != nil {
		return ledger.Ref{}, err
	}
	return d.say(statement{ledger.Entry{Kind: kind, Person: id}, content})
}

// Retract takes back labelled faces of a person. For a merged person it writes an entry for each number, so that the
// faces stay away if the merge is undone. It returns the entry about the given number.
func (d *Device) Retract(person ledger.ID, faces ...ledger.FaceID) (ledger.Ref, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	id, err := d.writableID(person)
	if err != nil {
		return ledger.Ref{}, err
	}
	var all []statement
	for _, other := range d.current().Group(id) {
		if other != id && d.current().MayWrite(d.id, other) {
			all = append(all, statement{ledger.Entry{Kind: ledger.Retract, Person: other}, ledger.Refs{Faces: faces}})
		}
	}
	return d.say(append(all, statement{ledger.Entry{Kind: ledger.Retract, Person: id}, ledger.Refs{Faces: faces}})...)
}

// Rename gives a person a new name. The error may also come from [online.CheckName].
func (d *Device) Rename(person ledger.ID, name string) (ledger.Ref, error) {
	if err := online.CheckName(name); err != nil {
		return ledger.Ref{}, err
	}
	return d.sayOf(ledger.Name, person, ledger.Naming{Name: name})
}

// Merge states that other and into are the same person, with the name of into. The error may also wrap
// [ledger.ErrNoEffect].
func (d *Device) Merge(other, into ledger.ID) (ledger.Ref, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	from, err := d.writableID(other)
	if err != nil {
		return ledger.Ref{}, err
	}
	to, err := d.writableID(into)
	if err != nil {
		return ledger.Ref{}, err
	}
	if slices.Contains(d.current().Group(from), to) {
		return ledger.Ref{}, fmt.Errorf("%w: both are one person", ledger.ErrNoEffect)
	}
	return d.say(statement{ledger.Entry{Kind: ledger.Merge, Person: to, Other: from}, nil})
}

// Undo takes back an entry about a person. It cannot take back the kinds [ledger.Forget], [ledger.Undo] and
// [ledger.Withdraw]. The error may also wrap [ledger.ErrNoEntry] or [ledger.ErrNoEffect].
func (d *Device) Undo(entry ledger.Ref) (ledger.Ref, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	id, err := d.current().Undoable(entry)
	if err != nil {
		return ledger.Ref{}, err
	}
	if !d.current().MayWrite(d.id, id) {
		if _, err := d.writableID(id); err != nil { // nil for a device that is not a member yet
			return ledger.Ref{}, err
		}
	}
	return d.say(statement{ledger.Entry{Kind: ledger.Undo, Person: id}, entry})
}

// Forget removes a person for ever from all devices, with all people merged with this person, and destroys their keys.
// The error may also wrap [ledger.ErrForgets].
func (d *Device) Forget(person ledger.ID) (ledger.Ref, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	id, err := d.writableID(person)
	if err != nil {
		return ledger.Ref{}, err
	}
	group := d.current().Group(id)
	also := slices.DeleteFunc(slices.Clone(group), func(other ledger.ID) bool { return other == id })
	for _, other := range also {
		if m, known := d.current().Device(d.id); known && !m.Scope.All && !d.current().MayWrite(d.id, other) {
			return ledger.Ref{}, fmt.Errorf("%w: %s, with whom this person was merged", ledger.ErrScope, other)
		}
	}
	if !d.current().MayForget(d.id, len(group)) {
		return ledger.Ref{}, ledger.ErrForgets
	}
	ref, err := d.say(statement{ledger.Entry{Kind: ledger.Forget, Person: id}, ledger.Forgetting{Also: also}})
	if err != nil {
		return ref, err
	}
	for _, other := range group {
		d.ring.Destroy(other)
	}
	d.ringStale = true
	return ref, d.saveRing()
}

// Teach publishes this device's lessons about a person, in a feature space: one for each list of sources through which
// faces were learned. They replace the device's earlier lessons about the person. It reports whether they were written:
// equal lessons are not written again.
func (d *Device) Teach(person ledger.ID, space string, lessons []ledger.Lesson) (taught bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	id, err := d.writableID(person)
	if err != nil {
		return false, err
	}
	if p, ok := d.current().Person(id, d.ring); ok {
		var before []ledger.Lesson
		for _, x := range p.Lessons {
			if x.Device == d.id && x.Of == id && len(x.Centroids) > 0 {
				before = append(before, x.Lesson)
			}
		}
		if slices.EqualFunc(before, lessons, ledger.Lesson.Equal) {
			return false, nil
		}
	}
	var all []statement
	add := func(part ledger.Lesson) {
		e := ledger.Entry{Kind: ledger.Lessons, Person: id, Part: uint64(len(all))}
		all = append(all, statement{e, part})
	}
	for _, x := range lessons {
		if len(x.Centroids) == 0 {
			continue
		}
		for _, p := range portions(len(x.Centroids), 4*len(x.Centroids[0].Vector)) {
			part := ledger.Lesson{Space: space, Through: x.Through, Centroids: x.Centroids[p[0]:p[1]]}
			for _, link := range x.Links { // a link belongs to the part with its later centroid
				if later := max(link[0], link[1]); p[0] <= later && later < p[1] {
					part.Links = append(part.Links, link)
				}
			}
			add(part)
		}
	}
	if len(all) == 0 {
		add(ledger.Lesson{Space: space})
	}
	_, err = d.say(all...)
	return err == nil, err
}

// Withdraw takes back all lessons of a device. With mute, later lessons of that device do not count either, until a
// withdrawal without mute.
func (d *Device) Withdraw(device string, mute bool) (ledger.Ref, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, known := d.current().Device(device); !known {
		return ledger.Ref{}, fmt.Errorf("withdrawing lessons: %w: %s", ledger.ErrNobody, device)
	}
	if m, known := d.current().Device(d.id); known && !m.Scope.All && device != d.id {
		return ledger.Ref{}, fmt.Errorf("withdrawing lessons: this device is limited to some people: %w",
			ledger.ErrScope)
	}
	return d.say(statement{ledger.Entry{Kind: ledger.Withdraw}, ledger.Withdrawal{Device: device, Mute: mute}})
}
