// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"math"
	"slices"

	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/quantized"
)

// learn tries a face that stands for n faces, and keeps it if it may be learned. Must is the required claim, or nil.
func (l *Learner) learn(o online.Observation, n int, observation int64, must *claim) online.Verdict {
	l.Graph.Age(observation)
	return l.keep(o, n, observation, observation, must)
}

// Recall learns from a face that was observed before.
func (l *Learner) Recall(o online.Observation, observation int64) online.Verdict {
	seen, _ := l.show(o)
	if o.Hold || l.Settings.Freeze {
		return seen
	}
	v := l.after(o, seen, l.keep(o, 1, observation, l.Counts.Observed, nil))
	if v.Learned {
		l.Counts.Learned++
	}
	if v.NoRoom {
		l.Counts.PassedOver++
	}
	return v
}

func (l *Learner) keep(o online.Observation, n int, observation, now int64, must *claim) online.Verdict {
	t := l.Graph.Place(o.Vector, o.Follows...)
	if t.Outlier {
		v, _ := l.judge(l.look(o))
		return v
	}
	v, c := l.judge(t)
	if v.Reason == online.Outlier || must != nil && must.class != c.class {
		return v
	}
	if o.As != "" && (c.class == nil || c.class.Name != o.As || c.class.Negative) {
		return v
	}
	if r := l.radii(); !l.near(t, r.Learn, r.Learn) {
		return v
	}
	if l.Settings.Learn > 0 && l.Graph.below(c.value, l.Settings.Learn) {
		return v
	}
	class := slices.Index(l.People, c.class)
	if _, hops := l.Graph.Via(t, class); l.Settings.MaxHops > 0 && hops > l.Settings.MaxHops {
		return v
	}
	if l.Settings.LearnCap > 0 && c.class != nil {
		used := n
		for _, e := range l.lessons {
			window := int64(l.Settings.LearnWindow)
			if e.class == c.class && e.observation/window == now/window {
				used += e.n
			}
		}
		if used > l.Settings.LearnCap {
			return v
		}
	}
	v.Stored, v.Learned = l.Graph.Keep(t, class, n, quantized.Moment{Observation: observation, Time: l.Time})
	v.NoRoom = !v.Learned
	if v.Learned {
		l.lessons = append(l.lessons, lesson{now, c.class, n})
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

// ObserveFrame judges the faces of a frame with the present graph, and gives each name only to the best face. It then
// learns faces in order: a face that is no outlier, is not joined to a learned face of this frame, and is still claimed
// by the same person. A single face is judged and learned at once.
func (l *Learner) ObserveFrame(faces []online.Observation) []online.Verdict {
	verdicts := make([]online.Verdict, len(faces))
	if len(faces) == 1 {
		verdicts[0], _ = l.show(faces[0])
		if !faces[0].Hold && !l.Settings.Freeze {
			verdicts[0] = l.after(faces[0], verdicts[0], l.learn(faces[0], 1, l.Counts.Observed+1, nil))
		}
		l.count(verdicts[0])
		return verdicts
	}
	claims := make([]claim, len(faces))
	for i, f := range faces {
		verdicts[i], claims[i] = l.judge(l.look(f))
	}
	shown, shownClaims := make([]online.Verdict, len(faces)), make([]claim, len(faces))
	for i, f := range faces {
		shown[i], shownClaims[i] = l.show(f)
	}
	worse := l.oneEach(faces, verdicts, claims)
	l.oneEach(faces, shown, shownClaims)
	alike := func(i int) bool {
		for j := range i {
			if verdicts[j].Learned && !l.Graph.less(l.Graph.Config.EdgeRadius(),
				l.Graph.Distance(faces[i].Vector, faces[j].Vector)) {
				return true
			}
		}
		return false
	}
	for i, f := range faces {
		if v := &verdicts[i]; !f.Hold && !l.Settings.Freeze && !worse[i] && !alike(i) && v.Reason != online.Outlier {
			again := l.learn(f, 1, l.Counts.Observed+int64(i)+1, &claims[i])
			v.Learned, v.NoRoom, v.Stored = again.Learned, again.NoRoom, again.Stored
		}
	}
	for i, f := range faces {
		if len(l.Given) == 0 {
			break
		}
		near := alike(i)
		shown[i].Learned, shown[i].NoRoom, shown[i].Stored = verdicts[i].Learned, verdicts[i].NoRoom, verdicts[i].Stored
		if verdicts[i] = shown[i]; !near {
			verdicts[i] = l.aid(f, verdicts[i])
		}
	}
	for _, v := range verdicts {
		l.count(v)
	}
	return verdicts
}

// oneEach removes the name from all but the best of the faces with the same claim, and returns the faces that lost the
// name.
func (l *Learner) oneEach(faces []online.Observation, verdicts []online.Verdict, claims []claim) []bool {
	worse := make([]bool, len(faces))
	for i, c := range claims {
		if c.class == nil || c.class.Negative {
			continue
		}
		for j, d := range claims {
			if c.class != d.class || i == j {
				continue
			}
			if diff := math.Abs(c.value - d.value); diff > 0 && diff < 1e-7 &&
				!slices.Equal(faces[i].Vector, faces[j].Vector) {
				l.Graph.Delicate = true
			}
			better := d.value > c.value || d.value == c.value && j < i
			if verdicts[i].Lent != verdicts[j].Lent {
				better = verdicts[i].Lent
			}
			worse[i] = worse[i] || better
		}
	}
	for i := range verdicts {
		if worse[i] && verdicts[i].Label != "" {
			verdicts[i].Label, verdicts[i].Reason = "", online.BetterFace
		}
	}
	return worse
}

// Observe judges a face and learns from it.
func (l *Learner) Observe(x []float32) online.Verdict {
	return l.ObserveFrame([]online.Observation{{Vector: x}})[0]
}

// Adopt adds a face that stands for n faces.
func (l *Learner) Adopt(x []float32, n int) online.Verdict {
	if l.Settings.Freeze {
		return l.Judge(x)
	}
	seen := l.Judge(x)
	v := l.after(online.Observation{Vector: x}, seen, l.learn(online.Observation{Vector: x}, n, l.Counts.Observed+1,
		nil))
	if v.Learned {
		l.Counts.Observed += int64(n)
		l.Counts.Learned += int64(n)
	}
	return v
}
