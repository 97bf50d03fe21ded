package evaluate

import (
	"math"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/graph"
	"github.com/faceauth/faceauth/online"
)

// Learner returns the entry of the online quantized harmonic learner. Its score is the confidence.
func Learner(space face.Space, s online.Settings) Entry {
	return Entry{Name: "learner", New: func() (Method, error) {
		l, err := online.New(space, s)
		if err != nil {
			return nil, err
		}
		return &learner{l}, nil
	}}
}

type learner struct{ l *online.Learner }

func (m *learner) Enroll(x []float32, name string) error { return m.l.Label(x, name) }

func (m *learner) Judge(x []float32, hold bool) (string, float64, error) {
	v, err := m.l.ObserveFrame([]online.Observation{{Vector: x, Hold: hold}})
	if err != nil {
		return "", 0, err
	}
	return v[0].Best, v[0].Confidence, nil
}

func (m *learner) Accepts(score float64) bool { return score >= m.l.Settings().Accept }

// Nearest returns the entry of the nearest labelled face, which does not learn. Its score is the
// negative distance.
func Nearest(space face.Space) Entry {
	return Entry{Name: "nearest", Hindsight: true, New: func() (Method, error) { return &nearest{space: space}, nil }}
}

type nearest struct {
	space face.Space
	faces [][]float32
	names []string
}

func (m *nearest) Enroll(x []float32, name string) error {
	if err := m.space.Check(x); err != nil {
		return err
	}
	m.faces, m.names = append(m.faces, x), append(m.names, name)
	return nil
}

func (m *nearest) Judge(x []float32, _ bool) (string, float64, error) {
	if err := m.space.Check(x); err != nil {
		return "", 0, err
	}
	claim, best := "", math.Inf(1)
	for i, f := range m.faces {
		if d := graph.SquaredDistance(x, f); d < best {
			claim, best = m.names[i], d
		}
	}
	return claim, -m.space.Scale * math.Sqrt(best), nil
}

func (m *nearest) Accepts(float64) bool { return true }
