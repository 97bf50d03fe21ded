// SPDX-License-Identifier: Apache-2.0

package face

import (
	"errors"
	"fmt"
	"math"
	"strings"
)

// ErrVector is wrapped by the errors of [Space.Check].
var ErrVector = errors.New("unusable vector")

// Space says how vectors of faces are compared. Vectors of two spaces cannot be compared, so a
// gallery carries the ID of its space and refuses all others.
//
// The distance of two vectors is Scale times their Euclidean distance.
type Space struct {
	ID    string  `json:"id"`
	Dim   int     `json:"dim"`
	Scale float64 `json:"scale"`
	Unit  bool    `json:"unit"` // vectors have Euclidean norm 1

	Sigma float64 `json:"sigma"` // default kernel width, in units of the distance
	Gamma float64 `json:"gamma"` // default regulariser gamma_g

	// Reach is the default length of the longest edge, in units of the distance. 0 means no limit:
	// a wider kernel then makes longer edges, until edges connect different people.
	Reach float64 `json:"reach,omitempty"`

	// ImpostorRadius is the distance below which faces of two different people begin to occur; 0 if
	// it was not measured. A graph with longer edges connects different people.
	ImpostorRadius float64 `json:"impostor_radius,omitempty"`

	// GenuineRadius is the distance above which two faces of one person hardly ever occur; 0 if two
	// faces alone cannot tell people apart in this space.
	GenuineRadius float64 `json:"genuine_radius,omitempty"`

	// Look is the distance within which two faces of a track are one look: pictures of an unmoved
	// face, such as a still or a frozen camera, come no further apart by noise and encoding. 0 if
	// it was not measured; then every face is another look.
	Look float64 `json:"look,omitempty"`

	// LearnNorm is the least [Quality].Norm of a face that may be learned, and ClearNorm that of a
	// clear, upright face; 0 if they were not measured: then no face is refused for its norm. They
	// belong to the network and not to a gallery, so no gallery keeps them.
	LearnNorm float64 `json:"learn_norm,omitempty" cbor:"-"`
	ClearNorm float64 `json:"clear_norm,omitempty" cbor:"-"`

	Stills Impostors `json:"stills,omitzero"` // how near single pictures of different people come
	// Streams is the same for faces in front of a camera, which turn and move. Such faces come
	// nearer to each other.
	Streams Impostors `json:"streams,omitzero"`
}

// Infrared returns the space of the same network for pictures of an infrared camera. Vectors of a
// space and of its infrared space are never compared.
func (s Space) Infrared() Space {
	s.ID += ":infrared"
	return s
}

// Impostors is a measurement: how near pictures of different people come in a space.
type Impostors struct {
	People int   `json:"people"`
	Pairs  int64 `json:"pairs"`
	// Distances has the distances at which the false match rate is 1e-2, 1e-3, 1e-4, 1e-5 and 1e-6:
	// at most this share of all pairs is nearer. A rate for which there were too few pairs has 0,
	// and so have all smaller rates.
	Distances [5]float64 `json:"distances"`
	// Missed has the share of pairs of one person that are further apart than each distance; all 0
	// if unknown.
	Missed [5]float64 `json:"missed,omitzero"`
}

// Measured reports whether m holds a measurement.
func (m Impostors) Measured() bool { return len(m.known()) > 1 }

// Within returns the distance for a false match rate in (0,1]. Between measured rates it
// interpolates over the logarithm of the rate. Below the smallest measured rate it extrapolates
// with the steepest measured slope, but never below 0. For rates above 1e-2 it returns the distance
// at 1e-2. It returns NaN if the space was not measured.
func (m Impostors) Within(rate float64) float64 {
	if !m.Measured() || !(rate > 0) {
		return math.NaN()
	}
	at := -2 - math.Log10(rate) // position among the distances
	if at <= 0 {
		return m.Distances[0]
	}
	d, steepest := m.known(), 0.
	for i := range d[1:] {
		steepest = max(steepest, d[i]-d[i+1])
	}
	last := len(d) - 1
	if i := int(at); i < last {
		share := at - float64(i)
		return (1-share)*d[i] + share*d[i+1]
	}
	return max(0, d[last]-steepest*(at-float64(last)))
}

// known returns the distances of the rates for which there were enough pairs.
func (m Impostors) known() []float64 {
	n := 0
	for n < len(m.Distances) && m.Distances[n] > 0 {
		n++
	}
	return m.Distances[:n]
}

// Rate returns the false match rate at a distance, the inverse of [Impostors.Within] between the
// measured rates: the largest or the smallest of them beyond. It returns NaN if the space was not
// measured.
func (m Impostors) Rate(distance float64) float64 {
	if !m.Measured() || math.IsNaN(distance) {
		return math.NaN()
	}
	if distance >= m.Distances[0] {
		return 1e-2
	}
	d := m.known()
	for i, near := range d[1:] {
		if distance >= near {
			return math.Pow(10, -float64(i)-3+(distance-near)/(d[i]-near))
		}
	}
	return math.Pow(10, -float64(len(d))-1)
}

// Rarity says in words for a person how seldom a stranger comes as near to one face of somebody; ""
// if the space was not measured.
func (m Impostors) Rarity(distance float64) string {
	rate := m.Rate(distance)
	if math.IsNaN(rate) {
		return ""
	}
	of := math.Round(1 / rate)
	digit := math.Pow(10, math.Floor(math.Log10(of)))
	words := fmt.Sprintf("%.0f", math.Round(of/digit)*digit)
	for i := len(words) - 3; i > 0; i -= 3 {
		words = words[:i] + "," + words[i:]
	}
	switch {
	case rate >= 1e-2:
		return "a stranger comes as near more often than once in 100"
	case distance < m.Within(rate):
		return "a stranger comes as near less often than once in " + words
	}
	return "a stranger comes as near once in " + words
}

// Mismatch says in words for a person why vectors of the space with this ID cannot be compared with
// vectors of s, and what to do.
func (s Space) Mismatch(id string) string {
	what := fmt.Sprintf("it holds %s, and this is %s", id, s.ID)
	network := func(id string) string {
		parts := strings.SplitN(id, ":", 3)
		return strings.Join(parts[:min(2, len(parts))], ":")
	}
	if strings.HasPrefix(id, "embedding:") && network(id) == network(s.ID) {
		what += ": the same network with another input format; enrol again into another file, " +
			"and keep this file for the version of faceauth that made it"
	}
	return what
}

// Check returns nil, or an error that says why m cannot be a measurement.
func (m Impostors) Check() error {
	if m.People < 0 || m.Pairs < 0 || m.Distances[0] > 0 && !m.Measured() {
		return errors.New("a table of impostors needs people, pairs, and the distances at 1e-2 " +
			"and 1e-3 at least")
	}
	for i, d := range m.Distances {
		if !(d >= 0) || math.IsInf(d, 1) || i > 0 && d > 0 && !(d < m.Distances[i-1]) {
			return errors.New("the distances in a table of impostors must be positive and fall " +
				"with the false match rate")
		}
		miss := m.Missed[i]
		if miss != 0 && (d == 0 || !(miss <= 1) || i > 0 && !(miss >= m.Missed[i-1])) ||
			miss == 0 && d > 0 && m.Missed[0] > 0 {
			return errors.New("the missed shares in a table of impostors must rise to at most 1, " +
				"one for each distance")
		}
	}
	return nil
}

// Check returns nil if v is a vector of the space. Otherwise the error says which rule v breaks,
// and wraps [ErrVector]. It never holds a value of v.
func (s Space) Check(v []float32) error {
	if len(v) != s.Dim || s.Dim == 0 {
		return fmt.Errorf("space %s: %w: %d values, want %d", s.ID, ErrVector, len(v), s.Dim)
	}
	var sum float64
	for i, x := range v {
		f := float64(x)
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return fmt.Errorf("space %s: %w: value %d of %d is not a finite number", s.ID,
				ErrVector, i+1, len(v))
		}
		sum += f * f
	}
	if !s.Unit {
		return nil
	}
	// Normalising 512 float32 values leaves an error of a few units in the last place. The limit
	// 1e-3 is far above this error, and too small to change a verdict.
	if math.Abs(sum-1) > 1e-3 {
		return fmt.Errorf("space %s: %w: not of unit length, but %.3g", s.ID, ErrVector,
			math.Sqrt(sum))
	}
	return nil
}
