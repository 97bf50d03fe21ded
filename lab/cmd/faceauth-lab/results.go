// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/cli"
	"github.com/faceauth/faceauth/internal/safefile"
	"github.com/faceauth/faceauth/lab/evaluate"
	"github.com/faceauth/faceauth/online"
	"github.com/spf13/cobra"
)

var errTables = errors.New(
	"tables differ from what was measured now; faceauth-lab results --write replaces them")

// results makes the tables of documents.
type results struct {
	dir   string
	space face.Space
	note  func(what string)
	sets  map[string][]evaluate.Identity
}

// rates are those at which methods are compared.
var rates = []float64{1e-3, 1e-2}

func newResults() *cobra.Command {
	var o options
	var write bool
	c := &cobra.Command{
		Use:   "results DIR DOCUMENT...",
		Short: "make the tables of documents again, and compare them",
		Long: "Results makes each table that stands between <!-- table NAME --> and <!-- end --> " +
			"in a document again. A\n" +
			"table that differs is an error, or is replaced if --write is given. DIR holds files " +
			"of faces that the\n" +
			"command read has written: " + strings.Join(sets, ", ") + ".",
		Example: "  faceauth-lab results faces README.md docs/results.md",
		Args:    cobra.MinimumNArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			v, space, _, err := o.prepare(c, false)
			if err != nil {
				return err
			}
			defer v.Close()
			r := &results{args[0], space, func(what string) { cli.Note(c, what) },
				map[string][]evaluate.Identity{}}
			return r.documents(c.Context(), args[1:], write)
		},
	}
	o.VisionFlags(c)
	c.Flags().BoolVar(&write, "write", false, "replace tables that differ")
	return c
}

// sets are the sets of recordings, each a file of faces.
var sets = []string{"vidtimit_rot", "people", "lfw", "faces94_subset", "att"}

// set returns the faces of a set.
func (r *results) set(name string) ([]evaluate.Identity, error) {
	if r.sets[name] == nil {
		ids, err := readFaces(filepath.Join(r.dir, name+".faces"), r.space.ID)
		if err != nil {
			return nil, err
		}
		r.sets[name] = ids
	}
	return r.sets[name], nil
}

const (
	tableBegins = "<!-- table "
	tableNamed  = " -->\n"
	tableEnds   = "<!-- end -->\n"
)

// documents makes the tables of the documents.
func (r *results) documents(ctx context.Context, paths []string, write bool) error {
	made := make(map[string]string)
	var differ []string
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var b strings.Builder
		parts := strings.Split(string(text), tableBegins)
		b.WriteString(parts[0])
		for _, part := range parts[1:] {
			name, rest, named := strings.Cut(part, tableNamed)
			was, after, ended := strings.Cut(rest, tableEnds)
			if !named || !ended {
				return fmt.Errorf("%s: the table %.20q has no name or no end", path, name)
			}
			if made[name] == "" {
				if made[name], err = r.table(ctx, name); err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
			}
			if was != made[name] {
				differ = append(differ, name)
				r.note(fmt.Sprintf("%s, table %s:\n%sis now\n%s", path, name, was, made[name]))
			}
			b.WriteString(tableBegins + name + tableNamed + made[name] + tableEnds + after)
		}
		if write && b.String() != string(text) {
			if err := safefile.Write(path, []byte(b.String())); err != nil {
				return err
			}
		}
	}
	if len(differ) > 0 && !write {
		return fmt.Errorf("%s: %w", strings.Join(differ, ", "), errTables)
	}
	return nil
}

// table returns the table of a name.
func (r *results) table(ctx context.Context, name string) (string, error) {
	r.note("table " + name)
	switch name {
	case "recordings":
		return r.recordings(ctx, 1, 8, 15, 30)
	case "others":
		return r.others(ctx)
	case "photographs":
		return r.photographs(ctx, 1, 4)
	case "asked":
		return r.asked(ctx)
	}
	return "", fmt.Errorf("there is no table %q", name)
}

// compared has a row for faceauth at each rate, and for the nearest face with a threshold that is
// known, and in hindsight.
type compared struct {
	known                   int // faces
	strangers               int
	ours, within, hindsight evaluate.Result
}

// compare runs the methods at a rate on choices of strangers.
func (r *results) compare(ctx context.Context, ids []evaluate.Identity, enroll, stride int,
	choices [][]string, rate float64) (compared, error) {
	s, err := online.New(r.space, online.Settings{Strangers: rate})
	if err != nil {
		return compared{}, err
	}
	p := evaluate.Protocol{Enroll: enroll, Order: evaluate.Sequential, Seed: 1, Stride: stride}
	entries := []evaluate.Entry{evaluate.Sightings(r.space, s.Settings()),
		evaluate.Within(r.space, s.Settings()), evaluate.Nearest(r.space)}
	all, err := evaluate.RunAll(ctx, ids, p, choices, entries, nil)
	if err != nil {
		return compared{}, err
	}
	return compared{all.Faces.Known, all.Faces.Strangers, all.Methods[0], all.Methods[1],
		all.Methods[2]}, nil
}

// strangers returns choices of so many of the people.
func strangers(ids []evaluate.Identity, of, draws int) ([][]string, error) {
	var names []string
	for _, id := range ids {
		names = append(names, id.Name)
	}
	return evaluate.DrawChoices(names, of, draws, 1)
}

// recordings is the table of faces in recordings.
func (r *results) recordings(ctx context.Context, strides ...int) (string, error) {
	var b strings.Builder
	b.WriteString("| data | faces of known people | faceauth, 1 in 1,000 | threshold known | in " +
		"hindsight | faceauth, 1 in 100 | threshold known | in hindsight |\n" +
		"|---|--:|--:|--:|--:|--:|--:|--:|\n")
	for _, set := range []string{"vidtimit_rot", "people"} {
		ids, err := r.set(set)
		if err != nil {
			return "", err
		}
		choices, err := strangers(ids, 2, 0)
		if err != nil {
			return "", err
		}
		for _, stride := range strides {
			what := fmt.Sprintf("`%s`", set)
			if stride > 1 {
				what = fmt.Sprintf("%s, every %s frame", what, ordinal(stride))
			}
			r.note(what)
			line := ""
			var known int
			for i, rate := range rates {
				c, err := r.compare(ctx, ids, 4, stride, choices, rate)
				if err != nil {
					return "", err
				}
				known = c.known
				line += fmt.Sprintf(" %s | %s | %s |", share(c.ours, i == 0),
					share(c.within, false), share(c.hindsight, false))
			}
			fmt.Fprintf(&b, "| %s | %s |%s\n", what, thousands(known), line)
		}
	}
	return b.String(), nil
}

// others is the table of people on whom no rate was chosen.
func (r *results) others(ctx context.Context) (string, error) {
	var b strings.Builder
	b.WriteString("| data | people | strangers in each choice | faces of known people | 1 in " +
		"1,000 | 3 in 1,000 | 1 in 100 |\n|---|--:|--:|--:|--:|--:|--:|\n")
	for _, set := range []string{"att", "faces94_subset", "lfw"} {
		ids, err := r.set(set)
		if err != nil {
			return "", err
		}
		enroll, of, draws := 4, 2, 0
		if set == "lfw" { // with three pictures or more
			ids = slices.DeleteFunc(slices.Clone(ids), func(id evaluate.Identity) bool {
				_, _, err := id.Divide(2)
				return err != nil || len(id.Faces) < 3
			})
			enroll, of, draws = 2, len(ids)/2, 20
		}
		choices, err := strangers(ids, of, draws)
		if err != nil {
			return "", err
		}
		line, known := "", 0
		for _, rate := range []float64{1e-3, 3e-3, 1e-2} {
			c, err := r.compare(ctx, ids, enroll, 1, choices, rate)
			if err != nil {
				return "", err
			}
			known = c.known
			line += fmt.Sprintf(" %s |", share(c.ours, false))
		}
		fmt.Fprintf(&b, "| `%s` | %d | %d | %s |%s\n", set, len(ids), of, thousands(known), line)
	}
	return b.String(), nil
}

// share writes a recall, and strangers and wrong names where there were any.
func share(r evaluate.Result, interval bool) string {
	text := fmt.Sprintf("%.4f", math.Floor(float64(r.Recall)*1e4+1e-9)/1e4)
	if interval {
		i := r.FNIR.Interval
		text += fmt.Sprintf(" (%.2f to %.2f)", math.Floor(100*(1-i.High))/100,
			math.Ceil(100*(1-i.Low))/100)
	}
	if n := r.FPIR.Errors; n > 0 {
		text += fmt.Sprintf(", %d of %s strangers' faces", n, thousands(r.FPIR.Faces))
	}
	return text
}

// photographs is the table of one of many people in single photographs.
func (r *results) photographs(ctx context.Context, enrolled ...int) (string, error) {
	ids, err := r.set("lfw")
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("| photographs of each | people | asked for | right name, faceauth | strangers " +
		"with a name | threshold known | threshold in hindsight |\n|--:|--:|--:|--:|--:|--:|--:|\n")
	for _, n := range enrolled {
		for _, rate := range rates {
			l, err := online.New(r.space, online.Settings{Strangers: rate})
			if err != nil {
				return "", err
			}
			entries := []evaluate.Entry{evaluate.Learner(r.space, l.Settings()),
				evaluate.Within(r.space, l.Settings()), evaluate.Nearest(r.space)}
			all, err := evaluate.Identify(ctx, ids, evaluate.Identification{
				Protocol: evaluate.Protocol{Enroll: n, Order: evaluate.Shuffled, Seed: 1,
					Stride: 1}, Targets: rates}, entries)
			if err != nil {
				return "", err
			}
			ours, within := all.Methods[0].Rank1, all.Methods[1].Rank1
			hindsight := "-"
			for _, p := range all.Methods[2].Points {
				if p.Target == rate && p.Operating != nil {
					hindsight = fmt.Sprintf("%.4f", down(float64(p.Operating.TPIR)))
				}
			}
			fmt.Fprintf(&b,
				"| %d | %d | %s | %.4f (%.4f to %.4f) | %d of %s | %.4f, %d strangers | %s |\n", n,
				all.Counts.Enrolled, oneIn(rate), down(float64(ours.TPIR)),
				down(ours.TPIRInterval.Low), up(ours.TPIRInterval.High),
				ours.FPIR.Errors, thousands(ours.FPIR.Faces), down(float64(within.TPIR)),
				within.FPIR.Errors, hindsight)
		}
	}
	return b.String(), nil
}

// asked is the table of the rates that were had.
func (r *results) asked(ctx context.Context) (string, error) {
	lfw, err := r.set("lfw")
	if err != nil {
		return "", err
	}
	speaking, err := r.set("faces94_subset")
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("| people | photographs of each | looks | had for 1 in 1,000 | had for 1 in " +
		"100 | right name | at 1 in 100 |\n|--:|--:|--:|--:|--:|--:|--:|\n")
	for _, c := range []struct {
		ids, strangers             []evaluate.Identity
		people, photographs, draws int
	}{
		{lfw, nil, 10, 1, 10}, {lfw, nil, 50, 1, 10}, {lfw, nil, 200, 1, 10}, {lfw, nil, 809, 1, 4},
		{lfw, nil, 2000, 1, 10},
		{lfw, nil, 10, 2, 8}, {lfw, nil, 50, 2, 8}, {lfw, nil, 200, 2, 8},
		{lfw, nil, 10, 4, 8}, {lfw, nil, 50, 4, 8}, {lfw, nil, 100, 4, 8},
		{speaking, lfw, 15, 8, 3},
	} {
		rows, err := evaluate.Ask(ctx, c.ids, c.strangers, r.space, c.people, c.photographs,
			c.draws, rates, 1)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "| %s | %d | %.0f |", thousands(c.people), c.photographs, rows[0].Looks)
		for _, x := range rows {
			mark := ""
			if !x.Exact() {
				mark = " (!)"
			}
			fmt.Fprintf(&b, " %.5f (%.5f to %.5f)%s |", float64(x.FPIR.Rate), x.FPIR.Interval.Low,
				x.FPIR.Interval.High, mark)
		}
		for _, x := range rows {
			fmt.Fprintf(&b, " %.4f |", down(1-float64(x.FNIR.Rate)))
		}
		b.WriteByte('\n')
	}
	return b.String(), nil
}

// down and up round a share against the program.
func down(x float64) float64 { return math.Floor(x*1e4+1e-9) / 1e4 }
func up(x float64) float64   { return math.Ceil(x*1e4-1e-9) / 1e4 }

func oneIn(rate float64) string { return "1 in " + thousands(int(math.Round(1/rate))) }

// thousands writes a number with commas.
func thousands(n int) string {
	digits := []byte(fmt.Sprint(n))
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = slices.Insert(digits, i, ',')
	}
	return string(digits)
}
