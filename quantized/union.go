// SPDX-License-Identifier: Apache-2.0

package quantized

import (
	"fmt"
	"slices"
)

// Union joins a graph and centroids of other graphs (guests). Points are judged with both. The graph itself does not
// change.
//
// The harmonic solution is computed on the vertices of the graph and the guests, which are unlabelled. All edges follow
// the configuration of the graph. A Union follows its graph: each call sees the present graph.
type Union struct {
	own    *Graph
	guests []Summary
	all    *Graph  // first the guests, then the vertices of own
	ids    []int64 // IDs of the vertices of own
	// followers maps IDs of own vertices to the guests that follow them.
	followers map[int64][]int
	linked    int // changes of the contracted edges of own that all has
}

// Union returns the union of g with centroids of other graphs. Their points must not change. The error wraps [ErrFull]
// if there are too many edges. It panics on a point of another dimension.
func (g *Graph) Union(guests []Summary) (*Union, error) {
	u := &Union{own: g, guests: guests, followers: make(map[int64][]int)}
	for i, s := range guests {
		for _, id := range s.Follows {
			u.followers[id] = append(u.followers[id], i)
		}
	}
	return u, u.follow()
}

// Len returns the number of guests.
func (u *Union) Len() int { return len(u.guests) }

// Weigh sets the multiplicity of guest i.
func (u *Union) Weigh(i int, multiplicity float64) {
	u.guests[i].Multiplicity = max(multiplicity, lightest)
}

// Look tries a point as [Graph.Look] does. Follows has IDs of vertices of the graph, and others has numbers of guests.
// The error wraps [ErrPoint], or [ErrFull] if there are too many edges.
func (u *Union) Look(x []float32, s Sight, follows []int64, others []int) (Trial, error) {
	if err := u.follow(); err != nil {
		return Trial{}, err
	}
	linked := u.own.standIns(follows)
	for q := range linked {
		linked[q] += len(u.guests)
	}
	return u.all.look(x, s, append(linked, others...))
}

// follow updates u after changes of its graph. Vertices never move, and their IDs only grow, so the list of IDs shows
// all changes of vertices.
func (u *Union) follow() error {
	if u.all == nil || u.all.c != u.own.c {
		if err := u.begin(); err != nil {
			u.all = nil
			return err
		}
	}
	own, all, n := u.own, u.all, len(u.guests)
	if err := u.replace(); err != nil {
		u.all = nil
		return err
	}
	if u.linked != own.linked {
		u.relink()
	}
	for i, s := range u.guests {
		all.v[i] = s.Multiplicity
	}
	copy(all.v[n:], own.v)
	copy(all.label[n:], own.label)
	all.r, all.spread, all.classes = own.r, own.spread, own.classes
	all.stamp++
	return nil
}

// relink takes over the contracted edges of the graph.
func (u *Union) relink() {
	all, n := u.all, len(u.guests)
	id := func(own int64) int64 { return all.origin[n+u.own.vertex(own)].ID }
	now := make(map[[2]int64]Link, len(u.own.contracted))
	for _, l := range u.own.contracted {
		l = Link{A: id(l.A), B: id(l.B)}
		now[l.ends()] = l
	}
	all.cut(func(l Link) bool { _, there := now[l.ends()]; return !there })
	for at, l := range now {
		if _, there := all.contracted[at]; there {
			continue
		}
		if _, edge := all.edges.find(all.vertex(l.A), all.vertex(l.B)); edge { // it came with a new vertex
			all.note(l)
		} else {
			all.join(l)
		}
	}
	u.linked = u.own.linked
}

// begin makes the union of the guests alone.
func (u *Union) begin() (err error) {
	if u.all, err = New(u.own.c); err != nil {
		return err
	}
	u.linked = -1 // all has no contracted edges yet
	u.ids = u.ids[:0]
	for i, s := range u.guests {
		square, err := u.all.take(s.Point)
		if err != nil {
			return err
		}
		near := slices.Clone(u.all.near(u.all.probe, square))
		var follows []int
		for _, j := range s.Links {
			if j < i && !slices.ContainsFunc(near, func(e edge) bool { return e.to == j }) {
				follows = append(follows, j)
			}
		}
		if err := u.add(square, merge(near, u.all.links(square, follows)), unlabelled); err != nil {
			return err
		}
	}
	return nil
}

// add adds a vertex at the current point.
func (u *Union) add(square float64, near []edge, class int) error {
	if !u.all.edges.fit(len(near)) {
		return fmt.Errorf("%w: there are too many points within the edge radius of each other", ErrFull)
	}
	u.all.add(square, near, class)
	return nil
}

// replace removes vertices that were removed from the graph, and adds new vertices.
func (u *Union) replace() error {
	own, all, n := u.own, u.all, len(u.guests)
	if len(u.ids) > 0 && (len(own.origin) < len(u.ids) || own.origin[len(u.ids)-1].ID != u.ids[len(u.ids)-1]) {
		kept := make([]int, n, all.Len())
		for i := range kept {
			kept[i] = i
		}
		left, at := u.ids[:0], 0
		for q, id := range u.ids {
			for at < len(own.origin) && own.origin[at].ID < id {
				at++
			}
			if at < len(own.origin) && own.origin[at].ID == id {
				kept, left = append(kept, n+q), append(left, id)
			}
		}
		all.keep(kept)
		u.ids = left
	}
	for i := len(u.ids); i < own.Len(); i++ {
		copy(all.probe, own.points.at(i))
		var near []edge
		for j := range n {
			d := all.measure(all.probe, own.squares[i], j)
			w := all.c.weight(d, all.reach)
			if w == 0 && d > all.reach && slices.Contains(u.followers[own.origin[i].ID], j) {
				w = all.c.LinkWeight(d)
			}
			if w > 0 {
				near = append(near, edge{j, w, d})
			}
		}
		for _, e := range own.edges.of[i] {
			if e.to < i {
				near = append(near, edge{n + e.to, e.w, e.d})
			}
		}
		if err := u.add(own.squares[i], near, own.label[i]); err != nil {
			return err
		}
		u.ids = append(u.ids, own.origin[i].ID)
	}
	return nil
}
