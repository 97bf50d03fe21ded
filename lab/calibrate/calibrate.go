// SPDX-License-Identifier: Apache-2.0

// Package calibrate chooses a learner's settings on labelled recordings, says how far the choice
// can be relied on, and keeps it in a file.
//
// [Run] chooses the settings, and other programs read them from a [File].
//
// # Method
//
// Identity-wise cross-validation: the people are divided into folds. For each fold, settings are
// chosen on the other people and measured on the people of the fold, who had no part in the choice.
// Each person in turn is the only enrolled user, and the others are impostors. The final settings
// are then chosen on everybody.
//
// A choice is the setting with the largest recall at a false match rate of at most the target, with
// the least accept threshold that gives this rate. If several settings have the same result, to one
// face in a thousand, the setting nearest to the feature space's own settings wins.
//
// Settings are chosen by the same rates that are reported: shares of the attempts of all users
// together.
//
// # Caveats
//
// Faces of one person are not independent trials. The evidence for a false match rate is counted in
// pairs of a user and an impostor, and by the rule of three: of n pairs without a false match the
// rate is below 3/n with 95 % confidence (Hanley and Lippman-Hand 1983). The rule treats pairs as
// independent, but pairs share people, so it promises too much if one impostor or one user is like
// many others. [Outcome].PeopleUpperBound treats only people as independent.
package calibrate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/lab/evaluate"
	"github.com/faceauth/faceauth/online"
	"golang.org/x/sync/errgroup"
	"gonum.org/v1/gonum/stat/distuv"
)

// Errors of [Run]. The errors of [evaluate.Run] pass through.
var (
	ErrTarget  = errors.New("unusable target")
	ErrTooFew  = errors.New("too few people")
	ErrNoValue = errors.New("a grid without a value")
	ErrMissed  = errors.New("no setting reaches the target")
)

// Grid lists the values that are tried, in all combinations.
type Grid struct{ Sigma, Gamma, Learn []float64 }

// Around returns the grid around the space's own settings: five kernel widths, three regularisers
// and three thresholds for learning.
func Around(space face.Space) Grid {
	var g Grid
	for _, f := range []float64{.7, .85, 1, 1.2, 1.5} {
		g.Sigma = append(g.Sigma, f*space.Sigma)
	}
	for _, f := range []float64{.1, 1, 10} {
		g.Gamma = append(g.Gamma, f*space.Gamma)
	}
	g.Learn = []float64{0, .5, .9}
	return g
}

// Options of a calibration.
type Options struct {
	FMR      float64 // target: the largest share of impostors' faces that may be accepted, in (0,1)
	Folds    int     // most folds; each has at least two people
	Grid     Grid
	Base     online.Settings   // settings that are not chosen
	Protocol evaluate.Protocol // Strangers is ignored
	// called after each setting of each fold; nil means no progress reports
	Progress func(done, of int)
}

// Choice is a set of settings and its result on the people with whom it was chosen.
type Choice struct {
	Sigma  float64       `json:"sigma"`
	Gamma  float64       `json:"gamma"`
	Accept float64       `json:"accept"`
	Learn  float64       `json:"learn"`
	Recall evaluate.Rate `json:"recall"`
	FMR    evaluate.Rate `json:"fmr"`
	// Alike counts the settings of the grid that reach the target with the same recall, to one face
	// in a thousand.
	Alike int `json:"alike"`
}

// Apply returns s with the chosen settings.
func (c Choice) Apply(s online.Settings) online.Settings {
	s.Sigma, s.Gamma, s.Accept, s.Learn = c.Sigma, c.Gamma, c.Accept, c.Learn
	return s
}

// Fold is a part of the people, and the settings chosen without them.
type Fold struct {
	HeldOut []string `json:"held_out"`
	Choice  Choice   `json:"choice"`
}

// Outcome of a calibration.
type Outcome struct {
	Choice Choice             `json:"choice"` // chosen on everybody
	People int                `json:"people"`
	Folds  []Fold             `json:"folds"`
	FMR    evaluate.ErrorRate `json:"fmr"` // on the held-out people
	FNMR   evaluate.ErrorRate `json:"fnmr"`
	// Pairs counts the pairs of a user and an impostor in the held-out people.
	Pairs  evaluate.Pairs `json:"pairs"`
	Target float64        `json:"target"`
	// FMRUpperBound is the upper bound of the false match rate of pairs, with 95 % confidence: 3/n,
	// by the rule of three, if no pair matched. It treats pairs as independent, but pairs that
	// share a person are not.
	FMRUpperBound float64 `json:"shown"`
	// PeopleUpperBound is the upper bound of the share of people who are accepted as any user.
	PeopleUpperBound float64 `json:"shown_by_person"`
}

// Supported reports whether the recordings show that the target is met, if pairs are treated as
// independent.
func (o Outcome) Supported() bool { return o.FMRUpperBound <= o.Target }

// useless is the share of missed faces from which on settings are of no use.
const useless = .5

// Useful reports whether users are recognised in more faces than they are missed in.
func (o Outcome) Useful() bool { return float64(o.FNMR.Rate) < useless }

// PairsNeeded returns the number of pairs without a false match that shows this false match rate.
func PairsNeeded(fmr float64) int { return int(math.Ceil(3 / fmr)) }

// PeopleNeeded returns the number of people that give this number of pairs in this number of folds.
func PeopleNeeded(pairs, folds int) int {
	// n people in f folds of n/f give n(n/f - 1) pairs, and a few more if n/f is not a whole
	// number.
	f := float64(folds)
	return int(math.Ceil(f/2 + math.Sqrt(f*f/4+f*float64(pairs))))
}

// shown returns the upper end of the one-sided 95 % interval of a share; for a share of 0 it uses
// the rule of three.
func shown(n, total int) float64 {
	switch {
	case n == total:
		return 1
	case n == 0:
		return min(1, 3/float64(total))
	}
	return distuv.Beta{Alpha: float64(n + 1), Beta: float64(total - n)}.Quantile(.95)
}

// Run calibrates a learner for a space on the faces of labelled people.
//
// The error wraps [ErrTarget], [ErrTooFew] for fewer than four people, [ErrNoValue], [ErrMissed] if
// every setting accepts too many impostors or nobody at all, [online.ErrSettings] for an impossible
// value, or comes from [evaluate.Run].
func Run(ctx context.Context, ids []evaluate.Identity, space face.Space,
	o Options) (Outcome, error) {
	out := Outcome{People: len(ids), Target: o.FMR}
	switch {
	case !(o.FMR > 0 && o.FMR < 1):
		return out, fmt.Errorf("%w: a false match rate of %g; give one between 0 and 1", ErrTarget,
			o.FMR)
	case len(ids) < 4:
		return out, fmt.Errorf(
			"%w: there are %d, and it takes four: two to choose on, and two to measure", ErrTooFew,
			len(ids))
	case len(o.Grid.Sigma) == 0 || len(o.Grid.Gamma) == 0 || len(o.Grid.Learn) == 0:
		return out, ErrNoValue
	}
	folds := max(2, min(o.Folds, len(ids)/2))
	// The last part, which holds nobody out, is everybody.
	parts := make([][]evaluate.Identity, folds+1)
	held := make([][]evaluate.Identity, folds)
	for i, id := range ids {
		for f := range parts {
			if f == i%folds {
				held[f] = append(held[f], id)
			} else {
				parts[f] = append(parts[f], id)
			}
		}
	}
	cells, err := search(ctx, parts, space, o)
	if err != nil {
		return out, err
	}
	var measured []evaluate.Result
	for f := range parts {
		best, err := choose(cells[f], space)
		if err != nil {
			return out, err
		}
		if f == folds {
			out.Choice = best
			break
		}
		m, err := measure(ctx, held[f], space, best.Apply(o.Base), o.Protocol)
		if err != nil {
			return out, err
		}
		fold := Fold{Choice: best}
		for _, id := range held[f] {
			fold.HeldOut = append(fold.HeldOut, id.Name)
		}
		out.Folds = append(out.Folds, fold)
		measured = append(measured, m)
	}
	all := evaluate.Pool("held out", measured)
	out.FMR, out.FNMR, out.Pairs = *all.FMR, *all.FNMR, all.Pairs
	out.FMRUpperBound = shown(out.Pairs.Accepted, out.Pairs.Total)
	out.PeopleUpperBound = shown(out.FMR.PeopleWrong, out.FMR.People)
	return out, nil
}

// search measures every setting of the grid on every part of the people.
func search(ctx context.Context, parts [][]evaluate.Identity, space face.Space,
	o Options) ([][]Choice, error) {
	type job struct {
		part, cell int
		choice     Choice
	}
	var jobs []job
	cells := make([][]Choice, len(parts))
	for p := range parts {
		n := 0
		for _, sigma := range o.Grid.Sigma {
			for _, gamma := range o.Grid.Gamma {
				for _, learn := range o.Grid.Learn {
					choice := Choice{Sigma: sigma, Gamma: gamma, Learn: learn}
					jobs = append(jobs, job{p, n, choice})
					n++
				}
			}
		}
		cells[p] = make([]Choice, n)
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	var mu sync.Mutex // of done
	done := 0
	for _, j := range jobs {
		g.Go(func() error {
			c := j.choice
			r, err := measure(ctx, parts[j.part], space, c.Apply(o.Base), o.Protocol)
			if err != nil {
				return err
			}
			threshold, at := r.ThresholdAt(o.FMR)
			c.Accept, c.Recall, c.FMR = threshold, at.Recall, at.FAR
			cells[j.part][j.cell] = c
			mu.Lock()
			defer mu.Unlock()
			done++
			if o.Progress != nil {
				o.Progress(done, len(jobs))
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return cells, nil
}

// measure enrols each person in turn against all others, with every accept threshold.
func measure(ctx context.Context, ids []evaluate.Identity, space face.Space, s online.Settings,
	p evaluate.Protocol) (evaluate.Result, error) {
	var names []string
	for _, id := range ids {
		names = append(names, id.Name)
	}
	sum, err := evaluate.RunAll(ctx, ids, p, evaluate.OneUser(names, names),
		[]evaluate.Entry{evaluate.Learner(space, s)}, nil)
	if err != nil {
		return evaluate.Result{}, err
	}
	return sum.Methods[0], nil
}

// choose returns the best of the settings.
func choose(cells []Choice, space face.Space) (Choice, error) {
	best := slices.MaxFunc(cells, func(a, b Choice) int { return cmp.Compare(a.Recall, b.Recall) })
	if !(best.Recall > 0) {
		return best, ErrMissed
	}
	// far is the distance of a setting from the space's own settings.
	far := func(c Choice) float64 {
		return math.Abs(math.Log(c.Sigma/space.Sigma)) +
			math.Abs(math.Log(c.Gamma/space.Gamma))/math.Ln10 + c.Learn
	}
	const alike = .001
	near := slices.DeleteFunc(slices.Clone(cells), func(c Choice) bool {
		return c.Recall < best.Recall-alike
	})
	best = slices.MinFunc(near, func(a, b Choice) int { return cmp.Compare(far(a), far(b)) })
	best.Alike = len(near)
	return best, nil
}
