// SPDX-License-Identifier: Apache-2.0

package face_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/fixture"
)

func TestCheck(t *testing.T) {
	unit := face.Space{ID: "unit", Dim: 2, Scale: 1, Unit: true}
	free := face.Space{ID: "free", Dim: 2, Scale: 1}
	nan, inf := float32(math.NaN()), float32(math.Inf(-1))
	for _, c := range []struct {
		name string
		s    face.Space
		v    []float32
		err  error
		text string
	}{
		{"unit", unit, []float32{.6, .8}, nil, ""},
		{"nearly unit", unit, []float32{.6, .8003}, nil, ""},
		{"any", free, []float32{3, -4}, nil, ""},
		{"zero", free, []float32{0, 0}, nil, ""},
		{"nil", free, nil, face.ErrVector, "0 values, want 2"},
		{"short", unit, []float32{1}, face.ErrVector, "1 values, want 2"},
		{"long", unit, []float32{1, 0, 0}, face.ErrVector, "3 values, want 2"},
		{"not a number", free, []float32{0, nan}, face.ErrVector, "value 2 of 2"},
		{"infinite", unit, []float32{inf, 0}, face.ErrVector, "value 1 of 2"},
		{"no direction", unit, []float32{0, 0}, face.ErrVector, "space unit"},
		{"too long", unit, []float32{3, 4}, face.ErrVector, "unit length, but 5"},
		{"overflowing", unit, []float32{math.MaxFloat32, math.MaxFloat32}, face.ErrVector, "unit length"},
	} {
		err := c.s.Check(c.v)
		if !errors.Is(err, c.err) || (err != nil && !strings.Contains(err.Error(), c.text)) {
			t.Errorf("%s: error %v, want %v with %q", c.name, err, c.err, c.text)
		}
	}
}

func TestWithin(t *testing.T) {
	m := face.Impostors{People: 9, Pairs: 99, Distances: [5]float64{1.2, 1.1, 1.05}}
	for _, c := range []struct{ rate, want float64 }{
		{1, 1.2}, {1e-2, 1.2}, {1e-3, 1.1}, {1e-4, 1.05},
		{math.Pow(10, -2.5), 1.15}, // in the middle between 1e-2 and 1e-3 on a logarithmic scale
		{1e-5, .95},                // below all measured rates: with the steepest slope
		{1e-40, 0},
	} {
		if got := m.Within(c.rate); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("within %g: %g, want %g", c.rate, got, c.want)
		}
	}
	for _, m := range []face.Impostors{{}, {Distances: [5]float64{1}}} {
		if got := m.Within(.1); !math.IsNaN(got) {
			t.Errorf("without a measurement: %g, want NaN", got)
		}
	}
	for name, m := range map[string]face.Impostors{
		"rising": {Distances: [5]float64{1, 1.1}}, "one": {Distances: [5]float64{1}},
		"people":       {People: -1},
		"not a number": {Distances: [5]float64{1, math.NaN()}},
		"negative":     {Distances: [5]float64{1, .9, -1}},
	} {
		if m.Check() == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if err := m.Check(); err != nil {
		t.Error(err)
	}
}

func TestMismatch(t *testing.T) {
	now := face.Space{ID: "embedding:abc:12"}
	for id, want := range map[string]bool{"embedding:abc": true, "embedding:abc:34": true,
		"embedding:abd": false,
		"pixels":        false} {
		if got := now.Mismatch(id); strings.Contains(got, "enrol again") != want ||
			!strings.Contains(got, "it holds "+id+", and this is embedding:abc:12") {
			t.Errorf("%s: %s", id, got)
		}
	}
}

// The rate of a distance is the inverse of the distance at a rate, and is said in round numbers.
func TestRate(t *testing.T) {
	m := face.Impostors{People: 9, Pairs: 99,
		Distances: [5]float64{1.23, 1.153, 1.085, 1.023, .947}}
	for rate := 1e-2; rate > 1.1e-6; rate /= 1.7 {
		if got := m.Rate(m.Within(rate)); math.Abs(math.Log(got/rate)) > 1e-9 {
			t.Errorf("rate %g: %g", rate, got)
		}
	}
	for d, want := range map[float64]string{
		1.4:   "a stranger comes as near more often than once in 100",
		1.153: "a stranger comes as near once in 1,000",
		1.085: "a stranger comes as near once in 10,000",
		1.05:  "a stranger comes as near once in 40,000",
		.947:  "a stranger comes as near once in 1,000,000",
		.3:    "a stranger comes as near less often than once in 1,000,000",
	} {
		if got := m.Rarity(d); got != want {
			t.Errorf("%g: %q, want %q", d, got, want)
		}
	}
	m.Distances = [5]float64{1.2, 1}
	if got := m.Rarity(.5); got != "a stranger comes as near less often than once in 1,000" {
		t.Errorf("%q", got)
	}
	if got := (face.Impostors{}).Rarity(1); got != "" || !math.IsNaN((face.Impostors{}).Rate(1)) {
		t.Errorf("not measured: %q", got)
	}
}

// The shares of missed pairs rise, one for each distance.
func TestMissed(t *testing.T) {
	m := face.Impostors{People: 9, Pairs: 1e6, Distances: [5]float64{1.2, 1.1, 1},
		Missed: [5]float64{.01, .04, .09}}
	fixture.Check(t, m.Check())
	for _, bad := range [][5]float64{{.02, .01, .3}, {.1, .2, 2}, {.1, .2}, {.1, .2, .3, .4},
		{.1, math.NaN(), .3}} {
		m.Missed = bad
		if m.Check() == nil {
			t.Errorf("%v is no error", bad)
		}
	}
}
