// SPDX-License-Identifier: Apache-2.0

package online

import (
	"cmp"
	"math"
	"slices"

	"github.com/faceauth/faceauth/quantized"
)

// Verdict is the result of judging one face.
type Verdict struct {
	Person Person `json:"person"` // 0 for unknown
	// Best is the person with the largest value, even if the value was too small; 0 if all values
	// are 0.
	Best Person `json:"best,omitempty"`
	// Confidence is the harmonic value of Best in [0,1], even if it was too small.
	Confidence float64 `json:"confidence"`
	// mass of the sink: 1 minus the values of all people
	Sink    float64 `json:"sink"`
	Reason  Reason  `json:"reason,omitempty"` // why nobody was recognised; "" when somebody was
	Learned bool    `json:"learned"`          // the face is now part of the graph
	// NoRoom says that the face would have been learned if there had been room for another
	// centroid.
	NoRoom bool `json:"no_room,omitempty"`
	// Anchored says that an enrolled face of the named person is near: see [Learner.Radii].
	// Otherwise the name rests on learned faces, or on an enrolled face that is further away.
	Anchored bool `json:"anchored,omitempty"`
	// Distance is the distance to the nearest enrolled face of the named person; 0 without a name.
	Distance float64 `json:"distance,omitempty"`
	// Stored is the number of the stored face that is this face, or into which it was merged; 0 if
	// it was not learned.
	Stored int64 `json:"-"`
}

// Refuse takes the name, if there is one, from a verdict for a reason: [BetterFace] or [Strayed].
func (v *Verdict) Refuse(reason Reason) {
	if v.Person != 0 {
		v.Person, v.Reason, v.Distance, v.Anchored = 0, reason, 0, false
	}
}

// Reason says in words for a person why a face was not recognised.
type Reason string

// Reasons of a verdict without a person.
const (
	Outlier    Reason = "not near anybody known"
	NoPath     Reason = "not connected to anybody known"
	Tie        Reason = "as close to one person as to another"
	Unsure     Reason = "below the accept threshold"
	Rejected   Reason = "known not to be the person it looks like"
	Strayed    Reason = "too far from the enrolled faces of the person it looks like"
	BetterFace Reason = "another face in this frame is a better match"
)

// resolution is the largest difference between two harmonic values that count as equal, and the
// largest value that counts as 0, if the solution has an error below a tenth of it. For a less
// accurate solution, twice its error is used.
const resolution = 1e-9

// claim is the class with the largest harmonic value of a face, and this value. It is set even if
// the value is too small for a verdict.
type claim struct {
	class    int // -1 for none
	value    float64
	distance float64 // to the nearest enrolled face of the class
	enrolled bool    // only the enrolled faces make the claim
}

// judgement is the result of looking at one face.
type judgement struct {
	verdict Verdict
	claim   claim
	trial   quantized.Trial
	worse   bool // another face of the frame is a better match for the same person
}

// look judges a face by the graph and, if that gives no name, by the enrolled faces alone, so that
// learning takes no name away. From what only the enrolled faces say, the graph learns nothing. It
// changes nothing.
func (l *Learner) look(o Observation) (j judgement) {
	r := l.Radii()
	j.trial = l.graph.Look(o.Vector, r.Enrolled, r.Learned, o.Follows...)
	j.verdict, j.claim = l.judge(j.trial)
	switch j.verdict.Reason {
	case Outlier, NoPath, Tie, Strayed: // the graph does not tell
		if v, c := l.judge(j.trial.Labelled()); v.Person != 0 {
			j.verdict, j.claim, j.claim.enrolled = v, c, true
		}
	}
	return j
}

// judge turns the harmonic solution at a face into a verdict and a claim.
func (l *Learner) judge(t quantized.Trial) (Verdict, claim) {
	none := claim{class: -1}
	if t.Outlier() || !l.Radii().recognises(t) {
		return Verdict{Sink: 1, Reason: Outlier}, none
	}
	solution := t.Solve()
	v := Verdict{Sink: 1}
	best, second := none, 0.
	for _, x := range solution.Values {
		if l.classes[x.Class].Negative { // a denied face competes with nobody
			continue
		}
		value := min(max(x.Value, 0), 1)
		v.Sink -= value
		if value > best.value {
			best, second = claim{class: x.Class, value: value}, best.value
		} else {
			second = max(second, value)
		}
	}
	v.Sink, v.Confidence = min(max(v.Sink, 0), 1), best.value
	equal := max(resolution, 2*solution.Bound)
	switch {
	case !(best.value > equal):
		v.Confidence, v.Reason = 0, NoPath
		return v, none
	case !(best.value-second > equal):
		v.Reason = Tie
		return v, claim{class: -1, value: best.value}
	}
	v.Best = l.classes[best.class].Person
	best.distance = t.Anchor(best.class)
	_, _, follows := t.Closest()
	switch {
	case l.denied(t, best.class):
		v.Reason = Rejected
	case !follows && l.Radii().strays(best.distance):
		v.Reason = Strayed
	case v.Confidence < l.settings.Accept:
		v.Reason = Unsure
	default:
		v.Person, v.Distance = v.Best, best.distance
		v.Anchored = v.Distance <= l.Radii().Anchor
	}
	return v, best
}

// denied reports whether a face that would be a person's has an edge to a face that was rejected as
// this person's, and no shorter edge to a labelled or learned face of this person.
func (l *Learner) denied(t quantized.Trial, person int) bool {
	rejected, ok := l.index[class{l.classes[person].Person, true}]
	if !ok {
		return false
	}
	d := t.Nearest(rejected)
	return !math.IsInf(d, 1) && d <= t.Nearest(person)
}

// nearer orders the faces of a picture by the distance to the enrolled faces of whom they look
// like, and faces without a name last. The confidence does not tell who of two it is: a bridge
// between two people has more of it than a person.
func nearer(a, b *judgement) int {
	nameless := func(j *judgement) int {
		if j.verdict.Person == 0 {
			return 1
		}
		return 0
	}
	return cmp.Or(nameless(a)-nameless(b), cmp.Compare(a.claim.distance, b.claim.distance))
}

// decide takes the label from every verdict of a picture but the nearest of those that share it,
// because nobody is in it twice. The first of equals wins, and held people keep their names. It
// marks the faces that look like somebody whom a nearer face looks like.
func decide(all []judgement, held []Person) {
	if len(all)+len(held) < 2 {
		return
	}
	order := make([]*judgement, len(all))
	for i := range all {
		order[i] = &all[i]
	}
	slices.SortStableFunc(order, nearer)
	taken := make(map[Person]bool)
	for _, p := range held {
		taken[p] = true
	}
	for _, j := range order {
		v := &j.verdict
		if v.Person == 0 && v.Reason != Unsure {
			continue
		}
		if taken[v.Best] {
			j.worse = true
			v.Refuse(BetterFace)
		}
		taken[v.Best] = true
	}
}
