// SPDX-License-Identifier: Apache-2.0

package quantized

import (
	"cmp"
	"math"
	"slices"

	"github.com/faceauth/faceauth/graph"
	"gonum.org/v1/gonum/blas/blas32"
)

// Summary is a centroid of another graph: it stands for points that are not there.
type Summary struct {
	Point        []float32
	Multiplicity float64 // of the points; positive
	Radius       float64 // none of them is further from Point
	Group        int     // only summaries of one group are merged
	Links        []int   // earlier summaries that it follows, or that follow it
	Follows      []int64 // IDs of vertices of a [Union]'s graph that it follows
}

// Merged is what [Config.Merge] makes of summaries.
type Merged struct {
	// R is the radius at which they were merged: two that were kept of a group are at least that far apart. It is 0 where
	// only summaries at one place were merged.
	R    float64
	Kept []Summary // in the order in which they were given
	// To is, for each summary that was given, the place in Kept of the one that stands for it, or -1 where there was no
	// room for it.
	To   []int
	Left int // summaries without room
}

// radii of Merge: the edge radius, divided by m again and again, as long as this share of it is left.
const leastRadius = 1e-3

// Merge takes summaries of other graphs within K by one repartition, as a step of the doubling algorithm does: it looks
// at them by descending multiplicity, and of equals in the order in which they are given, and keeps each that is not
// closer than R to a kept one of its group. The others go to the nearest kept one. R is 0 where that leaves no more
// than K. Otherwise it is the least of the radii r, r/m, r/m², … that does, where r is the edge radius and m the
// multiplier. Where r itself leaves more, the first K that are kept stay, and what is not within r of them is left out.
//
// A summary that is kept has the points of all summaries that were merged into it. A point lies within its own summary's radius R₁
// of that summary, which lies closer than R₂ to the kept one. By the triangle inequality no point is further than R₁ +
// R₂ from the kept one, whatever the order was. Kept.Radius is the largest R₁ + d of the summaries merged into it, which is
// never more. A kept summary is not given on (package online), so that the sum has two terms and does not grow.
//
// Where R₂ is above the least of the radii and nothing was left out, R₂/m left more than K: K+1 summaries of distances
// of at least R₂/m, or in different groups. Two of them share one of any K centres, and one of the two is at least
// R₂/2m from it. So R₂ is at most 2m times the largest distance in the best choice of K centres, as with the doubling
// algorithm.
//
// It panics on a point of another dimension.
func (c Config) Merge(all []Summary) Merged {
	m := merger{c: c, all: all, order: make([]int, len(all)), squares: make([]float64, len(all))}
	for i, s := range all {
		if len(s.Point) != c.Dim {
			panic("quantized: dimension mismatch")
		}
		m.order[i], m.squares[i] = i, squaredNorm(s.Point)
	}
	slices.SortStableFunc(m.order, func(a, b int) int { return cmp.Compare(all[b].Multiplicity, all[a].Multiplicity) })
	reach := c.EdgeRadius()
	r, last := 0., false
	steps := int(math.Log(1/leastRadius) / math.Log(c.Multiplier))
	for !m.cover(r, last) {
		r, last = reach*math.Pow(c.Multiplier, -float64(steps)), steps == 0
		steps--
	}
	return m.merge(r)
}

// merger holds the working storage of Merge.
type merger struct {
	c       Config
	all     []Summary
	order   []int
	squares []float64
	kept    []int         // by descending multiplicity
	groups  map[int][]int // the same, of each group
}

// distance returns that of two summaries.
func (m *merger) distance(i, j int) float64 {
	x, y := m.all[i].Point, m.all[j].Point
	sum := m.squares[i] + m.squares[j]
	d := sum - 2*blas32.DDot(vector(x), vector(y))
	if !(d > 1e-6*sum) || math.IsInf(d, 1) {
		d = graph.SquaredDistance(x, y)
	}
	return m.c.Scale * math.Sqrt(d)
}

// cover chooses which summaries are kept with radius r. It reports false as soon as these are too many, but for the last
// radius, with which the first ones stay.
func (m *merger) cover(r float64, last bool) bool {
	m.kept, m.groups = m.kept[:0], make(map[int][]int)
	for _, i := range m.order {
		group := m.all[i].Group
		if slices.ContainsFunc(m.groups[group], func(j int) bool { d := m.distance(i, j); return d < r || d == 0 }) {
			continue
		}
		if len(m.kept) == m.c.K {
			if !last {
				return false
			}
			continue
		}
		m.kept = append(m.kept, i)
		m.groups[group] = append(m.groups[group], i)
	}
	return true
}

// merge has every summary go to the nearest one that is kept within r, and of equals to the heaviest.
func (m *merger) merge(r float64) Merged {
	out := Merged{R: r, To: make([]int, len(m.all))}
	kept := slices.Sorted(slices.Values(m.kept))
	place := make(map[int]int)
	for q, i := range kept {
		place[i] = q
		s := m.all[i]
		out.Kept = append(out.Kept, Summary{Point: s.Point, Group: s.Group})
	}
	for i, s := range m.all {
		q, there := place[i]
		far := 0.
		if !there {
			q, far = -1, math.Inf(1)
			for _, j := range m.groups[s.Group] {
				if d := m.distance(i, j); (d < r || d == 0) && d < far {
					q, far = place[j], d
				}
			}
		}
		out.To[i] = q
		if q < 0 {
			out.Left++
			continue
		}
		k := &out.Kept[q]
		k.Multiplicity += s.Multiplicity
		k.Radius = max(k.Radius, s.Radius+far)
	}
	for i, s := range m.all {
		if to := out.To[i]; to >= 0 {
			out.Kept[to].Follows = append(out.Kept[to].Follows, s.Follows...)
		}
		for _, j := range s.Links {
			a, b := out.To[i], out.To[j]
			if a < 0 || b < 0 || a == b {
				continue
			}
			out.Kept[max(a, b)].Links = append(out.Kept[max(a, b)].Links, min(a, b))
		}
	}
	for q := range out.Kept {
		k := &out.Kept[q]
		slices.Sort(k.Links)
		k.Links = slices.Compact(k.Links)
	}
	return out
}
