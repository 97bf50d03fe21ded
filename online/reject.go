// SPDX-License-Identifier: Apache-2.0

package online

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/faceauth/faceauth/graph"
)

// MaxRejected is how many rejected faces of one person are kept, the newest.
const MaxRejected = 16

// class returns the number of the class of a person's faces, or of the faces rejected as theirs, or -1.
func (l *Learner) class(name string, negative bool) int {
	if c, ok := l.index[class{name, negative}]; ok {
		return c
	}
	return -1
}

// Reject shows l a face that is not the named person's, as [Learner.Label] shows one that is: a negative label. The
// faces rejected of a person, at most [MaxRejected], are a class of their own, which nobody is named after: a face that
// the harmonic solution gives to it rather than to anybody is unknown, and so is a face that would be this person's but
// has an edge to a rejected face that is at least as near as each of their labelled ones. A face like a rejected one is
// learned through it.
//
// The error is that of [face.Space.Check], or wraps [ErrUnknown] or [ErrFull]; l has then not changed.
func (l *Learner) Reject(x []float32, name string) error {
	if err := l.space.Check(x); err != nil {
		return err
	}
	if !l.Knows(name) {
		return fmt.Errorf("%w: %s", ErrUnknown, name)
	}
	if err := l.label(x, class{name, true}); err != nil {
		return err
	}
	if faces := l.labelled(l.class(name, true)); len(faces) > MaxRejected {
		l.graph.Remove(faces[0])
	}
	return nil
}

// labelled returns the vertices with the labels of a class, the oldest first.
func (l *Learner) labelled(class int) (all []int) {
	for i := range l.graph.Len() {
		if c, ok := l.graph.Class(i); ok && c == class {
			all = append(all, i)
		}
	}
	return all
}

// withdraw removes the faces at x that were rejected as somebody else's than the named person's: to be one person is to
// be nobody else.
func (l *Learner) withdraw(x []float32, name string) {
	var gone []int64
	for i := range l.graph.Len() {
		c, ok := l.graph.Class(i)
		if ok && l.classes[c].negative && l.classes[c].name != name && slices.Equal(l.graph.Point(i), x) {
			gone = append(gone, l.graph.Origin(i).ID)
		}
	}
	// By their IDs: with the last face of a class all goes that was learned through it, and vertices move up.
	for _, id := range gone {
		if i, ok := l.graph.Find(id); ok {
			c, _ := l.graph.Class(i)
			l.unlabel(i, c)
		}
	}
}

// unlabel removes a label, and its class with the last one.
func (l *Learner) unlabel(vertex, class int) {
	if len(l.labelled(class)) == 1 {
		l.forget(class)
		return
	}
	l.graph.Remove(vertex)
}

// Label is a face that l was shown with a name.
type Label struct {
	ID       int64  `json:"id"` // for [Learner.Unlabel]
	Name     string `json:"name"`
	Negative bool   `json:"not,omitempty"` // it was rejected: it is not that person's
}

// labelAt returns the label of a vertex, and whether it has one.
func (l *Learner) labelAt(i int) (Label, bool) {
	c, ok := l.graph.Class(i)
	if !ok {
		return Label{}, false
	}
	return Label{ID: l.graph.Origin(i).ID, Name: l.classes[c].name, Negative: l.classes[c].negative}, true
}

// Labels returns the labelled faces, the oldest first.
func (l *Learner) Labels() (all []Label) {
	for i := range l.graph.Len() {
		if label, ok := l.labelAt(i); ok {
			all = append(all, label)
		}
	}
	return all
}

// Conflict is two labelled faces that look like one person, and cannot both be right.
type Conflict struct {
	A        Label   `json:"a"`
	B        Label   `json:"b"`
	Distance float64 `json:"distance"` // between them, in units of the space's distance
}

// Conflicts returns the pairs of labelled faces that are no further apart than within and contradict each other: two
// people's, or one person's and one that is not theirs. The nearest come first.
func (l *Learner) Conflicts(within float64) (all []Conflict) {
	for i := range l.graph.Len() {
		a, ok := l.labelAt(i)
		if !ok {
			continue
		}
		for j := range i {
			b, ok := l.labelAt(j)
			// Two rejected faces agree, and so do a person's and one that is not somebody else's.
			if !ok || a.Negative && b.Negative || (a.Name == b.Name) != (a.Negative != b.Negative) {
				continue
			}
			if d := graph.Distance(l.graph.Point(i), l.graph.Point(j), l.space.Scale); d <= within {
				all = append(all, Conflict{A: b, B: a, Distance: d})
			}
		}
	}
	slices.SortStableFunc(all, func(p, q Conflict) int { return cmp.Compare(p.Distance, q.Distance) })
	return all
}

// Unlabel removes a labelled face, which it returns, and the person with their last one. Faces that were learned
// through it stay, but for the person's last one: then all goes, as with [Learner.Forget]. With the last of the faces
// that were rejected as somebody's goes what was learned through them. The error wraps [ErrUnknown].
func (l *Learner) Unlabel(id int64) (Label, error) {
	i, _ := l.graph.Find(id)
	gone, ok := Label{}, false
	if i < l.graph.Len() {
		gone, ok = l.labelAt(i)
	}
	if !ok || gone.ID != id {
		return Label{}, fmt.Errorf("%w: no labelled face has the number %d", ErrUnknown, id)
	}
	class := l.class(gone.Name, gone.Negative)
	if !gone.Negative && len(l.labelled(class)) == 1 {
		return gone, l.Forget(gone.Name)
	}
	l.unlabel(i, class)
	return gone, nil
}

// Unlearn takes back the faces learned from the observations in the ranges, both ends included, and all faces that were
// accepted through them, and returns how many faces that are. Observations count as [Counts].Observed does. Faces that
// another one took in longer ago than the journal reaches stay in its multiplicity, and what was accepted through a
// centroid stays where that has faded or been removed in another way before.
func (l *Learner) Unlearn(ranges [][2]int64) (faces int) {
	l.unaid()
	return int(l.graph.Unlearn(func(observation int64) bool {
		return slices.ContainsFunc(ranges, func(r [2]int64) bool { return r[0] <= observation && observation <= r[1] })
	}))
}
