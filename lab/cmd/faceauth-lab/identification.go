// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"text/tabwriter"

	"github.com/faceauth/faceauth/internal/cli"
	"github.com/faceauth/faceauth/lab/evaluate"
	"github.com/faceauth/faceauth/lab/report"
	"github.com/faceauth/faceauth/online"
	"github.com/spf13/cobra"
)

// identification is the protocol that has its own kind of result.
const identification = "identification"

// identify measures an identification, prints the result, and writes its page.
func (o *options) identify(c *cobra.Command, dir string, e evaluation) error {
	if err := e.checkNames(dir); err != nil {
		return err
	}
	v, space, settings, err := o.prepare(c, false)
	if err != nil {
		return err
	}
	defer v.Close()
	methods, err := evaluate.Entries(e.methods, space, settings)
	if err != nil {
		return cli.Fail(cli.BadUsage, err)
	}
	if err := os.MkdirAll(e.out, 0o700); err != nil { // fail before the work, and not after it
		return fmt.Errorf("writing report: %w", err)
	}
	ids, _, err := o.recordings(c, v, dir)
	if err != nil {
		return err
	}
	r, err := evaluate.Identify(c.Context(), ids,
		evaluate.Identification{Protocol: e.Protocol, Learn: e.Learn},
		methods)
	if err != nil {
		return evalError(err)
	}
	lines := e.describeIdentification(r.Counts)
	var table []report.Setting
	for _, line := range cli.Describe(v.Vision, settings, "") {
		table = append(table, report.Setting(line))
	}
	source := filepath.Base(filepath.Clean(dir))
	page := report.Meta{Source: source, Protocol: lines, Settings: table,
		Warnings: report.NotMeasured(r)}
	if err := report.WriteIdentification(e.out, r, page); err != nil {
		return err
	}
	path := filepath.Join(e.out, "report.html")
	w := c.OutOrStdout()
	if o.JSON {
		return json.NewEncoder(w).Encode(struct {
			Settings any    `json:"settings"`
			Report   string `json:"report"`
			evaluate.Identified
		}{struct {
			Source   string `json:"source"`
			Features string `json:"features"`
			Detector string `json:"detector"`
			online.Settings
			evaluation
		}{source, space.ID, v.Name, settings, e}, path, r})
	}
	for _, line := range lines {
		fmt.Fprintln(w, line)
	}
	if err := printIdentified(w, r); err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "report: %s\n", path)
	return err
}

// describeIdentification says in sentences who was enrolled, which probes there were, and which
// faces were left out.
func (e *evaluation) describeIdentification(n evaluate.IdentificationCounts) []string {
	first := fmt.Sprintf("identification: %d of %s enrolled with %s each; ",
		n.Enrolled, cli.Count(n.People, "person"), cli.Count(e.Enroll, "face"))
	if e.Learn {
		first += fmt.Sprintf("probes are learned from, in %s order", e.Order)
	} else {
		first += "nothing is learned from probes"
	}
	probes := fmt.Sprintf("probes: %d mated, %d non-mated of %s", n.Mated, n.NonMated,
		cli.Count(n.Strangers, "stranger"))
	if n.Skipped > 0 {
		probes += fmt.Sprintf("; every %s face, so that %d are passed over", ordinal(e.Stride),
			n.Skipped)
	}
	acquire, enrol := n.FailureToAcquire, n.FailureToEnrol
	lines := []string{
		first, probes,
		fmt.Sprintf("failure to acquire: %d of %s left out: %d without a face, "+
			"%d with a face of which no vector could be made; %s had no other frames",
			acquire.Frames(), cli.Count(n.Frames, "frame"), acquire.NoFace, acquire.NoVector,
			cli.Count(len(acquire.People), "person")),
		fmt.Sprintf("failure to enrol: %s left out, with %s: fewer than %d of them good enough "+
			"to enrol from%s",
			cli.Count(len(enrol.People), "person"), cli.Count(enrol.Faces, "face"), e.Enroll,
			report.Reasons(enrol.Reasons)),
	}
	if n.Several > 0 {
		lines = append(lines, fmt.Sprintf("several faces: in %s; the largest counts",
			cli.Count(n.Several, "frame")))
	}
	return lines
}

func printIdentified(w io.Writer, r evaluate.Identified) error {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t)
	fmt.Fprintln(t, "method\tFPIR at most\tthreshold\trank-1 TPIR\tmated probes\t95 % interval "+
		"*\twrong names\tFPIR\tnon-mated probes\t95 % interval *\tms a probe\t")
	for _, m := range r.Methods {
		row := func(bound string, o *evaluate.Operating) {
			if o == nil {
				fmt.Fprintf(t, "%s\t%s\t-\t-\t-\t-\t-\t-\t-\t-\t-\t\n", m.Name, bound)
				return
			}
			strangers := "-"
			if o.FPIR.Faces > 0 {
				strangers = span(o.FPIR.Interval)
			}
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%d of %d\t%s\t%d\t%s\t%d of %d\t%s\t%.3f\t\n",
				m.Name, bound, report.Threshold(o.Threshold), low(o.TPIR), o.Right(), o.FNIR.Faces,
				span(o.TPIRInterval),
				o.Misnamed, high(o.FPIR.Rate), o.FPIR.Errors, o.FPIR.Faces, strangers, m.MSPerProbe)
		}
		row("any", &m.Rank1)
		for _, p := range m.Points {
			row(fmt.Sprintf("%.6g %%", 100*p.Target), p.Operating)
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w, "TPIR, which is 1-FNIR: mated probes given the right name; wrong names: "+
		"mated probes given another's;")
	fmt.Fprintln(w, "FPIR: non-mated probes given any name; thresholds, the least scores that "+
		"count, are of these probes")
	fmt.Fprintln(w, "* people are taken for independent, and not their probes")
	for _, s := range report.NotMeasured(r) {
		fmt.Fprintln(w, s)
	}
	return nil
}
