package online

import (
	"math"

	"github.com/faceauth/faceauth/graph"
)

// Nearest returns the distance from x to the nearest labelled face of the named person: what no learning changes. It
// is +Inf where l knows nobody of that name. The error is that of [face.Space.Check].
func (l *Learner) Nearest(x []float32, name string) (float64, error) {
	if err := l.space.Check(x); err != nil {
		return 0, err
	}
	if class := l.class(name, false); class >= 0 {
		return l.nearest(x, class), nil
	}
	return math.Inf(1), nil
}

// nearest returns the distance from x to the nearest labelled face of a class.
func (l *Learner) nearest(x []float32, class int) float64 {
	nearest := math.Inf(1)
	for _, i := range l.labelled(class) {
		nearest = min(nearest, graph.Distance(x, l.graph.Point(i), l.space.Scale))
	}
	return nearest
}
