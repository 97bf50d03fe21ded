// SPDX-License-Identifier: Apache-2.0

package evaluate

import (
	"cmp"
	"context"
	"fmt"
	"image"
	"math"
	"slices"
	"time"

	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/quantized"
)

// Attack is an attempt of one person to be accepted as another, the only enrolled person, by
// showing faces to a method that learns.
type Attack struct {
	User, Attacker string
	Labelled       [][]float32 // of the user
	Honest         []Face      // of the user, seen before the attack
	// Ways are sequences of faces; the attacker uses one of them. Each is tried on its own copy of
	// the method, and the fastest success counts, because the attacker knows the guards.
	Ways [][]Face
	// Probes are the attacker's own faces. The attack succeeds when one is accepted. Without probes
	// the steps themselves are the attacker's faces.
	Probes [][]float32
	// Track says how the steps are shown to a method that watches ([Watching]); other methods have
	// no tracks.
	Track Track
}

// Track says how the steps of an attack follow each other before a camera.
type Track string

const (
	Apart Track = "" // each step is its own sighting, and so is each probe
	// one after the other at one place, with the probes before the first step and after each
	Morph Track = "morph"
	// InPlace shows the steps one after the other, on the track of the user who has just left;
	// probes are their own sightings.
	InPlace Track = "in place"
)

// SlowDrifts returns an attack for each ordered pair of people. The attacker shows own faces,
// beginning with the faces nearest to a labelled face of the user. The error wraps [ErrTooFew].
func SlowDrifts(ids []Identity, enroll int) ([]Attack, error) {
	return pairs(ids, enroll, func(a *Attack, _, attacker Identity) error {
		distance := make([]float64, len(attacker.Faces))
		order := make([]int, len(attacker.Faces))
		for i, f := range attacker.Faces {
			order[i], distance[i] = i, math.Inf(1)
			for _, l := range a.Labelled {
				distance[i] = min(distance[i], quantized.SquaredDistance(f.Vector, l))
			}
		}
		slices.SortStableFunc(order, func(a, b int) int {
			return cmp.Compare(distance[a], distance[b])
		})
		steps := make([]Face, len(order))
		for to, from := range order {
			steps[to] = attacker.Faces[from]
		}
		a.Ways = [][]Face{steps}
		return nil
	})
}

// Bridges returns an attack for each ordered pair of people over blends from the user's face to the
// attacker's. It has one way for each number of blends. Blend must return the vectors of n blends
// between the i-th labelled face of the user and the j-th face with which the attacker would be
// enrolled; these two faces are the nearest pair. The attacker's faces are the probes. The error
// wraps [ErrTooFew], or comes from blend.
func Bridges(ids []Identity, enroll int, numbers []int,
	blend func(user string, i int, attacker string, j, n int) ([][]float32, error)) ([]Attack,
	error) {
	return pairs(ids, enroll, func(a *Attack, user, attacker Identity) error {
		own, _, err := attacker.Divide(enroll)
		if err != nil {
			return err
		}
		best := math.Inf(1)
		from, to := 0, 0
		for j, face := range own {
			x := attacker.Faces[face].Vector
			a.Probes = append(a.Probes, x)
			for i, l := range a.Labelled {
				if d := quantized.SquaredDistance(x, l); d < best {
					from, to, best = i, j, d
				}
			}
		}
		for _, n := range numbers {
			vectors, err := blend(user.Name, from, attacker.Name, to, n)
			if err != nil {
				return err
			}
			steps := make([]Face, len(vectors))
			for i, x := range vectors {
				steps[i].Vector = x
			}
			a.Ways = append(a.Ways, steps)
		}
		return nil
	})
}

// Swaps returns an attack for each ordered pair of people: the attacker steps into the place that
// the user has just left, so the attacker's faces come on the user's track. These faces are the
// probes, too. The error wraps [ErrTooFew].
func Swaps(ids []Identity, enroll int) ([]Attack, error) {
	return pairs(ids, enroll, func(a *Attack, _, attacker Identity) error {
		own, _, err := attacker.Divide(enroll)
		if err != nil {
			return err
		}
		var steps []Face
		for _, i := range own {
			steps = append(steps, Face{Vector: attacker.Faces[i].Vector,
				Quality: attacker.Faces[i].Quality})
			a.Probes = append(a.Probes, attacker.Faces[i].Vector)
		}
		a.Ways, a.Track = [][]Face{steps}, InPlace
		return nil
	})
}

// Replay returns the attack on a user with pictures or videos of this user.
func Replay(user Identity, enroll int, fakes []Face) (Attack, error) {
	a, err := begin(user, "a replay of "+user.Name, enroll)
	a.Ways = [][]Face{fakes}
	return a, err
}

// pairs returns an attack for each ordered pair of people. Plan fills in its ways.
func pairs(ids []Identity, enroll int,
	plan func(a *Attack, user, attacker Identity) error) (all []Attack, err error) {
	for _, user := range ids {
		for _, attacker := range ids {
			if user.Name == attacker.Name {
				continue
			}
			a, err := begin(user, attacker.Name, enroll)
			if err != nil {
				return nil, err
			}
			if err := plan(&a, user, attacker); err != nil {
				return nil, err
			}
			all = append(all, a)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%w: it takes two people to attack one", ErrTooFew)
	}
	return all, nil
}

// begin returns the attack on a user without its ways.
func begin(user Identity, attacker string, enroll int) (Attack, error) {
	a := Attack{User: user.Name, Attacker: attacker}
	labelled, rest, err := user.Divide(enroll)
	for _, i := range labelled {
		a.Labelled = append(a.Labelled, user.Faces[i].Vector)
	}
	for _, i := range rest {
		a.Honest = append(a.Honest, user.Faces[i])
	}
	return a, err
}

// Guarded is a method under attack.
type Guarded struct {
	Entry
	Guards string // description of the guards
	// a face with a smaller liveness is refused, and not learned; 0 for no such rule
	Liveness float32
}

// Alarmer is a method that raises an alarm when one person seems to replace another.
type Alarmer interface {
	Alarmed(name string) (bool, error)
}

// Outcome is the result of a method under attacks of one kind.
type Outcome struct {
	Method string `json:"method"`
	Guards string `json:"guards"`
	// Attacks counts all attacks; Fallen, attacks in which the attacker was accepted; Alarmed,
	// attacks with an alarm before this; and FalseAlarms, attacks with an alarm before the attack
	// began.
	Attacks     int `json:"attacks"`
	Fallen      int `json:"fallen"`
	Alarmed     int `json:"alarmed"`
	FalseAlarms int `json:"false_alarms"`
	// 95 % interval of the share of successful attacks, if attacks were independent
	Interval Interval `json:"interval"`
	// Least and Median are the numbers of steps before the attacker was accepted, over successful
	// attacks.
	Least  int  `json:"least_steps"`
	Median int  `json:"median_steps"`
	Honest Rate `json:"honest_recall"` // of the user's own faces before the attack
	// Presented and Accepted count the attackers' steps that are own faces of the attacker.
	Presented int `json:"presented"`
	Accepted  int `json:"accepted"`
}

// Withstand runs attacks on a method and sums up the results. Progress, if it is not nil, is called
// after each.
func Withstand(ctx context.Context, attacks []Attack, g Guarded, progress func()) (Outcome, error) {
	o := Outcome{Method: g.Name, Guards: g.Guards, Attacks: len(attacks)}
	var needed []int
	right, honest := 0, 0
	for _, a := range attacks {
		if err := ctx.Err(); err != nil {
			return o, err
		}
		var r trace
		for i, steps := range a.Ways {
			t, err := a.run(g, steps)
			if err != nil {
				return o, fmt.Errorf("method %s, %s attacked by %s: %w", g.Name, a.User, a.Attacker,
					err)
			}
			if i == 0 || t.fallen && (!r.fallen || t.needed < r.needed) {
				r = t
			}
		}
		right, honest = right+r.right, honest+len(a.Honest)
		o.Presented, o.Accepted = o.Presented+r.presented, o.Accepted+r.accepted
		if r.fallen {
			o.Fallen++
			needed = append(needed, r.needed)
		}
		if r.alarmed {
			o.Alarmed++
		}
		if r.falseAlarm {
			o.FalseAlarms++
		}
		if progress != nil {
			progress()
		}
	}
	o.Honest, o.Interval = rate(right, honest), ClopperPearson(o.Fallen, o.Attacks)
	if len(needed) > 0 {
		slices.Sort(needed)
		o.Least, o.Median = needed[0], needed[len(needed)/2]
	}
	return o, nil
}

// trace is the course of one attack in one way.
type trace struct {
	right               int  // of the user's own faces accepted
	falseAlarm          bool // raised before the attack
	fallen, alarmed     bool // the attacker was accepted; an alarm came before that
	needed              int  // steps before the attacker was accepted
	presented, accepted int  // steps that are the attacker's own faces
}

func (a Attack) run(g Guarded, steps []Face) (t trace, err error) {
	m, err := g.New()
	if err != nil {
		return t, err
	}
	for _, x := range a.Labelled {
		if err := m.Enroll(x, a.User); err != nil {
			return t, err
		}
	}
	stage := &stage{m: m, track: a.Track, box: image.Rect(100, 100, 200, 200)}
	accepts := func(f Face, of part) (bool, error) {
		claim, score, err := stage.show(f, of)
		return err == nil && claim == a.User && m.Accepts(score), err
	}
	shows := func(f Face, of part) (bool, error) {
		if g.Liveness > 0 && (f.Liveness == nil || *f.Liveness < g.Liveness) {
			return false, nil
		}
		return accepts(f, of)
	}
	alarmed := func() (bool, error) {
		if w, ok := m.(Alarmer); ok {
			return w.Alarmed(a.User)
		}
		return false, nil
	}
	for _, f := range a.Honest {
		ok, err := shows(f, honest)
		if err != nil {
			return t, err
		}
		if ok {
			t.right++
		}
	}
	if t.falseAlarm, err = alarmed(); err != nil {
		return t, err
	}
	succeed := func(ok bool, steps int) {
		if ok && !t.fallen {
			t.fallen, t.needed = true, steps
		}
	}
	probe := func(steps int) error {
		for _, x := range a.Probes {
			if t.fallen {
				return nil
			}
			ok, err := accepts(Face{Vector: x, Hold: true}, probing)
			if err != nil {
				return err
			}
			succeed(ok, steps)
		}
		return nil
	}
	if err := probe(0); err != nil {
		return t, err
	}
	for i, f := range steps {
		ok, err := shows(f, step)
		if err != nil {
			return t, err
		}
		if a.Track == InPlace || len(a.Probes) == 0 {
			t.presented++
			if ok {
				t.accepted++
			}
		}
		if len(a.Probes) == 0 {
			succeed(ok, i)
		} else if err := probe(i + 1); err != nil {
			return t, err
		}
		if !t.fallen && !t.alarmed && !t.falseAlarm {
			if t.alarmed, err = alarmed(); err != nil {
				return t, err
			}
		}
	}
	return t, nil
}

// part is the part of a face in an attack.
type part int

const (
	honest  part = iota // a face of the user
	step                // a step of the attack
	probing             // a probe: a face of the attacker
)

// stage shows faces to a method.
type stage struct {
	m         Method
	track     Track
	recording int
	at        time.Duration
	box       image.Rectangle
}

// framesOfStep is how often each face of an attack is shown to a method that watches: enough for a
// decision.
const framesOfStep = 6

// show shows a face, and returns the method's final answer.
func (s *stage) show(f Face, of part) (claim string, score float64, err error) {
	w, watching := s.m.(Watching)
	if !watching {
		return s.m.Judge(f.Vector, f.Hold)
	}
	if of == honest {
		s.at, s.box = max(s.at, f.At), f.Box
		return w.See(f, 0, f.Hold)
	}
	if s.track == Apart || s.track == InPlace && of == probing || s.recording == 0 &&
		s.track == Morph {
		s.recording++
	}
	for range framesOfStep {
		s.at += 40 * time.Millisecond
		f.At, f.Box = s.at, s.box
		if claim, score, err = w.See(f, s.recording, f.Hold); err != nil {
			return "", 0, err
		}
	}
	return claim, score, nil
}

// Unguarded returns the settings without limits on accepting and learning, except the kernel's.
func Unguarded(s online.Settings) online.Settings {
	s.Reach = 1e6 // not online.Off, because self-training uses it as its radius
	s.Accept, s.Learn = 0, 0
	return s
}
