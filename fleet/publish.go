// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"errors"
	"maps"
	"slices"

	"github.com/faceauth/faceauth/fleet/ledger"
	"github.com/faceauth/faceauth/online"
)

// say writes entries of one kind about a person, one entry for each of contents, and returns their number.
func (x *reconciling) say(id ledger.ID, kind ledger.Kind, contents ...any) (n int, err error) {
	if id, err = x.d.writableID(id); err != nil {
		return 0, err
	}
	var all []statement
	for _, c := range contents {
		all = append(all, statement{ledger.Entry{Kind: kind, Person: id}, c})
	}
	if _, err := x.d.say(all...); err != nil {
		return 0, err
	}
	x.Published += len(all)
	return len(all), nil
}

// vectors returns the faces of labels that are in none of the lists "but", in the order of their labels.
func (x *reconciling) vectors(
	labels map[ledger.FaceID]int64, but ...[]ledger.FaceID,
) (all []ledger.Face, ids []ledger.FaceID) {
	for id := range labels {
		if !slices.ContainsFunc(but, func(some []ledger.FaceID) bool { return slices.Contains(some, id) }) {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids,
		func(a, b ledger.FaceID) int { return int(labels[a] - labels[b]) }) // in the order of labelling
	for _, id := range ids {
		all = append(all, ledger.Face{Vector: slices.Clone(x.g.Learner().Vector(labels[id]))})
	}
	return all, ids
}

func faceIDs(faces []ledger.PersonFace) (ids []ledger.FaceID) {
	for _, f := range faces {
		ids = append(ids, f.ID)
	}
	return ids
}

// publishFaces publishes the faces that the gallery's program labelled and denied for a person whom the fleet knows.
func (x *reconciling) publishFaces(id ledger.ID, p *ledger.Person, have *galleryPerson, h sharedPerson) error {
	if !x.how.Publish || have == nil {
		return nil
	}
	for _, kind := range []ledger.Kind{ledger.Label, ledger.Deny} {
		// An old gallery may still have faces that the fleet has taken back. Only the methods of Device add them again.
		labels, known, shared, against, holders := have.faces, &p.Faces, h.Faces, slices.Clone(p.Gone), x.labelled
		if kind == ledger.Deny {
			labels, known, shared, against, holders = have.denied, &p.Denied, h.Denied, slices.Clone(p.Allowed),
				x.denies
			for _, f := range p.Faces {
				if !slices.Contains(h.Faces, f.ID) { // labelled in the fleet meanwhile
					against = append(against, f.ID)
				}
			}
		}
		for f := range labels {
			if holders.others(f, p.IDs) {
				against = append(against, f)
			}
		}
		faces, ids := x.vectors(labels, faceIDs(*known), shared, against)
		if len(faces) == 0 {
			continue
		}
		all, err := x.d.faces(kind, id, x.space.ID, faces)
		if err != nil {
			return err
		}
		var contents []any
		for _, s := range all {
			contents = append(contents, s.content)
		}
		if _, err := x.say(id, kind, contents...); err != nil {
			if errors.Is(err, ledger.ErrScope) || errors.Is(err, ledger.ErrRevoked) {
				x.refuse("%d new faces of %s stay in this gallery: %v", len(faces), p.Shown, err)
				continue
			}
			return err
		}
		said := func(f ledger.PersonFace) bool { return slices.Contains(ids, f.ID) }
		if kind == ledger.Deny {
			p.Faces = slices.DeleteFunc(p.Faces, said)
		} else {
			p.Denied = slices.DeleteFunc(p.Denied, said)
		}
		for i, f := range faces {
			*known = append(*known, ledger.PersonFace{ID: ids[i], Space: x.space.ID, Face: f})
		}
	}
	return nil
}

// publish enrols in the fleet the people whom only the gallery knows.
func (x *reconciling) publish() error {
	gone := make(map[ledger.FaceID]bool)
	for _, p := range x.all {
		for _, id := range p.Gone {
			gone[id] = true
		}
	}
	var news []offer
	for _, name := range x.g.Learner().Names() {
		if _, owned := x.owners[name]; owned || x.people[name] == nil {
			continue
		}
		have := x.people[name]
		faces, ids := x.vectors(have.faces)
		if len(faces) == 0 {
			continue
		}
		if !slices.ContainsFunc(ids, func(id ledger.FaceID) bool { return !gone[id] }) {
			x.refuse(
				"%s stays in this gallery: all faces of this person were taken back in the fleet; "+
					"enrol %s again with new faces",
				name, name)
			continue
		}
		denied, deniedIDs := x.vectors(have.denied)
		news = append(news, offer{ledger.NewID(), x.space.ID, faces, denied,
			sharedPerson{Name: name, Faces: ids, Denied: deniedIDs}})
	}
	if err := x.had.record(news); err != nil {
		return err
	}
	for _, o := range news {
		name := o.shared.Name
		n, err := x.d.enroll(o)
		if errors.Is(err, ledger.ErrRevoked) {
			x.refuse("%s stays in this gallery: %v", name, err)
			continue
		} else if err != nil {
			return err
		}
		x.Published += n
		x.own(o.id, name)
		x.People[name], x.next.People[o.id] = o.id, o.shared
	}
	return nil
}

// offer is a person of a gallery for the fleet.
type offer struct {
	id            ledger.ID
	space         string
	faces, denied []ledger.Face
	shared        sharedPerson
}

// record writes that people are about to be enrolled. Otherwise a gallery would enrol a person again whom another
// device has forgotten before the next Reconcile.
func (c common) record(all []offer) error {
	if len(all) == 0 {
		return nil
	}
	for _, o := range all {
		o.shared.Offered = true
		c.People[o.id] = o.shared
	}
	return c.write()
}

// offer enrols new people of the gallery that had belongs to, and adds their numbers to people.
func (d *Device) offer(
	had common, space string, made map[string][]ledger.Face, people map[string]ledger.ID,
) (err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var all []offer
	for _, name := range slices.Sorted(maps.Keys(made)) {
		if err := online.CheckName(name); err != nil {
			return err
		}
		o := offer{id: ledger.NewID(), space: space, faces: made[name], shared: sharedPerson{Name: name}}
		for _, f := range o.faces {
			o.shared.Faces = append(o.shared.Faces, ledger.NewFaceID(space, f.Vector))
		}
		all = append(all, o)
	}
	if err := had.record(all); err != nil {
		return err
	}
	for _, o := range all {
		if _, e := d.enroll(o); e != nil {
			err = errors.Join(err, e)
			continue
		}
		people[o.shared.Name] = o.id
	}
	return err
}

// enroll adds a person to the fleet, and returns the number of entries.
func (d *Device) enroll(o offer) (n int, err error) {
	all := []statement{{ledger.Entry{Kind: ledger.Name, Person: o.id}, ledger.Naming{Name: o.shared.Name}}}
	more, err := d.faces(ledger.Label, o.id, o.space, o.faces)
	if err != nil {
		return 0, err
	}
	all = append(all, more...)
	if len(o.denied) > 0 {
		if more, err = d.faces(ledger.Deny, o.id, o.space, o.denied); err != nil {
			return 0, err
		}
		all = append(all, more...)
	}
	_, err = d.say(all...)
	return len(all), err
}
