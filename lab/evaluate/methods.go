// SPDX-License-Identifier: Apache-2.0

package evaluate

import (
	"slices"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/sighting"
)

// Learner returns the entry of the online quantized harmonic learner. Its score is the confidence.
func Learner(space face.Space, s online.Settings) Entry {
	return Entry{Name: "learner", New: func() (Method, error) {
		l, err := online.New(space, s)
		if err != nil {
			return nil, err
		}
		return &learner{l: l}, nil
	}}
}

var (
	_ Alarmer = (*learner)(nil)
	_ Bounded = (*learner)(nil)
)

type learner struct {
	l      *online.Learner
	people people
}

// people has the names of the people of a learner. The first is person 1.
type people []string

// number returns the number of a person, who may be new.
func (p *people) number(name string) online.Person {
	if !slices.Contains(*p, name) {
		*p = append(*p, name)
	}
	return online.Person(slices.Index(*p, name) + 1)
}

// name returns the name of a person, or "" for nobody.
func (p people) name(n online.Person) string {
	if n == 0 {
		return ""
	}
	return p[n-1]
}

func (m *learner) Enroll(x []float32,
	name string) error {
	return m.l.Label(x, m.people.number(name))
}

func (m *learner) Judge(x []float32, hold bool) (string, float64, error) {
	v, err := m.l.ObserveFrame([]online.Observation{{Vector: x, Hold: hold}})
	if err != nil {
		return "", 0, err
	}
	return m.people.name(v[0].Best), v[0].Confidence, nil
}

func (m *learner) Accepts(score float64) bool { return score >= m.l.Settings().Accept }

// PassedOver implements [Bounded].
func (m *learner) PassedOver() int64 { return m.l.Counts().PassedOver }

// Sightings returns the entry of the learner with a [sighting.Watcher], as the programs use it. Its
// score is the confidence. A face without a name of its own gets the name of its sighting. Each
// recording has its own camera.
func Sightings(space face.Space, s online.Settings) Entry {
	return watching("sightings", space, s, false)
}

var (
	_ Watching = (*sightings)(nil)
	_ Bounded  = (*sightings)(nil)
)

// Confirmed is [Sightings], but only confirmed faces count as recognised ([sighting.Seen].Trust).
func Confirmed(space face.Space, s online.Settings) Entry {
	return watching("confirmed", space, s, true)
}

func watching(name string, space face.Space, s online.Settings, strict bool) Entry {
	return Entry{Name: name, New: func() (Method, error) {
		l, err := online.New(space, s)
		if err != nil {
			return nil, err
		}
		return &sightings{learner: learner{l: l}, strict: strict,
			watchers: make(map[int]*sighting.Watcher)}, nil
	}}
}

type sightings struct {
	learner
	strict   bool                      // only confirmed people
	watchers map[int]*sighting.Watcher // by recording
}

// See implements [Watching].
func (m *sightings) See(f Face, recording int, hold bool) (string, float64, error) {
	w := m.watchers[recording]
	if w == nil {
		w = sighting.NewWatcher(m.l)
		m.watchers[recording] = w
	}
	seen, err := w.See(f.At, []face.Sample{f.Sample()}, func(int) bool { return hold })
	if err != nil {
		return "", 0, err
	}
	name, v := m.people.name(seen[0].Belief.Person), seen[0].Verdict
	switch {
	case m.strict && seen[0].Trust != sighting.Confirmed:
		name = ""
	case !m.strict && v.Person != 0:
		name = m.people.name(v.Person)
	}
	return name, v.Confidence, nil
}

// Accepts returns true, because every named face is accepted.
func (m *sightings) Accepts(float64) bool { return true }

// Alarmed implements [Alarmer] with the alarm for drift.
func (m *learner) Alarmed(name string) (bool, error) {
	d, err := m.l.Drift(m.people.number(name))
	return d.Alarm, err
}
