// SPDX-License-Identifier: Apache-2.0

package thesis

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/faceauth/faceauth/internal/reference/dense"
	"github.com/faceauth/faceauth/lab/maxmargin"
	"github.com/faceauth/faceauth/lab/peers"
	"github.com/faceauth/faceauth/quantized"
	"github.com/spf13/cobra"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
)

func newChapelle(o *options) *cobra.Command {
	return &cobra.Command{
		Use: "chapelle",
		Short: "the benchmark of Chapelle, Schölkopf and Zien, Semi-Supervised Learning: digit1, " +
			"usps and coil2 on the official splits",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return o.chapelle(c.Context()) },
	}
}

// benchmark is a dataset of the book with its splits.
type benchmark struct {
	x     [][]float32
	class []int // 0 or 1
	d     *mat.SymDense
	near  float64 // median distance to the tenth neighbour, the unit of all widths
}

const benchmarkNeighbours = 10

// benchmark returns a dataset of the book.
func (o *options) benchmark(name string) (b benchmark, err error) {
	rows, err := o.rows(name)
	if err != nil {
		return b, err
	}
	for _, r := range rows {
		class := 0
		if r.label == "1" {
			class = 1
		}
		b.x, b.class = append(b.x, r.x), append(b.class, class)
	}
	b.d = dense.Distances(b.x, 1)
	b.near = tenthNearest(b.d)
	return b, nil
}

// splits returns the official labelled sets with this number of examples. Indices count from 0.
func (o *options) splits(name string, labels, n int) (all [][]int, err error) {
	text, err := readText(filepath.Join(o.data, "tables", name,
		fmt.Sprintf("splits_labeled%d.csv", labels)))
	if err != nil {
		return nil, err
	}
	for i, line := range strings.Fields(text) {
		var split []int
		for _, s := range strings.Split(line, ",") {
			v, err := strconv.Atoi(s)
			if err != nil || v < 1 || v > n {
				return nil, fmt.Errorf("split %d of %s: example %q of %d", i+1, name, s, n)
			}
			split = append(split, v-1)
		}
		if len(split) != labels {
			return nil, fmt.Errorf("split %d of %s has %d labels, and not %d", i+1, name,
				len(split), labels)
		}
		all = append(all, split)
	}
	return all, nil
}

// wrong returns the percentage of unlabelled examples for which predict gives a wrong class.
func (b benchmark) wrong(split []int, predict func(i int) int) float64 {
	labelled := make([]bool, len(b.x))
	for _, i := range split {
		labelled[i] = true
	}
	errors, all := 0., 0.
	for i, class := range b.class {
		if labelled[i] {
			continue
		}
		all++
		if predict(i) != class {
			errors++
		}
	}
	return 100 * errors / all
}

// nearest returns the error of the nearest labelled example.
func (b benchmark) nearest(split []int) float64 {
	return b.wrong(split, func(i int) int {
		best := split[0]
		for _, j := range split {
			if b.d.At(i, j) < b.d.At(i, best) {
				best = j
			}
		}
		return b.class[best]
	})
}

// graph returns the graph of the ten nearest neighbours.
func (b benchmark) graph() *mat.SymDense {
	return dense.Nearest(b.d, quantized.Heat(b.near), benchmarkNeighbours)
}

// harmonic returns the error of the harmonic solution, without and with class mass normalisation by
// the given priors. Without priors it uses the shares of the classes among the labels.
func (b benchmark) harmonic(w *mat.SymDense, split []int, normalised bool,
	given []float64) (plain, masses float64, err error) {
	class, priors := slices.Repeat([]int{-1}, len(b.class)), make([]float64, 2)
	for _, i := range split {
		class[i] = b.class[i]
		priors[b.class[i]] += 1 / float64(len(split))
	}
	l, err := dense.Problem{W: w, Class: class, Classes: 2, Gamma: 1e-6,
		Normalised: normalised}.Harmonic()
	if err != nil {
		return 0, 0, err
	}
	argmax := func(i int) int {
		if l.At(i, 1) > l.At(i, 0) {
			return 1
		}
		return 0
	}
	plain = b.wrong(split, argmax)
	if given != nil {
		priors = given
	}
	if err := peers.ClassMass(l, split, priors); err != nil {
		return 0, 0, err
	}
	return plain, b.wrong(split, argmax), nil
}

// book has the printed errors of the book, in per cent, with 10 and with 100 labels. Its COIL has
// six classes.
var book = map[string]map[string][2]float64{
	"digit1": {"1-NN": {23.47, 6.12}, "SVM": {30.60, 5.53}, "harmonic, class masses": {9.80, 3.15},
		"LapSVM": {5.44, 2.92}},
	"usps": {"1-NN": {19.82, 7.64}, "SVM": {20.03, 9.75}, "harmonic, class masses": {13.61, 6.36},
		"LapSVM": {18.99, 4.68}},
}

// penalties are the variants of the manifold method. The ratio is gamma_u/gamma; the book does not
// print its choice.
var penalties = []struct {
	name       string
	normalised bool
	power      int
}{{"L", false, 1}, {"normalised L", true, 1}, {"normalised L²", true, 2},
	{"normalised L⁵", true, 5}}

func (o *options) chapelle(ctx context.Context) error {
	var rows [][]string
	for _, name := range []string{"digit1", "usps", "coil2"} {
		b, err := o.benchmark(name)
		if err != nil {
			return err
		}
		w := b.graph()
		values := make(map[int]map[string][]float64) // labels, method
		splits := make(map[int][][]int)
		var order []string
		add := func(labels int, method string, error float64) {
			if values[labels] == nil {
				values[labels] = make(map[string][]float64)
			}
			if !slices.Contains(order, method) {
				order = append(order, method)
			}
			values[labels][method] = append(values[labels][method], error)
		}
		kernel := maxmargin.Radial(2 * b.near)
		svm, err := maxmargin.NewExamples(b.x, kernel)
		if err != nil {
			return err
		}
		signs := func(split []int) []float64 {
			y := make([]float64, len(b.x))
			for _, i := range split {
				y[i] = float64(2*b.class[i] - 1)
			}
			return y
		}
		gram := mat.NewSymDense(len(b.x), nil)
		for i := range b.x {
			for j := range i + 1 {
				gram.SetSym(i, j, kernel(b.x[i], b.x[j]))
			}
		}
		machine := func(m *maxmargin.Machine, split []int) float64 {
			var f mat.VecDense
			if len(m.Support) == len(b.x) { // all examples, in their order: their kernel is known
				f.MulVec(gram, mat.NewVecDense(len(m.Weights), m.Weights))
			}
			return b.wrong(split, func(i int) int {
				value := 0.
				if f.IsEmpty() {
					value = m.Value(b.x[i])
				} else {
					value = f.AtVec(i) + m.Bias
				}
				if value > 0 {
					return 1
				}
				return 0
			})
		}
		for _, labels := range []int{10, 100} {
			if splits[labels], err = o.splits(name, labels, len(b.x)); err != nil {
				return err
			}
			for _, split := range splits[labels] {
				if err := ctx.Err(); err != nil {
					return err
				}
				add(labels, "1-NN", b.nearest(split))
				m, err := svm.SVM(signs(split), .005)
				if err != nil {
					return err
				}
				add(labels, "SVM", machine(m, split))
				for _, normalised := range []bool{false, true} {
					plain, masses, err := b.harmonic(w, split, normalised, nil)
					if err != nil {
						return err
					}
					suffix := map[bool]string{true: ", normalised L"}[normalised]
					add(labels, "harmonic"+suffix, plain)
					add(labels, "harmonic, class masses"+suffix, masses)
				}
			}
		}
		for _, p := range penalties {
			if err := ctx.Err(); err != nil {
				return err
			}
			penalty, err := peers.Penalty(w, p.normalised, p.power)
			if err != nil {
				return err
			}
			for _, ratio := range []float64{1, 100, 1e4} {
				m, err := peers.NewPenalised(b.x, kernel, false, penalty, ratio)
				if err != nil {
					return err
				}
				for _, labels := range []int{10, 100} {
					for _, split := range splits[labels] {
						trained, err := m.SVM(signs(split), .005)
						if err != nil {
							return fmt.Errorf("%s, %s, ratio %g: %w", name, p.name, ratio, err)
						}
						add(labels, fmt.Sprintf("LapSVM, %s, ratio %g", p.name, ratio),
							machine(trained, split))
					}
				}
			}
			fmt.Fprintln(os.Stderr, name, p.name, "done")
		}
		for k, labels := range []int{10, 100} {
			for _, method := range order {
				mean, spread := stat.MeanStdDev(values[labels][method], nil)
				printed := ""
				family, _, _ := strings.Cut(method, ", ")
				for _, key := range []string{method, family} {
					if e, ok := book[name][key]; ok && printed == "" {
						printed = fmt.Sprintf("%.2f", e[k])
					}
				}
				rows = append(rows, []string{name, strconv.Itoa(labels), method,
					fmt.Sprintf("%.2f", mean),
					fmt.Sprintf("%.2f", spread/math.Sqrt(float64(len(splits[labels])))), printed})
			}
		}
	}
	return o.table("chapelle.csv",
		[]string{"dataset", "labels", "method", "error %", "standard error", "book %"}, rows)
}
