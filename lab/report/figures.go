// SPDX-License-Identifier: Apache-2.0

package report

import (
	"io"
	"math"

	"github.com/faceauth/faceauth/lab/evaluate"
	"github.com/faceauth/faceauth/lab/figure"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// drawing is one figure.
type drawing struct {
	name, caption string
	panel         func() (*plot.Plot, error)
}

func (d drawing) draw(png, svg io.Writer) error {
	p, err := d.panel()
	if err != nil {
		return err
	}
	const width, height = 6 * vg.Inch, 4.2 * vg.Inch
	if err := figure.PNG(png, width, height, [][]*plot.Plot{{p}}); err != nil {
		return err
	}
	return figure.SVG(svg, width, height, [][]*plot.Plot{{p}})
}

// figures returns the figures for the result.
func figures(s evaluate.Summary) []drawing {
	all := []drawing{
		{"precision-recall",
			"Precision and recall at every threshold: further to the top right is better.",
			func() (*plot.Plot, error) { return precisionRecall(s) }},
		{"recall-over-time",
			"Recall over the time since enrolment, counted in faces of the person.",
			func() (*plot.Plot, error) { return recallOverTime(s) }},
	}
	if rates := rates(s); len(rates) > 0 && rates[0].Faces > 0 {
		all = append([]drawing{{
			"det", "Detection error trade-off, on the scale of normal deviates: further to the " +
				"bottom left is better. A rate below the edge of the drawing, 0 for one, is " +
				"drawn at the edge.",
			func() (*plot.Plot, error) { return det(s) },
		}}, all...)
	}
	return all
}

// rates returns the error rates of all methods, with the rates of strangers first.
func rates(s evaluate.Summary) (all []evaluate.NamedRate) {
	for _, m := range s.Methods {
		all = append(all, m.ErrorRates()...)
	}
	return all
}

// lines returns a curve for each method that has points.
func lines(s evaluate.Summary, points func(evaluate.Result) plotter.XYs) (all []figure.Line) {
	for i, m := range s.Methods {
		if p := points(m); len(p) > 0 {
			all = append(all, line(i, m.Name, p))
		}
	}
	return all
}

// line returns the curve of the method of that number.
func line(i int, name string, points plotter.XYs) figure.Line {
	return figure.Line{Name: name, Colour: figure.Colours[i%len(figure.Colours)], Points: points,
		Plain:  len(points) > 25,
		Dashed: i%2 == 1}
}

// det draws false non-matches over false matches, or the corresponding rates of an identification.
// There must be strangers.
func det(s evaluate.Summary) (*plot.Plot, error) {
	trials := 0
	for _, r := range rates(s) {
		trials = max(trials, r.Faces)
	}
	match, miss := "false match rate", "false non-match rate"
	if rates(s)[0].Name == "FPIR" {
		match, miss = "false positive identification rate", "false negative identification rate"
	}
	return tradeOff(match, miss, trials, lines(s, func(m evaluate.Result) (xys plotter.XYs) {
		for _, q := range m.Curve {
			if q.FAR <= widest {
				xys = append(xys, plotter.XY{X: float64(q.FAR), Y: 1 - float64(q.Recall)})
			}
		}
		return xys
	}))
}

// widest is the largest false match rate in a detection error trade-off.
const widest = .5

// tradeOff draws two error rates over each other on the scale of normal deviates. Trials is the
// larger number of trials.
func tradeOff(x, y string, trials int, lines []figure.Line) (*plot.Plot, error) {
	p, err := figure.Lines("", x, y, lines)
	if err != nil {
		return nil, err
	}
	least := min(.05, .5/float64(max(trials, 10))) // half of the smallest possible rate above 0
	figure.Deviate(&p.X, least, widest)
	figure.Deviate(&p.Y, least, 1-least)
	return p, nil
}

// precisionRecall draws precision over recall.
func precisionRecall(s evaluate.Summary) (*plot.Plot, error) {
	p, err := figure.Lines("", "recall", "precision",
		lines(s, func(m evaluate.Result) (xys plotter.XYs) {
			for _, q := range m.Curve {
				if !math.IsNaN(float64(q.Precision)) {
					xys = append(xys, plotter.XY{X: float64(q.Recall), Y: float64(q.Precision)})
				}
			}
			return xys
		}))
	if err != nil {
		return nil, err
	}
	unit(p)
	p.Legend.Top, p.Legend.Left, p.Legend.XOffs = false, true, vg.Points(6)
	p.X.Min = 0
	return p, nil
}

// recallOverTime draws recall over the faces since enrolment.
func recallOverTime(s evaluate.Summary) (*plot.Plot, error) {
	p, err := figure.Lines("", "faces since enrolment", "recall",
		lines(s, func(m evaluate.Result) (xys plotter.XYs) {
			for _, q := range m.OverTime {
				xys = append(xys, plotter.XY{X: float64(q.From+q.To) / 2, Y: float64(q.Recall)})
			}
			return xys
		}))
	if err != nil {
		return nil, err
	}
	unit(p)
	p.X.Min = 0
	p.Legend.Top, p.Legend.Left, p.Legend.XOffs = false, true, vg.Points(6)
	return p, nil
}

// unit makes the upright axis an axis of shares. Its end is above 1, so that a line at 1 is
// visible.
func unit(p *plot.Plot) { p.Y.Min, p.Y.Max = 0, 1.02 }
