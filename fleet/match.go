// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"maps"
	"slices"

	"github.com/faceauth/faceauth/fleet/ledger"
	"github.com/faceauth/faceauth/graph"
	"github.com/faceauth/faceauth/online"
)

func (x *reconciling) own(id ledger.ID, name string) {
	x.at[id], x.owners[name] = name, id
}

// match finds out who in the gallery is who in the fleet, and removes whom the fleet has no more.
func (x *reconciling) match() error {
	var gone []string
	x.next.Forgotten = slices.Clone(x.had.Forgotten)
	shared := slices.SortedFunc(maps.Keys(x.had.People), func(a, b ledger.ID) int { return slices.Compare(a[:], b[:]) })
	for _, id := range shared {
		h := x.had.People[id]
		if x.d.now().Forgotten(id) {
			x.next.Forgotten = append(x.next.Forgotten, h.Faces...)
			x.Forgotten = append(x.Forgotten, h.Name)
		}
		name, renamed := x.find(h)
		x.begun[id] = name
		if name == "" {
			continue
		}
		if x.d.now().Forgotten(id) {
			x.forgetting(name)
		}
		i := slices.IndexFunc(x.all, func(p ledger.Person) bool { return slices.Contains(p.IDs, id) })
		switch {
		case i < 0:
			gone = append(gone, name) // forgotten, or all was undone
		case x.all[i].ID != id && x.alone(x.all[i].ID):
			x.own(x.all[i].ID, name) // it was merged into somebody who is not in the gallery
		case x.all[i].ID != id:
			// It was merged: the faces are the other's now.
			if err := x.publishFaces(x.all[i].ID, &x.all[i], x.people[name], h); err != nil {
				return err
			}
			gone = append(gone, name)
		default:
			if p := &x.all[i]; renamed && x.how.Publish && name != p.Shown && !x.given(p, name) {
				if _, err := x.say(p.ID, ledger.Name, ledger.Naming{Name: name}); err != nil {
					x.refuse("%s is called so in this gallery alone: %v", name, err)
				} else {
					p.Name, p.Shown = name, name
				}
			}
			x.own(id, name)
		}
	}
	// Faces of the forgotten are only in an old gallery.
	forgotten := make(map[ledger.FaceID]bool, len(x.next.Forgotten))
	for _, id := range x.next.Forgotten {
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
	// Others by their faces, and at last by name and likeness.
	with := make(map[ledger.FaceID]string)
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
			if _, known := x.at[p.ID]; known {
				continue
			}
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

// forgetting tells of somebody who is about to be removed.
func (x *reconciling) forgetting(name string) {
	if x.how.Forgetting != nil {
		x.how.Forgetting(name)
	}
}

// given reports whether a person had a name in the fleet once: a gallery with it is an old one.
func (x *reconciling) given(p *ledger.Person, name string) bool {
	return slices.ContainsFunc(p.Names, func(n string) bool { return n == name || x.derived(name, n) })
}

// alone reports whether the gallery has nobody yet who was reconciled with a person of the fleet.
func (x *reconciling) alone(id ledger.ID) bool {
	if _, known := x.at[id]; known {
		return false
	}
	h, shared := x.had.People[id]
	if !shared {
		return true
	}
	name, _ := x.find(h)
	return name == ""
}

// find returns the name that the gallery has now for somebody, or "", and whether its program gave another one.
func (x *reconciling) find(h sharedPerson) (name string, renamed bool) {
	for _, name := range []string{h.Name, h.Next} {
		if p := x.people[name]; name != "" && p != nil {
			if _, owned := x.owners[name]; !owned && x.shares(p, h) > 0 {
				return name, false
			}
		}
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

// shares returns how many of the faces that were shared a person of the gallery has. A person without one is another.
func (x *reconciling) shares(p *shelved, h sharedPerson) (n int) {
	for _, id := range h.Faces {
		if _, ok := p.faces[id]; ok {
			n++
		}
	}
	return n
}

// alike reports whether somebody in the gallery has that name and looks like a face.
func (x *reconciling) alike(name string, f ledger.PersonFace) bool {
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

// names gives people in the gallery the names that the fleet shows, where nobody else there has them.
func (x *reconciling) names() error {
	want := make(map[string]string) // by the name now
	taken := make(map[string]bool)
	for _, p := range x.all {
		now, ok := x.at[p.ID]
		if !ok || p.Shown == "" || online.CheckName(p.Shown) != nil {
			continue
		}
		name := p.Shown
		if _, owned := x.owners[name]; x.people[name] != nil && !owned || taken[name] {
			// Somebody has it whom the fleet does not know.
			if name = now; taken[now] || !x.derived(now, p.Shown) {
				name = x.free(p.Shown, taken)
			}
		}
		taken[name] = true
		if name != now {
			want[now] = name
		}
	}
	for len(want) > 0 {
		moved := false
		for _, from := range slices.Sorted(maps.Keys(want)) {
			to := want[from]
			if x.people[to] != nil {
				continue
			}
			if err := x.move(from, to); err != nil {
				return err
			}
			delete(want, from)
			moved = true
		}
		if moved {
			continue
		}
		// They go round in a circle: one of them makes room.
		from := slices.Min(slices.Collect(maps.Keys(want)))
		temp := x.free("renamed", taken)
		if err := x.move(from, temp); err != nil {
			return err
		}
		want[temp] = want[from]
		delete(want, from)
	}
	return nil
}

// derived reports whether a name is another one with a number after it.
func (x *reconciling) derived(name, from string) bool {
	var n int
	short := []rune(from)
	_, err := fmt.Sscanf(name, string(short[:min(len(short), 90)])+" (%d)", &n)
	return err == nil
}

func (x *reconciling) move(from, to string) error {
	if err := x.rename(from, to); err != nil {
		return err
	}
	id := x.owners[from]
	delete(x.owners, from)
	x.own(id, to)
	x.Took++
	return nil
}
