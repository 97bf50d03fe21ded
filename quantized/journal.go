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
	ID     int64 // of the vertex, never used again; counts from 1
	Moment       // when [Graph.Keep] was called with its point; zero for a labelled vertex
	Via    int64 // ID of the vertex that spoke loudest for it; 0 for none
	Hops   int   // vertices on the way from a labelled one, along Via; 0 for a labelled vertex
}

// A journal remembers, for the last points that were taken in by a vertex, which that was. The point
// at which a vertex lies is not in it: its Origin tells.
type journal struct {
	entries []entry // a ring once it is full
	next    int     // where the next one goes
	lost    Moment  // the latest of the entries that were overwritten
}

type entry struct {
	Moment
	vertex int64
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

// filter drops the entries of which keep is false, and leaves the others in the order in which they
// came.
func (j *journal) filter(keep func(entry) bool) {
	slices.Reverse(j.entries[:j.next])
	slices.Reverse(j.entries[j.next:])
	slices.Reverse(j.entries)
	j.entries = slices.DeleteFunc(j.entries, func(e entry) bool { return !keep(e) })
	j.next = 0
}

// find returns the vertex of that ID, or -1.
func (g *Graph) find(id int64) int {
	i, there := slices.BinarySearchFunc(g.origin, id, func(o Origin, id int64) int { return cmp.Compare(o.ID, id) })
	if !there {
		return -1
	}
	return i
}

// Origin returns where vertex i comes from.
func (g *Graph) Origin(i int) Origin { return g.origin[i] }

// record notes that a point was taken in by vertex i.
func (g *Graph) record(m Moment, i int) {
	g.journal.add(g.c.Journal, entry{m, g.origin[i].ID})
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
			g.record(g.origin[i].Moment, j)
		}
	}
}

// Undo takes back every point that was kept with a larger observation number than since, and returns
// how many points are gone. A vertex whose own point is taken back goes with all that it stands for:
// older points that a repartition had merged into it, too. Labelled vertices and R stay. Where points age,
// a vertex loses the multiplicity that age has left of its points that are taken back, as if the half-life
// had always been the present one.
//
// The error wraps [ErrJournal] when the journal does not reach back so far; g has then not changed.
// Undo panics during a trial.
func (g *Graph) Undo(since int64) (points float64, err error) {
	g.mustBeSettled()
	if since < g.journal.lost.Observation {
		return 0, fmt.Errorf("%w: to observation %d, and not to %d", ErrJournal, g.journal.lost.Observation, since)
	}
	// What was accepted through a later vertex is later, too: nothing else goes.
	return g.Unlearn(func(observation int64) bool { return observation > since }), nil
}

// Unlearn takes back, as [Graph.Undo] does, every point that was kept with an observation number of which gone is true,
// and every vertex that was accepted through one that goes. It returns how many points are gone. A point that was taken
// in by a vertex longer ago than the journal reaches stays there. It panics during a trial.
func (g *Graph) Unlearn(gone func(observation int64) bool) (points float64) {
	g.mustBeSettled()
	before := g.sumUnlabelled(g.points)
	var kept []int
	// A vertex is younger than the one through which it was accepted, and origins are in the order of age.
	spoilt := make(map[int64]bool)
	for i, o := range g.origin {
		if g.label[i] == unlabelled && (gone(o.Observation) || spoilt[o.Via]) {
			spoilt[o.ID] = true
		} else {
			kept = append(kept, i)
		}
	}
	g.journal.filter(func(e entry) bool {
		if !gone(e.Observation) {
			return true
		}
		i := g.find(e.vertex)
		g.v[i] = max(g.v[i]-g.weight(e.Observation), g.weight(g.origin[i].Observation))
		g.points[i]--
		return false
	})
	g.erase(kept)
	return before - g.sumUnlabelled(g.points)
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

// weight returns what a point of that observation counts by now.
func (g *Graph) weight(observation int64) float64 {
	if observation == 0 {
		return 1 // of a labelled vertex
	}
	return max(g.c.fades(g.c.tick(g.aged)-g.c.tick(observation)), lightest)
}
