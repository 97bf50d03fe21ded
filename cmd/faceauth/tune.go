package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"

	"github.com/faceauth/faceauth/calibrate"
	"github.com/faceauth/faceauth/evaluate"
	"github.com/spf13/cobra"
)

func newTune() *cobra.Command {
	var o options
	t := calibrate.Options{Protocol: evaluate.Protocol{Order: evaluate.Sequential, Seed: 1}}
	var out string
	c := &cobra.Command{
		Use:   "tune DIR",
		Short: "choose sigma, gamma and the thresholds on labelled recordings",
		Long: "Tune divides the people of DIR into folds. It chooses settings on all folds but one and measures them\n" +
			"on that one, whose people the choice has never seen; each person in turn is the one user, and the others\n" +
			"are impostors. Then it chooses on everybody, and writes a file of settings that all commands read.\n" +
			"It says what false match rate the recordings show, and does not claim a better one.\n\n" + labelledRecordings,
		Example: "  faceauth tune recordings --fmr 1e-3\n  faceauth tune recordings --fmr 1e-2 --out my-settings.json",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if !(t.FMR > 0 && t.FMR < 1) {
				return fail(badUsage, fmt.Errorf("--fmr %g: give a rate between 0 and 1", t.FMR))
			}
			if t.Protocol.Enroll < 1 || t.Protocol.Stride < 1 || t.Folds < 2 {
				return fail(badUsage, errors.New("--enroll and --stride must be at least 1, and --folds at least 2"))
			}
			if out == "" {
				var err error
				if out, err = calibrate.DefaultPath(); err != nil {
					return fail(badUsage, err)
				}
			}
			return o.tune(c, args[0], t, out)
		},
	}
	o.visionFlags(c)
	c.Flags().Float64Var(&t.FMR, "fmr", 1e-3, "target: the largest share of impostors' faces that may be accepted")
	c.Flags().IntVar(&t.Folds, "folds", 5, "folds of people, at the most")
	c.Flags().IntVar(&t.Protocol.Enroll, "enroll", 4, "first usable faces of each user that are labelled")
	c.Flags().IntVar(&t.Protocol.Stride, "stride", 1, "use every Nth face")
	c.Flags().StringVar(&out, "out", "", "file of the settings (default: faceauth/settings.json below $XDG_CONFIG_HOME or ~/.config)")
	return c
}

func (o *options) tune(c *cobra.Command, dir string, t calibrate.Options, path string) error {
	v, err := o.open(nil, func(s string) { warn(c, s) })
	if err != nil {
		return err
	}
	defer v.Close()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil { // find out before the work, and not after
		return fmt.Errorf("writing settings: %w", err)
	}
	space := v.extractor.Space()
	ids, names, err := o.recordings(c, v, dir)
	if err != nil {
		return err
	}
	t.Grid = calibrate.Around(space)
	bar := newProgress(1, "choosing")
	t.Progress = func(done, of int) {
		if done == 1 {
			bar.end()
			bar = newProgress(of, "choosing")
		}
		bar.step()
	}
	r, err := calibrate.Run(c.Context(), ids, space, t)
	bar.end()
	switch {
	case errors.Is(err, calibrate.ErrTooFew):
		return fail(badSource, err)
	case errors.Is(err, calibrate.ErrMissed):
		return fail(noFace, fmt.Errorf("%w of %g on these recordings: every setting accepts more impostors, or nobody; nothing was written", err, t.FMR))
	case err != nil:
		return evalError(err)
	}
	if err := calibrate.NewFile(space, r).Write(path); err != nil {
		return err
	}
	if o.json {
		return json.NewEncoder(c.OutOrStdout()).Encode(struct {
			Settings string `json:"settings"`
			Features string `json:"features"`
			calibrate.Outcome
			Supported bool `json:"supported"`
		}{path, space.ID, r, r.Supported()})
	}
	printTuned(c.OutOrStdout(), r, len(names))
	fmt.Fprintf(c.OutOrStdout(), "settings: %s\n", path)
	return nil
}

func printTuned(w io.Writer, r calibrate.Outcome, people int) {
	fmt.Fprintf(w, "chosen without, and measured on, each of %d folds of %d people, one user at a time:\n", len(r.Folds), people)
	fmt.Fprintf(w, "  FNMR %s: %d of %d faces, at least one of %d of %d people (95 %% interval by person %s)\n",
		high(r.FNMR.Rate), r.FNMR.Errors, r.FNMR.Faces, r.FNMR.PeopleWrong, r.FNMR.People, span(r.FNMR.PeopleInterval))
	fmt.Fprintf(w, "  FMR  %s: %d of %d faces, at least one in %d of %d pairs of a user and an impostor (95 %% interval by pair %s)\n",
		high(r.FMR.Rate), r.FMR.Errors, r.FMR.Faces, r.Pairs.Accepted, r.Pairs.Total, span(evaluate.ClopperPearson(r.Pairs.Accepted, r.Pairs.Total)))
	if r.Supported() {
		fmt.Fprintf(w, "an FMR of %g is shown: with 95 %% confidence it is below %g for pairs of people like these\n", r.Target, atMost(r.FMRUpperBound))
	} else {
		fmt.Fprintf(w, "an FMR of %g is not shown: these recordings show, with 95 %% confidence, one below %g\n", r.Target, atMost(r.FMRUpperBound))
		if r.Pairs.Accepted == 0 {
			need := calibrate.PairsNeeded(r.Target)
			fmt.Fprintf(w, "  by the rule of three that takes %d pairs without a false match: recordings of %d people\n", need, calibrate.PeopleNeeded(need, len(r.Folds)))
		}
	}
	c := r.Choice
	fmt.Fprintf(w, "chosen on all %d: sigma %.4g, gamma %.4g, accept from %.4g, learn from %.4g (there: recall %s, FMR %s)\n",
		people, c.Sigma, c.Gamma, c.Accept, c.Learn, low(c.Recall), high(c.FMR))
	if c.Alike > 1 {
		fmt.Fprintf(w, "  %d settings do as well, to one face in a thousand; this one is nearest to the feature space's own\n", c.Alike)
	}
	for _, f := range r.Folds {
		if f.Choice.Sigma != c.Sigma || f.Choice.Gamma != c.Gamma || f.Choice.Learn != c.Learn {
			fmt.Fprintf(w, "  without %s: sigma %.4g, gamma %.4g, accept from %.4g, learn from %.4g\n", count(len(f.HeldOut), "person"), f.Choice.Sigma, f.Choice.Gamma, f.Choice.Accept, f.Choice.Learn)
		}
	}
}

// atMost rounds a bound up to two digits that count.
func atMost(x float64) float64 {
	unit := math.Pow(10, math.Floor(math.Log10(x))-1)
	up, err := strconv.ParseFloat(fmt.Sprintf("%.2g", math.Ceil(x/unit-1e-9)*unit), 64)
	if err != nil {
		return x
	}
	return up
}
