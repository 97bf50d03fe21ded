// SPDX-License-Identifier: Apache-2.0

package thesis

import (
	"context"
	"fmt"
	"math"
	"os"
	"strconv"
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

func newSensitivity(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "sensitivity",
		Short: "recall and false accepts with one setting changed at a time, in both feature spaces",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return o.sensitivity(c.Context())
		},
	}
}

// variation is one setting with its values. A value of the setting order is an index of inOrders.
type variation struct {
	name   string
	values []float64
	set    func(x float64, s *online.Settings, p *evaluate.Protocol)
	log    bool // drawn over a logarithmic axis
}

var inOrders = []evaluate.Order{evaluate.Sequential, evaluate.Interleaved, evaluate.Mixed,
	evaluate.Shuffled}

// variations returns the variations around the settings of a space.
func variations(space face.Space) []variation {
	times := func(x float64, factors ...float64) (all []float64) {
		for _, f := range factors {
			all = append(all, math.Round(x*f*1e12)/1e12)
		}
		return all
	}
	return []variation{
		{"k", []float64{25, 50, 100, 200, 300, 500, 1000},
			func(x float64, s *online.Settings, _ *evaluate.Protocol) { s.K = int(x) }, true},
		{"sigma", times(space.Sigma, .6, .8, .9, 1, 1.1, 1.2, 1.5),
			func(x float64, s *online.Settings, _ *evaluate.Protocol) { s.Sigma = x }, false},
		{"gamma", times(space.Gamma, .01, .1, 1, 10, 100),
			func(x float64, s *online.Settings, _ *evaluate.Protocol) { s.Gamma = x }, true},
		{"labelled faces", []float64{1, 2, 4, 8},
			func(x float64, _ *online.Settings, p *evaluate.Protocol) { p.Enroll = int(x) }, true},
		{"stride", []float64{1, 2, 5, 8, 10, 12, 15},
			func(x float64, _ *online.Settings, p *evaluate.Protocol) { p.Stride = int(x) }, false},
		{"order", []float64{0, 1, 2, 3},
			func(x float64, _ *online.Settings,
				p *evaluate.Protocol) {
				p.Order = inOrders[int(x)]
			}, false},
	}
}

// sample is one value of one variation.
type sample struct {
	of       variation
	x        float64
	outcomes evaluate.Summary
}

func (o *options) sensitivity(ctx context.Context) error {
	var rows [][]string
	err := o.inEachSpace(ctx, heads(), func(space face.Space, ids []evaluate.Identity) error {
		var samples []*sample
		for _, v := range variations(space) {
			for _, x := range v.values {
				samples = append(samples, &sample{of: v, x: x})
			}
		}
		if err := each(samples, func(m *sample) error {
			var set online.Settings
			p := evaluate.Protocol{Enroll: 4, Order: evaluate.Sequential, Stride: 1, Seed: 1}
			m.of.set(m.x, &set, &p)
			sum, err := evaluate.RunAll(ctx, ids, p, evaluate.Choices(namesOf(ids), 2),
				[]evaluate.Entry{evaluate.Learner(space, set), evaluate.Nearest(space)}, nil)
			m.outcomes = sum
			fmt.Fprintln(os.Stderr, space.ID, m.of.name, m.x)
			return err
		}); err != nil {
			return err
		}
		name, _, _ := strings.Cut(space.ID, ":")
		for _, m := range samples {
			value := strconv.FormatFloat(m.x, 'g', -1, 64)
			if m.of.name == "order" {
				value = string(inOrders[int(m.x)])
			}
			l, n := m.outcomes.Methods[0], m.outcomes.Methods[1]
			rows = append(rows, []string{
				name, m.of.name, value, figureOf(l.Recall, math.Floor), figureOf(l.FAR, math.Ceil),
				figureOf(m.outcomes.Worst[0].FAR, math.Ceil), figureOf(n.Recall, math.Floor),
			})
		}
		return o.drawSensitivity("sensitivity-"+name+".png", samples)
	})
	if err != nil {
		return err
	}
	return o.table("sensitivity.csv",
		[]string{"features", "setting", "value", "recall", "far_mean", "far_worst",
			"nearest_recall"}, rows)
}

// figureOf writes a rate with four places and this rounding function.
func figureOf(r evaluate.Rate, round func(float64) float64) string {
	return fmt.Sprintf("%.4f", round(1e4*float64(r))/1e4)
}

// drawSensitivity draws a panel for each setting.
func (o *options) drawSensitivity(name string, samples []*sample) error {
	var panels []*plot.Plot
	for i := 0; i < len(samples); {
		v := samples[i].of
		var recall, far, nearest plotter.XYs
		var ticks []plot.Tick
		labelled := math.Inf(-1)
		for ; i < len(samples) && samples[i].of.name == v.name; i++ {
			m := samples[i]
			recall = append(recall, plotter.XY{X: m.x, Y: float64(m.outcomes.Methods[0].Recall)})
			far = append(far, plotter.XY{X: m.x, Y: float64(m.outcomes.Methods[0].FAR)})
			nearest = append(nearest, plotter.XY{X: m.x, Y: float64(m.outcomes.Methods[1].Recall)})
			label := strconv.FormatFloat(m.x, 'g', -1, 64)
			if v.name == "order" {
				label = string(inOrders[int(m.x)])
			}
			if span := v.values[len(v.values)-1] - v.values[0]; !v.log && m.x-labelled < .14*span {
				label = "" // no room
			} else {
				labelled = m.x
			}
			ticks = append(ticks, plot.Tick{Value: m.x, Label: label})
		}
		p, err := figure.Lines("", v.name, "share of faces", []figure.Line{
			{Name: "recall", Colour: figure.Black, Points: recall},
			{Name: "false accepts", Colour: figure.Red, Points: far},
			{Name: "recall, nearest face", Colour: figure.Sky, Points: nearest, Dashed: true},
		})
		if err != nil {
			return err
		}
		if v.log {
			p.X.Scale = plot.LogScale{}
		}
		p.X.Tick.Marker = plot.ConstantTicks(ticks)
		p.Y.Min, p.Y.Max = 0, 1.02
		// the legend stands where there is no curve
		if p.Legend.Top = recall[len(recall)-1].Y < .6; !p.Legend.Top {
			p.Legend.YOffs = vg.Points(14)
		}
		if len(panels) > 0 {
			p.Legend = plot.NewLegend()
		}
		panels = append(panels, p)
	}
	return o.picture(name, 3.6*vg.Inch, 2.6*vg.Inch, [][]*plot.Plot{panels[:3], panels[3:]})
}
