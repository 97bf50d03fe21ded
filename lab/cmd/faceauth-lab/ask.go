// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"text/tabwriter"

	"github.com/faceauth/faceauth/internal/cli"
	"github.com/faceauth/faceauth/lab/evaluate"
	"github.com/spf13/cobra"
)

// asking holds the flags of ask.
type asking struct {
	people, photographs []int
	rates               []float64
	draws               int
	seed                uint64
	strangers           string
}

func newAsk() *cobra.Command {
	var o options
	var a asking
	c := &cobra.Command{
		Use:   "ask DIR",
		Short: "measure whether strangers get names at the rate that was asked for",
		Long: "Ask draws galleries of several sizes at random, asks for several rates of " +
			"strangers, and counts how many\n" +
			"strangers get somebody's name, and how many enrolled people do not get theirs, by " +
			"single pictures. Nothing\n" +
			"is learned. An interval treats people as independent, and galleries, too.\n\n" +
			labelledRecordings,
		Example: "  faceauth-lab ask lfw --people 10,50,200\n" +
			"  faceauth-lab ask umist --people 20 --photographs 8 --strangers lfw",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return o.ask(c, args[0], a) },
	}
	o.VisionFlags(c)
	f := c.Flags()
	f.IntSliceVar(&a.people, "people", []int{10, 50, 200}, "sizes of galleries")
	f.IntSliceVar(&a.photographs, "photographs", []int{1}, "photographs of each person")
	f.Float64SliceVar(&a.rates, "rates", []float64{1e-3, 1e-2}, "rates of strangers to ask for")
	f.IntVar(&a.draws, "draws", 20, "galleries of each size")
	f.Uint64Var(&a.seed, "seed", 1, "seed of everything random")
	f.StringVar(&a.strangers, "strangers", "", "recordings of other people, who are strangers, too")
	return c
}

func (o *options) ask(c *cobra.Command, dir string, a asking) error {
	v, space, _, err := o.prepare(c, false)
	if err != nil {
		return err
	}
	defer v.Close()
	if !space.Stills.Measured() {
		return cli.Fail(cli.BadUsage, fmt.Errorf(
			"the space %s has no table of rates; measure it with tune", space.ID))
	}
	ids, _, err := o.recordings(c, v, dir)
	if err != nil {
		return err
	}
	var strangers []evaluate.Identity
	if a.strangers != "" {
		if strangers, _, err = o.recordings(c, v, a.strangers); err != nil {
			return err
		}
	}
	var all []evaluate.Asked
	for _, n := range a.photographs {
		for _, people := range a.people {
			rows, err := evaluate.Ask(c.Context(), ids, strangers, space, people, n, a.draws,
				a.rates, a.seed)
			if errors.Is(err, evaluate.ErrTooFew) {
				return cli.Fail(cli.NoFace, err)
			}
			if err != nil {
				return err
			}
			all = append(all, rows...)
		}
	}
	if o.JSON {
		return json.NewEncoder(c.OutOrStdout()).Encode(all)
	}
	t := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "people\tphotographs\tlooks\tasked\thad\t95 % interval\tstrangers' "+
		"pictures\tright name\twrong\t")
	for _, x := range all {
		mark := ""
		if !x.Exact() {
			mark = "!"
		}
		right := 1 - float64(x.FNIR.Rate)
		name := "-"
		if !math.IsNaN(right) {
			name = fmt.Sprintf("%.4f", math.Floor(right*1e4)/1e4)
		}
		fmt.Fprintf(t, "%d\t%d\t%.1f\t%g\t%.5f%s\t%.5f to %.5f\t%d\t%s\t%d\t\n", x.People,
			x.Photographs, x.Looks,
			x.Rate, float64(x.FPIR.Rate), mark, x.FPIR.Interval.Low, x.FPIR.Interval.High,
			x.FPIR.Faces, name, x.Misnamed)
	}
	return t.Flush()
}
