package main

import (
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// line is one curve with its name.
type line struct {
	name   string
	colour color.RGBA
	points plotter.XYs
}

// linePanel draws curves into one panel.
func linePanel(title, x, y string, lines []line) (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text = title
	p.X.Label.Text, p.Y.Label.Text = x, y
	p.Add(plotter.NewGrid())
	p.Legend.Top = true
	p.Legend.Padding = vg.Points(2)
	p.Legend.XOffs = -vg.Points(6)
	for _, l := range lines {
		curve, dots, err := plotter.NewLinePoints(l.points)
		if err != nil {
			return nil, err
		}
		curve.Color, curve.Width = l.colour, vg.Points(1.5)
		dots.Color, dots.Radius = l.colour, vg.Points(2)
		p.Add(curve, dots)
		if l.name != "" {
			p.Legend.Add(l.name, curve, dots)
		}
	}
	return p, nil
}
