// SPDX-License-Identifier: Apache-2.0

package quantized

import (
	"cmp"
	"math"
	"slices"

	"github.com/faceauth/faceauth/graph"
	"gonum.org/v1/gonum/blas/blas32"
)

// Summary is a centroid of another graph. It stands for points that are not in this graph.
type Summary struct {
	Point        []float32
	Multiplicity float64 // weight of its points; positive
	Radius       float64 // greatest distance of its points from Point
	Group        int     // only summaries of one group are merged
	Links        []int   // earlier summaries that it follows, or that follow it
	Follows      []int64 // IDs of vertices of a [Union]'s graph that it follows
}

// Merged is the result of [Config.Merge].
type Merged struct {
	// R is the radius of the merge: two kept summaries of a group are at least R apart. It is 0 if only summaries at
	// the same place were merged.
	R    float64
	Kept []Summary // in the order of the input
	// To has, for each given summary, the index in Kept of the summary into which it was merged, or -1 if there was no
	// room for it.
	To   []int
	Left int // summaries without room
}

// Merge tries the edge radius, divided by m again and again, down to this share of it.
const leastRadius = 1e-3

// Merge merges summaries of other graphs to at most K, by one repartition, as in a step of the doubling algorithm. It
// visits them by descending multiplicity, and equals in the order of the input. It keeps a summary if no kept summary
// of its group is closer than R. The others are merged into the nearest kept summary. R is 0 if that leaves at most K.
// Otherwise R is the smallest of the radii r, r/m, r/m², … that leaves at most K, where r is the edge radius and m the
// multiplier. If r itself leaves more, the first K stay, and summaries that are not within r of them are left out.
//
// A kept summary has the points of all summaries merged into it. A point lies within the radius R₁ of its own summary,
// which is closer than R₂ to the kept summary. By the triangle inequality the point is within R₁ + R₂ of the kept
// summary, for any order of the input. Kept.Radius is the largest R₁ + d of the summaries merged into it, and never
// more than this bound. Kept summaries are not given to other graphs (package online), so there are only two terms.
//
// If R₂ is larger than the smallest of the radii and nothing was left out, R₂/m leaves more than K: K+1 summaries at
// distances of at least R₂/m, or in different groups. Two of them share one of any K centres, and one of the two is at
// least R₂/2m from it. So R₂ is at most 2m times the largest distance for the best choice of K centres, as in the
// doubling algorithm.
//
// Merge panics on a point of another dimension.
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
	groups  map[int][]int // kept summaries of each group
}

// distance returns the distance of two summaries.
func (m *merger) distance(i, j int) float64 {
	x, y := m.all[i].Point, m.all[j].Point
	sum := m.squares[i] + m.squares[j]
	d := sum - 2*blas32.DDot(blasVector(x), blasVector(y))
	if !(d > 1e-6*sum) || math.IsInf(d, 1) {
		d = graph.SquaredDistance(x, y)
	}
	return m.c.Scale * math.Sqrt(d)
}

// cover chooses the summaries that are kept with radius r. It stops and reports false if there are too many. At the
// last radius it keeps the first K.
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

// merge assigns every summary to the nearest kept summary within r, and of equals to the heaviest.
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
