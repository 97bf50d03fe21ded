package face

import (
	"errors"
	"fmt"
	"math"
)

// Errors that [Space.Check] wraps.
var (
	ErrDimension = errors.New("vector of another length")
	ErrNotFinite = errors.New("vector with a value that is not a finite number")
	ErrZeroNorm  = errors.New("vector of zero length where the space needs a direction")
	ErrNotUnit   = errors.New("vector that is not of unit length")
)

// Space names the metric that a face vector lives in. Vectors of two spaces cannot be compared,
// so a gallery carries the ID of its space and refuses all others.
//
// The distance of two vectors is Scale times their Euclidean distance.
type Space struct {
	ID    string  `json:"id"`
	Dim   int     `json:"dim"`
	Scale float64 `json:"scale"`
	Unit  bool    `json:"unit"` // vectors have Euclidean norm 1

	Sigma float64 `json:"sigma"` // default kernel width, in units of the distance
	Gamma float64 `json:"gamma"` // default regulariser gamma_g

	// Reach is the default length of the longest edge, in units of the distance. Without one, 0, a
	// wider kernel makes longer edges, and sooner or later joins people up.
	Reach float64 `json:"reach,omitempty"`

	// ImpostorRadius is the distance below which faces of two people begin to be met. A graph
	// whose edges reach further joins people up; 0 when it was not measured.
	ImpostorRadius float64 `json:"impostor_radius,omitempty"`

	// GenuineRadius is the distance beyond which two faces of one person are hardly ever met; 0 where
	// the space cannot tell people apart by two faces alone.
	GenuineRadius float64 `json:"genuine_radius,omitempty"`
}

// Check returns nil when v is a vector of the space, and otherwise an error that says what is
// wrong with it and wraps [ErrDimension], [ErrNotFinite], [ErrZeroNorm] or [ErrNotUnit]. The
// error never holds a value of v.
func (s Space) Check(v []float32) error {
	if len(v) != s.Dim {
		return fmt.Errorf("space %s: %w: %d values, want %d", s.ID, ErrDimension, len(v), s.Dim)
	}
	var sum float64
	for i, x := range v {
		f := float64(x)
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return fmt.Errorf("space %s: %w: value %d of %d", s.ID, ErrNotFinite, i+1, len(v))
		}
		sum += f * f
	}
	if !s.Unit {
		return nil
	}
	if sum == 0 {
		return fmt.Errorf("space %s: %w", s.ID, ErrZeroNorm)
	}
	// Normalising 512 float32 values leaves an error of a few units in the last place; 1e-3 is
	// far above that and far below what would change a verdict.
	if math.Abs(sum-1) > 1e-3 {
		return fmt.Errorf("space %s: %w: norm %.3g", s.ID, ErrNotUnit, math.Sqrt(sum))
	}
	return nil
}

// Project moves v to the nearest vector of the space, in place, where the space holds directions: a mean of unit vectors is
// shorter than they are. It reports whether there is one.
func (s Space) Project(v []float32) bool {
	if !s.Unit {
		return true
	}
	var sum float64
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	if !(sum > 0) || math.IsInf(sum, 1) {
		return false
	}
	for i := range v {
		v[i] = float32(float64(v[i]) / math.Sqrt(sum))
	}
	return true
}
