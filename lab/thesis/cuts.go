// SPDX-License-Identifier: Apache-2.0

package thesis

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"

	"github.com/faceauth/faceauth/internal/reference/dense"
	"github.com/faceauth/faceauth/lab/maxmargin"
	"github.com/faceauth/faceauth/lab/peers"
	"github.com/spf13/cobra"
	"gonum.org/v1/gonum/stat"
)

func newCuts(o *options) *cobra.Command {
	return &cobra.Command{
		Use: "cuts",
		Short: "max-margin graph cuts, SVMs and manifold regularisation on letters, " +
			"digits and image segments (Section Max-margin Graph Cuts Experiments)",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return o.cuts(c.Context()) },
	}
}

// The grids of the thesis. The thesis gives their ends; the decades between are ours.
var (
	shares = []float64{.01, .02, .05, .10} // of the training set
	// times the number of labels; the largest first, so that ties choose it
	gammas = []float64{.1, .0316, .01}
	// decimal logarithms of gamma_u/gamma; the largest gamma_g first
	ratios = []float64{-3, -2, -1, 0, 1, 2, 3}
	kinds  = []string{"linear", "cubic", "RBF"} // kernels
	rivals = []string{"SVM", "MR", "GC"}        // methods
	sets   = []string{"letter", "optdigits", "segmentation"}
)

const epsilonCuts = 1e-6

// printed are the errors of the thesis's table, in per cent: dataset, share, kernel, method.
var printed = map[string][4][3][3]float64{
	"letter": {
		{{18.90, 30.94, 15.79}, {20.54, 25.96, 17.45}, {20.06, 17.61, 16.01}},
		{{12.92, 28.45, 10.79}, {12.18, 18.34, 10.90}, {13.52, 13.10, 11.83}},
		{{8.21, 27.13, 5.65}, {5.49, 18.77, 4.80}, {6.81, 8.06, 5.65}},
		{{6.51, 25.45, 3.96}, {4.17, 14.03, 2.96}, {4.95, 6.14, 3.32}},
	},
	"optdigits": {
		{{7.06, 9.59, 6.88}, {9.62, 5.29, 8.55}, {8.22, 6.36, 7.65}},
		{{4.87, 7.97, 4.60}, {6.06, 5.06, 5.09}, {6.17, 4.21, 5.61}},
		{{2.97, 3.68, 2.29}, {3.04, 2.27, 2.36}, {2.74, 2.29, 2.19}},
		{{1.70, 2.86, 1.59}, {1.87, 1.60, 1.74}, {1.68, 1.75, 1.35}},
	},
	"segmentation": {
		{{14.02, 11.81, 10.27}, {23.30, 12.02, 14.10}, {14.02, 11.60, 9.51}},
		{{8.54, 10.87, 7.69}, {14.28, 13.07, 7.73}, {9.06, 8.93, 7.34}},
		{{4.73, 7.83, 4.49}, {8.32, 8.79, 7.17}, {5.87, 5.43, 5.31}},
		{{3.30, 6.26, 3.28}, {3.65, 6.64, 3.60}, {3.84, 4.81, 3.73}},
	},
}

// errorsOf has test errors by share, kernel and method.
type errorsOf [4][3][3]float64

// pair is a problem of two classes.
type pair struct{ a, b [][]float32 }

// pairs returns the problems of a dataset: consecutive letters, or all pairs of digits and of image
// segments.
func (o *options) pairs(dataset string) (all []pair, err error) {
	table, err := o.rows(dataset)
	if err != nil {
		return nil, err
	}
	classes := byLabel(table)
	names := slices.Sorted(maps.Keys(classes))
	for i := range names {
		for j := i + 1; j < len(names); j++ {
			if dataset != "letter" || j == i+1 {
				all = append(all, pair{classes[names[i]], classes[names[j]]})
			}
		}
	}
	return all, nil
}

func (o *options) cuts(ctx context.Context) error {
	var rows [][]string
	wins, against, slow := 0, 0, 0
	for _, dataset := range sets {
		all, err := o.pairs(dataset)
		if err != nil {
			return err
		}
		results := make([]errorsOf, len(all))
		var mu sync.Mutex
		err = each(upTo(len(all)), func(i int) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			r, n, err := all[i].errors(uint64(i))
			if err != nil {
				return fmt.Errorf("%s, problem %d: %w", dataset, i, err)
			}
			mu.Lock()
			defer mu.Unlock()
			results[i] = r
			slow += n
			return nil
		})
		if err != nil {
			return err
		}
		for s, share := range shares {
			for k, kind := range kinds {
				line := []string{dataset, strconv.Itoa(int(math.Round(100 * share))), kind}
				var means [3]float64
				differences := make([]float64, len(all))
				for m := range rivals {
					values := make([]float64, len(all))
					for i := range all {
						values[i] = 100 * results[i][s][k][m]
					}
					means[m] = stat.Mean(values, nil)
					line = append(line, fmt.Sprintf("%.2f", means[m]))
				}
				for i := range all {
					differences[i] = 100 * (results[i][s][k][2] - results[i][s][k][1])
				}
				if means[2] < means[1] {
					wins++
				}
				if means[2] < means[0] {
					against++
				}
				mean, spread := stat.MeanStdDev(differences, nil)
				line = append(line, fmt.Sprintf("%.2f", mean),
					fmt.Sprintf("%.2f", stat.StdErr(spread, float64(len(all)))))
				for m := range rivals {
					line = append(line, fmt.Sprintf("%.2f", printed[dataset][s][k][m]))
				}
				rows = append(rows, line)
			}
		}
	}
	fmt.Fprintf(os.Stderr, "graph cuts err less than manifold regularisation in %d of %d cells, "+
		"and than SVMs in %d; %d machines did not converge and were left out\n",
		wins, len(rows), against, slow)
	return o.table("cuts.csv", []string{"dataset", "labelled %", "kernel", "SVM %", "MR %", "GC %",
		"GC-MR", "standard error", "thesis SVM %", "thesis MR %", "thesis GC %"}, rows)
}

// fold is a third of the points with their classes, -1 and 1.
type fold struct {
	x [][]float32
	y []float64
}

// first returns n points, the first of each class, in the proportions of the classes and at least
// one of each.
func (f fold) first(n int) []int {
	var of [2][]int
	for i, y := range f.y {
		of[int(y+1)/2] = append(of[int(y+1)/2], i)
	}
	a := int(math.Round(float64(n) * float64(len(of[0])) / float64(len(f.y))))
	a = min(max(a, 1), n-1, len(of[0]))
	return append(slices.Clone(of[0][:a]), of[1][:min(n-a, len(of[1]))]...)
}

func (f fold) wrong(of []int, m *maxmargin.Machine) float64 {
	n := 0
	for _, i := range of {
		if m.Value(f.x[i])*f.y[i] <= 0 {
			n++
		}
	}
	return float64(n) / float64(len(of))
}

// errors returns the test errors of all methods: means over the assignments of the three folds to
// training, choosing and testing.
func (p pair) errors(seed uint64) (sum errorsOf, slow int, err error) {
	r := rand.New(rand.NewPCG(seed, 2010))
	var folds [3]fold
	for class, rows := range [][][]float32{p.a, p.b} {
		for i, at := range r.Perm(len(rows)) {
			f := &folds[i%3]
			f.x, f.y = append(f.x, slices.Clone(rows[at])), append(f.y, float64(2*class-1))
		}
	}
	standardise(slices.Concat(folds[0].x, folds[1].x, folds[2].x))
	for rotation := range folds {
		c := contest{train: folds[rotation], choose: folds[(rotation+1)%3],
			test: folds[(rotation+2)%3]}
		if err := c.run(); err != nil {
			return sum, 0, err
		}
		slow += c.slow
		for s := range shares {
			for k := range kinds {
				for m := range rivals {
					if c.chosen[s][k][m].machine == nil {
						return sum, 0, fmt.Errorf("no %s with a %s kernel converged", rivals[m],
							kinds[k])
					}
					sum[s][k][m] += c.test.wrong(upTo(len(c.test.x)), c.chosen[s][k][m].machine) / 3
				}
			}
		}
	}
	return sum, slow, nil
}

// selection is the machine with the fewest errors on the examples for choosing. Among machines with
// equally few errors it is the first.
type selection struct {
	machine *maxmargin.Machine
	wrong   float64
}

// contest trains machines on one fold and chooses among them on another.
type contest struct {
	train, choose, test fold
	chosen              [4][3][3]selection // share, kernel, method
	labels              [4][]float64       // of the training examples
	validation          [4][]int           // examples for choosing, as many as labels
	slow                int                // machines that did not converge
}

// try adds a machine to the contest.
func (c *contest) try(share, kernel, method int, m *maxmargin.Machine, err error) error {
	if errors.Is(err, maxmargin.ErrSlow) {
		c.slow++
		return nil
	}
	if err != nil {
		return err
	}
	s := &c.chosen[share][kernel][method]
	if wrong := c.choose.wrong(c.validation[share], m); s.machine == nil || wrong < s.wrong {
		*s = selection{m, wrong}
	}
	return nil
}

// run trains all machines, beginning with the largest gamma_g.
func (c *contest) run() error {
	features, sigma := len(c.train.x[0]), deviation(c.train.x)
	w := dense.Nearest(dense.Distances(c.train.x, 1), scaledHeat(features, sigma), neighbours)
	for s, share := range shares {
		n := max(int(math.Round(share*float64(len(c.train.x)))), 2)
		c.labels[s] = make([]float64, len(c.train.x))
		for _, i := range c.train.first(n) {
			c.labels[s][i] = c.train.y[i]
		}
		c.validation[s] = c.choose.first(n)
	}
	spread := make([][4][]float64, len(ratios))
	for k, kernel := range []maxmargin.Kernel{maxmargin.Linear, maxmargin.Cubic,
		maxmargin.Radial(math.Sqrt(float64(features)) * sigma)} {
		e, err := maxmargin.NewExamples(c.train.x, kernel)
		if err != nil {
			return err
		}
		for q, ratio := range ratios {
			manifold, err := peers.NewManifold(c.train.x, kernel, false, w, math.Pow(10, ratio))
			if err != nil {
				return err
			}
			for s, y := range c.labels {
				if spread[q][s] == nil { // the same for all kernels
					if spread[q][s], err = e.Spread(w, y, math.Pow(10, -ratio)); err != nil {
						return err
					}
				}
				for _, gamma := range gammas {
					gamma *= float64(len(c.validation[s]))
					if q == 0 {
						m, err := e.SVM(y, gamma)
						if err := c.try(s, k, 0, m, err); err != nil {
							return err
						}
					}
					m, err := manifold.SVM(y, gamma)
					if err := c.try(s, k, 1, m, err); err != nil {
						return err
					}
					m, err = e.Cut(spread[q][s], epsilonCuts, gamma)
					if err := c.try(s, k, 2, m, err); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}
