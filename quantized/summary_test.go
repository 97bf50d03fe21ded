// SPDX-License-Identifier: Apache-2.0

package quantized_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/faceauth/faceauth/graph"
	"github.com/faceauth/faceauth/quantized"
)

func merging(k int, m float64) quantized.Config {
	return quantized.Config{K: k, Multiplier: m, Dim: 2, Scale: 1.5, Kernel: graph.Heat(.2), Epsilon: 1e-4, Reach: .6,
		Gamma: 1e-3, Journal: 10}
}

// cloud is a summary of known points.
type cloud struct {
	quantized.Summary
	points [][]float32
}

// clouds returns summaries of points, each point within a radius of the first point of its summary. The order is
// difficult for some rule.
func clouds(r *rand.Rand, c quantized.Config, n, groups int, order string) (all []cloud) {
	for i := range n {
		centre := []float32{2 * r.Float32(), 2 * r.Float32()}
		if order == "line" { // each a little further than the one before
			centre = []float32{.01 * float32(i), 0}
		}
		s := cloud{Summary: quantized.Summary{Point: centre, Group: r.IntN(groups)}}
		for q := range 1 + r.IntN(5) {
			x := slices.Clone(centre)
			if q > 0 {
				x[0], x[1] = x[0]+.1*r.Float32(), x[1]-.1*r.Float32()
			}
			s.points = append(s.points, x)
			s.Multiplicity++
			s.Radius = max(s.Radius, graph.Distance(centre, x, c.Scale))
		}
		for j := range i {
			if r.IntN(n) == 0 && all[j].Group == s.Group {
				s.Links = append(s.Links, j)
			}
		}
		all = append(all, s)
	}
	switch order {
	case "same weight":
		for i := range all {
			all[i].Multiplicity = 1
		}
	case "edge first": // the outermost points are the heaviest, so that centroids lie at the worst places
		for i, s := range all {
			all[i].Multiplicity = 1 + 100*math.Hypot(float64(s.Point[0])-1, float64(s.Point[1])-1)
		}
	case "one place":
		for i := range all {
			all[i].Point = all[0].Point
			all[i].points = [][]float32{all[0].Point}
			all[i].Radius = 0
		}
	}
	return all
}

// For any order, no point is further from its summary than the documented bound, and there are at most K merged
// summaries. R is within the promised factor of the best result of any K centres.
func TestMergeBound(t *testing.T) {
	limited, leftOut, merged := 0, 0, 0
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 30))
		c := merging(1+r.IntN(12), []float64{1.05, 1.5, 3}[seed%3])
		order := []string{"random", "line", "same weight", "edge first", "one place"}[seed%5]
		groups := 1 + r.IntN(3)
		all := clouds(r, c, 1+r.IntN(40), groups, order)
		given := make([]quantized.Summary, len(all))
		largest := 0.
		for i, s := range all {
			given[i] = s.Summary
			largest = max(largest, s.Radius)
		}
		m := c.Merge(given)
		if len(m.Kept) > c.K {
			t.Fatalf("seed %d: %d were kept, and K is %d", seed, len(m.Kept), c.K)
		}
		weight, left := make([]float64, len(m.Kept)), 0
		for i, to := range m.To {
			if to < 0 {
				left++
				continue
			}
			k := m.Kept[to]
			weight[to] += given[i].Multiplicity
			if k.Group != given[i].Group {
				t.Fatalf("seed %d: merged into another group", seed)
			}
			d := graph.Distance(k.Point, given[i].Point, c.Scale)
			if d > m.R*(1+1e-9) || d > 0 && d == m.R {
				t.Fatalf("seed %d: a summary went %g far, and R is %g", seed, d, m.R)
			}
			for q, other := range m.Kept { // to the nearest
				if e := graph.Distance(other.Point, given[i].Point, c.Scale); other.Group == k.Group && e < d*(1-1e-9) {
					t.Fatalf("seed %d: %d went to %d, and %d is nearer", seed, i, to, q)
				}
			}
			for _, x := range all[i].points {
				d := graph.Distance(k.Point, x, c.Scale)
				if d > k.Radius*(1+1e-9)+1e-9 || k.Radius > (largest+m.R)*(1+1e-9) {
					t.Fatalf("seed %d: a point is %g from its centroid; the bounds are %g and %g", seed, d, k.Radius,
						largest+m.R)
				}
			}
		}
		for q, k := range m.Kept {
			if math.Abs(k.Multiplicity-weight[q]) > 1e-9 {
				t.Fatalf("seed %d: it counts %g, want %g", seed, k.Multiplicity, weight[q])
			}
			for p, o := range m.Kept[:q] {
				if d := graph.Distance(k.Point, o.Point, c.Scale); k.Group == o.Group && d < m.R*(1-1e-9) {
					t.Fatalf("seed %d: %d and %d were kept %g apart, and R is %g", seed, p, q, d, m.R)
				}
			}
		}
		if m.Left != left || left > 0 && m.R != c.EdgeRadius() {
			t.Fatalf("seed %d: %d left out with R = %g, %d are said to be", seed, left, m.R, m.Left)
		}
		if left > 0 {
			leftOut++
		}
		if m.R > 0 {
			merged++
		}
		if best := centres(given, c); left == 0 && m.R > 1.01*c.EdgeRadius()*1e-3*c.Multiplier && len(given) <= 12 {
			limited++
			if m.R > 2*c.Multiplier*best*(1+1e-9) {
				t.Fatalf("seed %d: R is %g, and the best centres have %g", seed, m.R, best)
			}
		}
	}
	if limited < 10 || leftOut < 10 || merged < 100 {
		t.Errorf("%d compared with the best, %d with some left out, %d merged: the trials test too little", limited,
			leftOut, merged)
	}
}

// centres tries all sets of K summaries as centres, and returns the smallest possible value of the largest distance
// from a summary to the nearest centre of its group. It returns +Inf if K is less than the number of groups.
func centres(all []quantized.Summary, c quantized.Config) float64 {
	best := math.Inf(1)
	if len(all) > 12 {
		return best
	}
	for set := range 1 << len(all) {
		n, far := 0, 0.
		for i := range all {
			n += set >> i & 1
		}
		if n > c.K {
			continue
		}
		for _, s := range all {
			d := math.Inf(1)
			for j, o := range all {
				if set>>j&1 == 1 && o.Group == s.Group {
					d = min(d, graph.Distance(s.Point, o.Point, c.Scale))
				}
			}
			far = max(far, d)
		}
		best = min(best, far)
	}
	return best
}

// The merged result depends only on the given summaries and their order.
func TestMergeTwice(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 31))
	c := merging(7, 1.5)
	var given []quantized.Summary
	for _, s := range clouds(r, c, 60, 2, "random") {
		given = append(given, s.Summary)
	}
	if a, b := fmt.Sprint(c.Merge(given)), fmt.Sprint(c.Merge(given)); a != b {
		t.Errorf("%s\n%s", a, b)
	}
	if m := c.Merge(nil); len(m.Kept) != 0 || m.R != 0 {
		t.Errorf("nothing makes %+v", m)
	}
	defer func() {
		if r := recover(); r != "quantized: dimension mismatch" {
			t.Errorf("it panics with %v", r)
		}
	}()
	c.Merge([]quantized.Summary{{Point: []float32{1}, Multiplicity: 1}})
}

// A union that has followed its graph through all changes judges to the last bit like a new union. It does not change
// the graph.
func TestUnionFollows(t *testing.T) {
	contracted := 0 // steps after which the graph has contracted edges
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 32))
		g, s := labelled(t, 12, 1000)
		twin, other := labelled(t, 12, 1000)
		for _, g := range []*quantized.Graph{g, twin} {
			c := g.Config()
			c.Link = 2 * c.EdgeRadius()
			if err := g.Configure(c); err != nil {
				t.Fatal(err)
			}
		}
		var guests []quantized.Summary
		for i := range 15 {
			x, _ := s.next()
			other.next()
			guests = append(guests, quantized.Summary{Point: slices.Clone(x), Multiplicity: 1 + r.Float64()})
			if i > 2 {
				guests[i].Links = []int{i - 2}
			}
			guests[i].Follows = []int64{int64(1 + r.IntN(9))}
		}
		u, err := g.Union(guests)
		if err != nil {
			t.Fatal(err)
		}
		for step := range 60 {
			aged(t, g, s, 1+3*step, 3)
			aged(t, twin, other, 1+3*step, 3)
			for _, g := range []*quantized.Graph{g, twin} {
				switch step % 12 {
				case 3:
					if _, err := g.Undo(int64(3*step) - 4); err != nil {
						t.Fatal(err)
					}
				case 6:
					c := g.Config()
					c.K, c.HalfLife = 8+step%5, []int{0, 40}[step%2]
					c.Reach = .8 + .1*float64(step%5) // the union's edges follow
					if err := g.Configure(c); err != nil {
						t.Fatal(err)
					}
				case 9:
					g.Unlearn(func(o int64) bool { return o%7 == 0 })
				}
			}
			x, _ := s.next()
			other.next()
			if len(g.Links()) > 0 {
				contracted++
			}
			fresh, err := g.Union(guests)
			if err != nil {
				t.Fatal(err)
			}
			var got [2]string
			for i, u := range []*quantized.Union{u, fresh} {
				trial, err := u.Look(x, quantized.Sight{Learned: 2}, []int64{1, int64(step)}, []int{step % 15})
				if err != nil {
					t.Fatal(err)
				}
				solution, err := trial.Solve()
				if err != nil {
					t.Fatal(err)
				}
				got[i] = fmt.Sprint(solution, trial.Anchor(0), trial.Far())
			}
			if got[0] != got[1] {
				t.Fatalf("seed %d, step %d: %s, and anew %s", seed, step, got[0], got[1])
			}
			if same(g) != same(twin) {
				t.Fatalf("seed %d, step %d: the union has changed its graph", seed, step)
			}
		}
	}
	if contracted < 100 {
		t.Errorf("there were contracted edges after %d steps only", contracted)
	}
}
