package quantized

import "math"

// Ageing goes in steps, so that the graph is not solved anew for every point.
const stepsPerHalfLife = 64

const (
	faded     = .5       // a vertex whose points count less than that may be evicted
	evictable = .01      // an eviction changes no value by more than that
	trials    = 16       // vertices that a step tries to evict, at the most
	lightest  = 0x1p-100 // so that no multiplicity becomes 0
)

// eviction holds the working storage of evict.
type eviction struct {
	faint, kept  []int
	gone         []bool
	before, last [][]float64 // solution with all vertices, and with those that are not gone so far
}

// period returns the observations in a step of ageing.
func (c Config) period() int { return max(1, c.HalfLife/stepsPerHalfLife) }

// tick returns the number of the step of ageing in which an observation falls.
func (c Config) tick(observation int64) int64 {
	if c.HalfLife == 0 {
		return 0
	}
	return observation / int64(c.period())
}

// fades returns what is left of a multiplicity of 1 after ticks steps.
func (c Config) fades(ticks int64) float64 {
	if c.HalfLife == 0 || ticks <= 0 {
		return 1
	}
	return math.Exp2(-float64(ticks) * float64(c.period()) / float64(c.HalfLife))
}

// Age lets what was learned count less, to the moment of an observation: half after [Config].HalfLife
// observations. Labelled points do not age. It then looks at vertices whose points have come to count
// less than half of one, at most 16 of them a step, and evicts those without which no value of the
// harmonic solution at a vertex that stays differs by more than 0.01 from what it was. It returns how
// many these were. Without a half-life it does nothing.
//
// A vertex that others need to reach a labelled one stays for as long as it makes a difference. Of points
// to come this says nothing: one that only an evicted vertex was near is an outlier.
//
// It panics during a trial.
func (g *Graph) Age(observation int64) (evicted int, err error) {
	g.mustBeSettled()
	ticks := g.c.tick(observation) - g.c.tick(g.aged)
	if ticks <= 0 {
		return 0, nil
	}
	g.aged = observation
	f := g.c.fades(ticks)
	for i, class := range g.label {
		if class == unlabelled {
			g.v[i] = max(g.v[i]*f, lightest)
		} else {
			g.v[i] = 1 + (g.v[i]-1)*f
		}
	}
	g.stale = true
	if _, err := g.Solve(); err != nil {
		return 0, err
	}
	return g.evict()
}

// evict removes vertices that have faded and are not needed. The solution must be up to date.
func (g *Graph) evict() (int, error) {
	n := g.Len()
	faint := g.eviction.faint[:0]
	for i, class := range g.label {
		if class == unlabelled && g.v[i] < faded {
			faint = append(faint, i)
		}
	}
	g.eviction.faint = faint
	if len(faint) == 0 {
		return 0, nil
	}
	// Those that must stay now are not asked again before all others were.
	first := int(g.c.tick(g.aged)%int64(len(faint))) * trials % len(faint)
	before := g.copySolution(&g.eviction.before)
	gone := resized(g.eviction.gone, n)
	g.eviction.gone = gone
	clear(gone)
	evicted := 0
	for q := range min(trials, len(faint)) {
		i := faint[(first+q)%len(faint)]
		v := g.v[i]
		last := g.copySolution(&g.eviction.last)
		gone[i] = true
		g.v[i] = lightest // as good as not there
		g.stale = true
		if _, err := g.Solve(); err != nil {
			g.v[i] = v
			return 0, err
		}
		if g.differs(before, gone) {
			g.v[i], gone[i] = v, false
			for c := range g.l {
				copy(g.l[c], last[c])
			}
		} else {
			evicted++
		}
	}
	if evicted == 0 {
		return 0, nil
	}
	kept := g.eviction.kept[:0]
	for i := range n {
		if !gone[i] {
			kept = append(kept, i)
		}
	}
	g.eviction.kept = kept
	g.erase(kept)
	return evicted, nil
}

// differs reports whether the solution at a vertex that is not gone has changed too much.
func (g *Graph) differs(before [][]float64, gone []bool) bool {
	for c, l := range g.l {
		for i, x := range l {
			if !gone[i] && math.Abs(x-before[c][i]) > evictable {
				return true
			}
		}
	}
	return false
}

// copySolution copies the solution to dst, and returns it.
func (g *Graph) copySolution(dst *[][]float64) [][]float64 {
	*dst = resized(*dst, len(g.l))
	for c := range g.l {
		(*dst)[c] = append((*dst)[c][:0], g.l[c]...)
	}
	return *dst
}
