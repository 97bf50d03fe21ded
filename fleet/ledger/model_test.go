// SPDX-License-Identifier: Apache-2.0

package ledger_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/faceauth/faceauth/fleet/ledger"
)

// logged is an entry in the log of the model: the first entry that was delivered at a place.
type logged struct {
	seq  uint64
	data []byte
}

// said is an entry that counts.
type said struct {
	seq     uint64
	e       ledger.Entry
	content any // nil if its key does not open it
}

// model is the slow, obvious ledger: it keeps every entry that counts, and looks through all of them for each question.
type model struct {
	fleet string
	all   []said
	last  map[string]uint64
	gone  map[ledger.ID]bool
}

// runModel applies a log with all keys.
func runModel(fleet string, log []logged, key func(ledger.ID, ledger.KeyID) (ledger.Key, bool)) *model {
	m := &model{fleet: fleet, last: make(map[string]uint64), gone: make(map[ledger.ID]bool)}
	for _, x := range log {
		e, err := ledger.Parse(x.data)
		if err != nil || !m.member(e.Device) || e.N <= m.last[e.Device] || e.Verify(fleet) != nil {
			continue
		}
		m.last[e.Device] = e.N
		var content any
		if e.Kind.Sealed() {
			if k, ok := key(e.Person, e.Key); ok {
				content, _ = e.Open(fleet, k)
			}
		} else if e.Kind != ledger.Merge {
			if content, err = e.Content(); err != nil {
				continue
			}
		}
		if !m.counts(e, content) {
			continue
		}
		m.all = append(m.all, said{x.seq, e, content})
		if f, ok := content.(ledger.Forgetting); ok {
			m.gone[e.Person] = true
			for _, id := range f.Also {
				m.gone[id] = true
			}
		}
	}
	return m
}

// purge returns a log without the entries about people from before they were forgotten.
func (m *model) purge(log []logged) []logged {
	until := make(map[ledger.ID]uint64)
	for _, s := range m.all {
		if f, ok := s.content.(ledger.Forgetting); ok {
			for _, id := range append([]ledger.ID{s.e.Person}, f.Also...) {
				until[id] = max(until[id], s.seq)
			}
		}
	}
	// A forgetting that counts stays, also if a later one names the same person.
	return slices.DeleteFunc(slices.Clone(log), func(x logged) bool {
		e, err := ledger.Parse(x.data)
		return err == nil && e.Kind != ledger.Forget && x.seq < until[e.Person]
	})
}

func (m *model) admission(device string) (a ledger.Admission, member bool) {
	for _, s := range m.all {
		switch c := s.content.(type) {
		case ledger.Admission:
			if c.Device == device {
				a, member = c, true
			}
		case ledger.Revocation:
			if c.Device == device {
				member = false
			}
		}
	}
	return a, member
}

func (m *model) member(device string) bool {
	_, ok := m.admission(device)
	return ok || device == m.fleet
}

func (m *model) known(id ledger.ID) (creator string, known bool) {
	for _, s := range m.all {
		if !m.gone[id] && s.e.Person == id && (s.e.Kind == ledger.Label || s.e.Kind == ledger.Name) {
			return s.e.Device, true
		}
	}
	return "", false
}

func (m *model) writes(device string, id ledger.ID) bool {
	a, _ := m.admission(device)
	creator, known := m.known(id)
	return a.Scope.All || slices.Contains(a.Scope.People, id) || !known || creator == device
}

func (m *model) everMember(device string) bool {
	return slices.ContainsFunc(m.all, func(s said) bool {
		a, ok := s.content.(ledger.Admission)
		return ok && a.Device == device
	})
}

func (m *model) muted(device string) (muted bool) {
	for _, s := range m.all {
		if w, ok := s.content.(ledger.Withdrawal); ok && w.Device == device {
			muted = w.Mute
		}
	}
	return muted
}

// replaced reports whether s was replaced by a later lesson, or withdrawn, by an entry before seq.
func (m *model) replaced(s said) bool {
	if s.e.Kind != ledger.Lessons {
		return false
	}
	return slices.ContainsFunc(m.all, func(o said) bool {
		if w, ok := o.content.(ledger.Withdrawal); ok && w.Device == s.e.Device && o.seq > s.seq {
			return true
		}
		return o.e.Kind == ledger.Lessons && o.seq > s.seq && o.e.Device == s.e.Device && o.e.Person == s.e.Person &&
			s.e.Part >= o.e.Part
	})
}

// outdated reports whether a lesson that was learned through these sources does not count.
func (m *model) outdated(sources []string) bool {
	return slices.ContainsFunc(sources, func(source string) bool {
		device, place, _ := strings.Cut(source, "@")
		now := ""
		for _, s := range m.all {
			if w, ok := s.content.(ledger.Withdrawal); ok && w.Device == device {
				now = fmt.Sprint(s.seq)
			}
		}
		return !m.everMember(device) || place != now
	})
}

func (m *model) undone(s said) bool {
	return slices.ContainsFunc(m.all, func(o said) bool {
		what, ok := o.content.(ledger.Ref)
		return ok && what == s.e.Ref() && o.e.Person == s.e.Person
	})
}

func (m *model) counts(e ledger.Entry, content any) bool {
	sealed := e.Kind.Sealed()
	if sealed || e.Kind == ledger.Merge || e.Kind == ledger.Undo {
		_, known := m.known(e.Person)
		if m.gone[e.Person] || !m.writes(e.Device, e.Person) ||
			!known && e.Kind != ledger.Label && e.Kind != ledger.Name {
			return false
		}
	}
	switch e.Kind {
	case ledger.Lessons:
		return !m.muted(e.Device)
	case ledger.Merge:
		_, known := m.known(e.Other)
		return known && !m.gone[e.Other] && m.writes(e.Device, e.Other)
	case ledger.Undo:
		for _, s := range m.all {
			k := s.e.Kind
			if s.e.Ref() == content.(ledger.Ref) && s.e.Person == e.Person &&
				(k.Sealed() || k == ledger.Merge && !m.gone[s.e.Other]) &&
				!m.replaced(s) {
				return !m.undone(s)
			}
		}
		return false
	case ledger.Forget:
		fresh := false
		for _, id := range append([]ledger.ID{e.Person}, content.(ledger.Forgetting).Also...) {
			if !m.writes(e.Device, id) {
				return false
			}
			fresh = fresh || !m.gone[id]
		}
		return fresh
	case ledger.Withdraw:
		w := content.(ledger.Withdrawal)
		a, _ := m.admission(e.Device)
		return m.everMember(w.Device) && (a.Scope.All || e.Device == w.Device)
	case ledger.Revoke:
		return m.member(content.(ledger.Revocation).Device)
	}
	return true
}

// roots returns the number under which each person is known, and the place in the log from which entries about a number
// count for that person.
func (m *model) roots() (root map[ledger.ID]ledger.ID, since map[ledger.ID]uint64) {
	root, since = make(map[ledger.ID]ledger.ID), make(map[ledger.ID]uint64)
	for _, s := range m.all {
		if _, known := m.known(s.e.Person); known && s.e.Kind.Sealed() {
			root[s.e.Person] = s.e.Person
		}
	}
	for _, s := range m.all {
		if s.e.Kind != ledger.Merge || m.gone[s.e.Person] || m.gone[s.e.Other] || m.undone(s) {
			continue
		}
		from, to := root[s.e.Other], root[s.e.Person]
		if from == to {
			continue
		}
		for id, r := range root {
			if r == from {
				root[id], since[id] = to, max(since[id], s.seq)
			}
		}
	}
	return root, since
}

// people describes all people: the names shown, the faces and the lessons.
func (m *model) people() (all []string) {
	root, since := m.roots()
	type person struct {
		root     ledger.ID
		began    uint64
		name     string
		named    uint64
		faces    []ledger.FaceID
		denied   []ledger.FaceID
		lessons  []string
		anything bool
	}
	people := make(map[ledger.ID]*person)
	for id, r := range root {
		if id == r {
			p := &person{root: r}
			for _, s := range m.all {
				if s.e.Person == r && s.e.Kind.Sealed() && p.began == 0 {
					p.began = s.seq
				}
			}
			people[r] = p
		}
	}
	for _, late := range []bool{false, true} {
		for _, s := range m.all {
			n, ok := s.content.(ledger.Naming)
			if p := people[root[s.e.Person]]; p != nil && ok && !m.undone(s) && late == (s.seq > since[s.e.Person]) {
				if late || p.named < s.seq || p.name == "" {
					p.name, p.named = n.Name, s.seq
				}
			}
		}
	}
	without := func(ids []ledger.FaceID, id ledger.FaceID) []ledger.FaceID {
		return slices.DeleteFunc(ids, func(x ledger.FaceID) bool { return x == id })
	}
	for _, s := range m.all {
		p := people[root[s.e.Person]]
		if p == nil || !s.e.Kind.Sealed() || m.undone(s) || m.replaced(s) {
			continue
		}
		p.anything = true
		switch c := s.content.(type) {
		case ledger.Faces:
			for _, f := range c.Faces {
				id := ledger.NewFaceID(c.Space, f.Vector)
				p.denied = without(p.denied, id)
				if s.e.Kind == ledger.Deny {
					p.faces, p.denied = without(p.faces, id), append(p.denied, id)
				} else if !slices.Contains(p.faces, id) {
					p.faces = append(p.faces, id)
				}
			}
		case ledger.Refs:
			for _, id := range c.Faces {
				p.faces = without(p.faces, id)
			}
		case ledger.Lesson:
			if m.outdated(c.Through) {
				continue
			}
			for _, x := range c.Centroids {
				p.lessons = append(p.lessons, taught(s.e.Device, x, c.Through))
			}
		}
	}
	var order []*person
	for _, p := range people {
		if p.anything {
			order = append(order, p)
		}
	}
	slices.SortFunc(order, func(a, b *person) int { return int(a.named) - int(b.named) })
	shown, used := make(map[*person]string), make(map[string]bool)
	for _, p := range order {
		if p.name == "" {
			continue
		}
		s := p.name
		for i := 2; used[s]; i++ {
			s = fmt.Sprintf("%s (%d)", p.name, i)
		}
		shown[p], used[s] = s, true
	}
	slices.SortFunc(order, func(a, b *person) int { return int(a.began) - int(b.began) })
	for _, p := range order {
		if n := len(p.denied); n > ledger.MaxDenied {
			p.denied = p.denied[n-ledger.MaxDenied:]
		}
		slices.Sort(p.lessons)
		all = append(all,
			fmt.Sprintf("%s %q faces %v denied %v lessons %v", p.root, shown[p], p.faces, p.denied, p.lessons))
	}
	return all
}

func taught(device string, c ledger.Centroid, through []string) string {
	return fmt.Sprintf("%s:%v:%v:%v", device[:6], c.Vector, c.Multiplicity, through)
}

// describe describes the people of a ledger in the format of the model.
func describe(people []ledger.Person) (all []string) {
	for _, p := range people {
		var faces, denied []ledger.FaceID
		for _, f := range p.Faces {
			faces = append(faces, f.ID)
		}
		for _, f := range p.Denied {
			denied = append(denied, f.ID)
		}
		var lessons []string
		for _, l := range p.Lessons {
			for _, x := range l.Centroids {
				lessons = append(lessons, taught(l.Device, x, l.Through))
			}
		}
		slices.Sort(lessons)
		all = append(all, fmt.Sprintf("%s %q faces %v denied %v lessons %v", p.ID, p.Shown, faces, denied, lessons))
	}
	return all
}

func lines(all []string) string { return strings.Join(all, "\n") }
