package quantized

import (
	"fmt"
	"math"
	"slices"
)

// State is all that a Graph cannot derive: what a snapshot holds.
type State struct {
	R        float64
	Classes  int
	Vertices []Vertex // in the order of their age
	LastID   int64    // of the vertices that there ever were
	Journal  []Entry  // the oldest first
	Lost     Moment   // the latest that is missing in Journal
	Aged     int64    // observation up to which multiplicities are aged
	Stale    bool     // the Values are not those of the solution
}

// Entry says which vertex took a point in.
type Entry struct {
	Moment
	Vertex int64 // its ID
}

// Vertex is one vertex of a State.
type Vertex struct {
	Point        []float32
	Multiplicity float64 // positive; at least 1 where labelled
	Points       float64 // that it stands for; whole and positive
	Class        int     // -1 where not labelled
	Source       []int   // classes through which its points were learned, ascending
	Origin       Origin
	Values       []float64 // the harmonic solution there, one value a class: where the next one starts
}

// State returns a copy of the state of g. It panics during a trial.
func (g *Graph) State() State {
	g.mustBeSettled()
	s := State{
		R: g.r, Classes: len(g.l), Vertices: make([]Vertex, g.Len()),
		Aged: g.aged, Stale: g.stale,
		LastID: g.lastID, Journal: make([]Entry, 0, len(g.journal.entries)), Lost: g.journal.lost,
	}
	for q := range g.journal.entries {
		e := g.journal.entries[(g.journal.next+q)%len(g.journal.entries)]
		s.Journal = append(s.Journal, Entry{e.Moment, e.vertex})
	}
	for i := range s.Vertices {
		s.Vertices[i] = Vertex{
			Point:        slices.Clone(g.Point(i)),
			Multiplicity: g.v[i],
			Points:       g.points[i],
			Class:        g.label[i],
			Source:       slices.Clone(g.source[i]),
			Origin:       g.origin[i],
			Values:       g.ValuesTo(nil, i),
		}
	}
	return s
}

// Restore returns the graph with that state, which goes on exactly as the one it was taken from
// when c is the same. With another c the weights follow the new kernel, and a set that is larger
// than the new k+1 is repartitioned at once. Set Stale then, so that no old value stays.
//
// The state may come from a file: nothing in it is trusted. The error wraps [ErrConfig],
// [ErrInvalid], or [ErrFull] where it has too many labelled points for the new k.
func Restore(c Config, s State) (*Graph, error) {
	if err := s.check(c.Dim); err != nil {
		return nil, err
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	labelled := 0
	for _, v := range s.Vertices {
		if v.Class != unlabelled {
			labelled++
		}
	}
	if labelled >= c.K {
		return nil, fmt.Errorf("%w: %d labelled and k is %d; use a larger k", ErrFull, labelled, c.K)
	}
	// A set too large for k is built with room for all of it, repartitioned there, and built again.
	room := c
	room.K = max(c.K, len(s.Vertices)-1)
	g, err := New(room)
	if err != nil {
		return nil, err
	}
	g.r = s.R
	g.l = make([][]float64, s.Classes)
	for q := range g.l {
		g.l[q] = make([]float64, 0, g.stride())
	}
	for i, v := range s.Vertices {
		g.add(v.Point, g.distances(v.Point), v.Class)
		g.v[i], g.points[i] = v.Multiplicity, v.Points
		g.source[i] = append(g.source[i], v.Source...)
		g.origin[i] = v.Origin
		for q := range g.l {
			g.l[q][i] = v.Values[q]
		}
	}
	g.lastID, g.journal.lost = s.LastID, s.Lost
	g.aged, g.stale = s.Aged, s.Stale
	for _, e := range s.Journal {
		g.journal.add(c.Journal, entry{e.Moment, e.Vertex})
	}
	if room.K == c.K {
		return g, nil
	}
	g.apply(g.plan(c.K))
	return Restore(c, g.State())
}

func (s State) check(dim int) error {
	invalid := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, args...))
	}
	if !(s.R >= 0) || math.IsInf(s.R, 1) {
		return invalid("R is %g", s.R)
	}
	if s.Aged < 0 {
		return invalid("aged up to observation %d", s.Aged)
	}
	if s.Classes < 0 || s.Classes > 1<<14 {
		return invalid("%d classes", s.Classes)
	}
	if s.Lost.Observation < 0 {
		return invalid("a journal complete from observation %d on", s.Lost.Observation)
	}
	taken := make(map[int64]float64)
	for _, e := range s.Journal {
		taken[e.Vertex]++
	}
	for _, v := range s.Vertices {
		if taken[v.Origin.ID] > v.Points-1 {
			return invalid("vertex %d has taken in fewer points than the journal says", v.Origin.ID)
		}
		delete(taken, v.Origin.ID)
	}
	if len(taken) > 0 {
		return invalid("journal of vertices that there are not")
	}
	last := int64(0)
	for i, v := range s.Vertices {
		if o := v.Origin; o.ID <= last || o.ID > s.LastID || o.Observation < 0 || o.Via < 0 || o.Via > s.LastID || o.Hops < 0 {
			return invalid("vertex %d has an origin that cannot be: %+v", i, o)
		}
		last = v.Origin.ID
		if len(v.Point) != dim {
			return invalid("vertex %d has %d values, want %d", i, len(v.Point), dim)
		}
		for _, x := range v.Point {
			if f := float64(x); math.IsNaN(f) || math.IsInf(f, 0) {
				return invalid("vertex %d has a value that is not finite", i)
			}
		}
		if !(v.Points >= 1) || v.Points > 1<<53 || v.Points != math.Trunc(v.Points) {
			return invalid("vertex %d stands for %g points", i, v.Points)
		}
		if !(v.Multiplicity >= lightest) || v.Multiplicity > v.Points*(1+1e-9) || v.Class != unlabelled && v.Multiplicity < 1 {
			return invalid("vertex %d has multiplicity %g", i, v.Multiplicity)
		}
		if v.Class < -1 || v.Class >= s.Classes {
			return invalid("vertex %d is of class %d, of %d classes", i, v.Class, s.Classes)
		}
		if len(v.Values) != s.Classes {
			return invalid("vertex %d has %d values of the solution, of %d classes", i, len(v.Values), s.Classes)
		}
		for _, x := range v.Values {
			if math.IsNaN(x) || math.IsInf(x, 0) {
				return invalid("vertex %d has a solution of %g", i, x)
			}
		}
		for q, c := range v.Source {
			if c < 0 || c >= s.Classes || q > 0 && c <= v.Source[q-1] {
				return invalid("vertex %d was learned through class %d, of %d classes", i, c, s.Classes)
			}
		}
	}
	return nil
}
