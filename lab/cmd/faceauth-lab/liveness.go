// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/faceauth/faceauth/eye"
	"github.com/faceauth/faceauth/internal/cli"
	"github.com/faceauth/faceauth/lab/dataset"
	"github.com/faceauth/faceauth/lab/evaluate"
	"github.com/faceauth/faceauth/lab/trial/login"
	"github.com/faceauth/faceauth/preprocess"
	"github.com/spf13/cobra"
)

// thresholds are measured beside the chosen one.
var thresholds = []float64{.1, .3, .7, .9}

// measured opens the networks of a measurement in this process, because it needs pictures: for
// faces and for liveness. The caller closes both.
func (o *trialFlags) measured(c *cobra.Command) (*vision, *preprocess.Liveness, error) {
	o.Features, o.Detector = "embedding", "network"
	v, err := look(&o.Options, c, true)
	if err != nil {
		return nil, nil, err
	}
	d, err := o.Liveness(c)
	if err != nil {
		v.Close()
		return nil, nil, err
	}
	l, err := preprocess.NewLiveness(d, o.Models)
	if err != nil {
		v.Close()
		return nil, nil, cli.Fail(cli.BadModel, err)
	}
	return v, l, nil
}

func newLivenessTrial() *cobra.Command {
	var o trialFlags
	c := &cobra.Command{
		Use:   "liveness DIR...",
		Short: "measure the liveness check on recordings",
		Long: "Liveness scores recordings as a login does. It says how many attacks a login " +
			"accepts, and how many\n" +
			"live faces it takes for pictures (APCER and BPCER of ISO/IEC 30107-3). It treats " +
			"every face as the\n" +
			"user's, because it measures liveness and not recognition.\n\n" +
			"People are split into two halves: every other name, separately for people with and " +
			"without\n" +
			"attacks. Each half is measured with the threshold chosen on the other half.\n\n" +
			labelledRecordings + "\n" +
			"In a person's folder, recordings whose names begin with " + dataset.AttackPrefix +
			" are attacks on this person.\n" +
			"Names that differ in more than their number, such as fake-print1 and fake-replay, " +
			"are\n" +
			"different species of attack, with separate rates.",
		Example: "  faceauth-lab trial liveness recordings\n" +
			"  faceauth-lab trial liveness recordings attacks --json",
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return o.measureLiveness(c, args) },
	}
	o.flags(c)
	c.Flags().StringSliceVar(&o.attacks, "attack", nil, heldHelp)
	for _, name := range []string{"challenge", "anchor"} { // they do not concern liveness
		c.Flags().MarkHidden(name)
	}
	return c
}

// species returns the kind of attack of a recording: its file name without ending and number.
func species(path string) string {
	name := filepath.Base(path)
	name = strings.TrimSuffix(name, filepath.Ext(name))
	return strings.TrimRight(name, "0123456789-_ ")
}

func (o *trialFlags) measureLiveness(c *cobra.Command, dirs []string) error {
	if err := errors.Join(o.check(), o.checkAttacks(heldPictures...)); err != nil {
		return err
	}
	v, live, err := o.measured(c)
	if err != nil {
		return err
	}
	defer v.Close()
	defer live.Close()
	films := &films{Reader: o.reader(c, v), liveness: live, attacks: o.attacks,
		portraits: dataset.Portraits{}}
	defer films.portraits.Close()
	var all []login.Recording
	for _, dir := range dirs {
		recordings, err := films.read(c.Context(), dir)
		if err != nil {
			return cli.StreamError(c, err)
		}
		all = append(all, recordings...)
	}
	r, err := login.MeasureLiveness(c.Context(), all, login.LivenessOptions{
		Policy: o.Login.Policy, Gate: gateOf(eye.Login, v.Space).Check, Every: o.every,
		Sweep: thresholds,
	})
	if errors.Is(err, login.ErrNoPresentation) {
		return cli.Fail(cli.NoFace, err)
	}
	if err != nil {
		return err
	}
	if o.JSON {
		return json.NewEncoder(c.OutOrStdout()).Encode(r)
	}
	return printLiveness(c.OutOrStdout(), r)
}

// fewAttacks is the number of attacks from which a rate means something: without a mistake it is
// below one in ten.
const fewAttacks = 30

func printLiveness(w io.Writer, r login.LivenessReport) error {
	fmt.Fprintf(w, "%s of %s; a presentation is up to %g s of one, and begins every %g s\n\n",
		cli.Count(len(r.Recordings), "recording"), cli.Count(r.People, "person"), r.Seconds,
		r.Every)
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t,
		"threshold\tmeasured on\tpresentations\twrong\tshare\t95 % interval *\tpeople with one\t"+
			"95 % interval **\tno answer\t")
	row := func(e login.LivenessErrors, where, what string, p login.Presentations) {
		threshold := "of the other half"
		if !math.IsNaN(float64(e.Threshold)) {
			threshold = fmt.Sprintf("%.3f", float64(e.Threshold))
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%d of %d\t%s\t%s\t%d of %d\t%s\t%d\t\n", threshold, where, what,
			p.Wrong, p.All, high(p.Rate()),
			span(p.Interval), p.WrongOf, p.People, span(evaluate.ClopperPearson(p.WrongOf,
				p.People)), p.Unanswered)
	}
	rows := func(e login.LivenessErrors, where string) {
		for _, name := range slices.Sorted(maps.Keys(e.Attacks)) {
			row(e, where, "attacks ("+name+") let in, APCER", e.Attacks[name])
		}
		row(e, where, "live faces refused, BPCER", e.Live)
	}
	for _, e := range r.Halves {
		rows(e, fmt.Sprintf("half %d, chosen on the other", e.Half))
	}
	if r.Both != nil {
		rows(*r.Both, "both halves")
	}
	if r.Policy.Threshold > 0 {
		rows(r.Policy, "all, as logins ask")
	}
	for _, e := range r.Sweep {
		rows(e, "all")
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if r.Both == nil {
		fmt.Fprintln(w, "no threshold is chosen: it takes two people with attacks, and two whose "+
			"live faces are scored")
	}
	lowest, highest := "", ""
	least, most := 2., -1.
	attacks := 0
	for _, l := range r.Recordings {
		if l.Attack != "" {
			attacks++
		}
		for _, x := range l.Scores {
			if name := l.Person + ", " + l.Name; l.Attack == "" && x < least {
				least, lowest = x, name
			} else if l.Attack != "" && x > most {
				most, highest = x, name
			}
		}
	}
	fmt.Fprintf(w, "the lowest score of a live face: %.3f (%s)\n", least, lowest)
	if most >= 0 {
		fmt.Fprintf(w, "the highest score of an attack: %.3f (%s)\n", most, highest)
	}
	fmt.Fprintln(w, "a score is the highest threshold at which a login would let in; no answer: "+
		"never three usable frames in five")
	fmt.Fprintln(w,
		"* as if presentations were independent; presentations of one recording are not")
	fmt.Fprintln(w, "** of the share of people")
	if attacks < fewAttacks {
		const few = "%s of attacks are too few to promise a rate: of 30 without a mistake one in " +
			"ten may still fail\n"
		fmt.Fprintf(w, few, cli.Count(attacks, "recording"))
	}
	return nil
}
