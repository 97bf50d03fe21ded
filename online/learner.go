// SPDX-License-Identifier: Apache-2.0

package online

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/graph"
	"github.com/faceauth/faceauth/quantized"
)

// Errors of [Learner.Label], [Learner.Forget] and [Learner.Undo].
var (
	ErrName    = errors.New("unusable name")
	ErrUnknown = errors.New("nobody of that name")
	ErrFull    = quantized.ErrFull
	ErrJournal = quantized.ErrJournal
)

// Learner recognises labelled people and learns from the faces that it sees.
type Learner struct {
	space    face.Space
	settings Settings
	classes  []class
	index    map[class]int // number of each class in classes
	graph    *quantized.Graph
	counts   Counts
	budget   budget
	time     int64            // seconds since 1970 for the faces learned next; 0 for unknown
	radii    Radii            // zero if they must be computed again
	measured int              // labelled faces for which radii holds
	repaired int              // centroids whose weights were wrong in a damaged snapshot
	given    map[string]given // lessons, by source
	taken    int              // centroids in given
	aided    []aided          // faces learned with the help of lessons
	shared   *shared          // union of given and aided; nil if it must be made again

	lastAided int64 // number of the last aided face
}

// A class is one label of the graph: the faces of a person, or the faces that were rejected as this person's.
type class struct {
	name     string
	negative bool
}

// Counts says how many faces a learner has seen since it was made.
type Counts struct {
	Labelled int64 `json:"labelled"` // faces that came with a name
	Observed int64 `json:"observed"` // faces judged by Observe or ObserveFrame
	Outliers int64 `json:"outliers"` // of these, far from the graph
	Learned  int64 `json:"learned"`  // of these, stored
	// PassedOver counts the faces that would have been learned if there had been room for another centroid.
	PassedOver int64 `json:"passed_over"`
}

// New returns a learner without people. The error wraps [ErrSettings].
func New(space face.Space, s Settings) (*Learner, error) {
	s = s.defaults(space)
	if err := s.check(); err != nil {
		return nil, err
	}
	g, err := quantized.New(s.graph(space))
	if err != nil {
		return nil, err
	}
	return &Learner{space: space, settings: s, index: make(map[class]int), graph: g}, nil
}

// Configure replaces the settings of l. Faces stay; weights, edges and verdicts follow the new settings, and a smaller
// K merges centroids at once. On error l is unchanged. The error wraps [ErrSettings], also if K is smaller than the
// number of centroids that cannot be merged.
func (l *Learner) Configure(s Settings) error {
	s = s.defaults(l.space)
	if s == l.settings {
		return nil
	}
	if err := s.check(); err != nil {
		return err
	}
	if err := l.graph.Configure(s.graph(l.space)); err != nil {
		return err
	}
	if l.settings.HalfLife == 0 {
		l.graph.SkipAgeing(l.counts.Observed) // ageing begins now
	}
	if l.settings.LearnWindow != s.LearnWindow {
		l.budget = budget{} // windows have other numbers now
	}
	l.settings, l.radii, l.shared = s, Radii{}, nil
	return nil
}

// Space returns the feature space of l.
func (l *Learner) Space() face.Space { return l.space }

// Settings returns the settings of l with defaults filled in.
func (l *Learner) Settings() Settings { return l.settings }

// Counts returns how many faces l has seen.
func (l *Learner) Counts() Counts { return l.counts }

// Graph returns the compact graph of l for reading.
func (l *Learner) Graph() *quantized.Graph { return l.graph }

// Names returns the people that l knows, in the order of their first label.
func (l *Learner) Names() []string {
	var names []string
	for _, c := range l.classes {
		if !c.negative {
			names = append(names, c.name)
		}
	}
	return names
}

// Knows reports whether l has a labelled face of this person.
func (l *Learner) Knows(name string) bool { return l.class(name, false) >= 0 }

// Label adds a labelled face of the named person. It may be called at any time.
//
// If a face at the same place was rejected as another person's, this rejection is removed, because the new label
// implies it.
//
// K does not bound labelled faces. The error comes from [face.Space.Check], or wraps [ErrName], or [ErrFull] beyond 1
// GiB of labelled faces. On error l is unchanged.
func (l *Learner) Label(x []float32, name string) error { return l.LabelAll([][]float32{x}, name) }

// LabelAll adds faces of the named person as [Learner.Label] does, all of them or none.
func (l *Learner) LabelAll(faces [][]float32, name string) error {
	if err := CheckName(name); err != nil {
		return err
	}
	for i, x := range faces {
		if err := l.space.Check(x); err != nil {
			if len(faces) > 1 {
				err = fmt.Errorf("face %d of %d: %w", i+1, len(faces), err)
			}
			return err
		}
	}
	if n := l.graph.LabelRoom(); n < len(faces) {
		return fmt.Errorf("%w: %d more, and there is room for %d", ErrFull, len(faces), n)
	}
	before := l.graph.Len()
	for _, x := range faces {
		if err := l.label(x, class{name, false}); err != nil {
			for i := l.graph.Len() - 1; i >= before; i-- {
				l.unlabel(i, l.class(name, false))
			}
			return err
		}
	}
	for _, x := range faces {
		l.withdraw(x, name)
		l.counts.Labelled++
	}
	return nil
}

// label adds a labelled vertex, and its class if this is its first label.
func (l *Learner) label(x []float32, c class) error {
	at, there := l.index[c]
	if !there {
		at = len(l.classes)
	}
	if err := l.graph.Label(x, at); err != nil {
		return err
	}
	if !there {
		l.classes, l.index[c], l.radii = append(l.classes, c), at, Radii{}
	}
	return nil
}

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

// Forget removes a person: the labelled faces, the faces rejected as this person's, and every centroid into which a
// face accepted as this person was merged, even if that face was taken back later. Labelled faces of others stay,
// without the faces merged into them together with such a face. The error wraps [ErrUnknown].
func (l *Learner) Forget(name string) error {
	class := l.class(name, false)
	if class < 0 {
		return fmt.Errorf("%w: %s", ErrUnknown, name)
	}
	l.forget(class)
	if rejected := l.class(name, true); rejected >= 0 {
		l.forget(rejected)
	}
	return nil
}

func (l *Learner) forget(class int) {
	l.graph.Forget(class)
	gone := l.classes[class]
	delete(l.index, gone)
	l.radii = Radii{}
	l.classes = slices.Delete(l.classes, class, class+1)
	for c := class; c < len(l.classes); c++ {
		l.index[l.classes[c]] = c
	}
	if class < len(l.budget.used) {
		l.budget.used = slices.Delete(l.budget.used, class, class+1)
	}
	if l.shared = nil; !gone.negative {
		l.forgetLessons(gone.name)
	}
}

// Undo takes back the faces learned after an observation, and returns their number. The observation is a value of
// [Counts].Observed. A stored face that came later is removed with all faces that it stands for. Labelled faces stay,
// and the radius R stays as large as learned faces made it.
//
// The error wraps [ErrJournal] if the journal does not reach back so far. On error l is unchanged.
func (l *Learner) Undo(since int64) (faces int, err error) {
	n, err := l.graph.Undo(since)
	if err == nil {
		l.unaid()
	}
	return int(n), err
}

// SetTime sets the time of the faces that l learns from now on, for [Learner.UndoSince]. The zero time means unknown.
func (l *Learner) SetTime(t time.Time) {
	l.time = 0
	if !t.IsZero() {
		l.time = t.Unix()
	}
}

// UndoSince takes back the faces learned after a time, in whole seconds, and all later faces, as [Learner.Undo] does. A
// face that was learned without a time does not count as later.
func (l *Learner) UndoSince(t time.Time) (faces int, err error) {
	return l.Undo(l.graph.Since(t.Unix()))
}

// Full reports whether the last search found no room for another centroid: there are more than K centroids, and a merge
// to K would join faces that have no edge. Faces are then judged, but learned only if a centroid takes them in;
// [Counts].PassedOver counts the others. Undo, Forget and a larger K make room. After a change of settings the next
// face searches again.
func (l *Learner) Full() bool { return l.graph.Full() }

// Warnings returns sentences for a person about problems: a graph that reaches too far for its space, a K that was too
// small, a snapshot that had to be repaired.
func (l *Learner) Warnings() []string {
	var w []string
	reach := l.settings.graph(l.space).EdgeRadius()
	if safe := l.space.ImpostorRadius; safe > 0 && reach > safe {
		w = append(w, fmt.Sprintf("edges of this graph reach %.3g, and faces of two people are met from %.3g on: "+
			"strangers may be accepted; use a smaller sigma or a larger gamma", reach, safe))
	}
	if l.Full() {
		w = append(w, fmt.Sprintf("k = %d is full: faces are recognised, and no longer learned (%d passed over so "+
			"far); "+
			"use a larger k, or take back learned faces", l.settings.K, l.counts.PassedOver))
	}
	if t := l.Taken(); l.shared != nil && l.shared.err != nil {
		w = append(w, fmt.Sprintf("the %d centroids of others are not used: %v; withdraw some sources, or use a "+
			"shorter reach",
			t.Centroids, l.shared.err))
	} else if t.Left > 0 {
		w = append(w, fmt.Sprintf("k = %d is too small for what others have given: %d of %d centroids are left out; "+
			"use a larger k",
			l.settings.K, t.Left, t.Centroids))
	}
	if l.repaired > 0 {
		s := "s"
		if l.repaired == 1 {
			s = ""
		}
		w = append(w, fmt.Sprintf("the weights of %d centroid%s were damaged by an earlier version and have been "+
			"repaired", l.repaired, s))
	}
	return w
}

// CheckName returns nil if a person can have this name. A name has one to 100 printable characters, no white space at
// its ends, and is not "unknown" in upper or lower case, because reports and events use "unknown" for strangers. The
// error wraps [ErrName].
func CheckName(name string) error {
	if strings.EqualFold(name, "unknown") {
		return fmt.Errorf("%w %q: reports call strangers so; choose another name", ErrName, name)
	}
	return checkForm(name)
}

// checkForm is [CheckName] for names from earlier versions, which allowed "unknown".
func checkForm(name string) error {
	var what string
	switch n := utf8.RuneCountInString(name); {
	case n == 0:
		what = "it is empty"
	case n > 100:
		return fmt.Errorf("%w: it has %d characters; use at most 100", ErrName, n)
	case !utf8.ValidString(name):
		what = "it is not UTF-8"
	case strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
		what = "it has a character that does not print"
	case strings.TrimSpace(name) != name:
		what = "it begins or ends with a space"
	default:
		return nil
	}
	return fmt.Errorf("%w %q: %s", ErrName, name, what)
}
