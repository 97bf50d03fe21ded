// SPDX-License-Identifier: Apache-2.0

package thesis

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"

	"github.com/faceauth/faceauth/internal/reference/dense"
	"github.com/faceauth/faceauth/lab/figure"
	"github.com/faceauth/faceauth/lab/joint"
	"github.com/faceauth/faceauth/quantized"
	"github.com/spf13/cobra"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

func newJoint(o *options) *cobra.Command {
	return &cobra.Command{
		Use: "joint",
		Short: "backbone graphs by elastic-joint and its peers on COIL and Car (Section Joint " +
			"Quantization and Label Propagation Experiments)",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return o.joint(c.Context()) },
	}
}

func newJointTime(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "joint-time",
		Short: "running time of backbone graphs on SecStr, up to all 83,679 points",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return o.jointTime(c.Context()) },
	}
}

// The settings of the thesis. We chose the rounds and the energies of the net.
const (
	jointRuns = 50
	netEnergy = .01 // stretch and bend of the elastic net
	literal   = 1e5 // gamma_q
)

var (
	jointLabels    = []int{2, 10, 20, 50}
	jointCentroids = []int{15, 20, 25, 30, 60, 90}
	pulls          = []float64{2, 5, 20}
)

// backbone is a method that makes a backbone from seeds.
type backbone struct {
	name  string
	place func(context.Context, joint.Offline, table, [][]float32, *rand.Rand) (*joint.Backbone,
		error)
}

// table is a dataset of two classes.
type table struct {
	x       [][]float32
	truth   []int
	classes []int // -1 where there is no label
}

func backbones() []backbone {
	all := []backbone{
		{"subsample", func(_ context.Context, o joint.Offline, t table, seeds [][]float32,
			_ *rand.Rand) (*joint.Backbone, error) {
			return o.Infer(t.x, t.classes, seeds)
		}},
		{"k-means", func(ctx context.Context, o joint.Offline, t table, seeds [][]float32,
			_ *rand.Rand) (*joint.Backbone, error) {
			c, err := joint.KMeans(ctx, t.unlabelled(), seeds, o.Rounds)
			if err != nil {
				return nil, err
			}
			return o.Infer(t.x, t.classes, c)
		}},
		{"elastic net", func(ctx context.Context, o joint.Offline, t table, seeds [][]float32,
			_ *rand.Rand) (*joint.Backbone, error) {
			c, err := joint.ElasticNet(ctx, t.unlabelled(), seeds, o.Neighbours, netEnergy,
				netEnergy, o.Rounds)
			if err != nil {
				return nil, err
			}
			return o.Infer(t.x, t.classes, c)
		}},
		{"elastic-joint, gamma_q 1e5",
			func(ctx context.Context, o joint.Offline, t table, seeds [][]float32,
				r *rand.Rand) (*joint.Backbone, error) {
				o.Pull, o.GammaQ = 0, literal
				return o.Joint(ctx, t.x, t.classes, seeds, r)
			}},
		{"k-means around labels",
			func(ctx context.Context, o joint.Offline, t table, seeds [][]float32,
				r *rand.Rand) (*joint.Backbone, error) {
				o.Pull, o.GammaQ = 1e12, 0
				return o.Joint(ctx, t.x, t.classes, seeds, r)
			}},
	}
	for _, pull := range pulls {
		all = append(all, backbone{fmt.Sprintf("elastic-joint, pull %g", pull),
			func(ctx context.Context, o joint.Offline, t table, seeds [][]float32,
				r *rand.Rand) (*joint.Backbone,
				error) {
				o.Pull = pull
				return o.Joint(ctx, t.x, t.classes, seeds, r)
			}})
	}
	return all
}

func (t table) unlabelled() (x [][]float32) {
	for i, c := range t.classes {
		if c < 0 {
			x = append(x, t.x[i])
		}
	}
	return x
}

// label labels m random points, at least one of each class.
func (t *table) label(r *rand.Rand, m int) {
	t.classes = slices.Repeat([]int{-1}, len(t.x))
	var seen [2]int
	for _, i := range r.Perm(len(t.x)) {
		others := seen[1-t.truth[i]]
		if n := seen[0] + seen[1]; n < m-1 || n == m-1 && (others > 0 || m < 2) {
			t.classes[i] = t.truth[i]
			seen[t.truth[i]]++
		}
	}
}

// right returns the share of unlabelled points whose vertex has their class.
func (t table) right(class func(i int) int) float64 {
	right, all := 0., 0.
	for i, c := range t.classes {
		if c < 0 {
			all++
			if class(i) == t.truth[i] {
				right++
			}
		}
	}
	return right / all
}

// settings returns the settings of the thesis: the width is a tenth of the standard deviation of
// the distances.
func (t table) settings(d mat.Symmetric) joint.Offline {
	var all []float64
	for i := range d.SymmetricDim() {
		for j := range i {
			all = append(all, d.At(i, j))
		}
	}
	return joint.Offline{
		Kernel: quantized.Heat(.1 * stat.StdDev(all, nil)), Neighbours: 3, Fit: 10, Doubt: .1,
		Gamma: 1e-6, Rounds: 10,
	}
}

// readTable returns a dataset with two classes: the classes of COIL and SecStr, and for Car the two
// better grades against the others.
func (o *options) readTable(dataset string) (t table, err error) {
	all, err := o.rows(dataset)
	if err != nil {
		return t, err
	}
	for _, r := range all {
		class := 0
		if r.label == "1" || r.label == "good" || r.label == "vgood" {
			class = 1
		}
		t.x, t.truth = append(t.x, r.x), append(t.truth, class)
	}
	return t, nil
}

// spot is one point of the figure: m labels and k centroids.
type spot struct{ m, k, run int }

func (o *options) joint(ctx context.Context) error {
	var rows [][]string
	var line []*plot.Plot
	for _, dataset := range []string{"coil2", "car"} {
		t, err := o.readTable(dataset)
		if err != nil {
			return err
		}
		d := dense.Distances(t.x, 1)
		s := t.settings(d)
		whole := dense.Nearest(d, s.Kernel, s.Neighbours)
		methods := backbones()
		right := make(map[string]map[spot]float64)
		for _, m := range methods {
			right[m.name] = make(map[spot]float64)
		}
		right["full graph"] = make(map[spot]float64)
		var mu sync.Mutex
		var jobs []spot
		for _, m := range jointLabels {
			for run := range jointRuns {
				jobs = append(jobs, spot{m: m, run: run})
			}
		}
		err = each(jobs, func(c spot) error {
			t := t
			t.label(rand.New(rand.NewPCG(uint64(c.run), uint64(c.m))), c.m)
			full, err := t.full(whole, s)
			if err != nil {
				return err
			}
			for _, k := range jointCentroids {
				c.k = k
				seeds := joint.Seeds(rand.New(rand.NewPCG(uint64(c.run), 77)), t.x, t.classes, k)
				for _, method := range methods {
					b, err := method.place(ctx, s, t, seeds,
						rand.New(rand.NewPCG(uint64(c.run), 78)))
					if err != nil {
						return fmt.Errorf("%s, %s: %w", dataset, method.name, err)
					}
					mu.Lock()
					right[method.name][c] = t.right(func(i int) int { return b.Class(b.Of[i]) })
					mu.Unlock()
				}
				mu.Lock()
				right["full graph"][c] = full
				mu.Unlock()
			}
			return nil
		})
		if err != nil {
			return err
		}
		fmt.Fprintln(os.Stderr, dataset, "done")
		names := []string{"full graph"}
		for _, m := range methods {
			names = append(names, m.name)
		}
		for _, m := range jointLabels {
			var curves []figure.Line
			for _, name := range names {
				var curve plotter.XYs
				for _, k := range jointCentroids {
					values := make([]float64, jointRuns)
					for run := range values {
						values[run] = right[name][spot{m, k, run}]
					}
					mean, spread := stat.MeanStdDev(values, nil)
					rows = append(rows, []string{dataset, strconv.Itoa(m), strconv.Itoa(k), name,
						fmt.Sprintf("%.4f", mean), fmt.Sprintf("%.4f",
							1.96*stat.StdErr(spread, jointRuns))})
					curve = append(curve, plotter.XY{X: float64(k), Y: mean})
				}
				curves = append(curves, figure.Line{Name: name, Points: curve})
			}
			p, err := drawJoint(fmt.Sprintf("%s, %d labels", dataset, m), curves)
			if err != nil {
				return err
			}
			line = append(line, p)
		}
	}
	if err := o.table("joint.csv", []string{"dataset", "labels", "centroids", "method", "accuracy",
		"95% interval, half"},
		rows); err != nil {
		return err
	}
	return o.picture("joint.png", 5*vg.Inch, 5*vg.Inch,
		[][]*plot.Plot{line[:2], line[2:4], line[4:6], line[6:]})
}

// drawJoint draws accuracies over the number of centroids, with room for the legend below them.
func drawJoint(title string, curves []figure.Line) (*plot.Plot, error) {
	least, most := math.Inf(1), math.Inf(-1)
	for q := range curves {
		curves[q].Colour, curves[q].Dashed = figure.Colours[q%len(figure.Colours)],
			q >= len(figure.Colours)
		for _, at := range curves[q].Points {
			least, most = min(least, at.Y), max(most, at.Y)
		}
	}
	p, err := figure.Lines(title, "centroids", "accuracy", curves)
	if err != nil {
		return nil, err
	}
	p.Legend.Top = false
	p.Y.Min = least - .7*(most-least)
	return p, nil
}

// full returns the accuracy of the soft harmonic solution on the graph of all points.
func (t table) full(w mat.Symmetric, s joint.Offline) (float64, error) {
	l, err := dense.Problem{W: w, Class: t.classes, Classes: 2, Gamma: s.Gamma}.Soft(s.Fit, s.Doubt)
	if err != nil {
		return 0, err
	}
	return t.right(func(i int) int {
		if l.At(i, 1) > l.At(i, 0) {
			return 1
		}
		return 0
	}), nil
}

// jointTime measures the methods on parts of SecStr, m = 10 and k = 100 as in the thesis.
func (o *options) jointTime(ctx context.Context) error {
	t, err := o.readTable("secstr")
	if err != nil {
		return err
	}
	order := rand.New(rand.NewPCG(1, 1)).Perm(len(t.x))
	var rows [][]string
	var watch clock
	for _, n := range []int{1000, 2000, 4000, 6000, 8000, 10000, len(t.x)} {
		some := table{}
		for _, i := range order[:n] {
			some.x, some.truth = append(some.x, t.x[i]), append(some.truth, t.truth[i])
		}
		some.label(rand.New(rand.NewPCG(1, 2)), 10)
		s := some.settings(dense.Distances(some.x[:min(n, 1000)], 1))
		seeds := joint.Seeds(rand.New(rand.NewPCG(1, 3)), some.x, some.classes, 100)
		measure := func(name string, do func() (float64, int, error)) error {
			right, rounds := 0., 0
			spent, err := watch.measure(ctx, name, n, func() (err error) {
				right, rounds, err = do()
				return err
			})
			if err != nil {
				return fmt.Errorf("%s, %d points: %w", name, n, err)
			}
			fmt.Fprintf(os.Stderr, "%s, %d points: %.1f\n", name, n, spent)
			rows = append(rows, []string{strconv.Itoa(n), name, fmt.Sprintf("%.2f", spent),
				strconv.Itoa(rounds), fmt.Sprintf("%.3f", right)})
			return nil
		}
		for _, m := range backbones()[:len(backbones())-2] { // one value of the pull is enough
			err := measure(m.name, func() (float64, int, error) {
				b, err := m.place(ctx, s, some, seeds, rand.New(rand.NewPCG(1, 4)))
				if err != nil {
					return 0, 0, err
				}
				return some.right(func(i int) int { return b.Class(b.Of[i]) }), b.Rounds, nil
			})
			if err != nil {
				return err
			}
		}
		if n <= 4000 { // with more points the full graph takes minutes, and memory in O(n²)
			err := measure("full graph", func() (float64, int, error) {
				right, err := some.full(dense.Nearest(dense.Distances(some.x, 1), s.Kernel,
					s.Neighbours), s)
				return right, 0, err
			})
			if err != nil {
				return err
			}
		}
	}
	if err := o.table("joint-time.csv", []string{"points", "method", "time", "rounds", "accuracy"},
		rows); err != nil {
		return err
	}
	return watch.draw(o, "joint-time.png", "SecStr, 10 labels, 100 centroids", "points",
		"time, of subsampling on 1,000 points")
}
