// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/faceauth/faceauth/internal/cli"
	"github.com/faceauth/faceauth/internal/office"
	"github.com/faceauth/faceauth/internal/table"
	"github.com/faceauth/faceauth/online"
	"github.com/spf13/cobra"
)

// attendance holds the flags of office visits.
type attendance struct {
	options
	state, from, to, name string
	away                  time.Duration
	csv                   bool
}

func newVisits() *cobra.Command {
	var a attendance
	c := &cobra.Command{
		Use:   "visits",
		Short: "who was in the office from when to when, with all corrections until now",
		Long: "Lists visits, as far back as the office keeps sightings (--keep-days). It only\n" +
			"reads, and the office may run meanwhile: of who is in view at present it says\n" +
			"what the office has written last.",
		Example: "  faceauth office visits --from 2026-11-01 --to 2026-12-01 --csv >november.csv",
		Args:    cobra.NoArgs,
		RunE:    a.run,
	}
	a.galleryFlags(c.Flags())
	a.JSONFlag(c.Flags())
	f := c.Flags()
	f.StringVar(&a.state, "state", "", "name of the office; not needed if the gallery has only one")
	f.StringVar(&a.from, "from", "",
		"only visits that have not ended before: a day, a time, or how long ago")
	f.StringVar(&a.to, "to", "", "only visits that have begun before")
	f.StringVar(&a.name, "name", "", "the person's name")
	f.DurationVar(&a.away, "away", 10*time.Second,
		"time after which a person who is not seen has left")
	f.BoolVar(&a.csv, "csv", false, "a table for other programs")
	c.MarkFlagsMutuallyExclusive("csv", "json")
	return c
}

func (a *attendance) run(c *cobra.Command, _ []string) error {
	var wanted office.Wanted
	now := time.Now()
	for _, x := range []struct {
		text string
		at   *time.Time
	}{{a.from, &wanted.From}, {a.to, &wanted.To}} {
		if x.text == "" {
			continue
		}
		at, err := moment(x.text, now)
		if err != nil {
			return cli.Fail(cli.BadUsage, err)
		}
		*x.at = at
	}
	g, err := a.openGallery(c)
	if err != nil {
		return err
	}
	defer g.Close()
	wanted.Person = g.Number(a.name)
	if a.name != "" && wanted.Person == 0 {
		return cli.Fail(cli.BadUsage, fmt.Errorf("%w: %s", online.ErrUnknown, a.name))
	}
	visits, err := office.PastVisits(g, a.state, a.away, wanted)
	if err != nil {
		return cli.Fail(cli.BadGallery, err)
	}
	switch out := c.OutOrStdout(); {
	case a.csv:
		_, err = out.Write(office.CSV(visits))
	case a.JSON:
		err = json.NewEncoder(out).Encode(visits)
	default:
		err = printVisits(out, visits)
	}
	return err
}

// printVisits prints visits for people, the first one first.
func printVisits(w io.Writer, visits []office.Visit) error {
	t := table.New(w, 2)
	for i := len(visits) - 1; i >= 0; i-- {
		v := visits[i]
		who := v.Name
		if who == "" {
			who = fmt.Sprintf("stranger %d", v.Group)
		}
		first, last := v.First.Local(), v.Last.Local()
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", first.Format("2006-01-02 15:04:05"),
			last.Format(time.TimeOnly), who, strings.Join(v.Cameras, " "))
	}
	return t.Flush()
}
