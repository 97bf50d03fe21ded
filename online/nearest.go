// SPDX-License-Identifier: Apache-2.0

package online

import (
	"math"

	"github.com/faceauth/faceauth/graph"
)

// Nearest returns the distance from x to the nearest labelled face of a person. Learning does not change it. It
// is +Inf if l does not know the person. The error comes from [face.Space.Check].
func (l *Learner) Nearest(x []float32, p Person) (float64, error) {
	if err := l.space.Check(x); err != nil {
		return 0, err
	}
	nearest, class := math.Inf(1), l.class(p, false)
	if class < 0 {
		return nearest, nil
	}
	for i := range l.graph.Len() {
		if c, ok := l.graph.Class(i); ok && c == class {
			nearest = min(nearest, graph.Distance(x, l.graph.Point(i), l.space.Scale))
		}
	}
	return nearest, nil
}
