// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"maps"
	"slices"

	"github.com/faceauth/faceauth/graph"
	"github.com/faceauth/faceauth/online"
)

func (x *reconciling) own(id ID, name string) {
	x.at[id], x.owners[name] = name, id
}

// match finds the person of the fleet for each person of the gallery, and removes from the gallery the people whom the
// fleet no longer has.
func (x *reconciling) match() error {
	var gone []string
	var heirs []func() error // give new faces of a merged person to the person that has the faces now
	x.next.forgotten = slices.Clone(x.had.forgotten)
	place := make(map[ID]int) // in x.all, by each number of a person
	for i, p := range x.all {
		for _, id := range p.IDs {
			place[id] = i
		}
	}
	for _, id := range x.shared() {
		h := x.had.people[id]
		if x.d.forgotten(id) {
			x.next.forgotten = append(x.next.forgotten, h.Faces...)
			x.Forgotten = append(x.Forgotten, h.Name)
		}
		name, renamed := x.find(h)
		x.begun[id] = name
		if name == "" {
			continue
		}
		if x.d.forgotten(id) {
			x.forgetting(name)
		}
		i, there := place[id]
		switch {
		case !there:
			gone = append(gone, name) // forgotten, or all its entries were undone
		case x.all[i].ID != id && x.alone(x.all[i].ID):
			x.own(x.all[i].ID, name) // merged into a person who is not in the gallery
		case x.all[i].ID != id: // merged into a person of the gallery
			gone = append(gone, name)
			heirs = append(heirs, func() error {
				if _, other := x.owners[name]; other || x.people[name] == nil {
					return nil
				}
				p := &x.all[i]
				x.load(p)
				return x.publishFaces(p.ID, p, x.people[name], x.before(p))
			})
		default:
			if p := &x.all[i]; renamed && x.how.Publish && name != p.Shown && !x.given(p, name) {
				if err := x.d.aboutLocked(p.ID, func(id ID) error { return x.d.rename(id, name) }); err != nil {
					x.refuse("the name %s stays in this gallery alone: %v", name, err)
				} else {
					p.Name, p.Shown = name, name
					x.Published++
				}
			}
			x.own(id, name)
		}
	}
	for _, give := range heirs {
		if err := give(); err != nil {
			return err
		}
	}
	// Only an old gallery has faces of forgotten people.
	forgotten := make(map[FaceID]bool, len(x.next.forgotten))
	for _, id := range x.next.forgotten {
		forgotten[id] = true
	}
	for name, p := range x.people {
		if _, owned := x.owners[name]; owned || len(p.faces) == 0 || slices.Contains(gone, name) {
			continue
		}
		old := 0
		for id := range p.faces {
			if forgotten[id] {
				old++
			}
		}
		if old == len(p.faces) {
			x.forgetting(name)
			gone = append(gone, name)
		}
	}
	for _, name := range gone {
		if _, other := x.owners[name]; other || x.people[name] == nil {
			continue
		}
		if err := x.remove(name); err != nil {
			return err
		}
		x.Took++
	}
	// The remaining people are matched by their faces, and last by name and likeness.
	with := make(map[FaceID]string)
	for name, p := range x.people {
		if _, owned := x.owners[name]; !owned {
			for id := range p.faces {
				with[id] = name
			}
		}
	}
	for _, alike := range []bool{false, true} {
		for i := range x.all {
			p := &x.all[i]
			if _, known := x.at[p.ID]; known || len(with) == 0 {
				continue
			}
			x.load(p)
			for _, f := range p.Faces {
				name := with[f.ID]
				if alike && x.alike(p.Name, f) {
					name = p.Name
				}
				if _, owned := x.owners[name]; name != "" && x.people[name] != nil && !owned {
					x.own(p.ID, name)
					break
				}
			}
		}
	}
	return nil
}

// shared returns the numbers of the shared people. Those who still have their names in the gallery come first: two
// people may have become one there, and the other one is not this person with a new name.
func (x *reconciling) shared() (ids []ID) {
	renamed := make(map[ID]bool)
	for id, h := range x.had.people {
		ids = append(ids, id)
		renamed[id] = x.named(h) == ""
	}
	slices.SortFunc(ids, func(a, b ID) int {
		if renamed[a] != renamed[b] {
			if renamed[b] {
				return -1
			}
			return 1
		}
		return slices.Compare(a[:], b[:])
	})
	return ids
}

// forgetting calls the setting Forgetting for a person who is about to be removed.
func (x *reconciling) forgetting(name string) {
	if x.how.Forgetting != nil {
		x.how.Forgetting(name)
	}
}

// given reports whether the fleet once had this name for a person. A gallery with such a name is an old copy.
func (x *reconciling) given(p *Person, name string) bool {
	return slices.ContainsFunc(p.Names, func(n string) bool { return n == name || x.derived(name, n) })
}

// alone reports whether no person of the gallery is shared with this person of the fleet yet.
func (x *reconciling) alone(id ID) bool {
	if _, known := x.at[id]; known {
		return false
	}
	h, shared := x.had.people[id]
	if !shared {
		return true
	}
	name, _ := x.find(h)
	return name == ""
}

// find returns the present name of a shared person in the gallery, or "". Renamed is true if the gallery's program gave
// a new name.
func (x *reconciling) find(h sharedPerson) (name string, renamed bool) {
	if name := x.named(h); name != "" {
		return name, false
	}
	most := 0
	for _, other := range slices.Sorted(maps.Keys(x.people)) {
		if _, owned := x.owners[other]; owned {
			continue
		}
		if n := x.shares(x.people[other], h); n > most && 2*n > len(h.Faces) {
			name, most = other, n
		}
	}
	return name, name != ""
}

// named returns the last name of a shared person if the gallery still has the person under it, or "".
func (x *reconciling) named(h sharedPerson) string {
	for _, name := range []string{h.Name, h.Next} {
		if p := x.people[name]; name != "" && p != nil {
			if _, owned := x.owners[name]; !owned && x.shares(p, h) > 0 {
				return name
			}
		}
	}
	return ""
}

// shares returns the number of shared faces that a person of the gallery still has. If it is 0, this is another person.
func (x *reconciling) shares(p *galleryPerson, h sharedPerson) (n int) {
	for _, id := range h.Faces {
		if _, ok := p.faces[id]; ok {
			n++
		}
	}
	return n
}

// alike reports whether the gallery's person of this name looks like the face.
func (x *reconciling) alike(name string, f PersonFace) bool {
	if x.people[name] == nil || x.space.GenuineRadius == 0 || f.Space != x.space.ID || x.space.Check(f.Vector) != nil {
		return false
	}
	for _, id := range x.people[name].faces {
		if graph.Distance(x.g.Learner().Vector(id), f.Vector, x.space.Scale) <= x.space.GenuineRadius {
			return true
		}
	}
	return false
}

// names gives the people in the gallery the names that the fleet shows, unless another person there has the name.
func (x *reconciling) names() error {
	want := make(map[string]string) // by the name now
	taken := make(map[string]bool)
	for id, name := range x.at {
		taken[name] = x.d.names()[id] == "" // a liar gave the person no name, or the key is missing
	}
	for _, p := range x.all {
		now, ok := x.at[p.ID]
		if !ok || p.Shown == "" || online.CheckName(p.Shown) != nil {
			continue
		}
		name := p.Shown
		if _, owned := x.owners[name]; x.people[name] != nil && !owned || taken[name] {
			// A person whom the fleet does not know has this name.
			if name = now; taken[now] || !x.derived(now, p.Shown) {
				name = x.free(p.Shown, taken)
			}
		}
		taken[name] = true
		if name != now {
			want[now] = name
		}
	}
	// People may exchange their names: whose name another one gets has a temporary one in between.
	for _, to := range slices.Sorted(maps.Values(want)) {
		if next, moves := want[to]; moves {
			temp := x.free("renamed", taken)
			if err := x.renameTo(to, temp); err != nil {
				return err
			}
			delete(want, to)
			want[temp] = next
		}
	}
	for _, from := range slices.Sorted(maps.Keys(want)) {
		if err := x.renameTo(from, want[from]); err != nil {
			return err
		}
	}
	return nil
}

// derived reports whether a name is another name with a number after it, as galleryIndex.free makes them.
func (x *reconciling) derived(name, from string) bool {
	var n int
	short := []rune(from)
	_, err := fmt.Sscanf(name, string(short[:min(len(short), 90)])+" (%d)", &n)
	return err == nil
}

func (x *reconciling) renameTo(from, to string) error {
	if err := x.rename(from, to); err != nil {
		return err
	}
	id := x.owners[from]
	delete(x.owners, from)
	x.own(id, to)
	x.Took++
	return nil
}
