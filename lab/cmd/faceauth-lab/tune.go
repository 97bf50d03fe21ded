// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/cli"
	"github.com/faceauth/faceauth/lab/calibrate"
	"github.com/faceauth/faceauth/lab/evaluate"
	"github.com/spf13/cobra"
)

func newTune() *cobra.Command {
	var o options
	t := calibrate.Options{Protocol: evaluate.Protocol{Order: evaluate.Sequential, Seed: 1}}
	c := &cobra.Command{
		Use:   "tune DIR",
		Short: "choose sigma, gamma and the thresholds on labelled recordings",
		Long: "Tune divides the people of DIR into folds. It chooses settings on all folds " +
			"except one, and\n" +
			"measures them on the people of that fold; each person in turn is the user, and the " +
			"others are\n" +
			"impostors. Then it chooses on all people, and prints the choice as flags of " +
			"faceauth and as lines\n" +
			"for office.yaml. It reports the false match rate that the recordings support. If " +
			"the description of\n" +
			"a network of your own has no sigma and gamma, tune measures them first, with the " +
			"radii.\n\n" +
			"If the recordings do not support the target, or if at least half of the users' " +
			"faces are missed,\n" +
			"tune says so and exits with 8.\n\n" + labelledRecordings,
		Example: "  faceauth-lab tune recordings --fmr 1e-3",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if !(t.FMR > 0 && t.FMR < 1) {
				return cli.Fail(cli.BadUsage, fmt.Errorf("--fmr %g: give a rate between 0 and 1",
					t.FMR))
			}
			if t.Protocol.Enroll < 1 || t.Protocol.Stride < 1 || t.Folds < 2 {
				return cli.Fail(cli.BadUsage,
					errors.New("--enroll and --stride must be at least 1, and --folds at least 2"))
			}
			o.Untuned = true
			return o.tune(c, args[0], t)
		},
	}
	o.VisionFlags(c)
	c.Flags().Float64Var(&t.FMR, "fmr", 1e-3,
		"target: the largest share of accepted impostors' faces")
	c.Flags().IntVar(&t.Folds, "folds", 5, "largest number of folds")
	c.Flags().IntVar(&t.Protocol.Enroll, "enroll", 4, enrollHelp)
	c.Flags().IntVar(&t.Protocol.Stride, "stride", 1, "use every Nth face")
	return c
}

// doubts are reasons against the use of chosen settings.
func doubts(r calibrate.Outcome) (all []string) {
	if !r.Supported() {
		all = append(all, fmt.Sprintf("an FMR of %g is not shown by these recordings", r.Target))
	}
	if !r.Useful() {
		all = append(all, fmt.Sprintf("users are missed by %.0f %% of their faces",
			100*float64(r.FNMR.Rate)))
	}
	return all
}

func (o *options) tune(c *cobra.Command, dir string, t calibrate.Options) error {
	v, err := look(&o.Options, c, false)
	if err != nil {
		return err
	}
	defer v.Close()
	space := v.Space
	ids, names, err := o.recordings(c, v, dir)
	if err != nil {
		return err
	}
	if space.Sigma == 0 {
		if space, err = measured(c, space, ids); err != nil {
			return err
		}
	}
	t.Grid = calibrate.Around(space)
	bar := cli.NewProgress(1, "choosing")
	t.Progress = func(done, of int) {
		if done == 1 {
			bar.Finish()
			bar = cli.NewProgress(of, "choosing")
		}
		bar.Add(1)
	}
	r, err := calibrate.Run(c.Context(), ids, space, t)
	bar.Finish()
	switch {
	case errors.Is(err, calibrate.ErrTooFew):
		return cli.Fail(cli.BadSource, err)
	case errors.Is(err, calibrate.ErrMissed):
		return cli.Fail(cli.NoFace, fmt.Errorf(
			"%w of %g on these recordings: every setting accepts more impostors, "+
				"or nobody", err, t.FMR))
	case err != nil:
		return evalError(err)
	}
	pairs := evaluate.ComparePairs(ids, space)
	doubts := strings.Join(doubts(r), ", and ")
	if o.JSON {
		if err := json.NewEncoder(c.OutOrStdout()).Encode(struct {
			Features string `json:"features"`
			calibrate.Outcome
			Supported bool               `json:"supported"`
			Useful    bool               `json:"useful"`
			Distances evaluate.PairRates `json:"distances"`
		}{space.ID, r, r.Supported(), r.Useful(), pairs}); err != nil {
			return err
		}
	} else {
		printTuned(c.OutOrStdout(), r, len(names))
		printPairs(c.OutOrStdout(), pairs)
		printChoice(c.OutOrStdout(), r.Choice)
	}
	if doubts != "" {
		return cli.Fail(cli.Unsupported, errors.New(doubts+"; give more recordings"))
	}
	return nil
}

// measured returns the space of an embedding with settings that follow from labelled faces, and
// prints them as fields of its description.
func measured(c *cobra.Command, space face.Space, ids []evaluate.Identity) (face.Space, error) {
	people := map[string][][]float32{}
	for _, id := range ids {
		for _, f := range id.Faces {
			if f.Usable {
				people[id.Name] = append(people[id.Name], f.Vector)
			}
		}
	}
	m, err := face.Measure(space.ID, people)
	if err != nil {
		return space, cli.Fail(cli.BadSource, err)
	}
	space.Sigma, space.Gamma, space.Reach = m.Sigma, m.Gamma, m.Reach
	space.ImpostorRadius, space.GenuineRadius = m.ImpostorRadius, m.GenuineRadius
	cli.Note(c, fmt.Sprintf(
		`measured, for the description of this network: "sigma": %.4g, "gamma": %.4g, "reach": %.4g, `+
			`"impostor_radius": %.4g, "genuine_radius": %.4g`, m.Sigma, m.Gamma, m.Reach,
		m.ImpostorRadius, m.GenuineRadius))
	if w := m.Warning(); w != "" {
		cli.Warn(c, w)
	}
	return space, nil
}

// printChoice prints settings as flags, and as lines of a configuration.
func printChoice(w io.Writer, c calibrate.Choice) {
	flags := []struct {
		name  string
		value float64
	}{{"sigma", c.Sigma}, {"gamma", c.Gamma}, {"accept", c.Accept}, {"learn-from", c.Learn}}
	fmt.Fprint(w, "as flags:\n ")
	for _, f := range flags {
		fmt.Fprintf(w, " --%s %v", f.name, f.value)
	}
	fmt.Fprintln(w, "\nin office.yaml:")
	for _, f := range flags {
		fmt.Fprintf(w, "  %s: %v\n", f.name, f.value)
	}
}

func printTuned(w io.Writer, r calibrate.Outcome, people int) {
	fmt.Fprintf(w,
		"chosen without, and measured on, each of %d folds of %d people, one user at a time:\n",
		len(r.Folds),
		people)
	fmt.Fprintf(w,
		"  FNMR %s: %d of %d attempts (95 %% interval %s), of %d of %d people at least one\n",
		high(r.FNMR.Rate), r.FNMR.Errors, r.FNMR.Faces, span(r.FNMR.Interval), r.FNMR.PeopleWrong,
		r.FNMR.People)
	fmt.Fprintf(w, "  FMR  %s: %d of %d attempts (95 %% interval %s), at least one in %d of %d "+
		"pairs of a user and an impostor\n",
		high(r.FMR.Rate), r.FMR.Errors, r.FMR.Faces, span(r.FMR.Interval), r.Pairs.Accepted,
		r.Pairs.Total)
	fmt.Fprintln(w, "  the intervals take people for independent, and not their attempts")
	if r.Supported() {
		fmt.Fprintf(w, "an FMR of %g is shown: with 95 %% confidence it is below %g for people "+
			"like these, were pairs independent\n", r.Target, atMost(r.FMRUpperBound))
	} else {
		fmt.Fprintf(w, "an FMR of %g is not shown: these recordings show, with 95 %% confidence, "+
			"one below %g, were pairs independent\n", r.Target, atMost(r.FMRUpperBound))
		if r.Pairs.Accepted == 0 {
			need := calibrate.PairsNeeded(r.Target)
			fmt.Fprintf(w, "  by the rule of three that takes %d pairs without a false match: "+
				"recordings of %d people\n", need,
				calibrate.PeopleNeeded(need, len(r.Folds)))
		}
	}
	fmt.Fprintf(w,
		"  pairs share people, so that this is the most that can be said; with only people for "+
			"independent: of %d,\n"+
			"  %d were let in as somebody else, and of people like these a share below %g\n",
		r.FMR.People,
		r.FMR.PeopleWrong,
		atMost(r.PeopleUpperBound))
	c := r.Choice
	fmt.Fprintf(w, "chosen on all %d: sigma %.4g, gamma %.4g, accept from %.4g, learn from %.4g "+
		"(there: recall %s, FMR %s)\n",
		people, c.Sigma, c.Gamma, c.Accept, c.Learn, low(c.Recall), high(c.FMR))
	if c.Alike > 1 {
		fmt.Fprintf(w, "  %d settings do as well, to one face in a thousand; this one is nearest "+
			"to the feature space's own\n", c.Alike)
	}
	for _, f := range r.Folds {
		if f.Choice.Sigma != c.Sigma || f.Choice.Gamma != c.Gamma || f.Choice.Learn != c.Learn {
			fmt.Fprintf(w,
				"  without %s: sigma %.4g, gamma %.4g, accept from %.4g, learn from %.4g\n",
				cli.Count(len(f.HeldOut), "person"), f.Choice.Sigma, f.Choice.Gamma,
				f.Choice.Accept, f.Choice.Learn)
		}
	}
}

// printPairs prints the false match rates for the description of a network.
func printPairs(w io.Writer, p evaluate.PairRates) {
	if !p.Impostors.Measured() {
		fmt.Fprintf(w,
			"%d pairs of different people are too few to say how near people come in this space\n",
			p.Impostors.Pairs)
		return
	}
	fmt.Fprintf(w, "of %d pairs of pictures of %d different people, and %d pairs of one person:\n",
		p.Impostors.Pairs, p.Impostors.People, p.Genuine)
	for i, d := range p.Impostors.Distances {
		if d > 0 {
			fmt.Fprintf(w, "  FMR 1e-%d within %.3f: FNMR %s\n", i+2, d, high(p.FNMR[i]))
		}
	}
	b, err := json.Marshal(p.Impostors)
	if err == nil {
		fmt.Fprintf(w, "  in the description of a network of your own: \"stills\": %s\n", b)
	}
	if p.Norms == nil {
		return
	}
	fmt.Fprintln(w, "the norm of an embedding predicts missed matches; at FMR 1e-4:")
	for _, x := range p.Norms.Without {
		fmt.Fprintf(w,
			"  without the lowest %.0f %% of the faces (norm %.2f or more): FNMR %s of %d pairs\n",
			100*x.Lowest, x.Norm, high(x.FNMR), x.Genuine)
	}
	switch n := p.Norms; {
	case n.LearnNorm > 0:
		fmt.Fprintf(w, "  in the description of a network of your own: \"learn_norm\": %.2f, "+
			"\"clear_norm\": %.2f\n", n.LearnNorm, n.ClearNorm)
	case n.ClearNorm > 0:
		fmt.Fprintf(w, "  in the description of a network of your own: \"clear_norm\": %.2f; "+
			"four in five pairs are missed below no norm, so these recordings give no "+
			"\"learn_norm\"\n", n.ClearNorm)
	default:
		fmt.Fprintln(w, "  too few pairs are missed to choose a \"learn_norm\" or a \"clear_norm\"")
	}
}

// atMost rounds a bound up to two significant digits.
func atMost(x float64) float64 {
	unit := math.Pow(10, math.Floor(math.Log10(x))-1)
	up, err := strconv.ParseFloat(fmt.Sprintf("%.2g", math.Ceil(x/unit-1e-9)*unit), 64)
	if err != nil {
		return x
	}
	return up
}
