// SPDX-License-Identifier: Apache-2.0

package evaluate_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/lab/evaluate"
	"github.com/faceauth/faceauth/online"
)

// row has people along a line, ten apart, each with faces at these places.
func row(people int, places ...float32) (ids []evaluate.Identity) {
	for i := range people {
		id := evaluate.Identity{Name: fmt.Sprint(i)}
		for _, x := range places {
			id.Faces = append(id.Faces, evaluate.Face{Vector: []float32{10*float32(i) + x},
				Usable: true})
		}
		ids = append(ids, id)
	}
	return ids
}

var measuredRow = face.Space{ID: "row", Dim: 1, Scale: 1, Sigma: .2, Gamma: 1e-3,
	Stills: face.Impostors{People: 9, Pairs: 1e6, Distances: [5]float64{1.2, 1.1, 1, .9, .8}}}

// Galleries are drawn, and every face that is not labelled is a probe: at 1e-2 a gallery of ten has
// a radius of 1.1, at 1e-3 one of 1.0.
func TestAsk(t *testing.T) {
	ids := row(12, 0, 1.05, .5)
	stranger := []evaluate.Identity{{Name: "s", Faces: []evaluate.Face{{Vector: []float32{500}}}}}
	all := fixture.Must(evaluate.Ask(context.Background(), ids, stranger, measuredRow, 10, 1, 3,
		[]float64{1e-2, 1e-3}, 1))(t)
	for i, want := range []int{0, 10} { // of each draw, the face at 1.05 is missed
		a := all[i]
		if a.FNIR.Faces != 60 || a.FNIR.Errors != 3*want || a.FPIR.Faces != 21 ||
			a.FPIR.Errors != 0 || a.Misnamed != 0 ||
			a.Looks != 10 || !a.Exact() {
			t.Errorf("%+v", a)
		}
	}
	_, err := evaluate.Ask(context.Background(), ids, nil, measuredRow, 13, 1, 1, []float64{1e-2},
		1)
	if !errors.Is(err, evaluate.ErrTooFew) {
		t.Error(err)
	}
}

// The threshold of the method "within" is known before the test, and shrinks with the number of
// labelled faces.
func TestWithin(t *testing.T) {
	for labels, want := range map[int]bool{1: true, 10: false} {
		entry := evaluate.Within(measuredRow, online.Settings{Strangers: 1e-3})
		m := fixture.Must(entry.New())(t)
		for _, id := range row(labels, 0) {
			fixture.Check(t, m.Enroll(id.Faces[0].Vector, id.Name))
		}
		name, score, err := m.Judge([]float32{1.05}, false)
		if err != nil || (name == "0") != want || !want && name != "" || !m.Accepts(score) ||
			entry.Hindsight {
			t.Errorf("%d labels: %s %g %v", labels, name, score, err)
		}
	}
}
