// SPDX-License-Identifier: Apache-2.0

package evaluate

import (
	"math"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/lab/distil"
	"github.com/faceauth/faceauth/online"
)

// Distilled returns the entry of the small verifiers. They are made at the start of the test from the learner's faces:
// only labelled faces, unless [Protocol].Apart leaves faces to learn from. Its score is the largest value of any
// person's verifier.
func Distilled(space face.Space, s online.Settings) Entry {
	return Entry{Name: "distilled", New: func() (Method, error) {
		l, err := online.New(space, s)
		if err != nil {
			return nil, err
		}
		return &distilled{learner: learner{l: l}}, nil
	}}
}

var _ Finisher = (*distilled)(nil)

type distilled struct {
	learner
	verifiers []*distil.Verifier
}

// Finish implements [Finisher].
func (m *distilled) Finish() error {
	for _, p := range m.l.People() {
		v, err := distil.New(m.l, p, distil.Settings{})
		if err != nil {
			return err
		}
		m.verifiers = append(m.verifiers, v)
	}
	return nil
}

func (m *distilled) Judge(x []float32, hold bool) (claim string, score float64, err error) {
	if m.verifiers == nil {
		return m.learner.Judge(x, hold)
	}
	score = math.Inf(-1)
	for _, v := range m.verifiers {
		f, err := v.Value(x)
		if err != nil {
			return "", 0, err
		}
		if f > score {
			claim, score = m.people.name(v.Person()), f
		}
	}
	return claim, score, nil
}

func (m *distilled) Accepts(score float64) bool {
	if m.verifiers == nil {
		return m.learner.Accepts(score)
	}
	return score >= m.verifiers[0].Threshold()
}
