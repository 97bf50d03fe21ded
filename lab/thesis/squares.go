// SPDX-License-Identifier: Apache-2.0

package thesis

import (
	"fmt"
	"image/color"
	"math"

	"github.com/faceauth/faceauth/lab/figure"
	"github.com/faceauth/faceauth/lab/maxmargin"
	"github.com/faceauth/faceauth/lab/peers"
	"github.com/faceauth/faceauth/lab/synthetic"
	"github.com/spf13/cobra"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/palette"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

func newSquares(o *options) *cobra.Command {
	return &cobra.Command{
		Use: "squares",
		Short: "two square clusters with a label each: graph cuts, and manifold regularisation " +
			"that fails (Figure synthetic cuts)",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return o.squares() },
	}
}

// The settings of the thesis's figure: gamma, epsilon, and three values of gamma_g.
const (
	squaresGamma   = .1
	squaresEpsilon = .01
)

var squaresSinks = []float64{1e-3, .1, 10}

// side gives the side of a machine at each point of a raster: -1, 0 if |f| < .05, or 1.
type side struct{ m *maxmargin.Machine }

const rasterStep = .25

func (s side) Dims() (c, r int) { return int(23/rasterStep) + 1, int(13/rasterStep) + 1 }
func (s side) X(c int) float64  { return -11.5 + rasterStep*float64(c) }
func (s side) Y(r int) float64  { return -6.5 + rasterStep*float64(r) }
func (s side) Z(c, r int) float64 {
	f := s.m.Value([]float32{float32(s.X(c)), float32(s.Y(r))})
	switch {
	case math.Abs(f) < .05:
		return 0
	case f > 0:
		return 1
	}
	return -1
}

// sides are the colours for -1, 0 and 1.
type sides struct{}

func (sides) Colors() []color.Color {
	return []color.Color{color.RGBA{190, 215, 240, 255}, color.RGBA{255, 240, 160, 255},
		color.RGBA{250, 205, 185, 255}}
}

var _ palette.Palette = sides{}

func (o *options) squares() error {
	x, y, truth, w := synthetic.Squares()
	var rows [][]string
	var panels [][]*plot.Plot
	for q, kernel := range []maxmargin.Kernel{maxmargin.Linear, maxmargin.Cubic,
		maxmargin.Radial(math.Sqrt2)} {
		e, err := maxmargin.NewExamples(x, kernel)
		if err != nil {
			return err
		}
		for _, method := range []string{"graph cut", "manifold regularisation"} {
			var line []*plot.Plot
			for _, sink := range squaresSinks {
				m, err := machine(e, x, kernel, w, y, method, sink)
				if err != nil {
					return err
				}
				wrong := 0
				for i := range x {
					if m.Value(x[i])*truth[i] <= 0 {
						wrong++
					}
				}
				rows = append(rows, []string{kinds[q], method, fmt.Sprint(sink), fmt.Sprint(wrong)})
				line = append(line, drawSides(fmt.Sprintf("%s %s, gamma_g %g: %d of 200 wrong",
					kinds[q], method, sink, wrong), m,
					x, y, truth))
			}
			panels = append(panels, line)
		}
	}
	if err := o.table("squares.csv", []string{"kernel", "method", "gamma_g", "wrong"},
		rows); err != nil {
		return err
	}
	return o.picture("squares.png", 4.6*vg.Inch, 2.8*vg.Inch, panels)
}

// machine trains a machine; gamma_u is gamma/gamma_g.
func machine(e *maxmargin.Examples, x [][]float32, kernel maxmargin.Kernel, w *mat.SymDense,
	y []float64, method string,
	sink float64) (*maxmargin.Machine, error) {
	if method == "graph cut" {
		return e.GraphCut(w, y, sink, squaresEpsilon, squaresGamma)
	}
	m, err := peers.NewManifold(x, kernel, false, w, 1/sink)
	if err != nil {
		return nil, err
	}
	return m.SVM(y, squaresGamma)
}

func drawSides(title string, m *maxmargin.Machine, x [][]float32, y, truth []float64) *plot.Plot {
	p := plot.New()
	p.Title.Text = title
	h := plotter.NewHeatMap(side{m}, sides{})
	h.Min, h.Max = -1, 1
	h.Rasterized = true
	p.Add(h)
	for _, class := range []float64{1, -1} {
		for _, labelled := range []bool{false, true} {
			var points plotter.XYs
			for i := range x {
				if truth[i] == class && (y[i] != 0) == labelled {
					points = append(points, plotter.XY{X: float64(x[i][0]), Y: float64(x[i][1])})
				}
			}
			s, err := plotter.NewScatter(points)
			if err != nil {
				continue
			}
			s.GlyphStyle = draw.GlyphStyle{Color: figure.Red, Shape: draw.CircleGlyph{},
				Radius: vg.Points(1.2)}
			if class < 0 {
				s.Color = figure.Blue
			}
			if labelled {
				s.Radius = vg.Points(4)
			}
			p.Add(s)
		}
	}
	return p
}
