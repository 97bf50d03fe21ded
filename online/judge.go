// SPDX-License-Identifier: Apache-2.0

package online

import (
	"cmp"
	"errors"
	"math"
	"slices"

	"github.com/faceauth/faceauth/quantized"
)

// Verdict is the result of judging one face.
type Verdict struct {
	Label string `json:"label"` // a person's name, or "" for unknown
	// Best is the person with the largest value, even if the value was too small; "" if all values are 0.
	Best string `json:"best,omitempty"`
	// Confidence is the harmonic value of Best in [0,1], even if it was too small.
	Confidence float64 `json:"confidence"`
	Sink       float64 `json:"sink"`             // mass of the sink: 1 minus the values of all people
	Reason     Reason  `json:"reason,omitempty"` // why nobody was recognised; "" when somebody was
	Learned    bool    `json:"learned"`          // the face is now part of the graph
	// NoRoom says that the face would have been learned if there had been room for another centroid.
	NoRoom bool `json:"no_room,omitempty"`
	// Anchored says that an enrolled face of the named person is near: see [Learner.Radii]. Otherwise the name rests on
	// learned faces, or on an enrolled face that is further away.
	Anchored bool `json:"anchored,omitempty"`
	// Distance is the distance to the nearest enrolled face of the named person; 0 without a name.
	Distance float64 `json:"distance,omitempty"`
	// Lent says that the verdict rests on lessons: without them the learner names nobody.
	Lent bool `json:"lent,omitempty"`
	// Stored is the number of the stored face that is this face, or into which it was merged; 0 if it was not learned.
	Stored int64 `json:"-"`
}

// Reason says in words for a person why a face was not recognised.
type Reason string

// Reasons of a verdict without a label.
const (
	Outlier    Reason = "not near anybody known"
	NoPath     Reason = "not connected to anybody known"
	Tie        Reason = "as close to one person as to another"
	Unsure     Reason = "below the accept threshold"
	Rejected   Reason = "known not to be the person it looks like"
	BetterFace Reason = "another face in this frame is a better match"
)

// resolution is the largest difference between two harmonic values that count as equal, and the largest value that
// counts as 0, if the solution has an error below a tenth of it. For a less accurate solution, twice its error is used.
const resolution = 1e-9

// claim is the class with the largest harmonic value of a face, and this value. It is set even if the value is too
// small for a verdict.
type claim struct {
	class    int // -1 for none
	value    float64
	enrolled bool // only the enrolled faces make the claim
}

// judgement is the result of looking at one face.
type judgement struct {
	own   Verdict         // without lessons
	claim claim           // of own
	trial quantized.Trial // of own
	shown Verdict         // with lessons; own if there are none
	worse bool            // another face of the frame is a better match for the same person
}

// look judges a face in up to three ways, each only if the one before gives no name: by the graph; by the enrolled
// faces alone, so that learning takes no name away; and with lessons. From what only the enrolled faces or lessons say,
// the graph learns nothing. It changes nothing.
func (l *Learner) look(o Observation, j *judgement) (err error) {
	*j = judgement{}
	if j.trial, err = l.graph.Look(o.Vector, l.Radii().sight(), o.Follows...); err != nil {
		return err
	}
	if j.own, j.claim, err = l.judge(j.trial); err != nil {
		return err
	}
	switch j.own.Reason {
	case Outlier, NoPath, Tie: // the graph does not tell
		v, c, err := l.judge(j.trial.Labelled())
		if err != nil {
			return err
		}
		if v.Label != "" {
			j.own, j.claim, j.claim.enrolled = v, c, true
		}
	}
	j.shown = j.own
	if j.own.Label == "" && j.own.Reason != Rejected {
		j.shown, err = l.lend(o, j.own)
	}
	return err
}

// lend returns the verdict with lessons on a face, or if there are none, its own verdict without them.
func (l *Learner) lend(o Observation, own Verdict) (Verdict, error) {
	s := l.share()
	if s == nil || s.err != nil {
		return own, nil
	}
	t, err := s.look(l, o)
	var v Verdict
	if err == nil {
		v, _, err = l.judge(t)
	}
	// There may be too many enrolled faces since then, or weights that cannot be solved with. Lessons must not prevent
	// l from judging by itself. Warnings says so.
	if errors.Is(err, ErrFull) || errors.Is(err, quantized.ErrUnsolved) {
		s.err = err
		return own, nil
	}
	v.Lent, v.Anchored = true, false // a name that rests on lessons confirms nobody
	return v, err
}

// judge turns the harmonic solution at a face into a verdict and a claim.
func (l *Learner) judge(t quantized.Trial) (Verdict, claim, error) {
	none := claim{class: -1}
	if t.Outlier() || !l.Radii().recognises(t) {
		return Verdict{Sink: 1, Reason: Outlier}, none, nil
	}
	solution, err := t.Solve()
	if err != nil {
		return Verdict{}, none, err
	}
	v := Verdict{Sink: 1}
	best, second, person := none, 0., -1
	for _, x := range solution.Values {
		c, value := x.Class, min(max(x.Value, 0), 1)
		if !l.classes[c].Negative {
			v.Sink -= value
			if value > v.Confidence {
				person, v.Confidence = c, value
			}
		}
		if value > best.value {
			best, second = claim{class: c, value: value}, best.value
		} else {
			second = max(second, value)
		}
	}
	v.Sink = min(max(v.Sink, 0), 1)
	equal := max(resolution, 2*solution.Bound)
	switch {
	case best.value <= equal:
		v.Confidence, v.Reason = 0, NoPath
		return v, none, nil
	case best.value-second <= equal:
		v.Reason = Tie
		return v, claim{class: -1, value: best.value}, nil
	}
	if person >= 0 {
		v.Best = l.classes[person].Name
	}
	rejected, ok := l.index[class{l.classes[best.class].Name, true}]
	switch {
	case l.classes[best.class].Negative:
		v.Reason = Rejected
	case ok && rejects(t, rejected, best.class):
		v.Reason, best.class = Rejected, rejected
	case v.Confidence < l.settings.Accept:
		v.Reason = Unsure
	default:
		v.Label, v.Distance = v.Best, t.Anchor(best.class)
		v.Anchored = v.Distance <= l.Radii().Anchor
	}
	return v, best, nil
}

// rejects reports whether a face that would be a person's has an edge to a face that was rejected as this person's, and
// no shorter edge to one of this person's labelled faces.
func rejects(t quantized.Trial, rejected, person int) bool {
	d := t.Nearest(rejected)
	return !math.IsInf(d, 1) && d <= t.Nearest(person)
}

// decide gives each name to one face of a frame: nobody is in one frame twice.
func decide(all []judgement) {
	if len(all) < 2 {
		return
	}
	oneEach(all, func(j *judgement) *Verdict { return &j.own })
	oneEach(all, func(j *judgement) *Verdict { return &j.shown })
}

// oneEach takes the label from every verdict but the best of those that share it. The first of equals wins. It marks
// the faces that look like somebody whom a better face looks like.
func oneEach(all []judgement, verdict func(j *judgement) *Verdict) {
	order := make([]*judgement, len(all))
	for i := range all {
		order[i] = &all[i]
	}
	slices.SortStableFunc(order, func(a, b *judgement) int {
		v, w := verdict(a), verdict(b)
		if v.Lent != w.Lent {
			if w.Lent { // no lesson takes a name from a face that has it without one
				return -1
			}
			return 1
		}
		return cmp.Compare(w.Confidence, v.Confidence)
	})
	taken := make(map[string]bool)
	for _, j := range order {
		v := verdict(j)
		if v.Label == "" && v.Reason != Unsure {
			continue
		}
		if taken[v.Best] {
			j.worse = j.worse || v == &j.own // what is learned does not depend on lessons
			if v.Label != "" {
				v.Label, v.Reason = "", BetterFace
			}
		}
		taken[v.Best] = true
	}
}
