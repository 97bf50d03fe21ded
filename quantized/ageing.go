// SPDX-License-Identifier: Apache-2.0

package quantized

import "math"

// Ageing goes in steps, so that vertices are not looked through for every point.
const stepsPerHalfLife = 64

const (
	faded     = .5       // a vertex whose points count less than that may be evicted
	evictable = .01      // an eviction changes no value by more than that
	trials    = 16       // vertices that a step tries to evict, at the most
	lightest  = 0x1p-100 // so that no multiplicity becomes 0
)

// period returns the observations in a step of ageing.
func (c Config) period() int { return max(1, c.HalfLife/stepsPerHalfLife) }

// tick returns the number of the step of ageing in which an observation falls.
func (c Config) tick(observation int64) int64 {
	if c.HalfLife == 0 {
		return 0
	}
	return observation / int64(c.period())
}

// left returns the weight that is left of a point which was kept when that many half-lives had passed.
func (g *Graph) left(born float64) float64 { return max(math.Exp2(born-g.clock), lightest) }

// own returns the weight that is left of a vertex's own point.
func (g *Graph) own(i int) float64 {
	if g.label[i] != unlabelled {
		return 1
	}
	return g.origin[i].Own * g.left(g.origin[i].Born)
}

// Age lets learned faces count less, to the moment of an observation: half after [Config].HalfLife
// observations. Labelled points do not age. It then looks at vertices whose points have come to count
// less than half of one, at most 16 of them a step, and evicts those without which no value of the
// harmonic solution at a vertex that stays differs by more than 0.01 from what it was. It returns how
// many these were. Without a half-life it does nothing.
//
// A vertex that others need to reach a labelled one stays for as long as it makes a difference. Of points
// to come this says nothing: one that only an evicted vertex was near is an outlier.
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
		} else {
			g.v[i] = 1 + (g.v[i]-1)*f
		}
	}
	if g.c.Normalized {
		return 0, nil
	}
	return g.evict()
}

// SkipAgeing sets the observation up to which multiplicities count as aged: nothing ages for what came before it.
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
	// Those that must stay now are not asked again before all others were.
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

// baseline solves for the part in which vertex i lies.
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

// differs reports whether the solution without the vertices that are gone has changed too much at one that stays.
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
