// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/cli"
	"github.com/faceauth/faceauth/lab/dataset"
	"github.com/faceauth/faceauth/lab/evaluate"
	"github.com/faceauth/faceauth/lab/report"
	"github.com/faceauth/faceauth/online"
	"github.com/spf13/cobra"
)

// options holds the flags that several commands share.
type options struct{ cli.Options }

// Help of flags that several commands have with different values.
const (
	enrollHelp = "first usable faces of each enrolled person that are labelled"
	chooseHelp = "number of strangers; each choice of this many people is tried"
)

// evaluation holds the flags of eval.
type evaluation struct {
	evaluate.Protocol
	Name    string   `json:"protocol"`
	Users   []string `json:"users,omitempty"`
	Choose  int      `json:"choose_strangers"`
	Runs    int      `json:"runs_drawn,omitempty"`        // number of random choices of strangers
	Learn   bool     `json:"learn_from_probes,omitempty"` // for the identification protocol
	methods []string
	out     string
}

// protocols are the values of --protocol.
var protocols = []string{"office", "authentication", "adaptation", identification}

func newEval() *cobra.Command {
	var o options
	var e evaluation
	var order string
	c := &cobra.Command{
		Use:   "eval DIR",
		Short: "measure the learner and other methods on labelled recordings",
		Long: "Eval enrols people from their first usable faces, streams the rest, and counts " +
			"the verdicts of each\n" +
			"method on the same faces. It prints tables, and writes report.html and curves below " +
			"--out.\n\n" +
			labelledRecordings + "\n\n" +
			"Protocols:\n" +
			"  office          everybody is enrolled but the strangers: --strangers, or " +
			"--choose-strangers\n" +
			"  authentication  each identity, or each of --users, in turn is the one enrolled " +
			"user, and all\n" +
			"                  others are impostors\n" +
			"  adaptation      the same, with the faces of the others mixed in at random: for a " +
			"user whose\n" +
			"                  recordings were made in several places\n" +
			"  identification  people with more faces than --enroll, 1 unless given, are " +
			"enrolled, and their other\n" +
			"                  faces are mated probes; the faces of all others, and of " +
			"--strangers, are non-mated\n" +
			"                  probes. Eval gives the rank-1 true positive identification rate " +
			"(TPIR, 1-FNIR) at\n" +
			"                  bounds on the false positive identification rate (FPIR) of 1 % " +
			"and .1 %, and without\n" +
			"                  a false positive. Nothing is learned from probes unless --learn " +
			"is given\n" +
			"--apart 0.5 makes the last half of each person's faces a test from which nothing is " +
			"learned.\n\n" +
			"Methods: learner; nearest, the nearest labelled face; within, the same within the " +
			"distance at --rate,\n" +
			"which is known before the test; knn, the three nearest; mean, the mean of\n" +
			"the labelled faces; boost, online semi-supervised boosting with weak learners drawn " +
			"from the whole\n" +
			"stream, boost-first and boost-last from its first and last quarter; selftrain, the " +
			"nearest of all\n" +
			"faces that were ever accepted. A method without a threshold gets the best one, " +
			"chosen on the test\n" +
			"itself, that accepts no larger share of strangers than the learner.",
		Example: "  faceauth-lab eval recordings --strangers dave,erin\n" +
			"  faceauth-lab eval recordings --choose-strangers 2 --json\n" +
			"  faceauth-lab eval recordings --protocol authentication --methods " +
			"nearest,mean,boost\n" +
			"  faceauth-lab eval recordings --protocol identification",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := e.check(c, order); err != nil {
				return cli.Fail(cli.BadUsage, err)
			}
			if e.Name == identification {
				return o.identify(c, args[0], e)
			}
			return o.eval(c, args[0], e)
		},
	}
	o.VisionFlags(c)
	o.LearnerFlags(c)
	o.StrangersFlag(c, "rate", 1e-3)
	c.Flags().StringVar(&e.Name, "protocol", "office", "who is enrolled: "+
		strings.Join(protocols, ", "))
	c.Flags().StringSliceVar(&e.Users, "users", nil,
		"identities that are the user in turn, in authentication and adaptation (default: all)")
	c.Flags().IntVar(&e.Enroll, "enroll", 4, enrollHelp)
	c.Flags().BoolVar(&e.Learn, "learn", false,
		"in identification, learn from the probes, in --order")
	c.Flags().StringSliceVar(&e.Strangers, "strangers", nil, "identities that are never enrolled")
	c.Flags().IntVar(&e.Choose, "choose-strangers", 0, chooseHelp)
	c.Flags().IntVar(&e.Runs, "runs", 0, "number of random choices to try; 0 for all")
	c.Flags().StringSliceVar(&e.methods, "methods", []string{"learner", "nearest"},
		"methods to measure beside the learner, of "+strings.Join(evaluate.Methods[1:], ", "))
	c.Flags().StringVar(&order, "order", "",
		"order of the stream: sequential, interleaved, mixed or shuffled "+
			"(default: "+
			"sequential; mixed in adaptation, shuffled in identification)")
	c.Flags().Uint64Var(&e.Seed, "seed", 1, "seed of everything random")
	c.Flags().IntVar(&e.Stride, "stride", 1, "use every Nth face")
	c.Flags().Float64Var(&e.Apart, "apart", 0,
		"share of each person's faces, the last ones, that are only a test; "+
			"0: all faces are learned and counted")
	c.Flags().StringVar(&e.out, "out", "faceauth-eval", "folder of the report and the curves")
	return c
}

// check returns nil if the flags fit together, and sets the order.
func (e *evaluation) check(c *cobra.Command, order string) (err error) {
	if order == "" {
		order = string(evaluate.Sequential)
		switch e.Name {
		case "adaptation":
			order = string(evaluate.Mixed)
		case identification:
			order = string(evaluate.Shuffled)
		}
	}
	if e.Order, err = evaluate.ParseOrder(order); err != nil {
		return err
	}
	given := c.Flags().Changed
	if e.Name == identification {
		if !given("enroll") {
			e.Enroll = 1
		}
		for _, name := range []string{"users", "choose-strangers", "runs", "apart"} {
			if given(name) {
				return fmt.Errorf("--%s is not for the protocol identification; leave it out", name)
			}
		}
		if given("order") && !e.Learn {
			return errors.New("without --learn the order does not matter; leave out --order, or " +
				"give --learn, too")
		}
	}
	switch {
	case !slices.Contains(protocols, e.Name):
		return fmt.Errorf("unknown protocol %q; use %s", e.Name, strings.Join(protocols, ", "))
	case e.Enroll < 1 || e.Stride < 1 || e.Choose < 0 || e.Runs < 0:
		return errors.New("--enroll and --stride must be at least 1, and --choose-strangers and " +
			"--runs not negative")
	case !(e.Apart >= 0 && e.Apart < 1):
		return fmt.Errorf("--apart %g: give a share from 0 to below 1", e.Apart)
	case e.Choose > 0 && len(e.Strangers) > 0:
		return errors.New("give --strangers or --choose-strangers, not both")
	case e.Learn && e.Name != identification:
		return fmt.Errorf(
			"--learn is for the protocol identification; in %s every stream is learned from",
			e.Name)
	case e.Name != "office" && e.Name != identification &&
		(given("strangers") || given("choose-strangers")):
		return fmt.Errorf("in the protocol %s all others are strangers; leave out --strangers "+
			"and --choose-strangers",
			e.Name)
	case e.Runs > 0 && e.Choose == 0:
		return errors.New("--runs draws from the choices of --choose-strangers; give that, too")
	case e.Name == "office" && given("users"):
		return errors.New("--users is for the protocols authentication and adaptation")
	}
	return nil
}

// checkNames returns nil if dir has entries for the people that flags name. It is called before the
// recordings are read, because this may take an hour.
func (e *evaluation) checkNames(dir string) error {
	if len(e.Users) == 0 && len(e.Strangers) == 0 {
		return nil
	}
	names, err := dataset.Names(dir)
	if err != nil {
		return nil // reading the recordings reports this error
	}
	for _, u := range e.Users {
		if !slices.Contains(names, u) {
			return cli.Fail(cli.BadUsage, fmt.Errorf("there is no recording of the user %q in %s",
				u, dir))
		}
	}
	for _, s := range e.Strangers {
		if !slices.Contains(names, s) {
			return cli.Fail(cli.BadUsage, fmt.Errorf(
				"stranger %q is not among the recordings in %s", s, dir))
		}
	}
	return nil
}

// choices returns the strangers of each run.
func (e *evaluation) choices(names []string) (all [][]string, err error) {
	switch {
	case e.Name != "office":
		users := e.Users
		if len(users) == 0 {
			users = names
		}
		for _, u := range users {
			if !slices.Contains(names, u) {
				return nil, fmt.Errorf("there is no recording of the user %q", u)
			}
		}
		all = evaluate.OneUser(names, users)
	case e.Choose > 0:
		if e.Choose >= len(names) {
			return nil, fmt.Errorf("--choose-strangers %d of %s leaves nobody to enrol", e.Choose,
				cli.Count(len(names), "identity"))
		}
		if all, err = evaluate.DrawChoices(names, e.Choose, e.Runs, e.Seed); err != nil {
			return nil, fmt.Errorf("--choose-strangers %d: %w; draw some with --runs", e.Choose,
				err)
		}
	default:
		all = [][]string{e.Strangers}
	}
	return all, nil
}

// prepare opens the detector and checks the settings, before an hour of work and not after it. With
// pictures the networks run in this process.
func (o *options) prepare(c *cobra.Command,
	pictures bool) (v *vision, space face.Space, s online.Settings,
	err error) {
	if v, err = look(&o.Options, c, pictures); err != nil {
		return nil, space, s, err
	}
	space = v.Space
	s = o.Settings(c, online.Settings{})
	probe, err := online.New(space, s)
	if err != nil {
		v.Close()
		return nil, space, s, cli.Fail(cli.BadUsage, err)
	}
	cli.Warn(c, probe.Warnings()...)
	return v, space, probe.Settings(), nil
}

// describeNorms says how clear the faces are.
func describeNorms(ids []evaluate.Identity, space face.Space) []string {
	norms := evaluate.Norms(ids)
	if norms == nil {
		return nil
	}
	unclear, _ := slices.BinarySearch(norms, space.ClearNorm)
	low, _ := slices.BinarySearch(norms, space.LearnNorm)
	return []string{
		fmt.Sprintf("norms of the embeddings: half above %.2f, 98 %% above %.2f; of %s, %d below "+
			"%.3g are hard to recognise, and %d below %.3g are not learned", norms[len(norms)/2],
			norms[len(norms)/50],
			cli.Count(len(norms), "face"), unclear, space.ClearNorm, low, space.LearnNorm)}
}

func (o *options) eval(c *cobra.Command, dir string, e evaluation) error {
	if err := e.checkNames(dir); err != nil {
		return err
	}
	v, space, settings, err := o.prepare(c, false)
	if err != nil {
		return err
	}
	defer v.Close()
	entries, err := evaluate.Entries(e.methods, space, settings)
	if err != nil {
		return cli.Fail(cli.BadUsage, err)
	}
	if err := os.MkdirAll(e.out, 0o700); err != nil {
		return fmt.Errorf("writing report: %w", err)
	}
	ids, names, err := o.recordings(c, v, dir)
	if err != nil {
		return err
	}
	choices, err := e.choices(names)
	if err != nil {
		return cli.Fail(cli.BadUsage, err)
	}
	bar := cli.NewProgress(len(choices), "evaluating")
	s, err := evaluate.RunAll(c.Context(), ids, e.Protocol, choices, entries, func(int) {
		bar.Add(1)
	})
	bar.Finish()
	if err != nil {
		return evalError(err)
	}
	lines := e.describe(names, choices, s)
	lines = append(lines, describeNorms(ids, v.Space)...)
	for _, m := range s.Methods {
		if m.PassedOver > 0 {
			w := fmt.Sprintf(
				"%s: k = %d was full, and %s recognised and not learned; use a larger --k",
				m.Name, settings.K, cli.Count(int(m.PassedOver), "face"))
			cli.Warn(c, w)
			lines = append(lines, w)
		}
	}
	var table []report.Setting
	for _, line := range cli.Describe(v.Vision, settings, "") {
		table = append(table, report.Setting(line))
	}
	source := filepath.Base(filepath.Clean(dir))
	if err := report.Write(e.out, s,
		report.Meta{Source: source, Protocol: lines, Settings: table}); err != nil {
		return err
	}
	if o.JSON {
		return json.NewEncoder(c.OutOrStdout()).Encode(struct {
			Settings any    `json:"settings"`
			Report   string `json:"report"`
			evaluate.Summary
		}{struct {
			Source   string `json:"source"`
			Features string `json:"features"`
			Detector string `json:"detector"`
			online.Settings
			evaluation
		}{source, space.ID, v.Name, settings, e}, filepath.Join(e.out, "report.html"), s})
	}
	w := c.OutOrStdout()
	for _, line := range lines {
		fmt.Fprintln(w, line)
	}
	if err := printMethods(w, s); err != nil {
		return err
	}
	fmt.Fprintf(w, "report: %s\n", filepath.Join(e.out, "report.html"))
	return nil
}

// evalError gives an error of an evaluation its exit code.
func evalError(err error) error {
	switch {
	case errors.Is(err, evaluate.ErrTooFew):
		return cli.Fail(cli.NoFace, err)
	case errors.Is(err, evaluate.ErrProtocol):
		return cli.Fail(cli.BadUsage, err)
	}
	return err
}

// describe says in sentences who was enrolled, and which faces were judged.
func (e *evaluation) describe(names []string, choices [][]string, s evaluate.Summary) []string {
	var b strings.Builder
	enrolled := len(names)
	if len(choices) > 0 {
		enrolled -= len(choices[0])
	}
	fmt.Fprintf(&b, "%s: %d of %d people enrolled with %s each, %s order", e.Name, enrolled,
		len(names), cli.Count(e.Enroll, "face"), e.Order)
	if e.Stride > 1 {
		fmt.Fprintf(&b, ", every %s face", ordinal(e.Stride))
	}
	switch {
	case e.Name != "office":
		fmt.Fprintf(&b, "; %s in turn", cli.Count(len(choices), "user"))
	case e.Choose > 0 && e.Runs > 0:
		fmt.Fprintf(&b, "; %d choices of %s, drawn at random", len(choices),
			cli.Count(e.Choose, "stranger"))
	case e.Choose > 0:
		fmt.Fprintf(&b, "; %d choices of %s", len(choices), cli.Count(e.Choose, "stranger"))
	case len(e.Strangers) > 0:
		fmt.Fprintf(&b, "; strangers: %s", strings.Join(e.Strangers, ", "))
	default:
		fmt.Fprintf(&b, "; no strangers")
	}
	lines := []string{b.String()}
	if e.Apart > 0 {
		lines = append(lines, fmt.Sprintf(
			"before the test: %s to adapt to; in the test nothing is learned",
			cli.Count(s.Faces.Adaptation, "face")))
	}
	return append(lines, fmt.Sprintf(
		"judged: %s of enrolled people, %s of strangers; %s without a usable face",
		cli.Count(s.Faces.Known, "face"), cli.Count(s.Faces.Strangers, "face"),
		cli.Count(s.Faces.Undetected, "frame")))
}

func printMethods(w io.Writer, s evaluate.Summary) error {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t)
	fmt.Fprintln(t, "method\tprecision\trecall\tFAR\trecall at FAR 0\tat FAR .001\tprecision at "+
		"the learner's recall\tms a face\t")
	for _, m := range s.Methods {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%.3f\t\n", m.Name, low(m.Precision),
			low(m.Recall), high(m.FAR),
			low(m.RecallAtFAR0), low(m.RecallAtFAR001), low(m.PrecisionAtRecall), m.MSPerStep)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if s.Runs > 1 {
		fmt.Fprintf(w, "over the attempts of all %d runs; the three columns from \"recall at FAR "+
			"0\" on have the best threshold of each run and are means\n", s.Runs)
	}
	t = tabwriter.NewWriter(w, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t)
	fmt.Fprintln(t,
		"method\t\trate\tattempts\t95 % interval *\tpeople with an error\t95 % interval\t")
	for _, m := range s.Methods {
		for _, e := range m.ErrorRates() {
			if e.Faces > 0 {
				fmt.Fprintf(t, "%s\t%s\t%s\t%d of %d\t%s\t%d of %d\t%s\t\n", m.Name, e.Name,
					high(e.Rate),
					e.Errors, e.Faces, span(e.Interval), e.PeopleWrong, e.People,
					span(e.PeopleInterval))
			}
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w, "* people are taken for independent, and not their attempts; "+
		"the last interval is of the share of people with an error")
	if len(s.Worst) > 0 {
		fmt.Fprintln(w)
	}
	for _, m := range s.Worst {
		fmt.Fprintf(w, "%s: least recall %s (%s)", m.Name, low(m.Recall), m.RecallRun)
		if m.FARRun != "" {
			fmt.Fprintf(w, ", largest FAR %s (%s)", high(m.FAR), m.FARRun)
		}
		fmt.Fprintln(w)
	}
	return nil
}

// low and high write a rate, rounded down or up so that it never looks better than it is.
func low(r evaluate.Rate) string  { return report.Figure(r, math.Floor) }
func high(r evaluate.Rate) string { return report.Figure(r, math.Ceil) }

func span(i evaluate.Interval) string {
	return low(evaluate.Rate(i.Low)) + " to " + high(evaluate.Rate(i.High))
}

// ordinal writes 2nd, 3rd, 4th and so on.
func ordinal(n int) string {
	switch {
	case n/10%10 == 1:
	case n%10 == 1:
		return fmt.Sprintf("%dst", n)
	case n%10 == 2:
		return fmt.Sprintf("%dnd", n)
	case n%10 == 3:
		return fmt.Sprintf("%drd", n)
	}
	return fmt.Sprintf("%dth", n)
}
