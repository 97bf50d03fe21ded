// SPDX-License-Identifier: Apache-2.0

package figure_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"image/png"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/lab/figure"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// The axis goes from -2 to 2 standard deviations (.0228 to .9772). A half lies in the middle, -1
// (.1587) at a quarter and 1 (.8413) at three quarters. Rates beyond the ends lie at the ends.
func TestDeviate(t *testing.T) {
	p := plot.New()
	figure.Deviate(&p.X, .0228, .9772)
	for _, c := range []struct{ x, want float64 }{
		{.0228, 0}, {.9772, 1}, {.5, .5}, {0, 0}, {1, 1}, {1e-9, 0}, {.1587, .25}, {.8413, .75},
	} {
		if got := p.X.Norm(c.x); math.Abs(got-c.want) > 1e-3 {
			t.Errorf("%g lies at %g, want %g", c.x, got, c.want)
		}
	}
	var labels []string
	for _, tick := range p.X.Tick.Marker.Ticks(p.X.Min, p.X.Max) {
		labels = append(labels, tick.Label)
	}
	if got := strings.Join(labels, " "); got != "5% 20% 50% 80% 95%" {
		t.Errorf("ticks %s", got)
	}
}

func TestPNGAndSVG(t *testing.T) {
	var panels [][]*plot.Plot
	for range 2 {
		var row []*plot.Plot
		for range 3 {
			p, err := figure.Lines("title", "across", "up", []figure.Line{
				{Name: "one", Colour: figure.Black,
					Points: plotter.XYs{{X: 0, Y: 0}, {X: 1, Y: 2}}},
				{Name: "two", Colour: figure.Red, Points: plotter.XYs{{X: 0, Y: 1}, {X: 1, Y: 1}},
					Plain: true, Dashed: true},
			})
			if err != nil {
				t.Fatal(err)
			}
			row = append(row, p)
		}
		panels = append(panels, row)
	}
	var b bytes.Buffer
	fixture.Check(t, figure.PNG(&b, 3*vg.Inch, 2*vg.Inch, panels))
	img, err := png.Decode(&b)
	if err != nil {
		t.Fatal(err)
	}
	if s := img.Bounds().Size(); s.X*4 != s.Y*9 { // 3 by 2 panels, each with sides of 3 to 2
		t.Errorf("the picture has %v pixels", s)
	}
	b.Reset()
	fixture.Check(t, figure.SVG(&b, 3*vg.Inch, 2*vg.Inch, panels))
	if n := strings.Count(b.String(), ">two<"); n != 6 {
		t.Errorf("%d legends name the second line, want 6", n)
	}
	for d := xml.NewDecoder(&b); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := figure.Lines("", "", "",
		[]figure.Line{{Points: plotter.XYs{{X: math.NaN(), Y: 1}}}}); err == nil {
		t.Error("a line with a point that is not a number gave no error")
	}
}
