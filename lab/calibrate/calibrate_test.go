// SPDX-License-Identifier: Apache-2.0

package calibrate_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/lab/calibrate"
	"github.com/faceauth/faceauth/lab/evaluate"
	"github.com/faceauth/faceauth/online"
)

var plane = face.Space{ID: "plane", Dim: 2, Scale: 1, Sigma: .2, Gamma: 1e-3}

// people returns n people on a circle of a given radius. Each person moves along a part of the
// circle of a given length.
func people(n int, radius, stretch float64) (ids []evaluate.Identity) {
	r := rand.New(rand.NewPCG(1, 2))
	for i := range n {
		id := evaluate.Identity{Name: fmt.Sprintf("p%02d", i)}
		for f := range 60 {
			angle := 2*math.Pi*float64(i)/float64(n) + stretch/radius*float64(f)/60
			id.Faces = append(id.Faces, evaluate.Face{Usable: true, Vector: []float32{
				float32(radius*math.Cos(angle) + .01*r.NormFloat64()),
				float32(radius*math.Sin(angle) + .01*r.NormFloat64()),
			}})
		}
		ids = append(ids, id)
	}
	return ids
}

func options(fmr float64) calibrate.Options {
	return calibrate.Options{
		FMR: fmr, Folds: 3, Grid: calibrate.Around(plane), Base: online.Settings{K: 40},
		Protocol: evaluate.Protocol{Enroll: 2, Order: evaluate.Sequential, Stride: 1},
	}
}

func TestRun(t *testing.T) {
	ids := people(9, 8, 3)
	last, of := 0, 0
	o := options(.01)
	o.Progress = func(done, all int) { last, of = done, all }
	out := fixture.Must(calibrate.Run(context.Background(), ids, plane, o))(t)
	// the grid, on three folds and on all people
	if want := 5 * 3 * 3 * 4; last != want || of != want {
		t.Errorf("progress ended at %d of %d, want %d", last, of, want)
	}
	// Neighbours are at least 2.5 apart: the space's own settings follow every person and let no
	// stranger in.
	if out.Choice.Sigma != .2 || out.Choice.Gamma != 1e-3 || out.Choice.Learn != 0 ||
		out.Choice.Accept != 0 ||
		out.Choice.Recall != 1 {
		t.Errorf("choice %+v", out.Choice)
	}
	if out.FMR.Errors != 0 || out.FMR.Faces != 9*2*60 || out.FNMR.Errors != 0 ||
		out.FNMR.Faces != 9*58 ||
		out.FNMR.People != 9 {
		t.Errorf("held out: FMR %+v, FNMR %+v", out.FMR, out.FNMR)
	}
	// Three folds of three people, six pairs each.
	if out.Pairs != (evaluate.Pairs{Total: 18}) || out.FMRUpperBound != 3./18 || out.Supported() {
		t.Errorf("pairs %+v show %g", out.Pairs, out.FMRUpperBound)
	}
	if out.PeopleUpperBound != 3./9 || !out.Useful() {
		t.Errorf("nine people show %g; useful: %t", out.PeopleUpperBound, out.Useful())
	}
	held := make(map[string]int)
	for _, f := range out.Folds {
		for _, name := range f.HeldOut {
			held[name]++
		}
	}
	if len(out.Folds) != 3 || len(held) != 9 {
		t.Errorf("folds %+v", out.Folds)
	}
}

// If people come too near for the widest kernel, Run chooses settings that keep them apart. If no
// settings do, it chooses an accept threshold that meets the target, or returns ErrMissed.
func TestRunChooses(t *testing.T) {
	// neighbours are 1 apart, and edges reach .86 at the space's own settings
	ids := people(8, 1.5, .2)
	o := options(.01)
	o.Grid = calibrate.Grid{Sigma: []float64{.1, .4}, Gamma: []float64{1e-3}, Learn: []float64{0}}
	out, err := calibrate.Run(context.Background(), ids, plane, o)
	if err != nil {
		t.Fatal(err)
	}
	if out.Choice.Sigma != .1 || out.FMR.Errors != 0 || out.Choice.Recall != 1 {
		t.Errorf("choice %+v, FMR %+v", out.Choice, out.FMR)
	}
	o.Grid.Sigma = []float64{2}
	if out, err := calibrate.Run(context.Background(), ids, plane, o); err == nil &&
		!(out.Choice.Accept > 0 && float64(out.Choice.FMR) <= o.FMR) {
		t.Errorf("a kernel that joins everybody: choice %+v", out.Choice)
	} else if err != nil && !errors.Is(err, calibrate.ErrMissed) {
		t.Error(err)
	}
}

// The rates that decide the choice are the rates that an evaluation reports for these settings,
// also if impostors get in.
func TestChosenByWhatIsReported(t *testing.T) {
	ids := people(8, 1.5, .2)
	o := options(.2)
	o.Grid = calibrate.Grid{Sigma: []float64{.45}, Gamma: []float64{1e-3}, Learn: []float64{.9}}
	out := fixture.Must(calibrate.Run(context.Background(), ids, plane, o))(t)
	var names []string
	for _, id := range ids {
		names = append(names, id.Name)
	}
	sum := fixture.Must(evaluate.RunAll(context.Background(), ids, o.Protocol,
		evaluate.OneUser(names, names),
		[]evaluate.Entry{evaluate.Learner(plane, out.Choice.Apply(o.Base))}, nil))(t)
	m := sum.Methods[0]
	if m.FMR.Errors == 0 || m.FMR.Rate != out.Choice.FMR ||
		math.Abs(float64(1-m.FNMR.Rate-out.Choice.Recall)) > 1e-12 || float64(m.FMR.Rate) > o.FMR {
		t.Errorf("chosen with FMR %g and recall %g; reported FMR %+v, FNMR %+v", out.Choice.FMR,
			out.Choice.Recall, m.FMR, m.FNMR)
	}
}

// An outcome is not useful if at least half of the users' faces are missed.
func TestUseful(t *testing.T) {
	for _, c := range []struct {
		fnmr   float64
		useful bool
	}{{0, true}, {.49, true}, {.5, false}, {.68, false}, {math.NaN(), false}} {
		if o := (calibrate.Outcome{FNMR: evaluate.ErrorRate{Rate: evaluate.Rate(c.fnmr)}}); o.Useful() != c.useful {
			t.Errorf("FNMR %g: useful %t", c.fnmr, o.Useful())
		}
	}
}

func TestRunErrors(t *testing.T) {
	ids := people(4, 8, 1)
	for name, c := range map[string]struct {
		change func(*calibrate.Options)
		ids    []evaluate.Identity
		err    error
	}{
		"a target of 0": {func(o *calibrate.Options) { o.FMR = 0 }, ids, calibrate.ErrTarget},
		"a target of 1": {func(o *calibrate.Options) { o.FMR = 1 }, ids, calibrate.ErrTarget},
		"no target": {func(o *calibrate.Options) { o.FMR = math.NaN() }, ids,
			calibrate.ErrTarget},
		"three people": {func(*calibrate.Options) {}, ids[:3], calibrate.ErrTooFew},
		"no sigma": {func(o *calibrate.Options) { o.Grid.Sigma = nil }, ids,
			calibrate.ErrNoValue},
		"a negative sigma": {func(o *calibrate.Options) { o.Grid.Sigma = []float64{-1} }, ids,
			online.ErrSettings},
		"edges too short for anybody": {func(o *calibrate.Options) {
			o.Grid.Sigma = []float64{1e-9}
		}, ids,
			calibrate.ErrMissed},
		"too many to enrol": {func(o *calibrate.Options) { o.Protocol.Enroll = 99 }, ids,
			evaluate.ErrTooFew},
	} {
		o := options(.01)
		c.change(&o)
		if _, err := calibrate.Run(context.Background(), c.ids, plane, o); !errors.Is(err, c.err) {
			t.Errorf("%s: %v, want %v", name, err, c.err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := calibrate.Run(ctx, ids, plane, options(.01)); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// By the rule of three, 3,000 pairs can prove a rate of 1e-3.
func TestPairsNeeded(t *testing.T) {
	if n := calibrate.PairsNeeded(1e-3); n != 3000 {
		t.Errorf("%d pairs are needed, want 3000", n)
	}
	for _, folds := range []int{2, 3, 5} {
		for _, pairs := range []int{18, 300, 3000} {
			n := calibrate.PeopleNeeded(pairs, folds)
			if have := pairsOf(n, folds); have < pairs {
				t.Errorf("%d people in %d folds give %d pairs, and %d are needed", n, folds, have,
					pairs)
			}
			if have := pairsOf(n-2, folds); have >= pairs {
				t.Errorf("already %d people in %d folds give %d pairs, and %d are needed", n-2,
					folds, have, pairs)
			}
		}
	}
}

// pairsOf counts the pairs of people within folds.
func pairsOf(n, folds int) (pairs int) {
	for f := range folds {
		m := (n - f + folds - 1) / folds
		pairs += m * (m - 1)
	}
	return pairs
}
