// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"slices"

	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/quantized"
)

// keep keeps a face, if the graph makes the same claim when the face is placed in it, and if it
// may be learned.
func (l *Learner) keep(o online.Observation, must claim, observation int64, v *online.Verdict) {
	t := l.Graph.Place(o.Vector, o.Follows...)
	if t.Outlier {
		return
	}
	again, c := l.judge(t)
	if again.Reason == online.Outlier || must.class != c.class ||
		o.As != 0 && (c.class == nil || c.class.Person != o.As) {
		return
	}
	if c.class != nil && (l.rejects(t, c.class.Person) || l.strays(o.Vector, c.class.Person)) {
		return
	}
	if r := l.radii(); !l.near(t, r.Learn, r.Learn) {
		return
	}
	if l.Settings.Learn > 0 && l.Graph.below(c.value, l.Settings.Learn) {
		return
	}
	class := slices.Index(l.People, c.class)
	v.Stored, v.Learned = l.Graph.Keep(t, class,
		quantized.Moment{Observation: observation, Time: l.Time, Source: o.Source})
	v.NoRoom = !v.Learned
}

// learns reports whether a face with this verdict and claim may be learned.
func (l *Learner) learns(o online.Observation, v online.Verdict, c claim) bool {
	return !o.Hold && !l.Settings.Freeze && v.Reason != online.Outlier && !c.enrolled
}

// Recall learns from a face that was observed before.
func (l *Learner) Recall(o online.Observation, observation int64) online.Verdict {
	v, c := l.verdict(o)
	if l.learns(o, v, c) {
		l.keep(o, c, observation, &v)
	}
	if v.Learned {
		l.Counts.Learned++
		l.portray(o, v, observation)
	}
	if v.NoRoom {
		l.Counts.PassedOver++
	}
	return v
}

func (l *Learner) count(v online.Verdict) {
	l.Counts.Observed++
	if v.Reason == online.Outlier {
		l.Counts.Outliers++
	}
	if v.Learned {
		l.Counts.Learned++
	}
	if v.NoRoom {
		l.Counts.PassedOver++
	}
}

// ObserveFrame judges the faces of a frame with the present graph, and gives each name only to the
// best face. It then learns faces in order: a face that is no outlier, is not joined to a learned
// face of this frame, is claimed by the graph and not by the enrolled faces alone, and is still
// claimed by the same person.
func (l *Learner) ObserveFrame(faces []online.Observation) []online.Verdict {
	verdicts := l.step(faces)
	for i, v := range verdicts {
		l.count(v)
		l.portray(faces[i], v, l.Counts.Observed)
	}
	return verdicts
}

// portray notes the look of a face that is a vertex now.
func (l *Learner) portray(o online.Observation, v online.Verdict, observation int64) {
	at := l.Find(v.Stored)
	if _, noted := l.looks[v.Stored]; noted || at == nil || !v.Learned {
		return
	}
	for _, p := range at.Points {
		if p.ID == at.ID && p.When.Observation == observation {
			if l.looks == nil {
				l.looks = make(map[int64]online.Observation)
			}
			l.looks[at.ID] = online.Observation{Frontal: o.Frontal, Picture: o.Picture}
		}
	}
}

// step judges the faces of a frame and learns from them.
func (l *Learner) step(faces []online.Observation) []online.Verdict {
	all := make([]online.Verdict, len(faces))
	claims := make([]claim, len(faces))
	for i, f := range faces {
		all[i], claims[i] = l.verdict(f)
	}
	worse := l.oneEach(faces, all)
	alike := func(i int) bool {
		for j := range i {
			if all[j].Learned && !l.Graph.less(l.Graph.Config.EdgeRadius(),
				l.Graph.Distance(faces[i].Vector, faces[j].Vector)) {
				return true
			}
		}
		return false
	}
	for i, f := range faces {
		if l.learns(f, all[i], claims[i]) && !worse[i] && !alike(i) {
			observation := l.Counts.Observed + int64(i) + 1
			l.keep(f, claims[i], observation, &all[i])
		}
	}
	return all
}

// oneEach removes the name from all but the best of the faces that look like the same person, and
// returns the faces that look like somebody whom a better face looks like.
func (l *Learner) oneEach(faces []online.Observation, verdicts []online.Verdict) []bool {
	worse := make([]bool, len(faces))
	looks := func(v online.Verdict) bool { return v.Person != 0 || v.Reason == online.Unsure }
	for i, v := range verdicts {
		for j, u := range verdicts {
			if i == j || !looks(v) || !looks(u) || v.Best != u.Best {
				continue
			}
			better := u.Person != 0
			if (u.Person != 0) == (v.Person != 0) {
				a, b := l.Nearest(faces[j].Vector, v.Best), l.Nearest(faces[i].Vector, v.Best)
				better = l.Graph.less(a, b) || a == b && j < i
			}
			worse[i] = worse[i] || better
		}
	}
	for i := range verdicts {
		if worse[i] {
			verdicts[i].Refuse(online.BetterFace)
		}
	}
	return worse
}

// Observe judges a face and learns from it.
func (l *Learner) Observe(x []float32) online.Verdict {
	return l.ObserveFrame([]online.Observation{{Vector: x}})[0]
}
