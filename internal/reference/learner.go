// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"math"
	"slices"
	"sort"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/graph"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/quantized"
)

// Learner is a slow model of [online.Learner], written from its documentation on a [Graph] that keeps everything. Both
// must agree. Its settings must be complete. It does not check faces and names.
type Learner struct {
	Space    face.Space
	Settings online.Settings
	Graph    *Graph
	People   []*Class // in the order of their first label
	Counts   online.Counts
	Time     int64
	lessons  []lesson
	Given    map[string]Given // lessons, by source
	Aided    []Aided          // faces learned with the help of lessons
	lastID   int64
}

// Class holds the faces of a person, or the faces rejected as this person's.
type Class struct {
	Name     string
	Negative bool
}

// lesson is a learned face, for the limit on learned faces in a window.
type lesson struct {
	observation int64
	class       *Class
	n           int
}

// NewLearner returns a learner without people.
func NewLearner(space face.Space, s online.Settings) *Learner {
	l := &Learner{Space: space, Settings: s}
	l.Graph = &Graph{Config: l.config(s)}
	return l
}

func (l *Learner) config(s online.Settings) quantized.Config {
	return quantized.Config{
		K: s.K, Multiplier: s.Multiplier, Dim: l.Space.Dim, Scale: l.Space.Scale, Kernel: graph.Heat(s.Sigma),
		Epsilon: s.Epsilon, Reach: max(s.Reach, 0), Link: max(s.Link, 0), Gamma: s.Gamma, Journal: max(s.Journal, 0),
		HalfLife: s.HalfLife,
		Absorb:   s.Absorb, Normalized: s.Normalized,
	}
}

// Configure replaces the settings. It reports false if the centroids cannot be merged to K.
func (l *Learner) Configure(s online.Settings) bool {
	if s == l.Settings {
		return true
	}
	if !l.Graph.Configure(l.config(s)) {
		return false
	}
	if l.Settings.HalfLife == 0 {
		l.Graph.Now = max(l.Graph.Now, l.Counts.Observed)
	}
	if s.LearnWindow != l.Settings.LearnWindow {
		l.lessons = nil
	}
	l.Settings = s
	return true
}

func (l *Learner) class(name string, negative bool) int {
	return slices.IndexFunc(l.People, func(c *Class) bool { return c.Name == name && c.Negative == negative })
}

// Knows reports whether this person is labelled.
func (l *Learner) Knows(name string) bool { return l.class(name, false) >= 0 }

// Names returns the people.
func (l *Learner) Names() (names []string) {
	for _, c := range l.People {
		if !c.Negative {
			names = append(names, c.Name)
		}
	}
	return names
}

// Labelled returns the vertices with labels of a person, or with faces rejected as this person's.
func (l *Learner) Labelled(name string, negative bool) (all []*Vertex) {
	class := l.class(name, negative)
	for _, v := range l.Graph.Vertices {
		if class >= 0 && v.Class == class {
			all = append(all, v)
		}
	}
	return all
}

// LabelAll labels faces. If another person's rejected face is at the same place, this rejection is removed.
func (l *Learner) LabelAll(faces [][]float32, name string) {
	for _, x := range faces {
		l.label(x, name, false)
		for _, v := range slices.Clone(l.Graph.Vertices) {
			if v.Class < 0 || !slices.Contains(l.Graph.Vertices, v) {
				continue
			}
			if c := l.People[v.Class]; c.Negative && c.Name != name && slices.Equal(v.X, x) {
				l.Unlabel(v.ID)
			}
		}
		l.Counts.Labelled++
	}
}

func (l *Learner) label(x []float32, name string, negative bool) {
	if l.class(name, negative) < 0 {
		l.People = append(l.People, &Class{name, negative})
	}
	l.Graph.Label(slices.Clone(x), l.class(name, negative))
}

// Reject labels a face as not this person's. The person must be known.
func (l *Learner) Reject(x []float32, name string) {
	l.label(x, name, true)
	if all := l.Labelled(name, true); len(all) > online.MaxRejected {
		l.Graph.Remove(all[0])
	}
}

// Forget removes a known person.
func (l *Learner) Forget(name string) {
	l.forget(l.class(name, false))
	if c := l.class(name, true); c >= 0 {
		l.forget(c)
	}
}

func (l *Learner) forget(class int) {
	if c := l.People[class]; !c.Negative {
		l.forgetLessons(c.Name)
	}
	l.Graph.Forget(class)
	l.People = slices.Delete(l.People, class, class+1)
}

// Find returns the vertex with this ID, or nil.
func (l *Learner) Find(id int64) *Vertex {
	for _, v := range l.Graph.Vertices {
		if v.ID == id {
			return v
		}
	}
	return nil
}

// Unlabel removes a labelled face. Ok is false if there is none with this ID.
func (l *Learner) Unlabel(id int64) (gone online.Label, ok bool) {
	v := l.Find(id)
	if v == nil || v.Class < 0 {
		return gone, false
	}
	c := l.People[v.Class]
	switch last := len(l.Labelled(c.Name, c.Negative)) == 1; {
	case last && c.Negative:
		l.forget(v.Class)
	case last:
		l.Forget(c.Name)
	default:
		l.Graph.Remove(v)
	}
	return online.Label{ID: id, Name: c.Name, Negative: c.Negative}, true
}

// Unlearn takes back the faces learned from ranges of observations.
func (l *Learner) Unlearn(ranges [][2]int64) int {
	l.unaid()
	return int(l.Graph.Unlearn(func(observation int64) bool {
		return slices.ContainsFunc(ranges, func(r [2]int64) bool { return r[0] <= observation && observation <= r[1] })
	}))
}

// Retract removes labelled faces, and takes back the faces learned through them.
func (l *Learner) Retract(ids ...int64) int {
	ids = slices.DeleteFunc(slices.Clone(ids), func(id int64) bool {
		v := l.Find(id)
		return v == nil || v.Class < 0
	})
	l.unaid()
	n := int(l.Graph.UnlearnPoints(func(p *Point) bool { return slices.Contains(ids, p.Via) }))
	before := l.Graph.Learned()
	for _, id := range ids {
		l.Unlabel(id)
	}
	return n + before - l.Graph.Learned()
}

// Rename gives a person a new name.
func (l *Learner) Rename(from, to string) {
	for _, c := range l.People {
		if c.Name == from {
			c.Name = to
		}
	}
	l.renameLessons(from, to)
}

// Remove takes back a stored face. Ok is false if there is none with this ID.
func (l *Learner) Remove(id int64) (faces int, ok bool) {
	v := l.Find(id)
	if v == nil {
		return 0, false
	}
	if v.Class >= 0 {
		l.Unlabel(id)
		return 0, true
	}
	l.unaid()
	return int(l.Graph.UnlearnPoints(func(p *Point) bool { return p == v.Points[0] })), true
}

// Undo takes back the faces learned after an observation. Ok is false if the journal does not reach back so far.
func (l *Learner) Undo(since int64) (faces int, ok bool) {
	n, ok := l.Graph.Undo(since)
	if ok {
		l.unaid()
	}
	return int(n), ok
}

// UndoSince takes back the faces learned after a time, in seconds since 1970.
func (l *Learner) UndoSince(time int64) (faces int, ok bool) { return l.Undo(l.Graph.Since(time)) }

// claim is the class that claims a face, and its value; nil for none.
// radii follows the documentation of [online.Learner.Radii].
// look tries a face that is only judged.
// near reports whether what a face has an edge to, or sees, is near enough: a stored face within a distance for its
// kind, or one that it follows.
// judge makes a verdict of a trial.
// rejects reports whether a face has an edge to one that is not a person's, which is as near as each of their
// labelled ones.
// Judge says what the learner would make of a face.
// learn tries a face that stands for n, and keeps it if it may be learned. Must says as whom, where that is settled.
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

// Stored returns the stored faces, with margins for a person, or without for "".
func (l *Learner) Stored(name string) (all []online.Stored) {
	class := l.class(name, false)
	solution := l.Graph.Solution()
	for i, v := range l.Graph.Vertices {
		s := online.Stored{ID: v.ID, Vector: v.X, Points: v.Sum(), Weight: v.Weight, Hops: v.Hops}
		for _, p := range v.Points {
			if p.ID == v.ID && !p.Label && p.When.Time != 0 {
				s.At = time.Unix(p.When.Time, 0)
			}
		}
		if v.Class >= 0 {
			s.Labelled, s.Name, s.Negative = true, l.People[v.Class].Name, l.People[v.Class].Negative
		} else if len(v.Source) == 1 {
			for c := range v.Source {
				if !l.People[c].Negative {
					s.Name = l.People[c].Name
				}
			}
		}
		if class >= 0 {
			for c := range l.People {
				if value := solution.At(i, c); c == class {
					s.Margin += value
				} else {
					s.Margin -= value
				}
			}
		}
		all = append(all, s)
	}
	return all
}

// Labels returns the labelled faces, the oldest first.
func (l *Learner) Labels() (all []online.Label) {
	for _, v := range l.Graph.Vertices {
		if v.Class >= 0 {
			all = append(all,
				online.Label{ID: v.ID, Name: l.People[v.Class].Name, Negative: l.People[v.Class].Negative})
		}
	}
	return all
}

// Conflicts returns the pairs of labels that contradict each other.
func (l *Learner) Conflicts(within float64) (all []online.Conflict) {
	labels := l.Labels()
	for i, b := range labels {
		for _, a := range labels[:i] {
			people := !a.Negative && !b.Negative && a.Name != b.Name
			rejected := a.Negative != b.Negative && a.Name == b.Name
			if d := l.Graph.Distance(l.Find(a.ID).X, l.Find(b.ID).X); (people || rejected) && !l.Graph.less(within, d) {
				all = append(all, online.Conflict{A: a, B: b, Distance: d})
			}
		}
	}
	sort.SliceStable(all, func(i, j int) bool { return l.Graph.less(all[i].Distance, all[j].Distance) })
	return all
}

// Nearest returns the distance to the nearest labelled face of a person.
func (l *Learner) Nearest(x []float32, name string) float64 {
	d := math.Inf(1)
	for _, v := range l.Labelled(name, false) {
		d = min(d, l.Graph.Distance(x, v.X))
	}
	return d
}

// Full reports whether the last search found no room for another centroid.
func (l *Learner) Full() bool { return l.Graph.Full && l.Graph.Learned() > l.Settings.K }

// Drift returns the drift of a known person.
func (l *Learner) Drift(name string) online.Drift {
	d := online.Drift{Name: name}
	class := l.class(name, false)
	var learned []*Vertex
	mass := 0.
	for _, v := range l.Graph.Vertices {
		if v.Class < 0 && len(v.Source) == 1 && v.Source[class] {
			learned = append(learned, v)
			d.Learned += v.Sum()
			mass += v.Weight
		}
	}
	if len(learned) == 0 {
		return d
	}
	sort.SliceStable(learned, func(i, j int) bool {
		return learned[i].Points[0].When.Observation < learned[j].Points[0].When.Observation
	})
	centre := func(of []*Vertex) []float32 {
		c := make([]float32, l.Space.Dim)
		for q := range c {
			sum, mass := 0., 0.
			for _, v := range of {
				sum += v.Weight * float64(v.X[q])
				mass += v.Weight
			}
			c[q] = float32(sum / mass)
		}
		return c
	}
	start := centre(l.Labelled(name, false))
	d.Distance = l.Graph.Distance(start, centre(learned))
	older, half := 0., 0
	for half < len(learned) && l.Graph.less(2*older, mass) {
		older += learned[half].Weight
		half++
	}
	if half < len(learned) {
		a, b := centre(learned[:half]), centre(learned[half:])
		var aa, bb, ab float64
		for q := range a {
			u, w := float64(a[q])-float64(start[q]), float64(b[q])-float64(a[q])
			aa, bb, ab = aa+u*u, bb+w*w, ab+u*w
		}
		if aa > 0 && aa < 1e-10 || bb > 0 && bb < 1e-10 { // a direction that comes from rounding
			l.Graph.Delicate = true
		}
		if aa > 0 && bb > 0 {
			d.Constancy = ab / math.Sqrt(aa*bb)
		}
	}
	d.Alarm = l.Settings.DriftDistance > 0 && d.Distance > l.Settings.DriftDistance &&
		d.Constancy > l.Settings.DriftConstancy
	return d
}
