// SPDX-License-Identifier: Apache-2.0

package online

import (
	"fmt"
	"slices"

	"github.com/faceauth/faceauth/graph"
	"github.com/faceauth/faceauth/quantized"
)

// Observe judges a face and learns from it, as [Learner.ObserveFrame] does.
//
// The error comes from [face.Space.Check]. On error l is unchanged.
func (l *Learner) Observe(x []float32) (Verdict, error) {
	if err := l.space.Check(x); err != nil {
		return Verdict{}, err
	}
	return l.observe(Observation{Vector: x})
}

// observe judges one face, learns from it and counts it.
func (l *Learner) observe(o Observation) (Verdict, error) {
	all, err := l.step([]Observation{o}, 1)
	if err != nil {
		return Verdict{}, err
	}
	l.count(all[0].shown)
	l.portray(o, all[0].shown, l.counts.Observed)
	return all[0].shown, nil
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
	// Frontal says that the head is not known to be turned ([face.Quality.Frontal]). Such a face is not learned as a
	// person if it is farther than [Radii].Frontal from each enrolled face of this person.
	Frontal bool
	// Picture is a small JPEG picture of the face, or nil. It is kept with a learned face, unless
	// [Settings].NoPictures is set or it is larger than 64 KiB; see [Stored].
	Picture []byte
}

// ObserveFrame judges all faces of one frame, and learns from them. Nobody can be twice in a frame: if two faces look
// like the same person, the face with the higher confidence is this person. The other face is unknown and is not
// learned.
//
// All faces are judged with the graph before the frame, so no verdict depends on the other faces, except that a name is
// given once. Then the faces are learned in order. A face is skipped if it was an outlier, if only the enrolled faces
// name it, or if the graph would now give it to another person than the verdict says. Two faces in one frame are two
// people, a cannot-link: if two faces are so near that an edge would join them, the second is not learned, so neither
// is learned through the other.
//
// The error comes from [face.Space.Check] for the first bad vector. On error l is unchanged.
func (l *Learner) ObserveFrame(faces []Observation) ([]Verdict, error) {
	for i, f := range faces {
		if err := l.space.Check(f.Vector); err != nil {
			return nil, fmt.Errorf("face %d of %d: %w", i+1, len(faces), err)
		}
	}
	all, err := l.step(faces, 1)
	if err != nil {
		return nil, err
	}
	verdicts := make([]Verdict, len(faces))
	for i := range all {
		verdicts[i] = all[i].shown
		l.count(verdicts[i])
		l.portray(faces[i], verdicts[i], l.counts.Observed)
	}
	return verdicts, nil
}

// judgement is the result of looking at one face.
type judgement struct {
	own   Verdict         // without lessons
	claim claim           // of own
	trial quantized.Trial // of own
	shown Verdict         // with lessons; own if there are none
	worse bool            // another face of the frame is a better match for the same person
}

// step judges the faces of a frame and learns from them. A learned face stands for n faces. The next call overwrites
// the result.
func (l *Learner) step(faces []Observation, n int) ([]judgement, error) {
	all := slices.Grow(l.frame[:0], len(faces))[:len(faces)]
	l.frame = all
	for i, f := range faces {
		if err := l.see(f, &all[i]); err != nil {
			return nil, err
		}
	}
	oneEach(all, func(j *judgement) *Verdict { return &j.own })
	if l.helped() {
		oneEach(all, func(j *judgement) *Verdict { return &j.shown })
	} else {
		for i := range all {
			all[i].shown = all[i].own
		}
	}
	for i, f := range faces {
		if !l.learns(f, &all[i]) || l.alike(faces[:i], all, f) {
			continue
		}
		observation := l.counts.Observed + int64(i) + 1
		if _, err := l.graph.Age(observation); err != nil {
			return nil, err
		}
		if err := l.keep(f, &all[i], n, observation, observation); err != nil {
			return nil, err
		}
	}
	for i, f := range faces {
		if l.helped() && !l.alike(faces[:i], all, f) {
			if err := l.aid(f, &all[i].shown); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
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
	j := &l.recalled
	if err := l.see(o, j); err != nil {
		return Verdict{}, err
	}
	if l.learns(o, j) {
		if err := l.keep(o, j, 1, observation, l.counts.Observed); err != nil {
			return Verdict{}, err
		}
	}
	if l.helped() {
		if err := l.aid(o, &j.shown); err != nil {
			return Verdict{}, err
		}
	}
	if j.shown.Learned {
		l.counts.Learned++
		l.portray(o, j.shown, observation)
	}
	if j.shown.NoRoom {
		l.counts.PassedOver++
	}
	return j.shown, nil
}

// alike reports whether an edge would join a face to an earlier face of the frame that was learned.
func (l *Learner) alike(before []Observation, all []judgement, f Observation) bool {
	for i, o := range before {
		if all[i].shown.Learned && graph.Distance(o.Vector, f.Vector, l.space.Scale) <= l.graph.Config().EdgeRadius() {
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
	var j judgement
	err := l.see(Observation{Vector: x}, &j)
	return j.shown, err
}

// see judges a face without lessons, and if that gives no name and denies none, also with lessons. It changes nothing.
func (l *Learner) see(o Observation, j *judgement) error {
	*j = judgement{}
	err := l.look(o, j)
	if err != nil {
		return err
	}
	j.shown, err = l.lend(o, j.own)
	return err
}

// look judges a face without lessons. If the graph does not tell who it is, the enrolled faces alone are asked: so
// learning takes no name away. From their answer nothing is learned.
func (l *Learner) look(o Observation, j *judgement) (err error) {
	if j.trial, err = l.graph.Look(o.Vector, l.Radii().sight(), o.Follows...); err != nil {
		return err
	}
	j.own, j.claim, err = l.judge(j.trial)
	if err != nil || j.own.Reason != Outlier && j.own.Reason != NoPath && j.own.Reason != Tie {
		return err
	}
	if v, c, err := l.judge(j.trial.Labelled()); err != nil || v.Label != "" {
		j.own, j.claim, j.claim.enrolled = v, c, true
		return err
	}
	return nil
}

// learns reports whether a face may be learned, before it is placed in the graph.
func (l *Learner) learns(o Observation, j *judgement) bool {
	return !o.Hold && !l.settings.Freeze && !j.worse && !j.claim.enrolled && j.own.Reason != Outlier
}

// keep is the listing "Online quantized harmonic solution" for one face: place it, solve, read its value. If the claim
// is the same as in the judgement, and the face may be learned, it stays in the graph as this observation, and stands
// for n faces. It counts in the window of the observation now.
func (l *Learner) keep(o Observation, j *judgement, n int, observation, now int64) error {
	t, err := l.graph.Place(o.Vector, o.Follows...)
	if err != nil || t.Outlier() {
		return err
	}
	c := j.claim
	if !t.Same(j.trial) {
		v, again, err := l.judge(t.Trial)
		if err != nil || v.Reason == Outlier || again.class != c.class {
			return err
		}
		c = again
	}
	if !l.may(o, c, t) || !l.teaches(t, c, n, now) {
		return nil
	}
	v := &j.shown
	v.Stored, v.Learned = t.Keep(c.class, n, quantized.Moment{Observation: observation, Time: l.time})
	v.NoRoom = !v.Learned
	if v.Learned {
		l.spend(c.class, n, now)
		if l.learned != nil {
			l.learned(Taught{Observation: o, Number: observation, Stored: v.Stored, Time: l.time})
		}
	}
	return nil
}

// Taught is a face that was learned, for a program that may have to show it again to another learner.
type Taught struct {
	Observation
	Number int64 // of the observation
	Stored int64 // [Verdict].Stored
	Time   int64 // seconds since 1970; 0 for unknown
}

// OnLearned sets a function that is called with each face that l learns without the help of lessons. It must not use l.
// A restored l keeps it.
func (l *Learner) OnLearned(f func(Taught)) { l.learned = f }

// may reports whether Observation.As and Observation.Frontal permit to learn a face with this claim.
func (l *Learner) may(o Observation, c claim, t quantized.Candidate) bool {
	if o.As != "" && (c.class < 0 || c.class != l.class(o.As, false)) {
		return false
	}
	return !o.Frontal || c.class < 0 || l.classes[c.class].Negative || !l.Radii().Strays(t.Anchor(c.class))
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
