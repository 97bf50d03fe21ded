// SPDX-License-Identifier: Apache-2.0

package evaluate

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/quantized"
)

// weakLearners is the number of stream faces in a boosted classifier.
const weakLearners = 500

// Boost returns the entry of online semi-supervised boosting (Grabner, Leistner and Bischof, ECCV
// 2008) as the thesis modified it to be comparable (Section "Face recognition"): 500 weak learners,
// each of which decides whether a face is near one face of the stream,
//
//	h_i(x) = 1 where w(x, x_i) >= epsilon, else 0,    H(x) = Σ α_i h_i(x),
//
// for faces x_i drawn at random from a part of the stream, given as two shares of its length, which
// the method gets beforehand. W and epsilon, a tenth of gamma, are the learner's. Each person has a
// regressor. The score is the largest H, and a face with H > 0 is accepted, so a face far from all
// weak learners is an outlier.
//
// The thesis does not print its listing. Here a weak learner that says 0 abstains, and α_i = ½
// ln(W+/W-), half the logarithm of the ratio of the sums of weights for the person and against
// (Schapire and Singer 1999). Both sums begin with 1. A face weighs |z| in favour of the sign of z
// = p exp(-H(x)) - q exp(H(x)), where p and q are the weights of its edges to the nearest labelled
// face of the person and of the others (Mallapragada et al., SemiBoost, 2009, without the term
// between unlabelled faces, which cannot be kept in a stream). A labelled face has an edge of
// weight 1 to itself, and a face that is near no labelled face teaches nothing.
func Boost(name string, space face.Space, s online.Settings, from, to float64) Entry {
	return Entry{Name: name, New: func() (Method, error) {
		if !(s.Gamma > 0 && s.Sigma > 0) {
			return nil, errors.New("boosting needs the learner's sigma and gamma")
		}
		edges := quantized.Config{Kernel: quantized.Heat(s.Sigma), Epsilon: .1 * s.Gamma,
			Reach: s.Reach}
		return &boost{templates: templates{space: space}, edges: edges, from: from, to: to}, nil
	}}
}

type boost struct {
	templates                  // labelled faces
	edges     quantized.Config // the learner's: only their weights and lengths
	from, to  float64
	weak      [][]float32
	classes   []string
	votes     [][][2]float64 // for each class and weak learner, the weights against and in favour
}

// Foresee implements [Foreseer].
func (m *boost) Foresee(stream [][]float32) error {
	n := float64(len(stream))
	part := slices.Clone(stream[int(m.from*n):int(m.to*n)])
	r := rand.New(rand.NewPCG(500, 0))
	r.Shuffle(len(part), func(i, j int) { part[i], part[j] = part[j], part[i] })
	m.weak = part[:min(len(part), weakLearners)]
	return nil
}

func (m *boost) Enroll(x []float32, name string) error {
	if err := m.templates.Enroll(x, name); err != nil {
		return err
	}
	if !slices.Contains(m.classes, name) {
		votes := make([][2]float64, len(m.weak))
		for i := range votes {
			votes[i] = [2]float64{1, 1}
		}
		m.classes, m.votes = append(m.classes, name), append(m.votes, votes)
		for _, f := range m.faces[:len(m.faces)-1] { // of others, who came before
			m.label(len(m.classes)-1, m.near(f), -1)
		}
	}
	near := m.near(x)
	for c := range m.classes {
		y := -1.
		if m.classes[c] == name {
			y = 1
		}
		m.label(c, near, y)
	}
	return nil
}

// label learns a labelled face for a class (y = 1) or against it (y = -1).
func (m *boost) label(class int, near []int, y float64) {
	m.learn(class, near, y*math.Exp(-y*m.sum(class, near)))
}

func (m *boost) Judge(x []float32, hold bool) (string, float64, error) {
	if err := m.space.Check(x); err != nil {
		return "", 0, err
	}
	near := m.near(x)
	best, score := "", 0.
	for c, name := range m.classes {
		if h := m.sum(c, near); h > score {
			best, score = name, h
		}
	}
	if !hold {
		for c, p := range m.labelledWeights(x) {
			h := m.sum(c, near)
			m.learn(c, near, p.own*math.Exp(-h)-p.others*math.Exp(h))
		}
	}
	return best, score, nil
}

func (m *boost) Accepts(score float64) bool { return score > 0 }

// weight returns the weight of the edge between two faces, or 0 if there is none.
func (m *boost) weight(x, y []float32) float64 {
	d := quantized.Distance(x, y, m.space.Scale)
	if d > m.edges.EdgeRadius() {
		return 0
	}
	return m.edges.Kernel.Weight(d)
}

// near returns the weak learners that say 1.
func (m *boost) near(x []float32) (near []int) {
	radius := m.edges.EdgeRadius() / m.space.Scale
	for i, w := range m.weak {
		if within(x, w, radius*radius) && m.weight(x, w) > 0 {
			near = append(near, i)
		}
	}
	return near
}

// within reports whether the squared distance of two vectors is at most a little above a limit. For
// most pairs the first few hundred values decide.
func within(x, y []float32, limit float64) bool {
	limit *= 1 + 1e-9
	const part = 256
	sum := 0.
	for from := 0; from < len(x) && sum <= limit; from += part {
		to := min(from+part, len(x))
		sum += quantized.SquaredDistance(x[from:to], y[from:to])
	}
	return sum <= limit
}

// labelledWeights returns for each class the weights of a face's edges to the nearest labelled face
// of the class and of the others.
func (m *boost) labelledWeights(x []float32) []struct{ own, others float64 } {
	w := make([]struct{ own, others float64 }, len(m.classes))
	for i, f := range m.faces {
		weight := m.weight(x, f)
		for c, name := range m.classes {
			if name == m.names[i] {
				w[c].own = max(w[c].own, weight)
			} else {
				w[c].others = max(w[c].others, weight)
			}
		}
	}
	return w
}

// alpha returns the weight of a weak learner.
func (m *boost) alpha(class, i int) float64 {
	v := m.votes[class][i]
	return .5 * math.Log(v[1]/v[0])
}

// sum returns H of a class for a face with these weak learners near.
func (m *boost) sum(class int, near []int) (h float64) {
	for _, i := range near {
		h += m.alpha(class, i)
	}
	return h
}

// learn adds a weight to each weak learner near the face: for the class if it is positive, against
// it if it is negative.
func (m *boost) learn(class int, near []int, weight float64) {
	for _, i := range near {
		if weight > 0 {
			m.votes[class][i][1] += weight
		} else {
			m.votes[class][i][0] -= weight
		}
	}
}
