// SPDX-License-Identifier: Apache-2.0

package evaluate_test

import (
	"fmt"
	"math"
	"reflect"
	"testing"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/lab/evaluate"
)

// For people on a line, one apart, with two faces each, the nearest impostors are one apart.
func TestComparePairs(t *testing.T) {
	var ids []evaluate.Identity
	for i := range 50 {
		at := float32(i)
		ids = append(ids, evaluate.Identity{Name: string(rune('A' + i)), Faces: []evaluate.Face{
			{Vector: []float32{at, 0}}, {Vector: []float32{at, .1}},
			{Vector: []float32{at, 9}, Hold: true},
		}})
	}
	space := face.Space{Dim: 2, Scale: 2}
	r := evaluate.ComparePairs(ids, space)
	if r.Impostors.People != 50 || r.Impostors.Pairs != 4*50*49/2 || r.Genuine != 50 {
		t.Errorf("%+v", r)
	}
	if d := r.Impostors.Distances; math.Abs(d[0]-2) > .02 || d[1] != 0 && d[1] >= d[0] ||
		d[3] != 0 || r.FNMR[0] != 0 ||
		!math.IsNaN(float64(r.FNMR[3])) {
		t.Errorf("%+v", r)
	}
	if r := evaluate.ComparePairs(nil, space); r.Impostors.Measured() {
		t.Errorf("nobody: %+v", r)
	}
}

// The two faces of a person lie farther apart the smaller the lower norm is.
func TestNorms(t *testing.T) {
	space := face.Space{Dim: 2, Scale: 1}
	people := func(norm func(i int) float64) (ids []evaluate.Identity) {
		for i := range 400 {
			apart := float32(.1)
			if i < 100 { // missed
				apart = 5000
			}
			at := 10*float32(i) + float32(i*i)/100
			ids = append(ids, evaluate.Identity{Name: fmt.Sprint(i), Faces: []evaluate.Face{
				{Vector: []float32{at, 0}, Quality: face.Quality{Norm: norm(i)}},
				{Vector: []float32{at, apart}, Quality: face.Quality{Norm: 9}}}})
		}
		return ids
	}
	got := evaluate.ComparePairs(people(func(i int) float64 { return 1 + float64(i)/100 }),
		space).Norms
	want := &evaluate.NormRates{
		Without: []evaluate.WithoutNorm{{0, 1, 400, .25},
			{.02, 1.16, 384, evaluate.Rate(84. / 384)},
			{.05, 1.4, 360, evaluate.Rate(60. / 360)}, {.1, 1.8, 320, evaluate.Rate(20. / 320)}},
		LearnNorm: 2.24, // of 125 pairs, 100
		ClearNorm: 3.99, // of 300 pairs, 100
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	ids := people(func(i int) float64 { return float64(i) })
	if got := evaluate.ComparePairs(ids, space).Norms; got != nil || evaluate.Norms(ids) != nil {
		t.Errorf("a face without a norm: %+v", got)
	}
	if got := evaluate.Norms(people(func(int) float64 { return 2 })); len(got) != 800 ||
		got[0] != 2 || got[400] != 9 {
		t.Errorf("norms %v", got)
	}
}
