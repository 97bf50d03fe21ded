// SPDX-License-Identifier: Apache-2.0

package online

import (
	"cmp"
	"math"
	"slices"

	"github.com/faceauth/faceauth/quantized"
)

// Drift says how far the learned faces of a person have moved from the labelled faces. If another
// person slowly takes over, a little at every login, the faces move far in one direction. If a head
// turns, they move to and fro.
type Drift struct {
	// stored faces that were accepted as this person and as nobody else
	Learned float64 `json:"learned"`
	// Distance is the distance from the centre of the learned faces to the centre of the labelled
	// faces, in units of the space's distance.
	Distance float64 `json:"distance"`
	// Constancy is the cosine, in [-1,1], of the angle between two directions: from the labelled
	// centre to the centre of the older half, and from there to the centre of the newer half.
	Constancy float64 `json:"constancy"`
	Alarm     bool    `json:"alarm"` // Distance exceeds Settings.DriftDistance, and Constancy .5
}

// Drift returns the drift of a person. It costs one pass over the stored faces. Without learned
// faces all fields are 0. The error wraps [ErrUnknown].
func (l *Learner) Drift(p Person) (Drift, error) {
	class := l.class(p, false)
	if class < 0 {
		return Drift{}, unknown(p)
	}
	var d Drift
	labelled := l.labelled(class)
	var learned []int
	for i := range l.graph.Len() {
		if s := l.graph.Source(i); len(s) == 1 && s[0] == class { // a labelled face has none
			learned = append(learned, i)
			d.Learned += l.graph.Multiplicity(i)
		}
	}
	if len(learned) == 0 || len(labelled) == 0 {
		return d, nil
	}
	slices.SortStableFunc(learned, func(a, b int) int {
		return cmp.Compare(l.graph.Origin(a).Observation, l.graph.Origin(b).Observation)
	})
	start, now := centre(&l.graph, labelled), centre(&l.graph, learned)
	d.Distance = quantized.Distance(start, now, l.space.Scale)
	// The halves have equal mass. A vertex lies at its first point, so the older half is the older
	// half of all places ever reached.
	half, mass := 0, 0.
	for half < len(learned) && 2*mass < d.Learned {
		mass += l.graph.Multiplicity(learned[half])
		half++
	}
	if half < len(learned) {
		d.Constancy = cosine(start, centre(&l.graph, learned[:half]),
			centre(&l.graph, learned[half:]))
	}
	d.Alarm = l.settings.DriftDistance > 0 && d.Distance > l.settings.DriftDistance &&
		d.Constancy > leastConstancy
	return d, nil
}

// centre returns the mean of the points at vertices, weighted by their multiplicities.
func centre(g *quantized.Graph, vertices []int) []float32 {
	sum := make([]float64, g.Config().Dim)
	mass := 0.
	for _, i := range vertices {
		v := g.Multiplicity(i)
		mass += v
		for q, x := range g.Point(i) {
			sum[q] += v * float64(x)
		}
	}
	c := make([]float32, len(sum))
	for q := range c {
		c[q] = float32(sum[q] / mass)
	}
	return c
}

// cosine returns the cosine of the angle between the directions from a to b and from b to c, or 0
// if two of these points are equal.
func cosine(a, b, c []float32) float64 {
	var ab, bc, dot float64
	for q := range a {
		u, v := float64(b[q])-float64(a[q]), float64(c[q])-float64(b[q])
		ab += u * u
		bc += v * v
		dot += u * v
	}
	if ab == 0 || bc == 0 {
		return 0
	}
	return dot / math.Sqrt(ab*bc)
}
