// SPDX-License-Identifier: Apache-2.0

package thesis

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/lab/evaluate"
	"github.com/faceauth/faceauth/lab/figure"
	"github.com/faceauth/faceauth/online"
	"github.com/spf13/cobra"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

func newDrift(o *options) *cobra.Command {
	return &cobra.Command{
		Use: "drift",
		Short: "what ageing gains where concepts drift, and what it costs where people come back (open question of " +
			"the " +
			"conclusions)",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return o.drift(c.Context()) },
	}
}

// halfLives are in observations; 0 means none.
var halfLives = []int{100, 250, 500, 1000, 2000, 4000, 8000, 0}

// phase is the number of observations in which one of two people goes to the other's former place.
const phase = 5000

func (o *options) drift(ctx context.Context) error {
	space, ids, names, err := o.embeddedHeads(ctx)
	if err != nil {
		return err
	}
	var rows [][]string
	var wrong, first, second plotter.XYs
	for _, h := range halfLives {
		if err := ctx.Err(); err != nil {
			return err
		}
		w, err := guests(h)
		if err != nil {
			return err
		}
		v, err := visits(space, h, ids, names)
		if err != nil {
			return err
		}
		x := float64(h)
		if h == 0 {
			x = 16000 // where the axis has the label "none"
		}
		wrong = append(wrong, plotter.XY{X: x, Y: w})
		first = append(first, plotter.XY{X: x, Y: v.recall[0]})
		second = append(second, plotter.XY{X: x, Y: v.recall[1]})
		rows = append(rows, []string{fmt.Sprint(h), fmt.Sprintf("%.4f", w), fmt.Sprintf("%.4f", v.recall[0]),
			fmt.Sprintf("%.4f", v.recall[1]), fmt.Sprintf("%.4f", v.far)})
	}
	header := []string{"half_life", "taken_for_the_other_under_drift", "recall_first_visit", "recall_second_visit",
		"far"}
	if err := o.table("drift.csv", header, rows); err != nil {
		return err
	}
	panel := func(title string, low, high float64, lines ...figure.Line) (*plot.Plot, error) {
		p, err := figure.Lines(title, "half-life, observations", "share of faces", lines)
		if err != nil {
			return nil, err
		}
		p.X.Scale = plot.LogScale{}
		p.X.Tick.Marker = plot.ConstantTicks{{Value: 100, Label: "100"}, {Value: 500, Label: "500"},
			{Value: 2000, Label: "2000"}, {Value: 8000, Label: "8000"}, {Value: 16000, Label: "none"}}
		p.Y.Min, p.Y.Max = low, high
		return p, nil
	}
	gain, err := panel("gain: two people go to one place by turns", 0, .15,
		figure.Line{Name: "taken for the other one", Colour: figure.Red, Points: wrong})
	if err != nil {
		return err
	}
	cost, err := panel("cost: vidtimit_rot, everybody comes back", .8, 1,
		figure.Line{Name: "recall, first visit", Colour: figure.Blue, Points: first},
		figure.Line{Name: "recall, second visit, in random order", Colour: figure.Green, Points: second})
	if err != nil {
		return err
	}
	cost.Legend.Top = false
	return o.picture("drift.png", 5*vg.Inch, 3.2*vg.Inch, [][]*plot.Plot{{gain, cost}})
}

// guests lets two people move in the plane, and returns the share of faces that get the other person's name. Each
// person moves to and fro near the labelled faces. In each phase one of them moves as far as the middle, where the
// other person was in the phase before. The first phase does not count, because there is nothing to unlearn in it.
func guests(halfLife int) (wrong float64, err error) {
	const phases, dim = 10, 4
	names := []string{"alice", "bob"}
	r := rand.New(rand.NewPCG(5, 5))
	at := func(person int, u float64) []float32 {
		x := make([]float32, dim)
		x[0] = float32(u)
		if person == 1 {
			x[0] = float32(4 - u)
		}
		for i := range x {
			x[i] += float32(.08 * r.NormFloat64())
		}
		return x
	}
	l, err := online.New(face.Space{ID: "plane", Dim: dim, Scale: 1, Sigma: .2, Gamma: 1e-3},
		online.Settings{K: 100, HalfLife: halfLife})
	if err != nil {
		return 0, err
	}
	for person, name := range names {
		for range 4 {
			if err := l.Label(at(person, 0), name); err != nil {
				return 0, err
			}
		}
	}
	n := 0
	for step := range phases * phase {
		person := r.IntN(2)
		far := .7
		if step/phase%2 == person {
			far = 2.2
		}
		v, err := l.Observe(at(person, far*(1-math.Cos(2*math.Pi*float64(step)/250))/2))
		if err != nil {
			return 0, err
		}
		if step < phase {
			continue
		}
		n++
		if v.Label != "" && v.Label != names[person] {
			wrong++
		}
	}
	return wrong / float64(n), nil
}

// visit has the results of a run in which everybody visits twice.
type visit struct {
	recall [2]float64
	far    float64
}

// visits enrols four of the six people with four faces each, for all choices of two strangers. Everybody passes twice,
// one after another: first in the recorded order, and then with each person's faces in random order, so that successive
// faces do not help.
func visits(space face.Space, halfLife int, ids []evaluate.Identity, names []string) (v visit, err error) {
	const enrol = 4
	var right, known [2]int
	accepted, strangers := 0, 0
	r := rand.New(rand.NewPCG(8, 8))
	for _, out := range evaluate.Choices(names, 2) {
		l, err := online.New(space, online.Settings{HalfLife: halfLife})
		if err != nil {
			return v, err
		}
		stranger := map[string]bool{out[0]: true, out[1]: true}
		for _, id := range ids {
			for _, f := range id.Faces[:enrol] {
				if stranger[id.Name] {
					break
				}
				if err := l.Label(f.Vector, id.Name); err != nil {
					return v, err
				}
			}
		}
		for round := range 2 {
			for _, id := range ids {
				faces := slices.Clone(id.Faces[enrol:])
				if round == 1 {
					r.Shuffle(len(faces), func(i, j int) { faces[i], faces[j] = faces[j], faces[i] })
				}
				for _, f := range faces {
					got, err := l.ObserveFrame([]online.Observation{{Vector: f.Vector, Hold: f.Hold}})
					if err != nil {
						return v, err
					}
					if stranger[id.Name] {
						strangers++
						if got[0].Label != "" {
							accepted++
						}
						continue
					}
					known[round]++
					if got[0].Label == id.Name {
						right[round]++
					}
				}
			}
		}
	}
	for round := range 2 {
		v.recall[round] = float64(right[round]) / float64(known[round])
	}
	v.far = float64(accepted) / float64(strangers)
	return v, nil
}
