// SPDX-License-Identifier: Apache-2.0

package face

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
)

// ErrFew is returned by [Measure] if there are too few people or vectors.
var ErrFew = errors.New("too few labelled vectors: two people are needed, and two vectors of one of them")

// Shares of the impostor radius, as in the space of the built-in network, where they were chosen on recordings
// (docs/results.md, "Sensitivity").
const (
	impostorShare = .9 // of the distance at a false match rate of 1e-3
	reachShare    = .92
	sigmaShare    = .215
	measuredGamma = 1e-3
)

// fewestNear is the least number of pairs below a distance of the table: fewer are chance.
const fewestNear = 5

// Measure returns the space of a user's own vectors, with settings that follow from labelled ones: for each person some
// vectors, all of the same length. The id names the space, and Scale is 1. ImpostorRadius lies below nearly all
// distances between two people, GenuineRadius above nearly all between two vectors of a person. Sigma and Reach follow
// from the impostor radius. Stills has the distances by false match rate, as far as there are enough pairs.
//
// Choose settings on vectors like those that are to be recognised, and measure the result on other people. It takes
// time in proportion to the square of the number of vectors. The error wraps [ErrFew], or is that of [Space.Check].
func Measure(id string, people map[string][][]float32) (Space, error) {
	s := Space{ID: id, Scale: 1, Gamma: measuredGamma, Unit: true}
	var all [][]float32
	var of []int
	for i, name := range slices.Sorted(maps.Keys(people)) {
		for _, x := range people[name] {
			s.Dim = max(s.Dim, len(x))
			all, of = append(all, x), append(of, i)
		}
	}
	for _, x := range all {
		if err := s.Check(x); errors.Is(err, ErrNotUnit) || errors.Is(err, ErrZeroNorm) {
			s.Unit = false
		} else if err != nil {
			return Space{}, err
		}
	}
	var genuine, impostor []float64
	for i, x := range all {
		for j, y := range all[:i] {
			var sum float64
			for k := range x {
				d := float64(x[k]) - float64(y[k])
				sum += d * d
			}
			if d := math.Sqrt(sum); of[i] == of[j] {
				genuine = append(genuine, d)
			} else {
				impostor = append(impostor, d)
			}
		}
	}
	if len(genuine) == 0 || len(impostor) == 0 {
		return Space{}, ErrFew
	}
	slices.Sort(genuine)
	slices.Sort(impostor)
	near := impostor[len(impostor)/1000]
	if near == 0 {
		return Space{}, fmt.Errorf("space %s: more than one in 1000 pairs of two people have the same vector", id)
	}
	s.ImpostorRadius = impostorShare * near
	s.GenuineRadius = genuine[len(genuine)*99/100]
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
		s.Stills = Impostors{} // a table needs the first two
	}
	return s, nil
}
