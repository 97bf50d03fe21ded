// SPDX-License-Identifier: Apache-2.0

package quantized

import "math"

// Ageing goes in steps, so that not every point costs a pass over the vertices.
const stepsPerHalfLife = 64

const (
	faded     = .5       // a vertex with a smaller weight may be evicted
	evictable = .01      // largest change of a value by an eviction
	trials    = 16       // most vertices that a step tries to evict
	lightest  = 0x1p-100 // least weight, so that no multiplicity becomes 0
)

// period returns the observations in a step of ageing.
func (c Config) period() int { return max(1, c.HalfLife/stepsPerHalfLife) }

// tick returns the number of the ageing step of an observation.
func (c Config) tick(observation int64) int64 {
	if c.HalfLife == 0 {
		return 0
	}
	return observation / int64(c.period())
}

// left returns the remaining weight of a point that was kept after born half-lives.
func (g *Graph) left(born float64) float64 { return max(math.Exp2(born-g.clock), lightest) }

// own returns the remaining weight of the own point of a learned vertex.
func (g *Graph) own(i int) float64 { return g.origin[i].Own * g.left(g.origin[i].Born) }

// Age reduces the weight of learned points up to an observation: after [Config].HalfLife observations a point counts
// half. Labelled points do not age. Then Age tries to evict vertices with a weight below one half, at most 16 in a
// step. It evicts a vertex if no harmonic value at a remaining vertex changes by more than 0.01. It returns the number
// of evicted vertices. Without a half-life it does nothing.
//
// A vertex on the path of others to a labelled vertex therefore stays while it makes a difference. The test considers
// only present vertices: a new point that is near only an evicted vertex is an outlier.
func (g *Graph) Age(observation int64) (evicted int, err error) {
	ticks := g.c.tick(observation) - g.c.tick(g.aged)
	if ticks <= 0 {
		return 0, nil
	}
	passed := float64(ticks) * float64(g.c.period()) / float64(g.c.HalfLife)
	g.stamp++
	g.aged = observation
	g.clock += passed
	f := math.Exp2(-passed)
	for i, class := range g.label {
		if class == unlabelled {
			g.v[i] = max(g.v[i]*f, lightest)
		}
	}
	return g.evict()
}

// SkipAgeing marks all observations before this one as aged, so their ageing is skipped.
func (g *Graph) SkipAgeing(observation int64) { g.aged = max(g.aged, observation) }

// eviction holds the working storage of evict.
type eviction struct {
	faint, kept []int
	gone        []bool
	base        []int32 // of each vertex, the number of its baseline plus 1
	at          []int32 // of each vertex, its place in the part of that baseline
	bases       []baseline
	part        []int     // vertices of all baselines
	classes     []int     // of all baselines
	values      []float64 // of all baselines: the values of a class at all vertices of the part, class by class
}

// baseline is the solution on a part before an eviction: ranges of the storage.
type baseline struct{ part, parts, class, classes, value int }

// evict removes vertices that have faded and are not needed.
func (g *Graph) evict() (int, error) {
	e := &g.eviction
	e.faint = e.faint[:0]
	for i, class := range g.label {
		if class == unlabelled && g.v[i] < faded {
			e.faint = append(e.faint, i)
		}
	}
	if len(e.faint) == 0 {
		return 0, nil
	}
	n := g.Len()
	e.gone, e.base, e.at = resized(e.gone, n), resized(e.base, n), resized(e.at, n)
	clear(e.gone)
	clear(e.base)
	e.bases, e.part, e.classes, e.values = e.bases[:0], e.part[:0], e.classes[:0], e.values[:0]
	// Vertices that must stay are tried again only after all others.
	first := int(g.c.tick(g.aged)%int64(len(e.faint))) * trials % len(e.faint)
	evicted := 0
	for q := range min(trials, len(e.faint)) {
		i := e.faint[(first+q)%len(e.faint)]
		if e.base[i] == 0 {
			if err := g.baseline(i); err != nil {
				return 0, err
			}
		}
		e.gone[i] = true
		needed, err := g.differs(e.bases[e.base[i]-1])
		if err != nil {
			return 0, err
		}
		if needed {
			e.gone[i] = false
		} else {
			evicted++
		}
	}
	if evicted == 0 {
		return 0, nil
	}
	e.kept = e.kept[:0]
	for i := range n {
		if !e.gone[i] {
			e.kept = append(e.kept, i)
		}
	}
	g.erase(e.kept)
	return evicted, nil
}

// baseline solves the part that holds vertex i.
func (g *Graph) baseline(i int) error {
	e, s := &g.eviction, &g.solver
	s.begin(g)
	s.collect(g, i, nil)
	b := baseline{part: len(e.part), parts: len(s.part), class: len(e.classes), value: len(e.values)}
	e.part = append(e.part, s.part...)
	e.classes = s.rimClasses(e.classes)
	b.classes = len(e.classes) - b.class
	for _, c := range e.classes[b.class:] {
		if err := s.forward(g, func(class int) bool { return class == c }); err != nil {
			return err
		}
		e.values = append(e.values, s.x...)
	}
	e.bases = append(e.bases, b)
	for q, j := range s.part {
		e.base[j], e.at[j] = int32(len(e.bases)), int32(q)
	}
	return nil
}

// differs reports whether the solution without the removed vertices has changed too much at a remaining vertex.
func (g *Graph) differs(b baseline) (bool, error) {
	e, s := &g.eviction, &g.solver
	s.begin(g)
	for _, i := range e.part[b.part : b.part+b.parts] {
		if e.gone[i] || s.seen(i) {
			continue
		}
		s.collect(g, i, e.gone)
		for q, c := range e.classes[b.class : b.class+b.classes] {
			if err := s.forward(g, func(class int) bool { return class == c }); err != nil {
				return false, err
			}
			before := e.values[b.value+q*b.parts:]
			for p, j := range s.part {
				if math.Abs(s.x[p]-before[e.at[j]]) > evictable {
					return true, nil
				}
			}
		}
	}
	return false, nil
}
