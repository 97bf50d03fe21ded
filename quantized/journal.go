package quantized

import (
	"errors"
	"fmt"
	"slices"
)

// ErrJournal is wrapped by the error of [Graph.Undo] for a moment that the journal does not reach.
var ErrJournal = errors.New("further back than the journal reaches")

// Origin says where a vertex comes from.
type Origin struct {
	ID          int64 // of the vertex, never used again; counts from 1
	Observation int64 // number that [Graph.Keep] was given with its point; 0 for a labelled vertex
	Via         int64 // ID of the vertex that spoke loudest for it; 0 for none
	Hops        int   // vertices on the way from a labelled one, along Via; 0 for a labelled vertex
}

// A journal remembers, for the last points that were taken in by a vertex, which that was. The point
// at which a vertex lies is not in it: its Origin tells.
type journal struct {
	entries []entry // a ring once it is full
	next    int     // where the next one goes
	lost    int64   // the largest observation of the entries that were overwritten
}

type entry struct{ observation, vertex int64 }

func (j *journal) add(size int, e entry) {
	switch {
	case size == 0:
		j.lost = max(j.lost, e.observation)
	case len(j.entries) < size:
		j.entries = append(j.entries, e)
	default:
		j.lost = max(j.lost, j.entries[j.next].observation)
		j.entries[j.next] = e
		j.next = (j.next + 1) % size
	}
}

// filter drops the entries of which keep is false, and leaves the others in the order in which they
// came.
func (j *journal) filter(keep func(entry) bool) {
	slices.Reverse(j.entries[:j.next])
	slices.Reverse(j.entries[j.next:])
	slices.Reverse(j.entries)
	j.entries = slices.DeleteFunc(j.entries, func(e entry) bool { return !keep(e) })
	j.next = 0
}

// Origin returns where vertex i comes from.
func (g *Graph) Origin(i int) Origin { return g.origin[i] }

// record notes that a point was taken in by vertex i.
func (g *Graph) record(observation int64, i int) {
	g.journal.add(g.c.Journal, entry{observation, g.origin[i].ID})
}

// rewrite brings the journal up to date with a partition: what was at i is at to[i].
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
		if i != j {
			g.record(g.origin[i].Observation, j)
		}
	}
}

// Undo takes back every point that was kept with a larger observation number than since, and returns
// how many points are gone. A vertex whose own point is taken back goes with all that it stands for:
// older points that a repartition had merged into it, too. Labelled vertices and R stay.
//
// The error wraps [ErrJournal] when the journal does not reach back so far; g has then not changed.
// Undo panics during a trial.
func (g *Graph) Undo(since int64) (points float64, err error) {
	g.mustBeSettled()
	if since < g.journal.lost {
		return 0, fmt.Errorf("%w: to observation %d, and not to %d", ErrJournal, g.journal.lost, since)
	}
	before := g.Mass()
	at := make(map[int64]int)
	var kept []int
	for i, o := range g.origin {
		if g.label[i] != unlabelled || o.Observation <= since {
			at[o.ID] = i
			kept = append(kept, i)
		}
	}
	g.journal.filter(func(e entry) bool {
		i, there := at[e.vertex]
		if there && e.observation > since {
			g.v[i]--
		}
		return there && e.observation <= since
	})
	g.erase(kept)
	return before - g.Mass(), nil
}
