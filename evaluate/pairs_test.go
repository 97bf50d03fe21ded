// SPDX-License-Identifier: Apache-2.0

package evaluate_test

import (
	"math"
	"testing"

	"github.com/faceauth/faceauth/evaluate"
	"github.com/faceauth/faceauth/face"
)

// For people on a line, one apart, with two faces each, the nearest impostors are one apart.
func TestComparePairs(t *testing.T) {
	var ids []evaluate.Identity
	for i := range 50 {
		at := float32(i)
		ids = append(ids, evaluate.Identity{Name: string(rune('A' + i)), Faces: []evaluate.Face{
			{Vector: []float32{at, 0}}, {Vector: []float32{at, .1}}, {Vector: []float32{at, 9}, Hold: true},
		}})
	}
	space := face.Space{Dim: 2, Scale: 2}
	r := evaluate.ComparePairs(ids, space)
	if r.Impostors.People != 50 || r.Impostors.Pairs != 4*50*49/2 || r.Genuine != 50 {
		t.Errorf("%+v", r)
	}
	if d := r.Impostors.Distances; math.Abs(d[0]-2) > .02 || d[1] != 0 && d[1] >= d[0] || d[3] != 0 || r.FNMR[0] != 0 ||
		!math.IsNaN(float64(r.FNMR[3])) {
		t.Errorf("%+v", r)
	}
	if r := evaluate.ComparePairs(nil, space); r.Impostors.Measured() {
		t.Errorf("nobody: %+v", r)
	}
}
