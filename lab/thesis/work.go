// SPDX-License-Identifier: Apache-2.0

package thesis

import (
	"context"
	"math"
	"runtime"
	"slices"
	"time"

	"github.com/faceauth/faceauth/lab/figure"
	"golang.org/x/sync/errgroup"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// each does all jobs, as many at once as there are cores, and returns the first error.
func each[T any](jobs []T, do func(T) error) error {
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for _, j := range jobs {
		g.Go(func() error { return do(j) })
	}
	return g.Wait()
}

// upTo returns the numbers from 0 to below n.
func upTo(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// clock measures times as multiples of the first one.
type clock struct {
	unit   float64
	names  []string
	curves map[string]plotter.XYs
}

// measure returns the best time of three, because other programs share the machine. If a run takes
// longer than ten seconds, it is the last. The time becomes a point of the picture, over n.
func (c *clock) measure(ctx context.Context, name string, n int, do func() error) (float64, error) {
	best := math.Inf(1)
	for range 3 {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		start := time.Now()
		if err := do(); err != nil {
			return 0, err
		}
		if best = min(best, time.Since(start).Seconds()); best > 10 {
			break
		}
	}
	if c.unit == 0 {
		c.unit, c.curves = best, make(map[string]plotter.XYs)
	}
	if !slices.Contains(c.names, name) {
		c.names = append(c.names, name)
	}
	c.curves[name] = append(c.curves[name], plotter.XY{X: float64(n), Y: best / c.unit})
	return best / c.unit, nil
}

// draw writes the picture of all that was measured, on logarithmic scales.
func (c *clock) draw(o *options, name, title, x, y string) error {
	var lines []figure.Line
	for q, name := range c.names {
		lines = append(lines,
			figure.Line{Name: name, Colour: figure.Colours[q%len(figure.Colours)],
				Points: c.curves[name]})
	}
	p, err := figure.Lines(title, x, y, lines)
	if err != nil {
		return err
	}
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.X.Tick.Marker, p.Y.Tick.Marker = plot.LogTicks{Prec: -1}, plot.LogTicks{Prec: -1}
	p.Legend.Left = true
	return o.picture(name, 6*vg.Inch, 4.5*vg.Inch, [][]*plot.Plot{{p}})
}
