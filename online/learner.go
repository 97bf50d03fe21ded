// SPDX-License-Identifier: Apache-2.0

package online

import (
	"errors"
	"fmt"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/quantized"
)

// Errors of [Learner.Label], [Learner.Forget] and [Learner.Undo].
var (
	ErrUnknown = errors.New("not known")
	ErrFull    = quantized.ErrFull
	ErrJournal = quantized.ErrJournal
)

// Person is the number of a person, which the caller gives: any but 0, which means nobody. Names
// are the caller's.
type Person = int64

// Learner recognises labelled people and learns from the faces that it sees.
type Learner struct {
	space    face.Space
	settings Settings
	classes  []class
	index    map[class]int // number of each class in classes
	graph    quantized.Graph
	counts   Counts
	time     int64 // seconds since 1970 for the faces learned next; 0 for unknown
	radii    Radii // zero if they must be computed again
	looks    []int // of each class, see countLooks; notCounted if its labels have changed

	portraits map[int64]portrait // of learned faces, by number; perhaps also of faces that are gone

	learned  func(Taught) // see OnLearned; may be nil
	restored int          // see Restored
}

// A class is one label of the graph: the faces of a person, or the faces that were rejected as this
// person's.
type class struct {
	Person   Person `cbor:"person"`
	Negative bool   `cbor:"negative"`
}

// Counts says how many faces a learner has seen since it was made.
type Counts struct {
	Labelled int64 `json:"labelled"` // labelled faces
	Observed int64 `json:"observed"` // faces judged by Observe or ObserveFrame
	Outliers int64 `json:"outliers"` // of these, far from the graph
	Learned  int64 `json:"learned"`  // of these, stored
	// PassedOver counts the faces that would have been learned if there had been room for another
	// centroid.
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
	return &Learner{space: space, settings: s, index: make(map[class]int), graph: *g}, nil
}

// Configure replaces the settings of l. Faces stay; weights, edges and verdicts follow the new
// settings, and a smaller K merges centroids at once. On error l is unchanged. The error wraps
// [ErrSettings], also if K is smaller than the number of centroids that cannot be merged.
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
	l.settings, l.radii = s, Radii{}
	l.dropPortraits()
	return nil
}

// Space returns the feature space of l.
func (l *Learner) Space() face.Space { return l.space }

// Settings returns the settings of l with defaults filled in.
func (l *Learner) Settings() Settings { return l.settings }

// Counts returns how many faces l has seen.
func (l *Learner) Counts() Counts { return l.counts }

// Graph returns the compact graph of l, to read.
func (l *Learner) Graph() *quantized.Graph { return &l.graph }

// People returns the people that l knows, in the order of their first label.
func (l *Learner) People() (all []Person) {
	for _, c := range l.classes {
		if !c.Negative {
			all = append(all, c.Person)
		}
	}
	return all
}

// Knows reports whether l has a labelled face of this person.
func (l *Learner) Knows(p Person) bool { return l.class(p, false) >= 0 }

// Label adds a labelled face of a person. It may be called at any time.
//
// If a face at the same place was rejected as another person's, this rejection is removed, because
// the new label implies it.
//
// K does not bound labelled faces. The error comes from [face.Space.Check], or wraps [ErrUnknown]
// for the person 0, or [ErrFull] beyond 1 GiB of labelled faces. On error l is unchanged.
func (l *Learner) Label(x []float32, p Person) error {
	if p == 0 {
		return fmt.Errorf("%w: person 0 is nobody", ErrUnknown)
	}
	if err := l.space.Check(x); err != nil {
		return err
	}
	if err := l.label(x, class{p, false}); err != nil {
		return err
	}
	l.withdraw(x, p)
	l.counts.Labelled++
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
		l.classes, l.index[c], l.looks = append(l.classes, c), at, append(l.looks, notCounted)
	}
	l.looks[at], l.radii = notCounted, Radii{}
	return nil
}

// Warnings returns sentences for a person about problems: a graph that reaches too far for its
// space, a space that was measured on too little, a K that was too small.
func (l *Learner) Warnings() []string {
	var w []string
	if few := l.space.Warning(); few != "" {
		w = append(w, few)
	}
	reach := l.settings.graph(l.space).EdgeRadius()
	if safe := l.space.ImpostorRadius; safe > 0 && reach > safe {
		w = append(w,
			fmt.Sprintf(
				"edges of this graph reach %.3g, and faces of two people are met from %.3g on: "+
					"strangers may be accepted; use a smaller sigma or a larger gamma", reach,
				safe))
	}
	if room := l.Room().Warning(); room != "" {
		w = append(w, room)
	}
	return w
}
