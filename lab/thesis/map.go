// SPDX-License-Identifier: Apache-2.0

package thesis

import (
	"fmt"
	"image/color"

	"github.com/faceauth/faceauth/lab/figure"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/palette"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// field has the values of one panel. Sigma goes to the right and gamma upwards.
type field struct{ z [][]float64 } // z[row][column]

func (f field) Dims() (c, r int)   { return len(cliffSigmas), len(cliffGammas) }
func (f field) Z(c, r int) float64 { return f.z[r][c] }
func (f field) X(c int) float64    { return float64(c) }
func (f field) Y(r int) float64    { return float64(r) }

// shades go from white to a colour.
type shades struct{ to color.RGBA }

func (s shades) Colors() []color.Color {
	const n = 64
	all := make([]color.Color, n)
	for i := range all {
		mix := func(x uint8) uint8 { return uint8(255 - (255-int(x))*i/(n-1)) }
		all[i] = color.RGBA{mix(s.to.R), mix(s.to.G), mix(s.to.B), 255}
	}
	return all
}

var _ palette.Palette = shades{}

// drawCliff draws false accepts and recall, without the bound on the left and with it on the right.
func (o *options) drawCliff(cells []*cell) error {
	panel := func(title string, bounded bool, value func(*cell) float64, to color.RGBA) (*plot.Plot,
		error) {
		f := field{make([][]float64, len(cliffGammas))}
		for r, gamma := range cliffGammas {
			for _, sigma := range cliffSigmas {
				for _, c := range cells {
					if c.bounded == bounded && c.sigma == sigma && c.gamma == gamma {
						f.z[r] = append(f.z[r], value(c))
					}
				}
			}
		}
		p := plot.New()
		p.Title.Text = title
		p.X.Label.Text, p.Y.Label.Text = "sigma", "gamma"
		h := plotter.NewHeatMap(f, shades{to})
		h.Min, h.Max = 0, 1
		p.Add(h)
		var labels plotter.XYLabels
		var xs, ys []plot.Tick
		for c, sigma := range cliffSigmas {
			xs = append(xs, plot.Tick{Value: float64(c), Label: fmt.Sprintf("%.2f", sigma)})
			for r := range cliffGammas {
				labels.XYs = append(labels.XYs, plotter.XY{X: float64(c), Y: float64(r)})
				labels.Labels = append(labels.Labels, fmt.Sprintf("%.3f", f.z[r][c]))
			}
		}
		for r, gamma := range cliffGammas {
			ys = append(ys, plot.Tick{Value: float64(r), Label: fmt.Sprintf("%g", gamma)})
		}
		p.X.Tick.Marker, p.Y.Tick.Marker = plot.ConstantTicks(xs), plot.ConstantTicks(ys)
		l, err := plotter.NewLabels(labels)
		if err != nil {
			return nil, err
		}
		for i := range l.TextStyle {
			l.TextStyle[i] = text.Style{
				Color: color.Black, Font: font.From(plot.DefaultFont, 9), XAlign: draw.XCenter,
				YAlign: draw.YCenter, Handler: plot.DefaultTextHandler,
			}
		}
		p.Add(l)
		return p, nil
	}
	worst := func(c *cell) float64 { return c.worst }
	recall := func(c *cell) float64 { return c.recall }
	var rows [][]*plot.Plot
	for _, row := range []struct {
		name  string
		value func(*cell) float64
		to    color.RGBA
	}{{"false accepts, worst choice of two strangers", worst, figure.Red},
		{"recall", recall, figure.Green}} {
		var plots []*plot.Plot
		for _, bounded := range []bool{false, true} {
			how := "edges as long as the kernel allows"
			if bounded {
				how = "longest edge bounded (default)"
			}
			p, err := panel(row.name+": "+how, bounded, row.value, row.to)
			if err != nil {
				return err
			}
			plots = append(plots, p)
		}
		rows = append(rows, plots)
	}
	return o.picture("cliff.png", 6.5*vg.Inch, 3.5*vg.Inch, rows)
}
