// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"errors"
	"maps"
	"slices"

	"github.com/faceauth/faceauth/online"
)

// vectors returns the faces of labels that are in none of the lists "but", in the order of their labels.
func (x *reconciling) vectors(
	labels map[FaceID]int64, but ...[]FaceID,
) (all []Face, ids []FaceID) {
	for id := range labels {
		if !slices.ContainsFunc(but, func(some []FaceID) bool { return slices.Contains(some, id) }) {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids,
		func(a, b FaceID) int { return int(labels[a] - labels[b]) }) // in the order of labelling
	for _, id := range ids {
		all = append(all, Face{Vector: slices.Clone(x.g.Learner().Vector(labels[id]))})
	}
	return all, ids
}

func faceIDs(faces []PersonFace) (ids []FaceID) {
	for _, f := range faces {
		ids = append(ids, f.ID)
	}
	return ids
}

// publishFaces publishes the faces that the gallery's program labelled and denied for a person whom the fleet knows.
func (x *reconciling) publishFaces(id ID, p *Person, have *galleryPerson, h sharedPerson) error {
	if !x.how.Publish || have == nil {
		return nil
	}
	for _, state := range []faceState{labelled, denied} {
		// An old gallery may still have faces that the fleet has taken back. Only the methods of Device add them again.
		labels, known, shared, against, holders := have.faces, &p.Faces, h.Faces, slices.Clone(p.Gone), x.labelled
		if state == denied {
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
		err := x.d.aboutLocked(id, func(id ID) error { return x.d.addFaces(id, x.space.ID, faces, state) })
		if errors.Is(err, ErrScope) || errors.Is(err, ErrRevoked) || errors.Is(err, ErrKeyless) {
			x.refuse("%d new faces of %s stay in this gallery: %v", len(faces), p.Shown, err)
			continue
		} else if err != nil {
			return err
		}
		x.Published++
		said := func(f PersonFace) bool { return slices.Contains(ids, f.ID) }
		if state == denied {
			p.Faces = slices.DeleteFunc(p.Faces, said)
		} else {
			p.Denied = slices.DeleteFunc(p.Denied, said)
		}
		for i, f := range faces {
			*known = append(*known, PersonFace{ID: ids[i], Space: x.space.ID, Face: f})
		}
	}
	return nil
}

// publish enrols in the fleet the people whom only the gallery knows.
func (x *reconciling) publish() error {
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
		x.loadAll()
		if !slices.ContainsFunc(ids, func(id FaceID) bool { return !x.gone(id) }) {
			x.refuse(
				"%s stays in this gallery: all faces of this person were taken back in the fleet; "+
					"enrol %s again with new faces",
				name, name)
			continue
		}
		denied, deniedIDs := x.vectors(have.denied)
		id, b := newID(x.d.id)
		news = append(news, offer{id, b, x.space.ID, faces, denied,
			sharedPerson{Name: name, Faces: ids, Denied: deniedIDs}})
	}
	if err := x.d.offered(x.had, news); err != nil {
		return err
	}
	for _, o := range news {
		name := o.shared.Name
		err := x.d.enroll(o)
		if errors.Is(err, ErrRevoked) {
			x.refuse("%s stays in this gallery: %v", name, err)
			continue
		} else if err != nil {
			return err
		}
		x.Published++
		x.own(o.id, name)
		x.People[name], x.next.people[o.id] = o.id, o.shared
	}
	return nil
}

// gone reports whether a face was taken back in the fleet.
func (x *reconciling) gone(face FaceID) bool {
	return slices.ContainsFunc(x.all, func(p Person) bool { return slices.Contains(p.Gone, face) })
}

// offer is a person of a gallery for the fleet.
type offer struct {
	id            ID
	born          born
	space         string
	faces, denied []Face
	shared        sharedPerson
}

// offered keeps that people are about to be enrolled. Otherwise a gallery would enrol a person again whom another
// device has forgotten before the next Reconcile.
func (d *Device) offered(c common, all []offer) error {
	if len(all) == 0 {
		return nil
	}
	for _, o := range all {
		o.shared.Offered = true
		c.people[o.id] = o.shared
	}
	return d.keepCommon(c)
}

// offer enrols new people of the gallery that had belongs to, and adds their numbers to people.
func (d *Device) offer(
	had common, space string, made map[string][]Face, people map[string]ID,
) (err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var all []offer
	for _, name := range slices.Sorted(maps.Keys(made)) {
		if err := online.CheckName(name); err != nil {
			return err
		}
		id, b := newID(d.id)
		o := offer{id: id, born: b, space: space, faces: made[name], shared: sharedPerson{Name: name}}
		for _, f := range o.faces {
			o.shared.Faces = append(o.shared.Faces, NewFaceID(space, f.Vector))
		}
		all = append(all, o)
	}
	if err := d.offered(had, all); err != nil {
		return err
	}
	for _, o := range all {
		if e := d.enroll(o); e != nil {
			err = errors.Join(err, e)
			continue
		}
		people[o.shared.Name] = o.id
	}
	return err
}
