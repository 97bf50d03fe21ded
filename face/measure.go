// SPDX-License-Identifier: Apache-2.0

package face

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// ErrLabels is wrapped by the error of [Measure] for too few labelled vectors, or for names that
// the vectors contradict.
var ErrLabels = errors.New("unusable labels")

// Shares of the impostor radius, as in the space of the built-in network, where they were chosen on
// recordings (lab/NOTES.md, "Sensitivity").
const (
	impostorShare = .9 // of the distance at a false match rate of 1e-3
	reachShare    = .92
	sigmaShare    = .215
	measuredGamma = 1e-3
)

// fewestNear is the least number of pairs below a distance of the table: fewer are chance.
const fewestNear = 5

// enoughPairs is the least number of pairs of two people that a distance at a false match rate of
// 1e-3 needs: five of them are nearer.
const enoughPairs = 1000 * fewestNear

// Measure returns the space of a user's own vectors, with settings that follow from labelled ones:
// for each person some vectors, all of the same length. The id names the space, and Scale is 1.
// ImpostorRadius lies below nearly all distances between two people, GenuineRadius above nearly all
// between two vectors of a person. Sigma and Reach follow from the impostor radius. Stills has the
// number of pairs, and the distances by false match rate as far as there are enough pairs.
//
// With fewer than 5,000 pairs of two people, the nearest pair says little about how near others
// come. Then Reach is not longer than the distance between two vectors of one person, as nothing
// speaks for longer edges, and [Space.Warning] names the number of pairs that is wanted.
//
// Choose settings on vectors like those that are to be recognised, and measure the result on other
// people. It takes time in proportion to the square of the number of vectors. The error is that of
// [Space.Check], or wraps [ErrLabels]: as when the genuine radius is above the impostor radius for
// vectors that are nearer to another person's than to their own, which it names.
func Measure(id string, people map[string][][]float32) (Space, error) {
	m := measurement{space: Space{ID: id, Scale: 1, Gamma: measuredGamma}}
	for _, name := range slices.Sorted(maps.Keys(people)) {
		for i, x := range people[name] {
			m.space.Dim = max(m.space.Dim, len(x))
			m.all = append(m.all, labelled{x, name, i + 1})
		}
	}
	for _, x := range m.all {
		if err := m.space.Check(x.vector); err != nil {
			return Space{}, err
		}
	}
	unit := m.space
	unit.Unit = true
	m.space.Unit = !slices.ContainsFunc(m.all, func(x labelled) bool {
		return unit.Check(x.vector) != nil
	})
	genuine, impostor := m.pairs(nil)
	if len(genuine) == 0 || len(impostor) == 0 {
		return Space{}, fmt.Errorf("%w: two people are needed, and two vectors of one", ErrLabels)
	}
	s := m.space
	s.ImpostorRadius, s.GenuineRadius = radii(genuine, impostor)
	if s.GenuineRadius > s.ImpostorRadius {
		if err := m.blame(s.ImpostorRadius); err != nil {
			return Space{}, err
		}
	}
	if s.ImpostorRadius == 0 {
		return Space{},
			fmt.Errorf("space %s: more than one in 1000 pairs of two people have the same vector",
				id)
	}
	s.Reach, s.Sigma = reachShare*s.ImpostorRadius, sigmaShare*s.ImpostorRadius
	s.Stills = Impostors{People: len(people), Pairs: int64(len(impostor))}
	for i := range s.Stills.Distances {
		k := int(math.Pow(10, -2-float64(i)) * float64(len(impostor)))
		if k < fewestNear || i > 0 && !(impostor[k] < s.Stills.Distances[i-1]) {
			break
		}
		s.Stills.Distances[i] = impostor[k]
	}
	if s.Stills.Distances[1] == 0 {
		s.Stills.Distances = [5]float64{} // a table needs the first two
	}
	return s, nil
}

// Warning says in words for a person that the distances of s were measured on too few pairs, and
// how many are wanted; "" if they were not measured or on enough.
func (s Space) Warning() string {
	if n := s.Stills.Pairs; n == 0 || n >= enoughPairs {
		return ""
	}
	return fmt.Sprintf("the distances of the space %s are guesses, from %d pairs of vectors of "+
		"two people; %d are wanted: measure it on more people", s.ID, s.Stills.Pairs, enoughPairs)
}

// labelled is a vector with its name, and its number among this person's vectors, from 1.
type labelled struct {
	vector []float32
	name   string
	number int
}

func (l labelled) String() string { return fmt.Sprintf("vector %d of %s", l.number, l.name) }

type measurement struct {
	space Space
	all   []labelled
}

func apart(x, y []float32) float64 {
	var sum float64
	for k := range x {
		d := float64(x[k]) - float64(y[k])
		sum += d * d
	}
	return math.Sqrt(sum)
}

// pairs returns the distances of all pairs of one person, and of two people, in ascending order,
// without some vectors.
func (m measurement) pairs(without map[int]bool) (genuine, impostor []float64) {
	for i, x := range m.all {
		for j, y := range m.all[:i] {
			if without[i] || without[j] {
				continue
			}
			if d := apart(x.vector, y.vector); x.name == y.name {
				genuine = append(genuine, d)
			} else {
				impostor = append(impostor, d)
			}
		}
	}
	slices.Sort(genuine)
	slices.Sort(impostor)
	return genuine, impostor
}

// genuineSlack is how much further than the widest of a few pairs of one person others may lie.
const genuineSlack = 1.5

// radii returns the impostor radius and the genuine radius. Few pairs of two people bound the first
// one by the widest pair of one person, and few pairs of one person are taken to be nearer than
// others.
func radii(genuine, impostor []float64) (far, near float64) {
	far, near = impostorShare*impostor[len(impostor)/1000], genuine[len(genuine)*99/100]
	widest := genuine[len(genuine)-1]
	if len(impostor) < enoughPairs && widest > 0 {
		far = min(far, widest/reachShare)
	}
	if len(genuine) < 100*fewestNear { // too few for one in a hundred
		near = genuineSlack * widest
	}
	return far, near
}

// Vectors are to blame if the radius without them is this much larger, or if they are this share of
// all vectors: then the space does not tell people apart. Single wrong names among thousands of
// people change no radius.
const (
	blameGain  = 1.1
	blameShare = .25
)

// blame returns an error that names the vectors that are nearer to a vector of another person than
// to all of their own, if the impostor radius rests on them.
func (m measurement) blame(radius float64) error {
	wrong := make(map[int]bool)
	var words []string
	for i, x := range m.all {
		own, other, whose := math.Inf(1), math.Inf(1), labelled{}
		for j, y := range m.all {
			d := apart(x.vector, y.vector)
			switch {
			case i == j:
			case x.name == y.name:
				own = min(own, d)
			case d < other:
				other, whose = d, y
			}
		}
		if math.IsInf(own, 1) || own < other {
			continue
		}
		wrong[i] = true
		words = append(words, fmt.Sprintf(
			"%v is at %.3g from %v, and at %.3g from the nearest of its own name", x, other,
			whose, own))
	}
	genuine, impostor := m.pairs(wrong)
	distinct := float64(len(wrong)) < blameShare*float64(len(m.all)) && len(genuine) > 0 &&
		len(impostor) > 0
	if distinct {
		without, _ := radii(genuine, impostor)
		if without <= blameGain*radius {
			return nil
		}
	}
	const most = 5
	if rest := len(words) - most; rest > 0 {
		words = append(words[:most], fmt.Sprintf("and %d others", rest))
	}
	what := "correct or remove them"
	if !distinct {
		what = "or these vectors do not tell people apart"
	}
	return fmt.Errorf("space %s: %w: %s; %s", m.space.ID, ErrLabels, strings.Join(words, "; "),
		what)
}
