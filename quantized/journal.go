// SPDX-License-Identifier: Apache-2.0

package quantized

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
)

// ErrJournal is wrapped by the error of [Graph.Undo] if the journal does not reach back so far.
var ErrJournal = errors.New("further back than the journal reaches")

// Moment is the time of a point.
type Moment struct {
	_           struct{} `cbor:",toarray"`
	Observation int64    // a number from the caller, who may keep a point later than the next one
	Time        int64    // seconds since 1970; 0 for unknown
	Source      int64    // what the point came from, a number from the caller; 0 for unknown
}

// Origin says how a vertex was created.
type Origin struct {
	_      struct{} `cbor:",toarray"`
	ID     int64    // of the vertex, never used again; counts from 1
	Moment          // when its own point was kept; zero for a labelled vertex
	Via    int64    // ID of the vertex through which its own point was accepted; 0 for none
	Hops   int      // vertices on the path to a labelled vertex, along Via; 0 for a labelled vertex
}

// A journal remembers for the last merged points into which vertex they were merged. A vertex's own
// point is not in it; its Origin is enough.
type journal struct {
	entries []Entry // the oldest first
	lost    Moment  // the latest of the entries that are there no longer
}

// add adds an entry, and drops the oldest beyond size.
func (j *journal) add(size int, e ...Entry) {
	j.entries = append(j.entries, e...)
	for len(j.entries) > size {
		m := j.entries[0].Moment
		j.lost.Observation = max(j.lost.Observation, m.Observation)
		j.lost.Time = max(j.lost.Time, m.Time)
		j.entries = j.entries[1:]
	}
}

// vertex returns the vertex with this ID, or -1.
func (g *Graph) vertex(id int64) int {
	i, there := slices.BinarySearchFunc(g.origin, id, func(o Origin, id int64) int {
		return cmp.Compare(o.ID, id)
	})
	if !there {
		return -1
	}
	return i
}

// Merged returns where the point is that a former vertex began with, by the ID of that vertex. Ok
// is false if no vertex had this ID, if it is still there, or if the point was merged before the
// journal begins or was taken back.
func (g *Graph) Merged(id int64) (e Entry, ok bool) {
	i := slices.IndexFunc(g.journal.entries, func(e Entry) bool { return e.ID == id && id > 0 })
	if i < 0 {
		return Entry{}, false
	}
	return g.journal.entries[i], true
}

// rewrite updates the journal after a partition: the points at i go to to[i].
func (g *Graph) rewrite(to []int) {
	home := make(map[int64]int64)
	for i, j := range to {
		if i != j {
			home[g.origin[i].ID] = g.origin[j].ID
		}
	}
	for q, e := range g.journal.entries {
		if id, moved := home[e.Vertex]; moved {
			g.journal.entries[q].Vertex = id
		}
	}
	for i, j := range to {
		if o := g.origin[i]; i != j {
			g.journal.add(g.c.Journal, Entry{Moment: o.Moment, Vertex: g.origin[j].ID, ID: o.ID,
				Via: o.Via})
		}
	}
}

// Undo takes back every point with a larger observation number than since, and returns the number
// of points. A vertex whose own point is taken back is removed with all points that it stands for,
// also older points that a repartition merged into it. Labelled vertices and R stay.
//
// The error wraps [ErrJournal] if the journal does not reach back so far. On error g is unchanged.
func (g *Graph) Undo(since int64) (points float64, err error) {
	if since < g.journal.lost.Observation {
		return 0, fmt.Errorf("%w: to observation %d, and not to %d", ErrJournal,
			g.journal.lost.Observation, since)
	}
	// Points accepted through a later vertex go with it. They are later, too, unless their numbers
	// were given earlier.
	return g.Unlearn(func(_ int64, m Moment) bool { return m.Observation > since }), nil
}

// Unlearn takes back every point for which gone returns true, and every point that was accepted
// through it, or through a vertex with one of the other IDs, merged or not; labelled vertices stay.
// ID is the present or former vertex ID of a point, or 0. Unlearn works as [Graph.Undo] and returns
// the number of points. If a point is removed only because its vertex is removed, the points that
// were accepted through it stay.
//
// If a point was merged before the journal begins, it stays, and so do the points accepted through
// it. Points accepted through a vertex that was removed stay as well.
func (g *Graph) Unlearn(gone func(id int64, m Moment) bool, through ...int64) (points float64) {
	spoilt := make(map[int64]bool)
	for _, id := range through {
		spoilt[id] = true
	}
	// Present and former vertices in the order of their IDs. A point is younger than the point
	// through which it was accepted.
	type point struct {
		id, via int64
		Moment
	}
	var once []point
	for i, o := range g.origin {
		if g.label[i] == unlabelled {
			once = append(once, point{o.ID, o.Via, o.Moment})
		}
	}
	for _, e := range g.journal.entries {
		if e.ID != 0 {
			once = append(once, point{e.ID, e.Via, e.Moment})
		}
	}
	slices.SortFunc(once, func(a, b point) int { return cmp.Compare(a.id, b.id) })
	for _, p := range once {
		if gone(p.id, p.Moment) || spoilt[p.via] {
			spoilt[p.id] = true
		}
	}
	g.journal.entries = slices.DeleteFunc(g.journal.entries, func(e Entry) bool {
		if !gone(e.ID, e.Moment) && !spoilt[e.ID] && !spoilt[e.Via] {
			return false
		}
		if !spoilt[e.Vertex] {
			g.v[g.vertex(e.Vertex)]--
			points++
		}
		return true
	})
	taken := func(id int64) bool {
		i := g.vertex(id)
		return spoilt[id] && (i < 0 || g.label[i] == unlabelled)
	}
	g.cut(func(l Link) bool { return taken(l.P) || taken(l.Q) })
	g.erase(func(i int) bool {
		stays := g.label[i] != unlabelled || !spoilt[g.origin[i].ID]
		if !stays {
			points += g.v[i]
		}
		return stays
	})
	return points
}

// Since returns the number of the last observation before the first point that was kept after a
// time, in Unix seconds. It returns the largest number if there is no such point. [Graph.Undo] with
// this number takes back all points after the time; it fails if the journal does not reach back so
// far. A point with an unknown time does not count as later, nor one of a time after now, from a
// clock that was wrong, if a point with a right time was kept after it.
func (g *Graph) Since(time, now int64) int64 {
	moments := []Moment{g.journal.lost}
	for _, e := range g.journal.entries {
		moments = append(moments, e.Moment)
	}
	for _, o := range g.origin {
		moments = append(moments, o.Moment)
	}
	right := int64(math.MinInt64) // the last point with a right time
	for _, m := range moments {
		if m.Time != 0 && m.Time <= now {
			right = max(right, m.Observation)
		}
	}
	since := int64(math.MaxInt64)
	for _, m := range moments {
		if m.Time > time && m.Time != 0 && (m.Time <= now || m.Observation > right) {
			since = min(since, m.Observation-1)
		}
	}
	return since
}
