// SPDX-License-Identifier: Apache-2.0

//go:build cgo

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

	"github.com/faceauth/faceauth/evaluate"
	"github.com/faceauth/faceauth/evaluate/dataset"
	"github.com/faceauth/faceauth/models"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/preprocess"
	"github.com/spf13/cobra"
)

// attackKinds are the values of --attack.
var attackKinds = []string{"bridge", "morph", "swap", "drift", "replay"}

// attackFlags are the flags of an attack.
type attackFlags struct {
	kinds    []string
	steps    []int
	liveness float64
}

func (a *attackFlags) flags(c *cobra.Command) {
	c.Flags().StringSliceVar(&a.kinds, "attack", nil, "attack the learner instead: bridge, "+
		"blends of the user's face and the attacker's, each a sighting of its own; morph, the same blends on one "+
		"track; "+
		"swap, the attacker's faces in the place that the user has just left; drift, the attacker's faces, nearest "+
		"first; "+
		"replay, recordings whose names begin with "+dataset.AttackPrefix)
	c.Flags().IntSliceVar(&a.steps, "attack-steps", []int{2, 3, 5, 8, 20},
		"numbers of blends for a bridge; each is tried")
	c.Flags().Float64Var(&a.liveness, "liveness", .5, "least liveness of an accepted face in a replay")
}

func (a *attackFlags) check() error {
	for _, k := range a.kinds {
		if !slices.Contains(attackKinds, k) {
			return fmt.Errorf("unknown attack %q; use %s", k, strings.Join(attackKinds, ", "))
		}
	}
	switch {
	case len(a.steps) == 0 || slices.ContainsFunc(a.steps, func(n int) bool { return n < 1 || n > 10000 }):
		return errors.New("--attack-steps must be from 1 to 10000")
	case !(a.liveness > 0 && a.liveness <= 1):
		return errors.New("--liveness must be above 0 and at most 1")
	}
	return nil
}

// attacked is the result of one kind of attack on one method with one set of guards.
type attacked struct {
	Attack string `json:"attack"`
	evaluate.Outcome
}

func (o *options) attack(c *cobra.Command, dir string, e evaluation, a attackFlags) error {
	v, space, settings, err := o.prepare(c, true)
	if err != nil {
		return err
	}
	defer v.Close()
	if e.methods, err = attackable(e.methods, c.Flags().Changed("methods")); err != nil {
		return fail(badUsage, err)
	}
	bare, err := online.New(space, evaluate.Unguarded(settings))
	if err != nil {
		return fail(badUsage, err)
	}
	if err := o.checkTimeout(); err != nil {
		return err
	}
	var people []evaluate.Identity
	var portraits dataset.Portraits
	defer func() { portraits.Close() }()
	if slices.ContainsFunc(a.kinds, func(kind string) bool { return kind != "replay" }) {
		if people, portraits, err = o.reader(c, v).Attackers(c.Context(), dir, e.Enroll); err != nil {
			return o.readError(c, err)
		}
	}
	var rows []attacked
	for _, kind := range a.kinds {
		attacks, err := o.attacks(c, v, dir, e, a, people, portraits, kind)
		if err != nil {
			return err
		}
		for _, method := range e.methods {
			for _, guards := range []struct {
				name     string
				settings online.Settings
				liveness float64
			}{{"off", bare.Settings(), 0}, {"as set", settings, 0}, {"as set, and liveness", settings, a.liveness}} {
				if kind != "replay" && guards.liveness > 0 {
					continue // liveness matters only for attacks before the camera
				}
				entries, err := evaluate.Entries([]string{method}, space, guards.settings)
				if err != nil {
					return fail(badUsage, err)
				}
				bar := newProgress(len(attacks), kind+", guards "+guards.name)
				out, err := evaluate.Withstand(c.Context(), attacks, evaluate.Guarded{
					Entry: entries[len(entries)-1], Guards: guards.name, Liveness: float32(guards.liveness),
				}, bar.step)
				bar.end()
				if err != nil {
					return err
				}
				rows = append(rows, attacked{kind, out})
			}
		}
	}
	if o.json {
		return json.NewEncoder(c.OutOrStdout()).Encode(struct {
			Source   string          `json:"source"`
			Features string          `json:"features"`
			Settings online.Settings `json:"settings"`
			Enroll   int             `json:"enroll"`
			Steps    []int           `json:"steps"`
			Liveness float64         `json:"liveness"`
			Attacks  []attacked      `json:"attacks"`
		}{filepath.Base(filepath.Clean(dir)), space.ID, settings, e.Enroll, a.steps, a.liveness, rows})
	}
	return printAttacks(c.OutOrStdout(), e, a, rows)
}

// attackable returns the methods that learn, because only these can be misled.
func attackable(methods []string, given bool) ([]string, error) {
	if !given {
		return []string{"confirmed", "sightings", "learner"}, nil
	}
	for _, m := range methods {
		if !slices.Contains([]string{"confirmed", "sightings", "learner", "selftrain"}, m) {
			return nil, fmt.Errorf("%s does not learn from what it accepts; attack confirmed, sightings, learner, "+
				"selftrain", m)
		}
	}
	return methods, nil
}

// attacks returns the attacks of a kind: of the people on each other, or of replays in dir.
func (o *options) attacks(c *cobra.Command, v *vision, dir string, e evaluation, a attackFlags,
	people []evaluate.Identity, portraits dataset.Portraits, kind string) ([]evaluate.Attack, error) {
	switch kind {
	case "replay":
		liveness, err := preprocess.NewLiveness(models.Default(models.Liveness), o.models)
		if err != nil {
			return nil, fail(badModel, err)
		}
		defer liveness.Close()
		all, err := o.reader(c, v).Replays(c.Context(), dir, e.Enroll, liveness)
		return all, o.readError(c, err)
	case "drift":
		all, err := evaluate.SlowDrifts(people, e.Enroll)
		return all, evalError(err)
	case "swap":
		all, err := evaluate.Swaps(people, e.Enroll)
		return all, evalError(err)
	}
	bar := newProgress(len(people)*(len(people)-1)*len(a.steps), "blending")
	defer bar.end()
	all, err := evaluate.Bridges(people, e.Enroll, a.steps, func(user string, i int, attacker string, j, n int) (
		[][]float32, error) {
		if err := c.Context().Err(); err != nil {
			return nil, err
		}
		bar.step()
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

func printAttacks(w io.Writer, e evaluation, a attackFlags, rows []attacked) error {
	fmt.Fprintf(w, "each user is enrolled with %s, and then seen in their own recording; then the attack begins\n",
		count(e.Enroll, "face"))
	if slices.Contains(a.kinds, "bridge") {
		fmt.Fprintf(w, "bridge: %s blends from the user's picture to the attacker's, of these the number that gets "+
			"in with "+
			"the fewest steps\n", oneOf(a.steps))
	}
	if slices.Contains(a.kinds, "replay") {
		fmt.Fprintf(w, "replay: liveness lets faces through from %g on\n", a.liveness)
	}
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t)
	fmt.Fprintln(t, "attack\tmethod\tguards\taccepted\t95 % interval *\tleast steps\tmedian\talarms\t"+
		"of their faces\tuser's recall\t")
	for _, r := range rows {
		least, median, faces := "-", "-", "-"
		if r.Fallen > 0 {
			least, median = fmt.Sprint(r.Least), fmt.Sprint(r.Median)
		}
		if r.Presented > 0 {
			faces = fmt.Sprintf("%d of %d", r.Accepted, r.Presented)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%d of %d\t%s\t%s\t%s\t%d\t%s\t%s\t\n", r.Attack, r.Method, r.Guards, r.Fallen,
			r.Attacks,
			span(r.Interval), least, median, r.Alarmed, faces, low(r.Honest))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w, "accepted: attackers who got in, after at least and on the median so many steps; alarms: "+
		"those before that")
	fmt.Fprintln(w, "* if attacks were independent trials, which those on one user are not")
	return nil
}
