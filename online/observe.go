// SPDX-License-Identifier: Apache-2.0

package online

import (
	"fmt"
	"slices"

	"github.com/faceauth/faceauth/quantized"
)

// Observe judges a face and learns from it, as [Learner.ObserveFrame] does. On error l is
// unchanged.
func (l *Learner) Observe(x []float32) (Verdict, error) {
	all, err := l.ObserveFrame([]Observation{{Vector: x}})
	if err != nil {
		return Verdict{}, err
	}
	return all[0], nil
}

// Observation is one face in a frame.
type Observation struct {
	Vector []float32
	Hold   bool // judge the face, but do not learn it, for example because the picture is poor
	// Follows has the numbers of stored faces ([Verdict].Stored) that are known to show the same
	// person: earlier faces of the same track. The new face is joined to them up to the length
	// Settings.Link, and to other faces up to Settings.Reach: a must-link.
	Follows []int64
	// As is the person as whom the face may be learned, or 0 if any person may claim the face.
	As Person
	// Frontal says that the head is not known to be turned ([face.Quality.Frontal]); see [Stored].
	Frontal bool
	// Picture is a small JPEG picture of the face, or nil. It is kept with a learned face, unless
	// [Settings].NoPictures is set or it is larger than 64 KiB; see [Stored].
	Picture []byte
	// Source is what the face comes from, such as the number of a sighting, for [Learner.Unlearn];
	// 0 for unknown.
	Source int64
}

// ObserveFrame judges all faces of one frame, and learns from them. Nobody can be twice in a frame:
// if two faces look like the same person, the face nearer to the enrolled faces is this person. The
// other face is unknown and is not learned. Held names people in the frame who keep their names,
// because faces that are not shown again confirm them ([face.Sample].Held).
//
// All faces are judged with the graph before the frame, so no verdict depends on the other faces,
// except that a name is given once. Then the faces are learned in order. A face is skipped if it
// was an outlier, if only the enrolled faces name it, or if the graph would now give it to another
// person than the verdict says. Two faces in one frame are two people, a cannot-link: if two faces
// are so near that an edge would join them, the second is not learned, so neither is learned
// through the other.
//
// The error comes from [face.Space.Check] for the first bad vector. On error l is unchanged.
func (l *Learner) ObserveFrame(faces []Observation, held ...Person) ([]Verdict, error) {
	for i, f := range faces {
		if err := l.space.Check(f.Vector); err != nil {
			return nil, fmt.Errorf("face %d of %d: %w", i+1, len(faces), err)
		}
	}
	all := make([]judgement, len(faces))
	for i, f := range faces {
		all[i] = l.look(f)
	}
	decide(all, held)
	for i, f := range faces {
		if l.learns(f, &all[i]) && !l.alike(faces[:i], all, f) {
			l.keep(f, &all[i], l.counts.Observed+int64(i)+1)
		}
	}
	verdicts := make([]Verdict, len(faces))
	for i, f := range faces {
		verdicts[i] = all[i].verdict
		l.counts.Observed++
		if verdicts[i].Reason == Outlier {
			l.counts.Outliers++
		}
		l.count(f, verdicts[i], l.counts.Observed)
	}
	return verdicts, nil
}

// Recall learns a face that was observed before with Hold set and may be learned now. The number is
// the number of that observation, from 1 to [Counts].Observed; the face is not counted again. The
// error comes from [face.Space.Check], or wraps [ErrSettings] for another number. On error l is
// unchanged.
func (l *Learner) Recall(o Observation, observation int64) (Verdict, error) {
	if err := l.space.Check(o.Vector); err != nil {
		return Verdict{}, err
	}
	if observation < 1 || observation > l.counts.Observed {
		return Verdict{}, fmt.Errorf("%w: observation %d of %d", ErrSettings, observation,
			l.counts.Observed)
	}
	j := l.look(o)
	if l.learns(o, &j) {
		l.keep(o, &j, observation)
	}
	l.count(o, j.verdict, observation)
	return j.verdict, nil
}

// alike reports whether an edge would join a face to an earlier face of the frame that was learned.
func (l *Learner) alike(before []Observation, all []judgement, f Observation) bool {
	for i, o := range before {
		if all[i].verdict.Learned && quantized.Distance(o.Vector, f.Vector,
			l.space.Scale) <= l.graph.Config().EdgeRadius() {
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
	return l.look(Observation{Vector: x}).verdict, nil
}

// JudgePhotograph returns the verdicts on the faces of a photograph, nil for one without a vector,
// and changes nothing. Nobody is in it twice: of several faces of one person, the nearest keeps the
// name.
func JudgePhotograph(l *Learner, faces [][]float32) ([]Verdict, error) {
	all, verdicts := make([]judgement, len(faces)), make([]Verdict, len(faces))
	for i, x := range faces {
		if x == nil {
			continue
		}
		if err := l.space.Check(x); err != nil {
			return nil, err
		}
		all[i] = l.look(Observation{Vector: x})
	}
	decide(all, nil)
	for i := range all {
		verdicts[i] = all[i].verdict
	}
	return verdicts, nil
}

// learns reports whether a face may be learned, before it is placed in the graph.
func (l *Learner) learns(o Observation, j *judgement) bool {
	return !o.Hold && !l.settings.Freeze && !j.worse && !j.claim.enrolled &&
		j.verdict.Reason != Outlier
}

// keep is the listing "Online quantized harmonic solution" for one face: place it, solve, read its
// value. If the claim is the same as in the judgement, and the face may be learned, it stays in the
// graph as this observation.
func (l *Learner) keep(o Observation, j *judgement, observation int64) {
	t := l.graph.Place(o.Vector, o.Follows...)
	if t.Outlier() {
		return
	}
	c := j.claim
	if !t.Same(j.trial) {
		v, again := l.judge(t.Trial)
		if v.Reason == Outlier || again.class != c.class {
			return
		}
		c = again
	}
	if !l.teaches(o, t, c) {
		return
	}
	v := &j.verdict
	v.Stored, v.Learned = t.Keep(c.class,
		quantized.Moment{Observation: observation, Time: l.time, Source: o.Source})
	v.NoRoom = !v.Learned
	if v.Learned && l.learned != nil {
		o.Vector, o.Follows, o.Picture = slices.Clone(o.Vector), slices.Clone(o.Follows),
			slices.Clone(o.Picture)
		l.learned(Taught{Observation: o, Stored: v.Stored, Time: l.time})
	}
}

// Taught is a face that was learned, for a program that may have to show it again to another
// learner.
type Taught struct {
	Observation
	Stored int64 // [Verdict].Stored
	Time   int64 // seconds since 1970; 0 for unknown
}

// OnLearned sets a function that is called with each face that l learns. It must not use l.
// A restored l keeps it.
func (l *Learner) OnLearned(f func(Taught)) { l.learned = f }

// LearnAgain observes faces that another learner has learned, in their order and at their times, so
// that the tracks which joined them join them again. The error comes from [Learner.ObserveFrame];
// the faces before it stay learned.
func (l *Learner) LearnAgain(all []Taught) error {
	time := l.time
	defer func() { l.time = time }()
	stored := make(map[int64]int64) // new numbers of stored faces
	for _, t := range all {
		o := t.Observation
		o.Follows = slices.Clone(o.Follows)
		for i, id := range o.Follows {
			if is, again := stored[id]; again {
				o.Follows[i] = is
			}
		}
		if t.Time != 0 {
			l.time = t.Time
		}
		v, err := l.ObserveFrame([]Observation{o})
		if err != nil {
			return err
		}
		if v[0].Learned {
			stored[t.Stored] = v[0].Stored
		}
	}
	return nil
}

// teaches reports whether the caller and the settings permit to learn a face with this claim.
func (l *Learner) teaches(o Observation, t quantized.Candidate, c claim) bool {
	person := c.class >= 0
	switch {
	case o.As != 0 && (!person || l.classes[c.class].Person != o.As):
		return false
	case person && (l.denied(t.Trial, c.class) || l.Radii().strays(t.Anchor(c.class))):
		return false
	}
	return c.value >= l.settings.Learn && l.Radii().teaches(t.Trial)
}

// count counts a face that was learned, or would have been, and notes how it looks.
func (l *Learner) count(o Observation, v Verdict, observation int64) {
	if v.Learned {
		l.counts.Learned++
	}
	if v.NoRoom {
		l.counts.PassedOver++
	}
	l.portray(o, v, observation)
}
