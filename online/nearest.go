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
	nearest := math.Inf(1)
	for i := range l.graph.Len() {
		if class, ok := l.graph.Class(i); ok && l.names[class] == name {
			nearest = min(nearest, l.space.Scale*math.Sqrt(graph.SquaredDistance(x, l.graph.Point(i))))
		}
	}
	return nearest, nil
}
