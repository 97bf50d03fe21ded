package evaluate

import (
	"github.com/faceauth/faceauth/face"
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

var (
	_ Alarmer = (*learner)(nil)
	_ Bounded = (*learner)(nil)
)

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

// PassedOver implements [Bounded].
func (m *learner) PassedOver() int64 { return m.l.Counts().PassedOver }

// Alarmed implements [Alarmer] by the alarm for drift.
func (m *learner) Alarmed(name string) (bool, error) {
	d, err := m.l.Drift(name)
	return d.Alarm, err
}
