// SPDX-License-Identifier: Apache-2.0

package thesis

import (
	"cmp"
	"context"
	"fmt"
	"image/color"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/faceauth/faceauth/internal/reference/dense"
	"github.com/faceauth/faceauth/lab/figure"
	"github.com/faceauth/faceauth/lab/peers"
	"github.com/faceauth/faceauth/lab/synthetic"
	"github.com/faceauth/faceauth/quantized"
	"github.com/spf13/cobra"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

func newAnomaly(o *options) *cobra.Command {
	var family string
	c := &cobra.Command{
		Use: "anomaly",
		Short: "unusual labels in mixtures of Gaussians, in wine, housing and cars, " +
			"and in the Core dataset (Section Evaluation of CAD with Known Ground Truth)",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return o.anomaly(c.Context(), family) },
	}
	c.Flags().StringVar(&family, "family", "",
		"only the methods whose name contains this: what each has does not depend on the others")
	return c
}

func newAnomalyTime(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "anomaly-time",
		Short: "running time of the graph methods that find unusual labels",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return o.anomalyTime(c.Context()) },
	}
}

// detector scores all examples. Trained detectors learn from the first examples.
type detector struct {
	family  string
	setting string
	width   float64 // of the kernel, in mean standard deviations of the features
	scores  func(t unusual) ([]float64, error)
}

// unusual is a task: the first examples are for training, and the others are ranked.
type unusual struct {
	synthetic.Labelled
	train int
	w     func(width float64) mat.Symmetric // weights of all examples
	unit  float64                           // mean standard deviation of the features
}

// kernel is the kernel of the thesis's chapter on anomalies: exp(-d²/(p σ²)), where σ is the width
// times the unit.
func (t unusual) kernel(width float64) quantized.Kernel {
	return quantized.Kernel{Denominator: float64(len(t.X[0])) * math.Pow(width*t.unit, 2)}
}

// newUnusual returns a task; its weights are computed once for each width.
func newUnusual(l synthetic.Labelled, train int) unusual {
	t := unusual{Labelled: l, train: train, unit: deviation(l.X)}
	d := dense.Distances(l.X, 1)
	made := make(map[float64]mat.Symmetric)
	t.w = func(width float64) mat.Symmetric {
		if made[width] == nil {
			made[width] = dense.Similarity(d, t.kernel(width), 0)
		}
		return made[width]
	}
	return t
}

var widths = []float64{.1, .3, 1}

// detectors returns all methods with all their settings.
func detectors() (all []detector) {
	graphs := func(family, setting string, width float64, f func(w mat.Symmetric, y []int) (
		[]float64, error)) {
		all = append(all,
			detector{family, setting, width, func(t unusual) ([]float64, error) {
				return f(t.w(width), t.Class)
			}})
	}
	trained := func(family, setting string, width float64, train func(t unusual) peers.Trainer) {
		all = append(all, detector{family, setting, width, func(t unusual) ([]float64, error) {
			score, err := train(t)(t.X[:t.train], t.Class[:t.train])
			if err != nil {
				return nil, err
			}
			scores := make([]float64, len(t.X))
			for i := range t.X {
				scores[i] = score(t.X[i], t.Class[i])
			}
			return scores, nil
		}})
	}
	for _, width := range widths {
		for _, gamma := range []float64{.01, .1, 1} {
			graphs("SoftHAD", fmt.Sprintf("gamma %g", gamma), width,
				func(w mat.Symmetric, y []int) ([]float64, error) {
					return peers.SoftHarmonic(w, y, 1, gamma)
				})
		}
		for _, lambda := range []float64{0, 1e-5, 1e-4, 1e-3, 1} {
			graphs("RWCAD", fmt.Sprintf("lambda %g", lambda), width,
				func(w mat.Symmetric, y []int) ([]float64, error) {
					return peers.RandomWalk(w, y, lambda)
				})
		}
		graphs("weighted k-NN", "", width, peers.WeightedNeighbours)
		for _, c := range []float64{.1, 1, 10} {
			trained("SVM", fmt.Sprintf("cost %g", c), width,
				func(t unusual) peers.Trainer { return peers.Projection(t.kernel(width), c) })
		}
		for _, nu := range []float64{.05, .5} {
			trained("one-class SVM", fmt.Sprintf("nu %g", nu), width,
				func(t unusual) peers.Trainer { return peers.OneClass(t.kernel(width), nu) })
		}
	}
	for _, c := range []float64{.1, 1, 10} {
		trained("logistic regression", fmt.Sprintf("cost %g", c), 0,
			func(unusual) peers.Trainer { return peers.Logistic(c) })
		trained("logistic regression, confident", fmt.Sprintf("cost %g", c), 0,
			func(unusual) peers.Trainer { return peers.Confident(5, peers.Logistic(c)) })
	}
	trained("QDA", "", 0, func(unusual) peers.Trainer { return peers.Quadratic(0) })
	return all
}

func (d detector) String() string {
	s := d.family
	if d.width > 0 {
		s += fmt.Sprintf(", width %g", d.width)
	}
	if d.setting != "" {
		s += ", " + d.setting
	}
	return s
}

// agreement is the share of pairs with different true scores that the scores put in the right
// order; ties count half. It is the area under the ROC curve for a truth with more than two values.
func agreement(scores, truth []float64) float64 {
	right, all := 0., 0.
	for i := range scores {
		for j := range i {
			if truth[i] == truth[j] {
				continue
			}
			all++
			switch {
			case scores[i] == scores[j]:
				right += .5
			case (scores[i] > scores[j]) == (truth[i] > truth[j]):
				right++
			}
		}
	}
	return right / all
}

// ordinal returns the standardised examples of a dataset with an ordinal response, and the response
// scaled to [-1,1].
func (o *options) ordinal(dataset string) (x [][]float32, response []float64, err error) {
	rows, err := o.rows(dataset)
	if err != nil {
		return nil, nil, err
	}
	for _, r := range rows {
		v, err := strconv.ParseFloat(r.label, 64)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", dataset, err)
		}
		x, response = append(x, r.x), append(response, v)
	}
	standardise(x)
	peers.Scale(response, response)
	for i := range response {
		response[i] = 2*response[i] - 1
	}
	return x, response, nil
}

// thesisAgreement has the agreements in the thesis's tables, in per cent.
var thesisAgreement = map[string]map[string]float64{
	"wine": {"QDA": 75.1, "SVM": 75.0, "one-class SVM": 44.2, "weighted k-NN": 67.6,
		"SoftHAD": 74.5},
	"housing": {"QDA": 56.7, "SVM": 58.5, "one-class SVM": 27.2, "weighted k-NN": 44.4,
		"SoftHAD": 71.3},
	"auto-mpg": {"QDA": 65.9, "SVM": 37.1, "one-class SVM": 50.1, "weighted k-NN": 61.4,
		"SoftHAD": 72.6},
}

const (
	flips        = .03
	mixtureRuns  = 10
	mixturePoint = 1000
	ordinalRuns  = 100
	coreRuns     = 100
)

func (o *options) anomaly(ctx context.Context, family string) error {
	all := slices.DeleteFunc(detectors(), func(d detector) bool {
		return !strings.Contains(d.family, family)
	})
	if len(all) == 0 {
		return fmt.Errorf("no method has %q in its name", family)
	}
	var rows [][]string
	record := func(dataset string, d detector, values []float64, chosen bool) {
		mean, spread := stat.MeanStdDev(values, nil)
		printed := ""
		if x, ok := thesisAgreement[dataset][d.family]; ok {
			printed = fmt.Sprintf("%.1f", x)
		}
		rows = append(rows, []string{dataset, d.family, fmt.Sprint(d.width), d.setting,
			fmt.Sprintf("%.1f", 100*mean),
			fmt.Sprintf("%.1f", 100*spread), strconv.FormatBool(chosen), printed})
	}
	measure := func(of []detector, runs int, task func(run int) unusual) ([][]float64, error) {
		values := make([][]float64, len(of))
		for q := range values {
			values[q] = make([]float64, runs)
		}
		err := each(upTo(runs), func(run int) error {
			t := task(run)
			for q, d := range of {
				if err := ctx.Err(); err != nil {
					return err
				}
				scores, err := d.scores(t)
				if err != nil {
					return fmt.Errorf("%s: %w", d, err)
				}
				// The thesis scales scores. The agreement within a task does not depend on it.
				peers.Scale(scores[t.train:], scores[:t.train])
				values[q][run] = agreement(scores[t.train:], t.Truth[t.train:])
			}
			return nil
		})
		return values, err
	}

	// For each method, the setting with the best mean over our mixtures is chosen.
	mixtures := make(map[string][][]float64)
	sum := make([]float64, len(all))
	for _, name := range slices.Sorted(maps.Keys(synthetic.Mixtures)) {
		values, err := measure(all, mixtureRuns, func(run int) unusual {
			l := synthetic.Mixture(rand.New(rand.NewPCG(uint64(run), 3)), synthetic.Mixtures[name],
				mixturePoint, flips)
			return newUnusual(l, mixturePoint*2/3)
		})
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		mixtures[name] = values
		for q := range all {
			sum[q] += stat.Mean(values[q], nil)
		}
	}
	chosen := make(map[string]int)
	for q, d := range all {
		if best, ok := chosen[d.family]; !ok || sum[q] > sum[best] {
			chosen[d.family] = q
		}
	}
	for _, name := range slices.Sorted(maps.Keys(mixtures)) {
		for q, d := range all {
			record(name, d, mixtures[name][q], chosen[d.family] == q)
		}
	}
	// Tables use the chosen settings, with all three widths.
	var some []detector
	for _, d := range all {
		if d.setting == all[chosen[d.family]].setting {
			some = append(some, d)
		}
	}
	for _, dataset := range []string{"wine", "housing", "auto-mpg"} {
		x, response, err := o.ordinal(dataset)
		if err != nil {
			return err
		}
		values, err := measure(some, ordinalRuns, func(run int) unusual {
			r := rand.New(rand.NewPCG(uint64(run), 4))
			var l synthetic.Labelled
			var y []float64
			for _, i := range r.Perm(len(x)) {
				class := 0
				if response[i] >= 0 {
					class = 1
				}
				l.X, l.Class, y = append(l.X, x[i]), append(l.Class, class), append(y, response[i])
			}
			synthetic.Flip(r, l.Class, flips)
			for i := range y {
				l.Truth = append(l.Truth, math.Abs(y[i]-float64(2*l.Class[i]-1)))
			}
			return newUnusual(l, len(x)*2/3)
		})
		if err != nil {
			return fmt.Errorf("%s: %w", dataset, err)
		}
		for q, d := range some {
			record(dataset, d, values[q], d.String() == all[chosen[d.family]].String())
		}
		fmt.Fprintln(os.Stderr, dataset, "done")
	}
	if err := o.table("anomaly.csv",
		[]string{"dataset", "method", "width", "setting", "agreement %",
			"standard deviation",
			"chosen", "thesis %"}, rows); err != nil {
		return err
	}
	return o.core(ctx, all, chosen)
}

// first returns the n examples with the largest scores, among the examples from number from on.
func first(scores []float64, from, n int) []int {
	var order []int
	for i := from; i < len(scores); i++ {
		order = append(order, i)
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(scores[b], scores[a]) })
	return order[:min(n, len(order))]
}

// core ranks the Core dataset. Among the first twelve examples it counts the unusual examples, the
// examples in the tiny squares, and the examples at the rim.
func (o *options) core(ctx context.Context, methods []detector, chosen map[string]int) error {
	tasks := make([]unusual, coreRuns)
	for run := range tasks {
		r := rand.New(rand.NewPCG(uint64(run), 5))
		l, test := synthetic.Core(r, 1), synthetic.Core(r, 2)
		train := len(l.X)
		l.X, l.Class, l.Truth = append(l.X, test.X...), append(l.Class, test.Class...),
			append(l.Truth, test.Truth...)
		tasks[run] = newUnusual(l, train)
	}
	var rows [][]string
	var panels [][]*plot.Plot
	for q, m := range methods {
		var found, tiny, fringe float64
		for run, t := range tasks {
			if err := ctx.Err(); err != nil {
				return err
			}
			scores, err := m.scores(t)
			if err != nil {
				return fmt.Errorf("core, %s: %w", m, err)
			}
			ahead := first(scores, t.train, 12)
			for _, i := range ahead {
				x, y := math.Abs(float64(t.X[i][0])), math.Abs(float64(t.X[i][1]))
				switch edge := max(x, y); {
				case t.Truth[i] == 1:
					found++
				case edge > 1:
					tiny++
				case edge > .95:
					fringe++
				}
			}
			if run == 0 && chosen[m.family] == q {
				panels = addPanel(panels, drawCore(m.String(), t, ahead))
			}
		}
		rows = append(rows, []string{m.family, fmt.Sprint(m.width), m.setting,
			fmt.Sprintf("%.2f", found/coreRuns), fmt.Sprintf("%.2f", tiny/coreRuns),
			fmt.Sprintf("%.2f", fringe/coreRuns), strconv.FormatBool(chosen[m.family] == q)})
	}
	if err := o.table("core.csv", []string{"method", "width", "setting",
		"unusual ones of the 12 in front",
		"of the tiny squares", "of the rim", "chosen"}, rows); err != nil {
		return err
	}
	return o.picture("core.png", 3.6*vg.Inch, 3.6*vg.Inch, panels)
}

// addPanel puts panels into rows of three.
func addPanel(panels [][]*plot.Plot, p *plot.Plot) [][]*plot.Plot {
	if n := len(panels); n > 0 && len(panels[n-1]) < 3 {
		panels[n-1] = append(panels[n-1], p)
		return panels
	}
	return append(panels, []*plot.Plot{p})
}

func drawCore(title string, t unusual, ahead []int) *plot.Plot {
	p := plot.New()
	p.Title.Text = title
	add := func(which func(i int) bool, c color.Color, shape draw.GlyphDrawer, radius vg.Length) {
		var points plotter.XYs
		for i := t.train; i < len(t.X); i++ {
			if which(i) {
				points = append(points, plotter.XY{X: float64(t.X[i][0]), Y: float64(t.X[i][1])})
			}
		}
		s, err := plotter.NewScatter(points)
		if err != nil {
			return // there are no such points
		}
		s.GlyphStyle = draw.GlyphStyle{Color: c, Shape: shape, Radius: radius}
		p.Add(s)
	}
	add(func(i int) bool { return t.Class[i] == 0 }, figure.Blue, draw.CrossGlyph{}, vg.Points(1.5))
	add(func(i int) bool { return t.Class[i] == 1 }, figure.Red, draw.PlusGlyph{}, vg.Points(1.5))
	add(func(i int) bool { return t.Truth[i] == 1 }, figure.Black, draw.RingGlyph{}, vg.Points(5))
	add(func(i int) bool { return slices.Contains(ahead, i) }, figure.Black, draw.CircleGlyph{},
		vg.Points(2.5))
	return p
}

// anomalyTime measures the graph methods on mixtures of growing size, relative to the time for the
// smallest graph.
func (o *options) anomalyTime(ctx context.Context) error {
	var rows [][]string
	var watch clock
	names := []string{"graph", "weighted k-NN", "RWCAD", "SoftHAD",
		"SoftHAD on a backbone, k = 100"}
	for _, n := range []int{500, 1000, 2000, 3000, 4000, 5000} {
		l := synthetic.Mixture(rand.New(rand.NewPCG(1, 6)), synthetic.Mixtures["D2"], n, flips)
		t := unusual{Labelled: l, unit: deviation(l.X)}
		kernel := t.kernel(.3)
		var w mat.Symmetric
		for q, do := range []func() error{
			func() error { w = dense.Similarity(dense.Distances(l.X, 1), kernel, 0); return nil },
			func() error { _, err := peers.WeightedNeighbours(w, l.Class); return err },
			func() error { _, err := peers.RandomWalk(w, l.Class, 1e-4); return err },
			func() error { _, err := peers.SoftHarmonic(w, l.Class, 1, .1); return err },
			func() error {
				_, err := peers.Backbone(ctx, l.X, l.Class, 100, kernel, 1,
					.1)
				return err
			},
		} {
			spent, err := watch.measure(ctx, names[q], n, do)
			if err != nil {
				return fmt.Errorf("%s, %d points: %w", names[q], n, err)
			}
			rows = append(rows, []string{strconv.Itoa(n), names[q], fmt.Sprintf("%.2f", spent)})
		}
	}
	if err := o.table("anomaly-time.csv", []string{"examples", "step", "time"}, rows); err != nil {
		return err
	}
	return watch.draw(o, "anomaly-time.png", "scoring all examples", "examples",
		"time, of the graph of 500")
}
