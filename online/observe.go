// SPDX-License-Identifier: Apache-2.0

package online

import (
	"fmt"

	"github.com/faceauth/faceauth/graph"
	"github.com/faceauth/faceauth/quantized"
)

// Observe judges a face and learns from it.
//
// The error comes from [face.Space.Check]. On error l is unchanged.
func (l *Learner) Observe(x []float32) (Verdict, error) {
	if err := l.space.Check(x); err != nil {
		return Verdict{}, err
	}
	return l.observe(Observation{Vector: x})
}

// observe judges one face and counts it.
func (l *Learner) observe(o Observation) (Verdict, error) {
	v, err := l.step(o, 1, l.counts.Observed+1)
	if err == nil {
		l.count(v)
	}
	return v, err
}

// Observation is one face in a frame.
type Observation struct {
	Vector []float32
	Hold   bool // judge the face, but do not learn it, for example because the picture is poor
	// Follows has the numbers of stored faces ([Verdict].Stored) that are known to show the same person: earlier faces
	// of the same track. The new face is joined to them up to the length Settings.Link, and to other faces up to
	// Settings.Reach: a must-link.
	Follows []int64
	// As is the person as whom the face may be learned, or "" if any person may claim the face.
	As string
}

// ObserveFrame judges all faces of one frame. Nobody can be twice in a frame: if two faces look like the same person,
// the face with the higher confidence is this person. The other face is unknown and is not learned.
//
// All faces are judged with the graph before the frame. Then they are learned in order. A face is skipped if it was an
// outlier, or if it would now be learned as another person than the verdict says, because earlier faces of the frame
// were learned. Two faces in one frame are two people, a cannot-link: if two faces are so near that an edge would join
// them, the second is not learned, so neither is learned through the other.
//
// The error comes from [face.Space.Check] for the first bad vector. On error l is unchanged.
func (l *Learner) ObserveFrame(faces []Observation) ([]Verdict, error) {
	for i, f := range faces {
		if err := l.space.Check(f.Vector); err != nil {
			return nil, fmt.Errorf("face %d of %d: %w", i+1, len(faces), err)
		}
	}
	verdicts := make([]Verdict, len(faces))
	if len(faces) == 1 {
		v, err := l.observe(faces[0])
		if err != nil {
			return nil, err
		}
		verdicts[0] = v
		return verdicts, nil
	}
	// Judge each face against the present graph, settle the claims, then learn the winners.
	claims := make([]claim, len(faces))
	var shown []Verdict // verdicts with lessons, from which nothing is learned
	for i, f := range faces {
		v, c, err := l.look(f)
		if err != nil {
			return nil, err
		}
		verdicts[i], claims[i] = v, c
		if l.helped() {
			v, _, err := l.lend(f, v, c)
			if err != nil {
				return nil, err
			}
			shown = append(shown, v)
		}
	}
	worse := oneEach(verdicts)
	oneEach(shown)
	for i, f := range faces {
		if v := &verdicts[i]; !f.Hold && !worse[i] && !l.alike(faces[:i], verdicts, f) && v.Reason != Outlier &&
			!l.settings.Freeze {
			learned, err := l.learn(f, 1, l.counts.Observed+int64(i)+1, &claims[i].class)
			if err != nil {
				return nil, err
			}
			v.Learned, v.NoRoom, v.Stored = learned.Learned, learned.NoRoom, learned.Stored
		}
	}
	for i := range shown {
		alike := l.alike(faces[:i], verdicts, faces[i])
		own := verdicts[i]
		verdicts[i] = shown[i]
		verdicts[i].Learned, verdicts[i].NoRoom, verdicts[i].Stored = own.Learned, own.NoRoom, own.Stored
		if !alike {
			if err := l.aid(faces[i], &verdicts[i]); err != nil {
				return nil, err
			}
		}
	}
	for _, v := range verdicts {
		l.count(v)
	}
	return verdicts, nil
}

// Recall learns a face that was observed before with Hold set and may be learned now. The number is the number of that
// observation, from 1 to [Counts].Observed; the face is not counted again. The error comes from [face.Space.Check], or
// wraps [ErrSettings] for another number. On error l is unchanged.
func (l *Learner) Recall(o Observation, observation int64) (Verdict, error) {
	if err := l.space.Check(o.Vector); err != nil {
		return Verdict{}, err
	}
	if observation < 1 || observation > l.counts.Observed {
		return Verdict{}, fmt.Errorf("%w: observation %d of %d", ErrSettings, observation, l.counts.Observed)
	}
	seen, learns, err := l.before(o)
	if err != nil || !learns {
		return seen, err
	}
	v, err := l.keep(o, 1, observation, l.counts.Observed, nil)
	if err != nil {
		return v, err
	}
	if v.Learned {
		l.counts.Learned++
	}
	if v.NoRoom {
		l.counts.PassedOver++
	}
	before := v
	v, err = l.after(o, seen, v)
	if v.Learned && !before.Learned {
		l.counts.Learned++
	}
	return v, err
}

// before judges a face with lessons, if there are lessons or the face is not to be learned. It reports whether the face
// may be learned.
func (l *Learner) before(o Observation) (seen Verdict, learns bool, err error) {
	learns = !o.Hold && !l.settings.Freeze
	if !learns || l.helped() {
		seen, _, err = l.see(o)
	}
	return seen, learns, err
}

// after returns the verdict on a face after l's own judgement. If l did not learn the face itself, after tries to learn
// it with the help of lessons.
func (l *Learner) after(o Observation, seen, own Verdict) (Verdict, error) {
	if !l.helped() {
		return own, nil
	}
	seen.Learned, seen.NoRoom, seen.Stored = own.Learned, own.NoRoom, own.Stored
	return seen, l.aid(o, &seen)
}

// alike reports whether an edge would join a face to an earlier face of the frame that was learned.
func (l *Learner) alike(before []Observation, verdicts []Verdict, f Observation) bool {
	for i, o := range before {
		if verdicts[i].Learned && graph.Distance(o.Vector, f.Vector, l.space.Scale) <= l.graph.Config().EdgeRadius() {
			return true
		}
	}
	return false
}

// Judge returns the verdict on a face, and changes nothing.
func (l *Learner) Judge(x []float32) (Verdict, error) {
	if err := l.space.Check(x); err != nil {
		return Verdict{}, err
	}
	v, _, err := l.see(Observation{Vector: x})
	return v, err
}

// step judges a face and learns from it. The face counts as n faces of this observation.
func (l *Learner) step(o Observation, n int, observation int64) (Verdict, error) {
	seen, learns, err := l.before(o)
	if err != nil || !learns {
		return seen, err
	}
	v, err := l.learn(o, n, observation, nil)
	if err != nil {
		return v, err
	}
	return l.after(o, seen, v)
}

// look judges a face without lessons, and changes nothing.
func (l *Learner) look(o Observation) (Verdict, claim, error) {
	t, err := l.graph.Look(o.Vector, l.Radii().sight(), o.Follows...)
	if err != nil {
		return Verdict{}, claim{}, err
	}
	return l.judge(t)
}

// learn is the listing "Online quantized harmonic solution" for one face: place it, solve, read its value. If the face
// may be learned and its confidence suffices, it stays in the graph as this observation, and stands for n faces. If as
// is not nil, it stays only if this class claims it.
func (l *Learner) learn(o Observation, n int, observation int64, as *int) (Verdict, error) {
	if _, err := l.graph.Age(observation); err != nil {
		return Verdict{}, err
	}
	return l.keep(o, n, observation, observation, as)
}

// keep is learn without the ageing step. The learned face counts in the window of the observation now.
func (l *Learner) keep(o Observation, n int, observation, now int64, as *int) (Verdict, error) {
	t, err := l.graph.Place(o.Vector, o.Follows...)
	if err != nil {
		return Verdict{}, err
	}
	if t.Outlier() { // an outlier cannot be learned, but is recognised over longer distances
		v, _, err := l.look(o)
		return v, err
	}
	v, best, err := l.judge(t.Trial)
	if err != nil || v.Reason == Outlier || as != nil && best.class != *as || !l.may(o, best) ||
		!l.teaches(t, best, n, now) {
		return v, err
	}
	v.Stored, v.Learned = t.Keep(best.class, n, quantized.Moment{Observation: observation, Time: l.time})
	v.NoRoom = !v.Learned
	if v.Learned {
		l.spend(best.class, n, now)
	}
	return v, nil
}

// may reports whether Observation.As permits to learn a face with this claim.
func (l *Learner) may(o Observation, c claim) bool {
	return o.As == "" || c.class >= 0 && c.class == l.class(o.As, false)
}

// teaches reports whether the settings permit to learn a face with this claim, as n faces.
func (l *Learner) teaches(t quantized.Candidate, c claim, n int, observation int64) bool {
	return c.value >= l.settings.Learn && l.Radii().teaches(t.Trial) &&
		(l.settings.MaxHops == 0 || t.Hops(c.class) <= l.settings.MaxHops) &&
		l.affords(c.class, n, observation)
}

func (l *Learner) count(v Verdict) {
	l.counts.Observed++
	if v.Reason == Outlier {
		l.counts.Outliers++
	}
	if v.Learned {
		l.counts.Learned++
	}
	if v.NoRoom {
		l.counts.PassedOver++
	}
}
