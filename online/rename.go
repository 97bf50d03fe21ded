// SPDX-License-Identifier: Apache-2.0

package online

import (
	"errors"
	"fmt"
	"slices"
)

// ErrTaken is wrapped by the error of [Learner.Rename] for a name that somebody has.
var ErrTaken = errors.New("somebody has that name")

// Rename gives a person another name, which nobody has. The error wraps [ErrUnknown], [ErrName] or [ErrTaken]; l has
// then not changed.
func (l *Learner) Rename(from, to string) error {
	switch {
	case !l.Knows(from):
		return fmt.Errorf("%w: %s", ErrUnknown, from)
	case l.Knows(to):
		return fmt.Errorf("%w: %s", ErrTaken, to)
	}
	if err := CheckName(to); err != nil {
		return err
	}
	for _, negative := range []bool{false, true} {
		if c := l.class(from, negative); c >= 0 {
			delete(l.index, l.classes[c])
			l.classes[c].name = to
			l.index[l.classes[c]] = c
		}
	}
	l.renameLessons(from, to)
	return nil
}

// Vector returns the vector of the stored face with this number, or nil where there is none. It must not be changed.
func (l *Learner) Vector(id int64) []float32 {
	if i, ok := l.graph.Find(id); ok {
		return l.graph.Point(i)
	}
	return nil
}

// Retract removes labelled faces by their numbers, as [Learner.Unlabel] does, and takes back what was learned through
// them, as [Learner.Unlearn] does. It returns how many learned faces are gone. Numbers of no labelled face are passed
// over.
func (l *Learner) Retract(ids ...int64) (faces int) {
	ids = slices.DeleteFunc(slices.Clone(ids), func(id int64) bool {
		i, ok := l.graph.Find(id)
		if ok {
			_, ok = l.labelAt(i)
		}
		return !ok
	})
	l.unaid()
	faces = int(l.graph.UnlearnThrough(ids...))
	stored := l.graph.Learned()
	for _, id := range ids {
		l.Unlabel(id) // an error says that it is not there
	}
	return faces + stored - l.graph.Learned() // what went with a person's last face
}
