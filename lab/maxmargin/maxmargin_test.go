// SPDX-License-Identifier: Apache-2.0

package maxmargin_test

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/faceauth/faceauth/internal/reference/dense"
	"github.com/faceauth/faceauth/lab/maxmargin"
	"github.com/faceauth/faceauth/quantized"
	"gonum.org/v1/gonum/mat"
)

// There are two people on a line, with one labelled face each. The gap between the people is not in
// the middle between the labelled faces.
func Example() {
	x := [][]float32{{0}, {1}, {2}, {3}, {4}, {5}, {7}, {8}}
	y := []float64{1, 0, 0, 0, 0, 0, 0, -1}
	e, err := maxmargin.NewExamples(x, maxmargin.Linear)
	if err != nil {
		panic(err)
	}
	w := dense.Nearest(dense.Distances(x, 1), quantized.Heat(.5), 2)
	alone, err := e.SVM(y, .01)
	if err != nil {
		panic(err)
	}
	cut, err := e.GraphCut(w, y, 1e-3, 1e-6, .01)
	if err != nil {
		panic(err)
	}
	face := []float32{5}
	fmt.Printf("at 5: the labels alone say %v, the graph cut says %v\n", alone.Value(face) > 0,
		cut.Value(face) > 0)
	// Output: at 5: the labels alone say false, the graph cut says true
}

func TestBadInput(t *testing.T) {
	x := [][]float32{{0, 0}, {1, 0}, {0, 1}, {1, 1}}
	y := []float64{1, 0, 0, -1}
	// more neighbours than points: all are joined
	w := dense.Nearest(dense.Distances(x, 1), quantized.Heat(1), 10)
	for name, x := range map[string][][]float32{
		"no examples": nil, "lengths": {{1, 2}, {3}}, "NaN": {{float32(math.NaN())}},
		"Inf": {{float32(math.Inf(1))}},
	} {
		if _, err := maxmargin.NewExamples(x, maxmargin.Linear); !errors.Is(err,
			maxmargin.ErrExamples) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := maxmargin.NewExamples([][]float32{{1e30}, {2e30}}, maxmargin.Cubic); err != nil {
		t.Errorf("kernel values of about 1e180, which float64 can hold: %v", err)
	}
	e, err := maxmargin.NewExamples(x, maxmargin.Linear)
	if err != nil {
		t.Fatal(err)
	}
	for name, y := range map[string][]float64{
		"too few labels": {1}, "no labels": {0, 0, 0, 0}, "one class": {1, 1, 0, 0},
		"a label of 2": {1, 2, 0, 0},
		"NaN":          {1, -1, math.NaN(), 0},
	} {
		if _, err := e.SVM(y, 1); !errors.Is(err, maxmargin.ErrLabels) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := e.GraphCut(w, y, 1, 1e-6, 1); !errors.Is(err, maxmargin.ErrLabels) {
			t.Errorf("graph cut, %s: %v", name, err)
		}
	}
	if _, err := e.SVM([]float64{1, -1, 1, -1}, 1); err != nil {
		t.Errorf("all labels: %v", err)
	}
	apart := mat.NewSymDense(4, nil)
	if _, err := e.GraphCut(apart, y, 0, 0, 1); !errors.Is(err, dense.ErrSingular) {
		t.Errorf("a graph without edges and without a sink: error %v", err)
	}
	if _, err := e.GraphCut(apart, y, 1, 1e-6, 1); err != nil {
		t.Errorf("a graph without edges: error %v", err) // the labelled examples are enough
	}
	bad := mat.NewSymDense(4, nil)
	bad.SetSym(0, 1, math.NaN())
	for name, call := range map[string]func() error{
		"gamma":   func() error { _, err := e.SVM(y, 0); return err },
		"gamma_g": func() error { _, err := e.GraphCut(w, y, -1, 0, 1); return err },
		"epsilon": func() error { _, err := e.GraphCut(w, y, 1, math.NaN(), 1); return err },
		"graph": func() error {
			_, err := e.GraphCut(mat.NewSymDense(3, nil), y, 1, 0,
				1)
			return err
		},
		"weight": func() error { _, err := e.GraphCut(bad, y, 1, 0, 1); return err },
	} {
		if err := call(); !errors.Is(err, maxmargin.ErrSetting) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := e.Cut([]float64{1, math.NaN(), 0, -1}, 0, 1); !errors.Is(err,
		maxmargin.ErrLabels) {
		t.Errorf("a label that is not a number: error %v", err)
	}
	odd, err := maxmargin.NewExamples(x, func(a, b []float32) float64 { return -1 })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := odd.SVM(y, 1); !errors.Is(err, maxmargin.ErrExamples) {
		t.Errorf("a function that is not a kernel: error %v", err)
	}
	// Without a bias one class is enough, and a point far from the class is not in it.
	r, err := maxmargin.NewExamples(x, maxmargin.Radial(1))
	if err != nil {
		t.Fatal(err)
	}
	r.Origin = true
	m, err := r.SVM([]float64{1, 1, 1, 1}, .01)
	if err != nil || !(m.Value(x[0]) > .9) || m.Value([]float32{9, 9}) > 1e-9 {
		t.Errorf("one class without a bias: %v", err)
	}
	// All points are equal, and two of them have different labels.
	same, err := maxmargin.NewExamples([][]float32{{1, 1}, {1, 1}, {1, 1}}, maxmargin.Radial(1))
	if err != nil {
		t.Fatal(err)
	}
	m, err = same.SVM([]float64{1, -1, 0}, 1)
	if err != nil || math.Abs(m.Value([]float32{1, 1})) > 1 {
		t.Errorf("duplicates with different labels: error %v", err)
	}
}
