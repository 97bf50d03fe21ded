// SPDX-License-Identifier: Apache-2.0

package quantized

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
)

// ErrJournal is wrapped by the error of [Graph.Undo] for a moment that the journal does not reach.
var ErrJournal = errors.New("further back than the journal reaches")

// Moment says when a point came.
type Moment struct {
	Observation int64 // a number of the caller's that never falls
	Time        int64 // seconds since 1970; 0 for unknown
}

// Origin says where a vertex comes from.
type Origin struct {
	ID     int64   // of the vertex, never used again; counts from 1
	Moment         // when its own point was kept; zero for a labelled vertex
	Via    int64   // ID of the vertex through which its own point was accepted; 0 for none
	Hops   int     // vertices on the way from a labelled one, along Via; 0 for a labelled vertex
	Own    float64 // points that were kept as its own; 0 for a labelled vertex
	Born   float64 // half-lives that had passed before that
}

// A journal remembers, for the last points that were taken in by a vertex, which vertex that was. The point
// at which a vertex lies is not in it: its Origin tells.
type journal struct {
	entries []entry // a ring once it is full
	next    int     // where the next one goes
	lost    Moment  // the latest of the entries that were overwritten
}

// An entry is a point that lies at a vertex which is not its own.
type entry struct {
	Moment
	vertex int64   // ID of the vertex
	id     int64   // ID of the vertex that the point once was, before a repartition; 0 for none
	via    int64   // ID of the vertex through which it was accepted; 0 for none
	count  float64 // points that were kept as this one
	born   float64 // half-lives that had passed before that
}

func (j *journal) add(size int, e entry) {
	switch {
	case size == 0:
		j.lose(e.Moment)
	case len(j.entries) < size:
		j.entries = append(j.entries, e)
	default:
		j.lose(j.entries[j.next].Moment)
		j.entries[j.next] = e
		j.next = (j.next + 1) % size
	}
}

func (j *journal) lose(m Moment) {
	j.lost.Observation = max(j.lost.Observation, m.Observation)
	j.lost.Time = max(j.lost.Time, m.Time)
}

// straighten puts the oldest entry first.
func (j *journal) straighten() {
	slices.Reverse(j.entries[:j.next])
	slices.Reverse(j.entries[j.next:])
	slices.Reverse(j.entries)
	j.next = 0
}

// resize makes room for another number of entries, and loses the oldest where there are more.
func (j *journal) resize(size int) {
	j.straighten()
	for _, e := range j.entries[:max(len(j.entries)-size, 0)] {
		j.lose(e.Moment)
	}
	j.entries = slices.Delete(j.entries, 0, max(len(j.entries)-size, 0))
}

// filter drops the entries of which keep is false, and leaves the others in the order in which they
// came.
func (j *journal) filter(keep func(entry) bool) {
	j.straighten()
	j.entries = slices.DeleteFunc(j.entries, func(e entry) bool { return !keep(e) })
}

// vertex returns the vertex of that ID, or -1.
func (g *Graph) vertex(id int64) int {
	i, there := slices.BinarySearchFunc(g.origin, id, func(o Origin, id int64) int { return cmp.Compare(o.ID, id) })
	if !there {
		return -1
	}
	return i
}

// rewrite brings the journal up to date with a partition: the points at i go to to[i].
func (g *Graph) rewrite(to []int) {
	home := make(map[int64]int64)
	for i, j := range to {
		if i != j {
			home[g.origin[i].ID] = g.origin[j].ID
		}
	}
	for q, e := range g.journal.entries {
		if id, moved := home[e.vertex]; moved {
			g.journal.entries[q].vertex = id
		}
	}
	for i, j := range to {
		if o := g.origin[i]; i != j {
			g.journal.add(g.c.Journal, entry{o.Moment, g.origin[j].ID, o.ID, o.Via, o.Own, o.Born})
		}
	}
}

// Undo takes back every point that was kept with a larger observation number than since, and returns
// how many points are gone. A vertex whose own point is taken back goes with all that it stands for:
// older points that a repartition had merged into it, too. Labelled vertices and R stay.
//
// The error wraps [ErrJournal] when the journal does not reach back so far; g has then not changed.
func (g *Graph) Undo(since int64) (points float64, err error) {
	if since < g.journal.lost.Observation {
		return 0, fmt.Errorf("%w: to observation %d, and not to %d", ErrJournal, g.journal.lost.Observation, since)
	}
	// What was accepted through a later vertex is later, too: nothing else goes.
	return g.Unlearn(func(observation int64) bool { return observation > since }), nil
}

// Unlearn takes back, as [Graph.Undo] does, every point that was kept with an observation number of which gone is true,
// and every point that was accepted through one that is taken back, whether either still is a vertex of its own or was
// merged into another one since. It returns how many points are gone. Points that go only because the vertex that took
// them in goes were not taken back themselves: what was accepted through them stays.
//
// A point that was merged into another vertex longer ago than the journal reaches stays there, and so does what was
// accepted through it. What was accepted through a vertex that has been removed, or has faded since, stays as well.
func (g *Graph) Unlearn(gone func(observation int64) bool) (points float64) {
	return g.unlearn(make(map[int64]bool), func(_, observation int64) bool { return gone(observation) })
}

// UnlearnVertex takes back the own point of a learned vertex, as [Graph.Unlearn] does.
func (g *Graph) UnlearnVertex(i int) (points float64) {
	own := g.origin[i].ID
	return g.unlearn(make(map[int64]bool), func(id, _ int64) bool { return id == own })
}

// UnlearnThrough takes back every point that was accepted through one of the vertices of these IDs, and what was
// accepted through that, as [Graph.Unlearn] does. The vertices themselves stay where they are labelled.
func (g *Graph) UnlearnThrough(ids ...int64) (points float64) {
	spoilt := make(map[int64]bool)
	for _, id := range ids {
		spoilt[id] = true
	}
	return g.unlearn(spoilt, func(int64, int64) bool { return false })
}

// unlearn takes back the points of which gone is true, and what was accepted through them or through a vertex that is
// spoilt. ID is the ID of the vertex that a point is or was, or 0.
func (g *Graph) unlearn(spoilt map[int64]bool, gone func(id, observation int64) bool) (points float64) {
	// Points that are or once were vertices, in the order of their IDs: a point is younger than the one through which it
	// came.
	type point struct {
		id, via, observation int64
	}
	var once []point
	for i, o := range g.origin {
		if g.label[i] == unlabelled {
			once = append(once, point{o.ID, o.Via, o.Observation})
		}
	}
	for _, e := range g.journal.entries {
		if e.id != 0 {
			once = append(once, point{e.id, e.via, e.Observation})
		}
	}
	slices.SortFunc(once, func(a, b point) int { return cmp.Compare(a.id, b.id) })
	for _, p := range once {
		if gone(p.id, p.observation) || spoilt[p.via] {
			spoilt[p.id] = true
		}
	}
	g.journal.filter(func(e entry) bool {
		if !gone(e.id, e.Observation) && !spoilt[e.id] && !spoilt[e.via] {
			return true
		}
		if i := g.vertex(e.vertex); !spoilt[e.vertex] || g.label[i] != unlabelled {
			g.count[i] -= e.count
			points += e.count
			// Rounding must not leave a vertex less than its own point, nor more than all its points.
			g.v[i] = min(max(g.v[i]-e.count*g.left(e.born), g.own(i)), g.count[i])
		}
		return false
	})
	var kept []int
	for i, o := range g.origin {
		if g.label[i] != unlabelled || !spoilt[o.ID] {
			kept = append(kept, i)
		} else {
			points += g.count[i]
		}
	}
	g.stamp++
	g.erase(kept)
	return points
}

// Since returns the number of the last observation before the first one that was kept after a time, in
// seconds since 1970, or the largest number where none was. With it, [Graph.Undo] takes back what came
// after that time; it fails where the journal does not reach back so far. A point whose time is unknown
// does not count as later.
func (g *Graph) Since(time int64) int64 {
	since := int64(math.MaxInt64)
	see := func(m Moment) {
		if m.Time != 0 && m.Time > time {
			since = min(since, m.Observation-1)
		}
	}
	see(g.journal.lost)
	for _, e := range g.journal.entries {
		see(e.Moment)
	}
	for _, o := range g.origin {
		see(o.Moment)
	}
	return since
}
