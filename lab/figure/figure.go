// SPDX-License-Identifier: Apache-2.0

// Package figure draws curves and writes them as PNG and SVG.
package figure

import (
	"image/color"
	"io"
	"math"
	"strconv"

	"gonum.org/v1/gonum/stat/distuv"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Colours that people with any kind of colour vision can tell apart (Okabe and Ito).
var (
	Black  = color.RGBA{0, 0, 0, 255}
	Blue   = color.RGBA{0, 114, 178, 255}
	Green  = color.RGBA{0, 158, 115, 255}
	Red    = color.RGBA{213, 94, 0, 255}
	Orange = color.RGBA{230, 159, 0, 255}
	Sky    = color.RGBA{86, 180, 233, 255}
	Purple = color.RGBA{204, 121, 167, 255}
	Grey   = color.RGBA{110, 120, 130, 255}
)

// Colours has the colours above, in the order in which curves get them.
var Colours = []color.RGBA{Black, Red, Blue, Green, Purple, Orange, Sky, Grey}

// Line is one curve. The legend shows its name, unless the name is empty.
type Line struct {
	Name   string
	Colour color.RGBA
	Points plotter.XYs
	Plain  bool // without a dot at each point
	Dashed bool
}

// Lines draws curves into one panel.
func Lines(title, x, y string, lines []Line) (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text = title
	p.X.Label.Text, p.Y.Label.Text = x, y
	p.Add(plotter.NewGrid())
	p.Legend.Top = true
	p.Legend.Padding = vg.Points(2)
	p.Legend.XOffs = -vg.Points(6)
	for _, l := range lines {
		curve, dots, err := plotter.NewLinePoints(l.Points)
		if err != nil {
			return nil, err
		}
		curve.Color, curve.Width = l.Colour, vg.Points(1.5)
		dots.Color, dots.Radius = l.Colour, vg.Points(2)
		if l.Dashed {
			curve.Dashes = []vg.Length{vg.Points(5), vg.Points(3)}
		}
		shown := []plot.Thumbnailer{curve, dots}
		p.Add(curve)
		if l.Plain {
			shown = shown[:1]
		} else {
			p.Add(dots)
		}
		if l.Name != "" {
			p.Legend.Add(l.Name, shown...)
		}
	}
	return p, nil
}

// Deviate makes an axis show error rates on the scale of normal deviates, as in detection error
// trade-off curves (Martin et al. 1997). Rates below least or above most are drawn at the edge.
func Deviate(a *plot.Axis, least, most float64) {
	a.Min, a.Max = least, most
	a.Scale = deviates{}
	var ticks []plot.Tick
	for _, t := range []float64{1e-6, 1e-5, 1e-4, .001, .01, .05, .2, .5, .8, .95, .99, .999} {
		if t >= least && t <= most {
			ticks = append(ticks, plot.Tick{Value: t,
				Label: strconv.FormatFloat(100*t, 'g', -1, 64) + "%"})
		}
	}
	a.Tick.Marker = plot.ConstantTicks(ticks)
}

// deviates is the scale of normal deviates.
type deviates struct{}

func (deviates) Normalize(min, max, x float64) float64 {
	probit := func(x float64) float64 {
		return distuv.UnitNormal.Quantile(math.Min(math.Max(x, 1e-12), 1-1e-12))
	}
	low, high := probit(min), probit(max)
	return (probit(math.Min(math.Max(x, min), max)) - low) / (high - low)
}

// PNG writes panels in rows, each with the given width and height.
func PNG(w io.Writer, width, height vg.Length, panels [][]*plot.Plot) error {
	total := size(width, height, panels)
	img := vgimg.NewWith(vgimg.UseWH(total.X, total.Y), vgimg.UseDPI(120),
		vgimg.UseBackgroundColor(color.White))
	lay(draw.New(img), panels)
	_, err := (vgimg.PngCanvas{Canvas: img}).WriteTo(w)
	return err
}

// SVG writes panels in rows, each with the given width and height.
func SVG(w io.Writer, width, height vg.Length, panels [][]*plot.Plot) error {
	total := size(width, height, panels)
	img := vgsvg.NewWith(vgsvg.UseWH(total.X, total.Y), vgsvg.EmbedFonts(true))
	lay(draw.New(img), panels)
	_, err := img.WriteTo(w)
	return err
}

func size(width, height vg.Length, panels [][]*plot.Plot) vg.Point {
	return vg.Point{X: vg.Length(len(panels[0])) * width, Y: vg.Length(len(panels)) * height}
}

// lay draws panels in rows.
func lay(c draw.Canvas, panels [][]*plot.Plot) {
	tiles := draw.Tiles{
		Rows: len(panels), Cols: len(panels[0]), PadX: vg.Points(20), PadY: vg.Points(20),
		PadTop: vg.Points(6), PadBottom: vg.Points(6), PadLeft: vg.Points(6),
		PadRight: vg.Points(24),
	}
	canvases := plot.Align(panels, tiles, c)
	for r := range panels {
		for i, p := range panels[r] {
			p.Draw(canvases[r][i])
		}
	}
}
