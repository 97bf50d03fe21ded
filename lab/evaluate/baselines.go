// SPDX-License-Identifier: Apache-2.0

package evaluate

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/quantized"
)

// Methods are the names for [Entries], the learner first.
var Methods = []string{"learner", "sightings", "confirmed", "within", "nearest", "knn", "mean",
	"boost", "boost-first", "boost-last", "selftrain"}

// ErrMethod is wrapped by the error of [Entries].
var ErrMethod = errors.New("unknown method")

// Entries returns the methods with these names. The learner always comes first, because the best
// thresholds of the others are chosen at its false accepts. S has its defaults filled in, as in
// [online.Learner.Settings].
func Entries(names []string, space face.Space, s online.Settings) ([]Entry, error) {
	all := map[string]Entry{
		"learner":     Learner(space, s),
		"sightings":   Sightings(space, s),
		"confirmed":   Confirmed(space, s),
		"within":      Within(space, s),
		"nearest":     Nearest(space),
		"knn":         KNN(space, 3),
		"mean":        Mean(space),
		"boost":       Boost("boost", space, s, 0, 1),
		"boost-first": Boost("boost-first", space, s, 0, .25),
		"boost-last":  Boost("boost-last", space, s, .75, 1),
		"selftrain":   SelfTraining(space, s.Reach),
	}
	entries := []Entry{all["learner"]}
	for _, name := range names {
		e, ok := all[name]
		if !ok {
			return nil, fmt.Errorf("%w %q; use %s", ErrMethod, name, strings.Join(Methods, ", "))
		}
		if !slices.ContainsFunc(entries, func(o Entry) bool { return o.Name == name }) {
			entries = append(entries, e)
		}
	}
	return entries, nil
}

// templates are labelled faces.
type templates struct {
	space face.Space
	faces [][]float32
	names []string
}

func (m *templates) Enroll(x []float32, name string) error {
	if err := m.space.Check(x); err != nil {
		return err
	}
	m.faces, m.names = append(m.faces, x), append(m.names, name)
	return nil
}

// Accepts returns true, because the threshold is chosen afterwards.
func (m *templates) Accepts(float64) bool { return true }

// nearest returns the nearest template, or the first of equals, and its distance.
func (m *templates) nearest(x []float32) (name string, distance float64, err error) {
	if err := m.space.Check(x); err != nil {
		return "", 0, err
	}
	best := math.Inf(1)
	for i, f := range m.faces {
		if d := quantized.SquaredDistance(x, f); d < best {
			name, best = m.names[i], d
		}
	}
	return name, m.space.Scale * math.Sqrt(best), nil
}

// Nearest returns the entry of the nearest labelled face, which does not learn. Its score is the
// negative distance.
func Nearest(space face.Space) Entry {
	return Entry{Name: "nearest", Hindsight: true, New: func() (Method, error) {
		return &nearest{templates{space: space}}, nil
	}}
}

type nearest struct{ templates }

// Within returns the entry of the nearest labelled face within a distance that is known before the
// test: that at Settings.Strangers, divided by the number of labelled faces, in the table of the
// space. It does not learn.
func Within(space face.Space, s online.Settings) Entry {
	return Entry{Name: "within", New: func() (Method, error) {
		return &nearEnough{nearest{templates{space: space}}, s.Strangers}, nil
	}}
}

type nearEnough struct {
	nearest
	rate float64
}

func (m *nearEnough) Judge(x []float32, hold bool) (string, float64, error) {
	name, score, err := m.nearest.Judge(x, hold)
	if -score > m.space.Stills.Within(m.rate/float64(len(m.faces))) {
		name = ""
	}
	return name, score, err
}

func (m *nearest) Judge(x []float32, _ bool) (string, float64, error) {
	name, d, err := m.nearest(x)
	return name, -d, err
}

// KNN returns the entry of the k nearest labelled faces, which does not learn. The person with most
// of them wins, or of equals the person with the smaller mean distance. Its score is the negative
// mean distance of this person's faces among the k.
func KNN(space face.Space, k int) Entry {
	return Entry{Name: "knn", Hindsight: true, New: func() (Method, error) {
		return &knn{templates{space: space}, k}, nil
	}}
}

type knn struct {
	templates
	k int
}

func (m *knn) Judge(x []float32, _ bool) (string, float64, error) {
	if err := m.space.Check(x); err != nil {
		return "", 0, err
	}
	d := make([]float64, len(m.faces))
	order := make([]int, len(m.faces))
	for i, f := range m.faces {
		d[i], order[i] = quantized.Distance(x, f, m.space.Scale), i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(d[a], d[b]) })
	order = order[:min(m.k, len(order))]
	best, votes, least := "", 0, 0.
	for _, i := range order {
		n, sum := 0, 0.
		for _, j := range order {
			if m.names[j] == m.names[i] {
				n++
				sum += d[j]
			}
		}
		if n > votes || n == votes && sum/float64(n) < least {
			best, votes, least = m.names[i], n, sum/float64(n)
		}
	}
	return best, -least, nil
}

// Mean returns the entry of the mean of each person's labelled faces, which does not learn. Most
// login programs work this way. In a space of unit vectors the mean is scaled to unit length. Its
// score is the negative distance to the nearest mean.
func Mean(space face.Space) Entry {
	return Entry{Name: "mean", Hindsight: true, New: func() (Method, error) {
		return &meanTemplate{templates: templates{space: space}}, nil
	}}
}

type meanTemplate struct {
	templates
	sums   [][]float64 // a row for each name
	counts []float64
}

func (m *meanTemplate) Enroll(x []float32, name string) error {
	if err := m.space.Check(x); err != nil {
		return err
	}
	i := slices.Index(m.names, name)
	if i < 0 {
		i = len(m.names)
		m.names = append(m.names, name)
		m.sums, m.counts = append(m.sums, make([]float64, m.space.Dim)), append(m.counts, 0)
		m.faces = append(m.faces, make([]float32, m.space.Dim))
	}
	m.counts[i]++
	var norm float64
	for q, v := range x {
		m.sums[i][q] += float64(v)
		norm += m.sums[i][q] * m.sums[i][q]
	}
	scale := 1 / m.counts[i]
	if m.space.Unit && norm > 0 {
		scale = 1 / math.Sqrt(norm)
	}
	for q, v := range m.sums[i] {
		m.faces[i][q] = float32(v * scale)
	}
	return nil
}

func (m *meanTemplate) Judge(x []float32, _ bool) (string, float64, error) {
	name, d, err := m.nearest(x)
	return name, -d, err
}

// SelfTraining returns the entry of the nearest face that stores every accepted face under the name
// that it gave. It stands for systems that adapt without a graph, without a bound on memory, and
// without corrections. It accepts faces up to a radius, in units of the space's distance. Its score
// is the negative distance.
func SelfTraining(space face.Space, radius float64) Entry {
	return Entry{Name: "selftrain", New: func() (Method, error) {
		if !(radius > 0) {
			return nil, fmt.Errorf(
				"%w: selftrain needs a radius, and is given the longest edge, which is %g",
				ErrMethod, radius)
		}
		return &selfTraining{templates{space: space}, radius}, nil
	}}
}

type selfTraining struct {
	templates
	radius float64
}

func (m *selfTraining) Judge(x []float32, hold bool) (string, float64, error) {
	name, d, err := m.nearest(x)
	if err == nil && !hold && m.Accepts(-d) {
		m.faces, m.names = append(m.faces, x), append(m.names, name)
	}
	return name, -d, err
}

func (m *selfTraining) Accepts(score float64) bool { return -score <= m.radius }
