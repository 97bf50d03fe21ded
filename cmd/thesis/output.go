package main

import (
	"encoding/csv"
	"image/color"
	"os"
	"path/filepath"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

// Colours that people with any kind of colour vision can tell apart (Okabe and Ito).
var (
	black = color.RGBA{0, 0, 0, 255}
	blue  = color.RGBA{0, 114, 178, 255}
	green = color.RGBA{0, 158, 115, 255}
	red   = color.RGBA{213, 94, 0, 255}
)

// table writes a CSV file below --out.
func (o *options) table(name string, header []string, rows [][]string) error {
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(o.out, name))
	if err != nil {
		return err
	}
	defer f.Close()
	w := csv.NewWriter(f)
	if err := w.Write(header); err != nil {
		return err
	}
	if err := w.WriteAll(rows); err != nil {
		return err
	}
	return f.Close()
}

// picture writes a PNG file below --out with panels in rows, each of that size.
func (o *options) picture(name string, width, height vg.Length, panels [][]*plot.Plot) error {
	rows, cols := len(panels), len(panels[0])
	img := vgimg.NewWith(vgimg.UseWH(vg.Length(cols)*width, vg.Length(rows)*height), vgimg.UseDPI(96), vgimg.UseBackgroundColor(color.White))
	tiles := draw.Tiles{
		Rows: rows, Cols: cols, PadX: vg.Points(20), PadY: vg.Points(20),
		PadTop: vg.Points(6), PadBottom: vg.Points(6), PadLeft: vg.Points(6), PadRight: vg.Points(24),
	}
	canvases := plot.Align(panels, tiles, draw.New(img))
	for r := range panels {
		for c, p := range panels[r] {
			p.Draw(canvases[r][c])
		}
	}
	f, err := os.Create(filepath.Join(o.out, name))
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := (vgimg.PngCanvas{Canvas: img}).WriteTo(f); err != nil {
		return err
	}
	return f.Close()
}
