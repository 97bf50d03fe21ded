// SPDX-License-Identifier: Apache-2.0

package thesis

import (
	"fmt"
	"math"

	"github.com/faceauth/faceauth/lab/figure"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// drawApproximation draws one picture over time and one over k: errors above, accuracies below.
func (o *options) drawApproximation(all []*outcome) error {
	grey := figure.Black
	grey.R, grey.G, grey.B = 150, 150, 150
	curve := func(n int, x func(int) float64, y []float64) (points plotter.XYs) {
		for i := range n {
			if !math.IsNaN(y[i]) {
				points = append(points, plotter.XY{X: x(i), Y: y[i]})
			}
		}
		return points
	}
	for _, by := range []string{"time", "centroids"} {
		var above, below []*plot.Plot
		for _, out := range all {
			n, label := len(out.t), "time t"
			x := func(i int) float64 { return float64(out.t[i]) }
			errors, quantized := out.error, out.quantized
			offline, online := out.offline, out.online
			if by == "centroids" {
				n, label = len(centroids), "number of centroids k"
				x = func(i int) float64 { return float64(centroids[i]) }
				errors, quantized = out.errorAt, out.accuracyAt
				last := len(out.t) - 1
				offline, online = constant(n, offline[last]), constant(n, online[last])
			}
			e, err := figure.Lines(fmt.Sprintf("%s, %s", out.dataset, out.sparse), label,
				"error of the Laplacian",
				[]figure.Line{{Colour: figure.Black, Points: curve(n, x, errors)}})
			if err != nil {
				return err
			}
			e.Y.Min = 0
			a, err := figure.Lines("", label, "cumulative accuracy", []figure.Line{
				{Name: "offline", Colour: grey, Points: curve(n, x, offline)},
				{Name: "online", Colour: figure.Blue, Points: curve(n, x, online)},
				{Name: "online, quantized", Colour: figure.Black, Points: curve(n, x, quantized)},
			})
			if err != nil {
				return err
			}
			a.Y.Min, a.Y.Max = .2, 1 // the legend fits below the curves
			a.Legend.Top = false
			above, below = append(above, e), append(below, a)
		}
		if err := o.picture("approximation-"+by+".png", 4*vg.Inch, 3*vg.Inch,
			[][]*plot.Plot{above, below}); err != nil {
			return err
		}
	}
	return nil
}

func constant(n int, x float64) []float64 {
	s := make([]float64, n)
	for i := range s {
		s[i] = x
	}
	return s
}
