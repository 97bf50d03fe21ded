// SPDX-License-Identifier: Apache-2.0

package online

import (
	"math"

	"github.com/faceauth/faceauth/quantized"
)

// Nearest returns the distance from x to the nearest labelled face of a person. Learning does not
// change it. It is +Inf if l does not know the person. The error comes from [face.Space.Check].
func (l *Learner) Nearest(x []float32, p Person) (float64, error) {
	if err := l.space.Check(x); err != nil {
		return 0, err
	}
	nearest := math.Inf(1)
	for _, i := range l.labelled(l.class(p, false)) {
		nearest = min(nearest, quantized.Distance(x, l.graph.Point(i), l.space.Scale))
	}
	return nearest, nil
}

// Closest returns the person of the labelled face that is nearest to x, and its distance, if that
// is below a bound; or 0 and the bound.
func (l *Learner) Closest(x []float32, bound float64) (p Person, distance float64) {
	const stretch = 64 // most faces are far, which shows early
	most := bound / l.space.Scale * (bound / l.space.Scale)
	for i := range l.graph.Len() {
		c, ok := l.graph.Class(i)
		if !ok || l.classes[c].Negative {
			continue
		}
		y, sum := l.graph.Point(i), 0.
		for at := 0; at < len(x) && sum < most; at += stretch {
			end := min(at+stretch, len(x))
			sum += quantized.SquaredDistance(x[at:end], y[at:end])
		}
		if sum < most {
			p, most = l.classes[c].Person, sum
		}
	}
	return p, l.space.Scale * math.Sqrt(most)
}
