package online

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/faceauth/faceauth/graph"
)

// MaxRejected is how many rejected faces of one person are kept, the newest.
const MaxRejected = 16

// class returns that of a person, or of the faces that are known not to be theirs, or -1.
func (l *Learner) class(name string, not bool) int {
	for c := range l.names {
		if l.names[c] == name && l.not[c] == not {
			return c
		}
	}
	return -1
}

// Reject shows l a face that is not the named person's, as [Learner.Label] shows one that is: a negative label. The
// faces rejected of a person, at most [MaxRejected], are a class of their own, which nobody is named after: a face
// that the harmonic solution gives to it rather than to anybody is unknown, and so is one that would be this person's
// but has an edge to a rejected face that is nearer than each of their labelled ones. What looks like a rejected
// face is learned with it.
//
// The error is that of [face.Space.Check], or wraps [ErrUnknown] or [ErrFull]; l has then not changed.
func (l *Learner) Reject(x []float32, name string) error {
	if err := l.space.Check(x); err != nil {
		return err
	}
	if l.class(name, false) < 0 {
		return fmt.Errorf("%w: %s", ErrUnknown, name)
	}
	class := l.class(name, true)
	if class < 0 {
		class = len(l.names)
	} else if faces := l.labelled(class); len(faces) >= MaxRejected {
		l.graph.Remove(faces[0]) // makes room, so the label below does not fail
	}
	if err := l.graph.Label(x, class); err != nil {
		return err
	}
	if class == len(l.names) {
		l.names, l.not = append(l.names, name), append(l.not, true)
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

// withdraw removes rejected faces at x, which is the named person's: to be somebody is not to be anybody else.
func (l *Learner) withdraw(x []float32, name string) {
	for i := l.graph.Len() - 1; i >= 0; i-- {
		if c, ok := l.graph.Class(i); ok && l.not[c] && l.names[c] != name && slices.Equal(l.graph.Point(i), x) {
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

// rejects reports whether a face that would be a person's is nearer to one that is known not to be theirs.
func (l *Learner) rejects(x []float32, person int) bool {
	not := l.class(l.names[person], true)
	if not < 0 {
		return false
	}
	d := l.nearest(x, not)
	return l.graph.Config().Weight(d) > 0 && d <= l.nearest(x, person)
}

// Label is a face that l was shown with a name.
type Label struct {
	ID   int64  `json:"id"` // for [Learner.Unlabel]
	Name string `json:"name"`
	Not  bool   `json:"not,omitempty"` // it was rejected
}

// label returns that of a vertex, and whether it has one.
func (l *Learner) label(i int) (Label, bool) {
	c, ok := l.graph.Class(i)
	if !ok {
		return Label{}, false
	}
	return Label{ID: l.graph.Origin(i).ID, Name: l.names[c], Not: l.not[c]}, true
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
		a, ok := l.label(i)
		if !ok {
			continue
		}
		for j := range i {
			b, ok := l.label(j)
			// Two rejected faces agree, and so do a person's and one that is not somebody else's.
			if !ok || a.Not && b.Not || (a.Name == b.Name) != (a.Not != b.Not) {
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

// Unlabel removes a labelled face, which it returns, and the person with their last one. What was learned through it
// stays. The error wraps [ErrUnknown].
func (l *Learner) Unlabel(id int64) (Label, error) {
	for i := range l.graph.Len() {
		gone, ok := l.label(i)
		if !ok || gone.ID != id {
			continue
		}
		class := l.class(gone.Name, gone.Not)
		if !gone.Not && len(l.labelled(class)) == 1 {
			return gone, l.Forget(gone.Name)
		}
		l.unlabel(i, class)
		return gone, nil
	}
	return Label{}, fmt.Errorf("%w: no labelled face has the number %d", ErrUnknown, id)
}

// Unlearn takes back what was learned from the observations in the ranges, both ends included, and whatever was
// accepted through it, and returns how many faces that are. Observations count as [Counts].Observed does. Faces
// that another one took in longer ago than the journal reaches stay in its multiplicity.
func (l *Learner) Unlearn(ranges [][2]int64) (faces int) {
	return int(l.graph.Unlearn(func(observation int64) bool {
		return slices.ContainsFunc(ranges, func(r [2]int64) bool { return r[0] <= observation && observation <= r[1] })
	}))
}
