// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/cli"
	"github.com/faceauth/faceauth/lab/dataset"
	"github.com/faceauth/faceauth/lab/trial/days"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/pipeline"
	"github.com/faceauth/faceauth/preprocess"
	"github.com/spf13/cobra"
)

func newOfficeTrial() *cobra.Command {
	var o options
	var t days.Options
	c := &cobra.Command{
		Use:   "office DIR",
		Short: "measure an office on recordings: names, arrivals and departures",
		Long: "Office composes days from recordings of single people. People come and go before " +
			"several cameras,\n" +
			"cross, and hide each other, and an office watches them. On each day other people " +
			"are strangers. It\n" +
			"saves nothing.\n" + labelledRecordings,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return o.officeTrial(c, args[0], t) },
	}
	o.VisionFlags(c)
	o.SpareFlag(c)
	o.LearnerFlags(c)
	o.StrangersFlag(c, "rate", 1e-3)
	f := c.Flags()
	f.IntVar(&t.Strangers, "choose-strangers", 2, chooseHelp)
	f.IntVar(&t.Cameras, "cameras", 2, "number of cameras")
	f.IntVar(&t.Enroll, "enroll", 4, enrollHelp)
	f.IntVar(&t.Visits, "visits", 4, "number of visits into which each recording is cut")
	f.IntVar(&t.Days, "days", 30, "largest number of days; each has other strangers")
	f.DurationVar(&t.Away, "away", 10*time.Second,
		"time after which a person who is not seen has left")
	f.Uint64Var(&t.Seed, "seed", 0, "seed of everything random")
	return c
}

func (o *options) officeTrial(c *cobra.Command, dir string, t days.Options) error {
	for _, n := range []struct {
		flag  string
		value int
		least int
	}{{"choose-strangers", t.Strangers, 0}, {"cameras", t.Cameras, 1}, {"enroll", t.Enroll, 1},
		{"visits", t.Visits, 1},
		{"days", t.Days, 1}} {
		if n.value < n.least {
			return cli.Fail(cli.BadUsage, fmt.Errorf("--%s %d is too small; use %d or more", n.flag,
				n.value, n.least))
		}
	}
	if t.Away < time.Second {
		return cli.Fail(cli.BadUsage, fmt.Errorf("--away %v is too short; use 1s or more", t.Away))
	}
	v, err := look(&o.Options, c, false)
	if err != nil {
		return err
	}
	defer v.Close()
	t.Learner = o.Settings(c, online.Settings{})
	all, err := o.subjects(c, v, dir)
	if err != nil {
		return err
	}
	t.Spare = !o.EveryFrame
	bar := cli.NewProgress(-1, "days")
	t.Usable = func(x face.Sample) bool { return dataset.Refused(x, v.Space) == "" }
	t.Day = func() { bar.Add(1) }
	r, err := days.Run(c.Context(), v.Space, all, t)
	bar.Finish()
	if errors.Is(err, days.ErrTooFew) {
		return cli.Fail(cli.NoFace, err)
	}
	if err != nil {
		return err
	}
	if o.JSON {
		return json.NewEncoder(c.OutOrStdout()).Encode(r)
	}
	return printOffice(c.OutOrStdout(), r)
}

// subjects returns the recordings of all people in dir.
func (o *options) subjects(c *cobra.Command, v *vision,
	dir string) (all []days.Recording, err error) {
	r := o.reader(c, v, dir)
	err = r.Each(dir, func(person, path string, attack bool) error {
		if attack {
			return nil
		}
		frames, err := r.Frames(c.Context(), dataset.NameOf(path), path,
			pipeline.Options{Gate: preprocess.LearnGate,
				Picture: 112})
		if err == nil {
			all = append(all, days.Recording{Person: person, Frames: frames})
		}
		return err
	})
	return all, cli.StreamError(c, err)
}

func printOffice(w io.Writer, r days.Report) error {
	fmt.Fprintf(w, "days: %d, of %s; %s, %d of them with several faces\n\n", r.Days,
		cli.Count(r.People, "person"), cli.Count(r.Frames, "frame"), r.Crowded)
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\tprecision\trecall\tright\tof\tother name\tstrangers named\tof\t")
	for _, row := range []struct {
		name string
		n    days.Names
	}{{"faces", r.Faces}, {"confirmed", r.Confirmed}, {"named later", r.Later},
		{"sightings", r.Tracks}} {
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%d\t%d\t%d\t%d\t\n", row.name, low(row.n.Precision),
			low(row.n.Recall), row.n.Right,
			row.n.Known, row.n.Wrong, row.n.False, row.n.Strangers)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if r.Held > 0 {
		fmt.Fprintf(w, "\nfaces that were held: %d of %d\n", r.Held,
			r.Faces.Known+r.Faces.Strangers)
	}
	k := r.Comings
	fmt.Fprintf(w,
		"\nsightings that went over to somebody else: %d; more sightings than visits: %d of %d\n",
		r.Switches,
		r.Parts, r.Visits)
	fmt.Fprintf(w, "stays of known people: %d; with an arrival %d, and a departure in time %d\n",
		k.Stays, k.Told, k.LeftTold)
	fmt.Fprintf(w, "arrivals that were none: %d; repeated: %d; departures too early: %d\n", k.Wrong,
		k.Repeated, k.Early)
	_, err := fmt.Fprintf(w,
		"stays of strangers: %d; with word of somebody unknown %d, too short for it %d; the "+
			"same said of known "+
			"people: %d\n", k.Visitors, k.Unknown, k.Short, k.Mistaken)
	return err
}
