// SPDX-License-Identifier: Apache-2.0

package gallery

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/quantized"
)

// Errors of [Gallery.Enroll] and [Gallery.Rename]. Errors of labels from package online pass
// through.
var (
	ErrExists    = errors.New("somebody of that name is enrolled already")
	ErrNoFaces   = errors.New("no faces to enrol")
	ErrMixed     = errors.New("faces that do not look like one person")
	ErrMismatch  = errors.New("faces that do not look like the person of that name")
	ErrAlike     = errors.New("somebody has nearly the same name")
	ErrResembles = errors.New("the faces look like somebody else")
)

// Enrolment says how to treat faces that contradict known faces.
type Enrolment struct {
	Add bool // add faces to an enrolled person
	// enrol even if the faces do not look like one person, or not like the enrolled person of this
	// name
	Force bool
	Alone bool // unless forced, refuse faces most of which look like another enrolled person
	// Numbers are the numbers of the faces, if they have numbers already ([Rows.Next]).
	Numbers []uint64
	// Pictures are small JPEGs of the faces, or nil for a face without one. They are kept beside
	// the labels, unless the settings say [online.Settings].NoPictures.
	Pictures [][]byte
}

// latest is the last second of enrolments: every device and JSON can write it.
const latest = 1<<37 - 1

// Enroll labels faces with a name, all or none. Resembles is the name of another enrolled person
// whom most of the faces look like, or "". Check it: if one person has two names, the learned faces
// are split between them.
//
// The error wraps [ErrNoFaces], [ErrExists], [ErrMixed], [ErrMismatch], [ErrAlike] or
// [ErrResembles], or comes from [online.Learner.Label] or the database. On error g is unchanged.
func (g *Gallery) Enroll(name string, faces [][]float32, now time.Time,
	how Enrolment) (resembles string, err error) {
	err = g.change(func(t *Tx) error {
		var person int64
		resembles, err = g.admit(name, faces, how)
		if err == nil {
			person, err = t.Person(name)
		}
		if err != nil {
			return fmt.Errorf("enrolling %.100q: %w", name, err)
		}
		numbers := slices.Clone(how.Numbers)
		for len(numbers) < len(faces) {
			number, _ := t.Next("face", 1)
			numbers = append(numbers, uint64(number))
		}
		t.Label(person, false, faces, numbers)
		t.portray(numbers, how.Pictures)
		t.Exec("update person set enrolled = ? where id = ?", min(max(now.Unix(), 0), latest),
			person)
		return t.Follow()
	})
	return resembles, err
}

// admit returns whom faces resemble, or an error if they cannot be enrolled under a name.
func (g *Gallery) admit(name string, faces [][]float32,
	how Enrolment) (resembles string, err error) {
	for i, x := range faces {
		if err := g.Space().Check(x); err != nil {
			return "", fmt.Errorf("face %d of %d: %w", i+1, len(faces), err)
		}
	}
	known, other, room := g.Number(name) != 0, g.Alike(name), g.learner.Graph().LabelRoom()
	switch {
	case len(faces) == 0:
		return "", ErrNoFaces
	case len(faces) > room:
		return "", fmt.Errorf("%w: %d more, and there is room for %d", online.ErrFull, len(faces),
			room)
	case known && !how.Add:
		return "", fmt.Errorf("%w; add faces to them, or choose another name", ErrExists)
	case other != "" && !known && !how.Force:
		return "", fmt.Errorf("%w: %s; use this spelling for the same person", ErrAlike, other)
	case !how.Force && g.mixed(faces):
		return "", fmt.Errorf("%w; use a recording of one person", ErrMixed)
	}
	resembles, own, err := g.Resembles(name, faces)
	switch {
	case err != nil || how.Force:
		return resembles, err
	case how.Alone && resembles != "":
		return "", fmt.Errorf("%w: %s; confirm it, or force it", ErrResembles, resembles)
	case known && g.Space().GenuineRadius > 0 && own == 0:
		return "", fmt.Errorf("%w; use another name", ErrMismatch)
	}
	return resembles, nil
}

// Alike returns another enrolled person whose name people would take for a name, or "".
func (g *Gallery) Alike(name string) string {
	same := face.PlainName(name)
	for _, other := range g.people {
		if other.Name != name && face.PlainName(other.Name) == same {
			return other.Name
		}
	}
	return ""
}

// mixed reports whether one of several faces is near none of the others.
func (g *Gallery) mixed(faces [][]float32) bool {
	space := g.Space()
	return space.GenuineRadius > 0 && len(faces) > 1 &&
		slices.ContainsFunc(faces, func(x []float32) bool {
			near := 0 // with itself
			for _, y := range faces {
				if near < 2 && quantized.Distance(x, y, space.Scale) <= space.GenuineRadius {
					near++
				}
			}
			return near < 2
		})
}

// Resembles returns the name of another enrolled person whom most of the faces look like, or "",
// and how many look like the person of this name. If most look like others, but not like one, it is
// the one whom the largest number look like. The error comes from [online.Learner.Judge].
func (g *Gallery) Resembles(name string, faces [][]float32) (other string, own int, err error) {
	like := make(map[online.Person]int)
	for _, x := range faces {
		v, err := g.learner.Judge(x)
		if err != nil {
			return "", 0, err
		}
		// one face under two names: the nearer of them
		if v.Person == 0 && (v.Best != 0 || v.Reason == online.Tie) {
			v.Person, _ = g.learner.Closest(x, g.Space().ImpostorRadius)
		}
		like[v.Person]++
	}
	delete(like, 0)
	own = like[g.Number(name)]
	delete(like, g.Number(name))
	total, most := 0, online.Person(0)
	for p, n := range like {
		total += n
		if n > like[most] || n == like[most] && p < most {
			most = p
		}
	}
	if 2*total > len(faces) {
		other = g.Name(most)
	}
	return other, own, nil
}

// Remove takes back a face that the learner keeps, by its number, with everything that was learned
// through it. It returns the number of learned faces that were removed. The error wraps
// [online.ErrUnknown], or comes from the database. On error g is unchanged.
func (g *Gallery) Remove(stored int64) (faces int, err error) {
	err = g.change(func(t *Tx) error {
		row := g.labels[stored]
		if row == 0 {
			faces, err = t.Learner().Remove(stored)
			return err
		}
		before := g.learner.Graph().Len()
		t.Drop(row)
		err := t.Follow()
		faces = before - 1 - g.learner.Graph().Len()
		return err
	})
	return faces, err
}

// Forget forgets a person, the faces that were learned through this person, and everything else
// about this person. The error wraps [online.ErrUnknown], or comes from the database. On error g is
// unchanged.
func (g *Gallery) Forget(name string) error {
	return g.change(func(t *Tx) error {
		person, err := g.Find(name)
		if err != nil {
			return err
		}
		t.Forget(person)
		return t.Follow()
	})
}

// Rename gives a person a new name. The error wraps [online.ErrUnknown], [face.ErrName],
// [ErrExists] or [ErrAlike], or comes from the database. On error g is unchanged.
func (g *Gallery) Rename(from, to string) error {
	return g.change(func(t *Tx) error {
		person, err := g.Find(from)
		if err == nil {
			err = face.CheckName(to)
		}
		alike := g.Alike(to)
		switch {
		case err != nil:
			return err
		case g.Number(to) != 0 && (g.Number(to) != person || to == g.Name(person)):
			return fmt.Errorf("%w: %s", ErrExists, to)
		case alike != "" && alike != from:
			return fmt.Errorf("%w: %s", ErrAlike, alike)
		}
		t.Call(person, to)
		return t.Follow()
	})
}
