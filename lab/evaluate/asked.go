// SPDX-License-Identifier: Apache-2.0

package evaluate

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/online"
)

// Asked is what a learner was asked for, and what it had: the rates of names for single photographs
// in galleries of one size. Nothing is learned.
type Asked struct {
	Rate        float64 `json:"rate"`        // asked for: online.Settings.Strangers
	People      int     `json:"people"`      // enrolled in each draw
	Photographs int     `json:"photographs"` // of each person
	Draws       int     `json:"draws"`       // random galleries
	Looks       float64 `json:"looks"`       // mean number in a gallery

	FPIR     ErrorRate `json:"fpir"`     // strangers with a name
	FNIR     ErrorRate `json:"fnir"`     // enrolled people without their name
	Misnamed int       `json:"misnamed"` // of these, with another person's
}

// Exact reports whether the rate that was asked for lies within the interval of the rate that was
// had.
func (a Asked) Exact() bool {
	return a.FPIR.Interval.Low <= a.Rate &&
		a.Rate <= a.FPIR.Interval.High
}

// gallery is a drawn gallery: the nearest labelled face of each probe, for all rates.
type gallery struct {
	learner *online.Learner
	probes  []nearestTrial
}

type nearestTrial struct {
	trial
	distance float64
}

// Ask draws galleries of so many people with so many photographs each, and asks for each of the
// rates. All other pictures of the enrolled people, and all of everybody else and of strangers, are
// probes. With at least this many people beside them who could be enrolled, or if there are none,
// the draws are random and seeded. The error wraps [ErrTooFew].
func Ask(ctx context.Context, ids, strangers []Identity, space face.Space, people, photographs,
	draws int,
	rates []float64, seed uint64) (all []Asked, err error) {
	var able []int
	for i, id := range ids {
		if _, _, err := id.Divide(photographs); err == nil {
			able = append(able, i)
		}
	}
	if len(able) < people {
		return nil, fmt.Errorf("%w: %d of %d people have %d usable faces", ErrTooFew, len(able),
			people, photographs)
	}
	for _, rate := range rates {
		all = append(all, Asked{Rate: rate, People: people, Photographs: photographs, Draws: draws})
	}
	trials := make([][]trial, len(rates))
	r := rand.New(rand.NewPCG(seed, 59))
	for draw := range draws {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		r.Shuffle(len(able), func(i, j int) { able[i], able[j] = able[j], able[i] })
		g, err := drawn(ids, strangers, able[:people], space, photographs)
		if err != nil {
			return nil, err
		}
		for q, rate := range rates {
			s := g.learner.Settings()
			s.Strangers = rate
			if err := g.learner.Configure(s); err != nil {
				return nil, err
			}
			radius := g.learner.Radii().Enrolled
			all[q].Looks += float64(g.learner.Radii().Looks) / float64(draws)
			for _, p := range g.probes {
				t := p.trial
				t.user = fmt.Sprint(draw)
				if p.distance > radius {
					t.claim = ""
				}
				if t.known && t.claim != "" && !t.correct() {
					all[q].Misnamed++
				}
				trials[q] = append(trials[q], t)
			}
		}
	}
	for q := range all {
		all[q].FPIR = errorRate(trials[q], func(t trial) (counts, wrong bool) {
			return !t.known, t.claim != ""
		})
		all[q].FNIR = errorRate(trials[q], func(t trial) (counts, wrong bool) {
			return t.known, !t.correct()
		})
	}
	return all, nil
}

// drawn enrols people, and looks for the nearest labelled face of all other faces.
func drawn(ids, strangers []Identity, chosen []int, space face.Space,
	photographs int) (*gallery, error) {
	l, err := online.New(space, online.Settings{Freeze: true})
	if err != nil {
		return nil, err
	}
	g := &gallery{learner: l}
	var probes []nearestTrial
	var vectors [][]float32
	add := func(id Identity, faces []int, known bool) {
		for _, j := range faces {
			probes = append(probes, nearestTrial{trial: trial{person: id.Name, known: known}})
			vectors = append(vectors, id.Faces[j].Vector)
		}
	}
	for i, id := range ids {
		n := 0
		if slices.Contains(chosen, i) {
			n = photographs
		}
		labelled, rest, err := id.Divide(n)
		if err != nil {
			return nil, err
		}
		for _, j := range labelled {
			if err := l.Label(id.Faces[j].Vector, online.Person(i+1)); err != nil {
				return nil, err
			}
		}
		add(id, rest, n > 0)
	}
	for _, id := range strangers {
		_, all, err := id.Divide(0)
		if err != nil {
			return nil, err
		}
		add(id, all, false)
	}
	far := space.Stills.Within(1e-2)
	for i, x := range vectors {
		p, d := l.Closest(x, far+1e-9)
		if p != 0 {
			probes[i].claim, probes[i].distance = ids[p-1].Name, d
		}
	}
	g.probes = probes
	return g, nil
}
