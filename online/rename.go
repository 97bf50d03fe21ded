// SPDX-License-Identifier: Apache-2.0

package online

import (
	"errors"
	"fmt"
	"slices"
)

// ErrTaken is wrapped by the error of [Learner.Rename] if another person has the name.
var ErrTaken = errors.New("somebody has that name")

// Rename gives a person a new name. The error wraps [ErrUnknown], [ErrName] or [ErrTaken]. On error l is unchanged.
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
			l.classes[c].Name = to
			l.index[l.classes[c]] = c
		}
	}
	return nil
}

// Vector returns the vector of the stored face with this number, or nil if there is none. The caller must not change
// it.
func (l *Learner) Vector(id int64) []float32 {
	if i, ok := l.graph.Find(id); ok {
		return l.graph.Point(i)
	}
	return nil
}

// Retract removes labelled faces by their numbers, as [Learner.Unlabel] does, and takes back the faces learned through
// them, as [Learner.Unlearn] does. It returns the number of learned faces that were removed. Numbers that are not
// labelled faces are ignored.
func (l *Learner) Retract(ids ...int64) (faces int) {
	ids = slices.DeleteFunc(slices.Clone(ids), func(id int64) bool {
		i, ok := l.graph.Find(id)
		if ok {
			_, ok = l.labelAt(i)
		}
		return !ok
	})
	faces = int(l.graph.UnlearnThrough(ids...))
	stored := l.graph.Learned()
	for _, id := range ids {
		l.Unlabel(id) // the only error is that there is no such label
	}
	return faces + stored - l.graph.Learned() // with faces that the last label of a person took along
}
