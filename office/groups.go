// SPDX-License-Identifier: Apache-2.0

package office

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/faceauth/faceauth/face"
)

// Errors of corrections to groups of unknown faces.
var (
	ErrNoGroup    = errors.New("no such group of unknown faces")
	ErrNotInGroup = errors.New("no such face in the group")
	ErrAll        = errors.New("a group keeps at least one of its faces")
)

// StrangerSettings of groups. A zero field means the default.
type StrangerSettings struct {
	Groups  int // greatest number of groups; the one not seen for longest is removed. Default 50
	Ignored int // greatest number of ignored groups. Default 50
	Faces   int // greatest number of faces of a group. Default 24
	// Greatest distance of a face to its group, in units of the space. Default: 0.75 times the impostor radius.
	Near      float64
	Apart     float64       // a face nearer than this to one of the group is ignored. Default: a third of Near
	Retention time.Duration // a group that is not seen for this time is removed, unless it is ignored. Default 30 days
}

func (s StrangerSettings) defaults(space face.Space) StrangerSettings {
	s.Groups = cmp.Or(s.Groups, 50)
	s.Ignored = cmp.Or(s.Ignored, 50)
	s.Faces = max(firstFaces, cmp.Or(s.Faces, 24))
	s.Near = cmp.Or(s.Near, .75*space.ImpostorRadius)
	s.Apart = cmp.Or(s.Apart, s.Near/3)
	s.Retention = cmp.Or(s.Retention, 30*24*time.Hour)
	return s
}

// Group is a person without a name.
type Group struct {
	ID      uint64    `cbor:"id"`
	Album   Album     `cbor:"album"`
	First   time.Time `cbor:"first"` // time of the first sighting
	Last    time.Time `cbor:"last"`
	Visits  int       `cbor:"visits"`  // number of times that they came into view
	Ignored bool      `cbor:"ignored"` // a user ignores them
}

// groups stores the faces of people without a name, in groups, so that a user can name them, and so that the same
// stranger is found again. The numbers of groups and of faces are limited; groups that are not seen for a long time are
// removed. One goroutine may use it at a time.
type groups struct {
	s      StrangerSettings
	space  face.Space
	begun  uint64 // number of the last group
	off    bool
	groups []*Group
}

// newGroups returns an empty set for faces of a space. Without an impostor radius, no face is recognised again.
func newGroups(space face.Space, s StrangerSettings) *groups {
	return &groups{s: s.defaults(space), space: space}
}

// Keeps reports whether strangers are kept.
func (g *groups) Keeps() bool { return !g.off }

// Keep sets whether strangers are kept. Off removes all groups that are not ignored.
func (g *groups) Keep(on bool) {
	g.off = !on
	if g.off {
		g.remove(func(p *Group) bool { return !p.Ignored })
	}
}

func (g *groups) remove(gone func(*Group) bool) {
	g.groups = slices.DeleteFunc(g.groups, gone)
}

// Last returns the number of the newest group.
func (g *groups) Last() uint64 { return g.begun }

// Skip marks numbers of groups up to one as used: a killed program may have used them before it could save.
func (g *groups) Skip(group uint64) { g.begun = max(g.begun, group) }

// All returns a copy of the groups, the last seen group first. Do not change the vectors and pictures, which are
// shared.
func (g *groups) All() []Group {
	all := make([]Group, len(g.groups))
	for i, p := range g.groups {
		all[i] = p.copy()
	}
	slices.SortStableFunc(all, func(a, b Group) int { return b.Last.Compare(a.Last) })
	return all
}

func (p *Group) copy() Group {
	c := *p
	c.Album.Faces = slices.Clone(p.Album.Faces)
	return c
}

// Load adds the groups of an earlier run. Faces that do not fit the feature space are left out, and so are groups
// without faces.
func (g *groups) Load(all []Group) {
	for _, p := range all {
		p = p.copy()
		p.Album.Faces = slices.DeleteFunc(p.Album.Faces, func(f Face) bool { return g.space.Check(f.Vector) != nil })
		if over := len(p.Album.Faces) - g.s.Faces; over > 0 { // the limit was larger before
			p.Album.Faces = p.Album.Faces[:g.s.Faces]
		}
		if len(p.Album.Faces) == 0 {
			continue
		}
		g.Skip(p.ID)
		g.groups = append(g.groups, &p)
	}
	g.shed(0)
}

// Get returns a copy of a group. The error wraps [ErrNoGroup].
func (g *groups) Get(id uint64) (Group, error) {
	p, err := g.group(id)
	if err != nil {
		return Group{}, err
	}
	return p.copy(), nil
}

// Has reports whether a group is there.
func (g *groups) Has(id uint64) bool {
	_, err := g.group(id)
	return err == nil
}

// JPEG returns the picture of a face of any group, or nil.
func (g *groups) JPEG(face uint64) []byte {
	for _, p := range g.groups {
		if f, there := p.Album.Find(face); there {
			return f.JPEG
		}
	}
	return nil
}

// Ignored reports whether a group exists and is ignored.
func (g *groups) Ignored(id uint64) bool {
	p, err := g.group(id)
	return err == nil && p.Ignored
}

func (g *groups) group(id uint64) (*Group, error) {
	for _, p := range g.groups {
		if p.ID == id {
			return p, nil
		}
	}
	return nil, fmt.Errorf("%w: %d; it may have been named, merged or forgotten", ErrNoGroup, id)
}

// Find returns the group to which most of the faces belong, or 0.
func (g *groups) Find(faces []Face) uint64 {
	votes := make(map[uint64]int)
	for _, f := range faces {
		best, at := g.s.Near, uint64(0)
		for _, p := range g.groups {
			if d := p.Album.Distance(g.space, f.Vector); d < best {
				best, at = d, p.ID
			}
		}
		votes[at]++
	}
	delete(votes, 0)
	var found uint64
	for id, n := range votes {
		if 2*n > len(faces) && (found == 0 || n > votes[found]) {
			found = id
		}
	}
	return found
}

// Begin makes a group of faces, in the order in which they were seen, and returns its number. It returns 0 if strangers
// are not kept or there are no faces.
func (g *groups) Begin(faces []Face) uint64 {
	if g.off || len(faces) == 0 {
		return 0
	}
	g.begun++
	p := &Group{ID: g.begun, First: faces[0].At}
	g.groups = append(g.groups, p)
	for _, f := range faces {
		g.add(p, f)
	}
	p.Visits = 1
	g.own(p)
	g.shed(p.ID)
	return p.ID
}

func (g *groups) own(p *Group) {
	theirs := func(f Face) bool {
		_, of := p.Album.Find(f.ID)
		return of
	}
	for _, q := range g.groups {
		if q != p && slices.ContainsFunc(q.Album.Faces, theirs) {
			q.Album.Faces = slices.DeleteFunc(slices.Clone(q.Album.Faces), theirs)
		}
	}
	g.remove(func(q *Group) bool { return len(q.Album.Faces) == 0 })
}

// Visit records that a group has come into view.
func (g *groups) Visit(id uint64) error {
	p, err := g.group(id)
	if err == nil {
		p.Visits++
	}
	return err
}

// Add adds a face to a group. The error wraps [ErrNoGroup].
func (g *groups) Add(id uint64, f Face) error {
	p, err := g.group(id)
	if err == nil {
		g.add(p, f)
	}
	return err
}

func (g *groups) add(p *Group, f Face) {
	if !p.Ignored { // enough faces are known of an ignored person
		p.Album.Add(g.space, f, g.s.Faces, g.s.Apart)
	}
	if f.At.After(p.Last) {
		p.Last = f.At
	}
}

// shed removes the groups beyond the limits, but not the given one.
func (g *groups) shed(but uint64) {
	for _, ignored := range []bool{false, true} {
		room := g.s.Groups
		if ignored {
			room = g.s.Ignored
		}
		for {
			n, oldest := 0, -1
			for i, p := range g.groups {
				if p.Ignored != ignored {
					continue
				}
				n++
				if p.ID != but && (oldest < 0 || p.Last.Before(g.groups[oldest].Last)) {
					oldest = i
				}
			}
			if n <= room || oldest < 0 {
				break
			}
			g.groups = slices.Delete(g.groups, oldest, oldest+1)
		}
	}
}

// Expire removes the groups that were not seen within the retention time.
func (g *groups) Expire(now time.Time) {
	g.remove(func(p *Group) bool { return !p.Ignored && now.Sub(p.Last) > g.s.Retention })
}

// Forget removes a group. The error wraps [ErrNoGroup].
func (g *groups) Forget(id uint64) error {
	if _, err := g.group(id); err != nil {
		return err
	}
	g.remove(func(p *Group) bool { return p.ID == id })
	return nil
}

// Ignore sets whether a group is ignored. The error wraps [ErrNoGroup].
func (g *groups) Ignore(id uint64, ignored bool) error {
	p, err := g.group(id)
	if err != nil {
		return err
	}
	p.Ignored = ignored
	g.shed(id)
	return nil
}

// Merge merges the group from into the group into. The error wraps [ErrNoGroup].
func (g *groups) Merge(into, from uint64) error {
	p, err := g.group(into)
	if err != nil {
		return err
	}
	q, err := g.group(from)
	if err != nil || into == from {
		return err
	}
	for _, f := range q.Album.Faces {
		p.Album.Add(g.space, f, g.s.Faces, 0)
	}
	if q.First.Before(p.First) {
		p.First = q.First
	}
	if q.Last.After(p.Last) {
		p.Last = q.Last
	}
	p.Visits += q.Visits
	return g.Forget(from)
}

// Restore restores an earlier state of a group; newer faces of the group stay. If strangers are not kept it does
// nothing.
func (g *groups) Restore(was Group) {
	if g.off || was.ID == 0 || len(was.Album.Faces) == 0 {
		return
	}
	g.Skip(was.ID)
	back := was.copy()
	if now, err := g.group(was.ID); err == nil {
		for _, f := range now.Album.Faces {
			back.Album.Add(g.space, f, g.s.Faces, g.s.Apart)
		}
		if now.Last.After(back.Last) {
			back.Last = now.Last
		}
		*now = back
	} else {
		g.groups = append(g.groups, &back)
		g.shed(was.ID)
	}
}

// Own removes the faces of a group from all other groups: a face belongs to one group only.
func (g *groups) Own(id uint64) {
	if p, err := g.group(id); err == nil {
		g.own(p)
	}
}

// Take removes faces from a group, and an empty group. The error wraps [ErrNoGroup].
func (g *groups) Take(id uint64, faces func(f Face) bool) error {
	p, err := g.group(id)
	if err != nil {
		return err
	}
	p.Album.Faces = slices.DeleteFunc(slices.Clone(p.Album.Faces), faces)
	if len(p.Album.Faces) == 0 {
		return g.Forget(id)
	}
	return nil
}

// Alike reports whether most faces of a group are near those of another.
func (g *groups) Alike(a, b uint64) bool {
	p, err := g.group(a)
	if err != nil {
		return false
	}
	q, err := g.group(b)
	if err != nil {
		return false
	}
	near := 0
	for _, f := range q.Album.Faces {
		if p.Album.Distance(g.space, f.Vector) < g.s.Near {
			near++
		}
	}
	return 2*near > len(q.Album.Faces)
}

// Split moves some faces of a group into a new group, and returns its number. The error wraps [ErrNoGroup],
// [ErrNotInGroup], or [ErrAll] if one of the two groups would be empty; g is then unchanged.
func (g *groups) Split(id uint64, faces []uint64) (uint64, error) {
	p, err := g.group(id)
	if err != nil {
		return 0, err
	}
	var stay, leave []Face
	for _, f := range p.Album.Faces {
		if slices.Contains(faces, f.ID) {
			leave = append(leave, f)
		} else {
			stay = append(stay, f)
		}
	}
	for _, id := range faces {
		if !slices.ContainsFunc(leave, func(f Face) bool { return f.ID == id }) {
			return 0, fmt.Errorf("%w: %d", ErrNotInGroup, id)
		}
	}
	if len(stay) == 0 || len(leave) == 0 {
		return 0, ErrAll
	}
	p.Album.Faces = stay
	g.begun++
	q := &Group{ID: g.begun, Album: Album{leave}, First: leave[0].At, Last: p.Last, Visits: 1, Ignored: p.Ignored}
	g.groups = append(g.groups, q)
	g.shed(q.ID)
	return q.ID, nil
}
