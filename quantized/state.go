// SPDX-License-Identifier: Apache-2.0

package quantized

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/faceauth/faceauth/internal/vector"
)

// State holds all data that a Graph cannot compute from other data: the content of a snapshot. Its
// slices may be slices of the graph. In CBOR (RFC 8949) it is a map, and each entry, vertex, origin
// and link is an array of its fields.
type State struct {
	R float64 `cbor:"r"`
	// Spread is the greatest possible distance of a point from its centroid: the sum of all R until
	// now. It is less than R·m/(m-1) unless R was cut short at the edge radius.
	Spread   float64  `cbor:"spread"`
	Classes  int      `cbor:"classes"` // until now: one more than the largest labelled class
	Full     bool     `cbor:"full"`    // the last attempt at a repartition made no room
	Vertices []Vertex `cbor:"vertices"`
	// Reach is the length up to which Neighbours lists all edges; 0 if Neighbours is not known.
	// Then edges are found anew, in time proportional to the square of the number of vertices.
	Reach   float64 `cbor:"reach"`
	LastID  int64   `cbor:"last_id"` // largest ID ever used
	Links   []Link  `cbor:"links"`   // contracted edges, in ascending order of their vertices
	Journal []Entry `cbor:"journal"` // the oldest first
	Lost    Moment  `cbor:"lost"`    // the latest entry that is missing in Journal
}

// point holds the coordinates of a point. In files it is little-endian float32.
type point []float32

// MarshalBinary returns the bytes of p.
func (p point) MarshalBinary() ([]byte, error) { return vector.Bytes(p), nil }

// UnmarshalBinary is the opposite of MarshalBinary.
func (p *point) UnmarshalBinary(b []byte) error {
	if len(b)%4 != 0 {
		return fmt.Errorf("%w: a point of %d bytes", ErrInvalid, len(b))
	}
	*p = vector.Floats(b)
	return nil
}

// Entry says into which vertex a point was merged.
type Entry struct {
	_ struct{} `cbor:",toarray"`
	Moment
	Vertex int64 // ID of the vertex
	ID     int64 // ID of the point when it was a vertex; 0 for none
	Via    int64 // ID of the vertex through which it was accepted; 0 for none
}

// Vertex is one vertex of a State. Vertices are in the order of their age.
type Vertex struct {
	_            struct{} `cbor:",toarray"`
	Point        point
	Multiplicity float64 // points that it stands for; whole and positive; 1 where labelled
	Class        int     // -1 where not labelled
	Source       []int   // classes through which its points were learned, ascending
	Origin       Origin
	Neighbours   []int // earlier vertices to which it may have an edge, ascending
	Links        []int // earlier vertices to which it has an edge beyond the edge radius, ascending
}

// State returns the state of g. It shares the storage of g: use it before g changes, and do not
// change it.
func (g *Graph) State() State {
	s := State{
		R: g.r, Spread: g.spread, Classes: g.classes, Full: g.full,
		Vertices: make([]Vertex, g.Len()), Reach: g.reach,
		LastID: g.lastID, Journal: append([]Entry{}, g.journal.entries...), Lost: g.journal.lost,
		Links: slices.SortedFunc(maps.Values(g.contracted), compareLinks),
	}
	for i := range s.Vertices {
		v := Vertex{
			Point: g.Point(i), Multiplicity: g.v[i], Class: g.label[i], Source: g.source[i],
			Origin: g.origin[i],
		}
		for _, e := range g.edges.of[i] {
			switch {
			case e.to > i:
			case g.ordinary(e):
				v.Neighbours = append(v.Neighbours, e.to)
			default:
				v.Links = append(v.Links, e.to)
			}
		}
		s.Vertices[i] = v
	}
	return s
}

// Restore returns the graph of a state. It continues exactly as the original graph. The coordinates
// are copied. The configuration must be the configuration of the original graph; [Graph.Configure]
// sets another.
//
// The state may come from a file. Restore checks everything except that Neighbours lists all edges
// up to Reach. The error wraps [ErrConfig], or [ErrInvalid].
func Restore(c Config, s State) (*Graph, error) {
	if err := s.check(c.Dim); err != nil {
		return nil, err
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	g, ok := c.restore(s)
	if !ok {
		return nil, fmt.Errorf("%w: more than %d edges", ErrInvalid, maxEdges)
	}
	if n := g.Labelled(); g.learned > c.K+1 || n > maxValues/c.Dim {
		return nil, fmt.Errorf("%w: %d labelled and %d learned vertices of %d values for k = %d",
			ErrInvalid, n, g.learned, c.Dim, c.K)
	}
	if len(g.contracted) != len(s.Links) {
		return nil, fmt.Errorf("%w: a contracted edge is not there", ErrInvalid)
	}
	return g, nil
}

// restore returns the graph of a state that was checked, with its edges built anew. Ok is false if
// there are too many.
func (c Config) restore(s State) (g *Graph, ok bool) {
	g = newGraph(c)
	for _, v := range s.Vertices {
		square := squaredNorm(v.Point)
		g.points.push(v.Point)
		g.sketches.push(v.Point, square)
		g.squares = append(g.squares, square)
		g.v = append(g.v, v.Multiplicity)
		g.label = append(g.label, v.Class)
		g.source = append(g.source, slices.Clone(v.Source))
		g.origin = append(g.origin, v.Origin)
		if v.Class == unlabelled {
			g.learned++
		}
	}
	all := s.Reach < g.reach
	var list []edge
	for i, v := range s.Vertices {
		list = list[:0]
		if all {
			for _, e := range g.within(g.points.at(i), g.squares[i], g.reach, g.reach) {
				if e.to < i {
					list = append(list, e)
				}
			}
		}
		for _, j := range v.Neighbours {
			d := g.measure(g.points.at(i), g.squares[i], j)
			if d <= g.reach && !all {
				list = append(list, edge{j, g.c.Kernel.Weight(d), d})
			}
		}
		for _, j := range v.Links {
			d := g.measure(g.points.at(i), g.squares[i], j)
			if w := g.c.linkWeight(d); w > 0 && d > g.reach {
				list = append(list, edge{j, w, d})
			}
		}
		if !g.edges.fit(len(list)) {
			return nil, false
		}
		slices.SortFunc(list, func(a, b edge) int { return a.to - b.to })
		g.edges.push()
		for _, e := range list {
			g.edges.join(i, e.to, e.d, e.w)
		}
	}
	g.r, g.spread, g.classes, g.full = s.R, s.Spread, s.Classes, s.Full
	g.lastID, g.journal.lost = s.LastID, s.Lost
	for _, l := range s.Links {
		g.note(l)
	}
	g.lose()
	g.journal.add(c.Journal, s.Journal...)
	return g, true
}

// maxID bounds IDs and hops in a state, so that they can grow further.
const maxID = 1 << 60

// whole reports whether x is a number of points.
func whole(x float64) bool { return x >= 1 && x <= 1<<53 && x == math.Trunc(x) }

// finite reports whether x is finite and not negative.
func finite(x float64) bool { return x >= 0 && !math.IsInf(x, 1) }

func (s State) check(dim int) error {
	invalid := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, args...))
	}
	switch {
	case !finite(s.R) || !finite(s.Spread) || !finite(s.Reach):
		return invalid("R %g, bound %g, reach %g", s.R, s.Spread, s.Reach)
	case s.LastID < 0 || s.LastID > maxID:
		return invalid("a last ID of %d", s.LastID)
	case s.Classes < 0 || s.Classes > maxClass+1:
		return invalid("%d classes", s.Classes)
	case s.Lost.Observation < 0:
		return invalid("a journal complete from observation %d on", s.Lost.Observation)
	}
	taken := make(map[int64]float64) // points that the journal assigns to a vertex
	for _, e := range s.Journal {
		if e.Observation < 0 || e.ID < 0 || e.ID > s.LastID || e.Via < 0 || e.Via > s.LastID {
			return invalid("journal entry %+v", e)
		}
		taken[e.Vertex]++
	}
	last := int64(0)
	for i, v := range s.Vertices {
		if o := v.Origin; o.ID <= last || o.ID > s.LastID || o.Observation < 0 || o.Via < 0 ||
			o.Via > s.LastID ||
			o.Hops < 0 || int64(o.Hops) > maxID {
			return invalid("vertex %d has an impossible origin: %+v", i, o)
		}
		last = v.Origin.ID
		if len(v.Point) != dim {
			return invalid("vertex %d has %d values, want %d", i, len(v.Point), dim)
		}
		if square := squaredNorm(v.Point); math.IsNaN(square) || math.IsInf(square, 0) {
			return invalid("vertex %d has a value that is not finite", i)
		}
		if v.Class != unlabelled && (v.Multiplicity != 1 || len(v.Source) > 0) {
			return invalid("labelled vertex %d has multiplicity %g, learned through %d classes", i,
				v.Multiplicity, len(v.Source))
		}
		if !whole(v.Multiplicity) {
			return invalid("vertex %d stands for %g points", i, v.Multiplicity)
		}
		if taken[v.Origin.ID] > v.Multiplicity-1 {
			return invalid("vertex %d stands for %g points, and has taken in %g", i, v.Multiplicity,
				taken[v.Origin.ID])
		}
		delete(taken, v.Origin.ID)
		if v.Class < -1 || v.Class >= s.Classes {
			return invalid("vertex %d is of class %d, of %d classes", i, v.Class, s.Classes)
		}
		for q, c := range v.Source {
			if c < 0 || c >= s.Classes || q > 0 && c <= v.Source[q-1] {
				return invalid("vertex %d was learned through class %d, of %d classes", i, c,
					s.Classes)
			}
		}
		for _, list := range [][]int{v.Neighbours, v.Links} {
			for q, j := range list {
				if j < 0 || j >= i || q > 0 && j <= list[q-1] {
					return invalid("vertex %d has vertex %d as a neighbour", i, j)
				}
			}
		}
		for _, j := range v.Links {
			if _, both := slices.BinarySearch(v.Neighbours, j); both {
				return invalid("vertex %d has vertex %d as a neighbour twice", i, j)
			}
		}
	}
	for q, l := range s.Links {
		ordered := q == 0 || compareLinks(s.Links[q-1], l) < 0
		if l.A < 1 || l.A >= l.B || l.P < 1 || l.P > s.LastID || l.Q < 1 || l.Q > s.LastID ||
			!ordered {
			return invalid("contracted edge %+v", l)
		}
	}
	if len(taken) > 0 {
		return invalid("the journal names vertices that are not there")
	}
	return nil
}
