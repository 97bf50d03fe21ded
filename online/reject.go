// SPDX-License-Identifier: Apache-2.0

package online

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/faceauth/faceauth/quantized"
)

// class returns the number of the class of a person's faces, or of the faces rejected as this
// person's, or -1.
func (l *Learner) class(p Person, negative bool) int {
	if c, ok := l.index[class{p, negative}]; ok {
		return c
	}
	return -1
}

// Reject adds a face that is not a person's: a negative label. Rejected faces compete with nobody:
// they are asked once a face would be this person's. It is unknown then, and is not learned, if it
// has an edge to a rejected face that is at least as near as each labelled and learned face of the
// person.
//
// The error comes from [face.Space.Check], or wraps [ErrUnknown] or [ErrFull]. On error l is
// unchanged.
func (l *Learner) Reject(x []float32, p Person) error {
	if err := l.space.Check(x); err != nil {
		return err
	}
	if !l.Knows(p) {
		return unknown(p)
	}
	return l.label(x, class{p, true})
}

func unknown(p Person) error { return fmt.Errorf("%w: person %d", ErrUnknown, p) }

// labelled returns the vertices with labels of a class, the oldest first.
func (l *Learner) labelled(class int) (all []int) {
	for i := range l.graph.Len() {
		if c, ok := l.graph.Class(i); ok && c == class {
			all = append(all, i)
		}
	}
	return all
}

// withdraw removes rejections at x of all people except one. A label for one person implies that
// the face is nobody else's.
func (l *Learner) withdraw(x []float32, p Person) {
	var gone []int64
	for i := range l.graph.Len() {
		c, ok := l.graph.Class(i)
		if ok && l.classes[c].Negative && l.classes[c].Person != p &&
			slices.Equal(l.graph.Point(i), x) {
			gone = append(gone, l.graph.Origin(i).ID)
		}
	}
	l.unlabel(gone...)
}

// unlabel removes labels by their numbers, and with the last label of a class the class: of a
// person as [Learner.Forget].
func (l *Learner) unlabel(gone ...int64) {
	if len(gone) == 0 {
		return
	}
	goes := make(map[int64]bool)
	for _, id := range gone {
		goes[id] = true
	}
	left, fewer := make(map[class]bool), make(map[class]bool)
	for _, x := range l.Labels() {
		c := class{x.Person, x.Negative}
		left[c], fewer[c] = left[c] || !goes[x.ID], fewer[c] || goes[x.ID]
	}
	var empty []int
	for c := range fewer {
		switch at := l.class(c.Person, c.Negative); {
		case !fewer[c]:
		case left[c]:
			l.looks[at], l.radii = notCounted, Radii{}
		case c.Negative:
			empty = append(empty, at)
		default:
			empty = append(empty, l.of(c.Person)...)
		}
	}
	l.forget(empty)
	l.graph.Remove(gone...)
}

// Label is a labelled or rejected face.
type Label struct {
	ID       int64  `json:"id"` // for [Learner.Remove]
	Person   Person `json:"person"`
	Negative bool   `json:"not,omitempty"` // the face was rejected: it is not this person's
}

// labelAt returns the label of a vertex. Ok is false if the vertex has none.
func (l *Learner) labelAt(i int) (Label, bool) {
	c, ok := l.graph.Class(i)
	if !ok {
		return Label{}, false
	}
	return Label{ID: l.graph.Origin(i).ID, Person: l.classes[c].Person,
		Negative: l.classes[c].Negative}, true
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

// Conflict is a pair of labelled faces that look like one person and cannot both be right.
type Conflict struct {
	A        Label   `json:"a"`
	B        Label   `json:"b"`
	Distance float64 `json:"distance"` // distance between them, in units of the space's distance
}

// Newest returns the number of the face that was labelled last, or 0.
func (l *Learner) Newest() int64 {
	for i := l.graph.Len() - 1; i >= 0; i-- {
		if label, ok := l.labelAt(i); ok {
			return label.ID
		}
	}
	return 0
}

// Conflicts returns the pairs of contradicting labels at a distance of at most within: two faces of
// different people, or a face of a person and a face rejected as this person's. The nearest pairs
// come first.
func (l *Learner) Conflicts(within float64) (all []Conflict) {
	for i := range l.graph.Len() {
		a, ok := l.labelAt(i)
		if !ok {
			continue
		}
		compare := func(j int) {
			b, ok := l.labelAt(j)
			// Two rejected faces agree. A face of a person and a face rejected as another person's
			// agree, too.
			if !ok || a.Negative && b.Negative ||
				(a.Person == b.Person) != (a.Negative != b.Negative) {
				return
			}
			if d := quantized.Distance(l.graph.Point(i), l.graph.Point(j),
				l.space.Scale); d <= within {
				all = append(all, Conflict{A: b, B: a, Distance: d})
			}
		}
		if within <= l.settings.graph(l.space).EdgeRadius() { // then all such pairs are edges
			l.graph.Neighbours(i, func(j int, _ float64) {
				if j < i {
					compare(j)
				}
			})
			continue
		}
		for j := range i {
			compare(j)
		}
	}
	slices.SortStableFunc(all, func(p, q Conflict) int {
		return cmp.Compare(p.Distance, q.Distance)
	})
	return all
}

// Unlearn takes back the faces learned from a source ([Observation].Source), and all faces accepted
// through them. It returns the number of faces. If a face was merged into another before the
// journal begins, it stays in the multiplicity of that face. Faces accepted through a centroid stay
// if the centroid was removed in another way.
func (l *Learner) Unlearn(source int64) (faces int) {
	return int(l.graph.Unlearn(func(_ int64, m quantized.Moment) bool {
		return m.Source == source
	}))
}

// Retract removes labelled faces by their numbers, as [Learner.Remove] does, and takes back the
// faces learned through them, as [Learner.Unlearn] does. It returns the number of learned faces
// that were removed. Numbers that are not labelled faces are ignored.
func (l *Learner) Retract(ids ...int64) (faces int) {
	ids = slices.DeleteFunc(slices.Clone(ids), func(id int64) bool {
		i, ok := l.graph.Find(id)
		if ok {
			_, ok = l.labelAt(i)
		}
		return !ok
	})
	faces = int(l.graph.Unlearn(func(int64, quantized.Moment) bool { return false }, ids...))
	stored := l.graph.Learned()
	l.unlabel(ids...)
	// with faces that the last label of a person took along
	return faces + stored - l.graph.Learned()
}
