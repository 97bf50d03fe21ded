// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/faceauth/faceauth/internal/cli"
	"github.com/faceauth/faceauth/lab/dataset"
	"github.com/faceauth/faceauth/lab/evaluate"
	"github.com/faceauth/faceauth/models"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/preprocess"
	"github.com/spf13/cobra"
)

// attackKinds are the values of --attack.
var attackKinds = []string{"bridge", "morph", "swap", "drift", "replay"}

// attackFlags are the flags of attack.
type attackFlags struct {
	enroll         int
	methods, kinds []string
	steps          []int
	liveness       float64
}

func newAttack() *cobra.Command {
	var o options
	var a attackFlags
	c := &cobra.Command{
		Use:   "attack DIR",
		Short: "measure how the learner withstands attacks",
		Long: "In an attack every identity attacks every other one. Attack says how many get in, " +
			"after how many\n" +
			"steps, with all guards off and with the guards as set, and how often the users " +
			"themselves are then\n" +
			"refused. Of the bridges of --attack-steps, the one that lets the attacker in after " +
			"the fewest steps\n" +
			"counts.\n\n" + labelledRecordings,
		Example: "  faceauth-lab attack recordings\n" +
			"  faceauth-lab attack recordings --attack bridge,drift --learn-from 0.9\n" +
			"  faceauth-lab attack recordings --attack replay --liveness 0.7",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.check(); err != nil {
				return cli.Fail(cli.BadUsage, err)
			}
			return o.attack(c, args[0], a)
		},
	}
	o.VisionFlags(c)
	o.LearnerFlags(c)
	o.StrangersFlag(c, "rate", 1e-3)
	f := c.Flags()
	f.IntVar(&a.enroll, "enroll", 4, enrollHelp)
	f.StringSliceVar(&a.methods, "methods", learning[:3], "methods to attack, of "+
		strings.Join(learning, ", "))
	f.StringSliceVar(&a.kinds, "attack", attackKinds[:4], "kinds of attack: bridge, "+
		"blends of the user's face and the attacker's, each a sighting of its own; morph, the "+
		"same blends on one "+
		"track; "+
		"swap, the attacker's faces in the place that the user has just left; drift, the "+
		"attacker's faces, nearest "+
		"first; "+
		"replay, recordings whose names begin with "+dataset.AttackPrefix)
	stepsFlag(c, &a.steps)
	f.Float64Var(&a.liveness, "liveness", .5, "least liveness of an accepted face in a replay")
	return c
}

// stepsFlag adds --attack-steps.
func stepsFlag(c *cobra.Command, steps *[]int) {
	c.Flags().IntSliceVar(steps, "attack-steps", []int{2, 3, 5, 8, 20},
		"numbers of blends for a bridge; each is tried")
}

// checkSteps returns nil if the numbers of blends can be tried.
func checkSteps(steps []int) error {
	if len(steps) == 0 || slices.ContainsFunc(steps, func(n int) bool {
		return n < 1 || n > 10000
	}) {
		return errors.New("--attack-steps must be from 1 to 10000")
	}
	return nil
}

func (a *attackFlags) check() error {
	for _, k := range a.kinds {
		if !slices.Contains(attackKinds, k) {
			return fmt.Errorf("unknown attack %q; use %s", k, strings.Join(attackKinds, ", "))
		}
	}
	for _, m := range a.methods {
		if !slices.Contains(learning, m) {
			return fmt.Errorf("%s does not learn from what it accepts; attack %s", m,
				strings.Join(learning, ", "))
		}
	}
	switch {
	case len(a.kinds) == 0 || len(a.methods) == 0:
		return errors.New("--attack and --methods need at least one value")
	case a.enroll < 1:
		return fmt.Errorf("--enroll %d: at least one face is needed", a.enroll)
	case !(a.liveness > 0 && a.liveness <= 1):
		return errors.New("--liveness must be above 0 and at most 1")
	}
	return checkSteps(a.steps)
}

// learning are the methods that learn from what they accept, because only these can be misled.
var learning = []string{"confirmed", "sightings", "learner", "selftrain"}

// attacked is the result of one kind of attack on one method with one set of guards.
type attacked struct {
	Attack string `json:"attack"`
	evaluate.Outcome
}

func (o *options) attack(c *cobra.Command, dir string, a attackFlags) error {
	v, space, settings, err := o.prepare(c, true)
	if err != nil {
		return err
	}
	defer v.Close()
	bare, err := online.New(space, evaluate.Unguarded(settings))
	if err != nil {
		return cli.Fail(cli.BadUsage, err)
	}
	var people []evaluate.Identity
	var portraits dataset.Portraits
	defer func() { portraits.Close() }()
	if slices.ContainsFunc(a.kinds, func(kind string) bool { return kind != "replay" }) {
		if people, portraits, err = o.reader(c, v).Attackers(c.Context(), dir,
			a.enroll); err != nil {
			return readError(c, err)
		}
	}
	var rows []attacked
	for _, kind := range a.kinds {
		attacks, err := o.attacks(c, v, dir, a, people, portraits, kind)
		if err != nil {
			return err
		}
		for _, method := range a.methods {
			for _, guards := range []struct {
				name     string
				settings online.Settings
				liveness float64
			}{{"off", bare.Settings(), 0}, {"as set", settings, 0},
				{"as set, and liveness", settings, a.liveness}} {
				if kind != "replay" && guards.liveness > 0 {
					continue // liveness matters only for attacks before the camera
				}
				entries, err := evaluate.Entries([]string{method}, space, guards.settings)
				if err != nil {
					return cli.Fail(cli.BadUsage, err)
				}
				bar := cli.NewProgress(len(attacks), kind+", guards "+guards.name)
				out, err := evaluate.Withstand(c.Context(), attacks, evaluate.Guarded{
					Entry: entries[len(entries)-1], Guards: guards.name,
					Liveness: float32(guards.liveness),
				}, func() { bar.Add(1) })
				bar.Finish()
				if err != nil {
					return err
				}
				rows = append(rows, attacked{kind, out})
			}
		}
	}
	if o.JSON {
		return json.NewEncoder(c.OutOrStdout()).Encode(struct {
			Source   string          `json:"source"`
			Features string          `json:"features"`
			Settings online.Settings `json:"settings"`
			Enroll   int             `json:"enroll"`
			Steps    []int           `json:"steps"`
			Liveness float64         `json:"liveness"`
			Attacks  []attacked      `json:"attacks"`
		}{filepath.Base(filepath.Clean(dir)), space.ID, settings, a.enroll, a.steps, a.liveness,
			rows})
	}
	return printAttacks(c.OutOrStdout(), a, rows)
}

// attacks returns the attacks of a kind: of the people on each other, or of replays in dir.
func (o *options) attacks(c *cobra.Command, v *vision, dir string, a attackFlags,
	people []evaluate.Identity, portraits dataset.Portraits, kind string) ([]evaluate.Attack,
	error) {
	switch kind {
	case "replay":
		liveness, err := preprocess.NewLiveness(models.Default(models.Liveness), o.Models)
		if err != nil {
			return nil, cli.Fail(cli.BadModel, err)
		}
		defer liveness.Close()
		all, err := o.reader(c, v).Replays(c.Context(), dir, a.enroll, liveness)
		return all, readError(c, err)
	case "drift":
		all, err := evaluate.SlowDrifts(people, a.enroll)
		return all, evalError(err)
	case "swap":
		all, err := evaluate.Swaps(people, a.enroll)
		return all, evalError(err)
	}
	bar := cli.NewProgress(len(people)*(len(people)-1)*len(a.steps), "blending")
	defer bar.Finish()
	all, err := evaluate.Bridges(people, a.enroll, a.steps,
		func(user string, i int, attacker string, j, n int) (
			[][]float32, error) {
			if err := c.Context().Err(); err != nil {
				return nil, err
			}
			bar.Add(1)
			return portraits.Blends(v.extractor, user, i, attacker, j, n)
		})
	if kind == "morph" {
		for i := range all {
			all[i].Track = evaluate.Morph
		}
	}
	return all, evalError(err)
}

// oneOf lists alternative numbers: "3, 5 or 8".
func oneOf(numbers []int) string {
	var b strings.Builder
	for i, n := range numbers {
		switch {
		case i > 0 && i == len(numbers)-1:
			b.WriteString(" or ")
		case i > 0:
			b.WriteString(", ")
		}
		fmt.Fprint(&b, n)
	}
	return b.String()
}

func printAttacks(w io.Writer, a attackFlags, rows []attacked) error {
	fmt.Fprintf(w, "each user is enrolled with %s, and then seen in their own recording; then "+
		"the attack begins\n",
		cli.Count(a.enroll, "face"))
	if slices.Contains(a.kinds, "bridge") {
		fmt.Fprintf(w, "bridge: %s blends from the user's picture to the attacker's, of these "+
			"the number that gets in with "+
			"the fewest steps\n", oneOf(a.steps))
	}
	if slices.Contains(a.kinds, "replay") {
		fmt.Fprintf(w, "replay: liveness lets faces through from %g on\n", a.liveness)
	}
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t)
	fmt.Fprintln(t,
		"attack\tmethod\tguards\taccepted\t95 % interval *\tleast steps\tmedian\talarms\t"+
			"of their faces\tuser's recall\t")
	for _, r := range rows {
		least, median, faces := "-", "-", "-"
		if r.Fallen > 0 {
			least, median = fmt.Sprint(r.Least), fmt.Sprint(r.Median)
		}
		if r.Presented > 0 {
			faces = fmt.Sprintf("%d of %d", r.Accepted, r.Presented)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%d of %d\t%s\t%s\t%s\t%d\t%s\t%s\t\n", r.Attack, r.Method,
			r.Guards, r.Fallen, r.Attacks,
			span(r.Interval), least, median, r.Alarmed, faces, low(r.Honest))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w,
		"accepted: attackers who got in, after at least and on the median so many steps; alarms: "+
			"those before that")
	fmt.Fprintln(w, "* if attacks were independent trials, which those on one user are not")
	return nil
}
