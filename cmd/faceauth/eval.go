package main

import (
	"context"
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

	"github.com/faceauth/faceauth/evaluate"
	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/pipeline"
	"github.com/faceauth/faceauth/preprocess"
	"github.com/maruel/natural"
	"github.com/spf13/cobra"
)

func newEval() *cobra.Command {
	var o options
	var p evaluate.Protocol
	var order string
	var choose int
	var methods []string
	c := &cobra.Command{
		Use:   "eval DIR",
		Short: "measure the learner and the nearest labelled face on labelled recordings",
		Long: "Eval takes DIR, with one folder of images or one video for each identity. It enrols each known\n" +
			"identity from its first usable faces, streams the rest, and counts the verdicts of the learner\n" +
			"and of the nearest labelled face on the same faces. Of several faces in a frame it takes the\n" +
			"largest. The nearest face has no threshold of its own: it is given the best one in hindsight\n" +
			"that accepts no larger share of strangers than the learner.",
		Example: "  faceauth eval recordings --strangers dave,erin\n  faceauth eval recordings --choose-strangers 2 --json",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			var err error
			if p.Order, err = evaluate.ParseOrder(order); err != nil {
				return fail(badUsage, err)
			}
			if p.Enroll < 1 || p.Stride < 1 || choose < 0 {
				return fail(badUsage, fmt.Errorf("--enroll and --stride must be at least 1, and --choose-strangers not negative"))
			}
			if choose > 0 && len(p.Strangers) > 0 {
				return fail(badUsage, fmt.Errorf("give --strangers or --choose-strangers, not both"))
			}
			return o.eval(c, args[0], p, choose, methods)
		},
	}
	o.visionFlags(c)
	o.learnerFlags(c)
	c.Flags().IntVar(&p.Enroll, "enroll", 4, "first usable faces of each known identity that are labelled")
	c.Flags().StringSliceVar(&p.Strangers, "strangers", nil, "identities that are never enrolled")
	c.Flags().IntVar(&choose, "choose-strangers", 0, "run every choice of that many strangers, and give the means")
	c.Flags().StringSliceVar(&methods, "methods", []string{"learner", "nearest"}, "what is measured beside the learner, of "+strings.Join(evaluate.Methods[1:], ", "))
	c.Flags().StringVar(&order, "order", "sequential", "order of the stream: sequential, interleaved or shuffled")
	c.Flags().Uint64Var(&p.Seed, "seed", 1, "of the shuffled order")
	c.Flags().IntVar(&p.Stride, "stride", 1, "use every so manieth face of the stream")
	return c
}

func (o *options) eval(c *cobra.Command, dir string, p evaluate.Protocol, choose int, methods []string) error {
	v, err := o.open(nil, func(s string) { warn(c, s) })
	if err != nil {
		return err
	}
	defer v.Close()
	space := v.extractor.Space()
	settings := o.settings(c, online.Settings{})
	probe, err := online.New(space, settings) // refuse bad settings before an hour of work, not after
	if err != nil {
		return fail(badUsage, err)
	}
	settings = probe.Settings()
	warn(c, probe.Warnings()...)
	entries, err := evaluate.Entries(methods, space, settings)
	if err != nil {
		return fail(badUsage, err)
	}
	paths, err := identities(dir)
	if err != nil {
		return fail(badSource, err)
	}
	var ids []evaluate.Identity
	var names []string
	for _, path := range paths {
		id, err := o.identity(c, v, path)
		if errors.Is(err, facedet.ErrNotVideo) && !slices.Contains(videoExtensions, strings.ToLower(filepath.Ext(path))) {
			warn(c, path+" is neither a recording nor a folder of images, and is passed over")
			continue
		}
		if err != nil {
			return err
		}
		if slices.Contains(names, id.Name) {
			return fail(badSource, fmt.Errorf("%s has two recordings of %q", dir, id.Name))
		}
		ids, names = append(ids, id), append(names, id.Name)
	}
	choices := [][]string{p.Strangers}
	if choose > 0 {
		if choices = evaluate.Choices(names, choose); len(choices) == 0 || choose >= len(names) {
			return fail(badUsage, fmt.Errorf("--choose-strangers %d of %s leaves nobody to enrol", choose, count(len(names), "identity")))
		}
	}
	if len(ids) == 0 {
		return fail(badSource, fmt.Errorf("%s holds neither folders of images nor videos", dir))
	}
	bar := newProgress(len(choices), "evaluating")
	s, err := evaluate.RunAll(c.Context(), ids, p, choices, entries, func(int) { bar.step() })
	bar.end()
	if errors.Is(err, evaluate.ErrTooFew) {
		return fail(noFace, err)
	}
	if errors.Is(err, evaluate.ErrProtocol) {
		return fail(badUsage, err)
	}
	if err != nil {
		return err
	}
	if o.json {
		return json.NewEncoder(c.OutOrStdout()).Encode(struct {
			Settings any `json:"settings"`
			evaluate.Summary
		}{struct {
			Source   string `json:"source"`
			Features string `json:"features"`
			Detector string `json:"detector"`
			online.Settings
			evaluate.Protocol
			Choose int `json:"choose_strangers"`
		}{filepath.Base(filepath.Clean(dir)), space.ID, v.name, settings, p, choose}, s})
	}
	return printEval(c.OutOrStdout(), names, p, choose, s)
}

// A file with one of these endings is meant to be a recording: one that cannot be read is an error,
// and not a note that somebody left beside the recordings.
var videoExtensions = []string{".avi", ".mp4", ".m4v", ".mov", ".mkv", ".webm", ".mpg", ".mpeg", ".wmv", ".flv", ".ts", ".3gp", ".mjpeg", ".mjpg"}

// identities returns the folders and videos in dir, in natural order.
func identities(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w; it should hold one folder of images or one video for each identity", dir, err)
	}
	var paths []string
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("%s is empty; it should hold one folder of images or one video for each identity", dir)
	}
	slices.SortFunc(paths, natural.Compare)
	return paths, nil
}

// identity reads the faces of one recording.
func (o *options) identity(c *cobra.Command, v *vision, path string) (evaluate.Identity, error) {
	name := filepath.Base(path)
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		name = strings.TrimSuffix(name, filepath.Ext(name))
	}
	src, err := o.source(c, path)
	if err != nil {
		return evaluate.Identity{}, err
	}
	defer src.Close()
	bar := newProgress(src.Count().Declared, name)
	defer bar.end()
	frames := pipeline.New(src, v.detector, v.extractor, pipeline.Options{Gate: preprocess.LearnGate})
	id, err := evaluate.Read(c.Context(), name, counted{frames, bar}, preprocess.EnrolGate.Passes)
	if err != nil {
		return id, o.streamError(c, err)
	}
	if n := src.Count(); n.Declared > n.Read || n.Damaged > 0 {
		warn(c, fmt.Sprintf("%s declares %d frames and gave %d", path, n.Declared, n.Read))
	}
	return id, nil
}

// counted tells a progress bar of each frame.
type counted struct {
	evaluate.Stream
	bar progress
}

func (s counted) Next(ctx context.Context) (face.Frame, error) {
	f, err := s.Stream.Next(ctx)
	if err == nil {
		s.bar.step()
	}
	return f, err
}

func printEval(w io.Writer, names []string, p evaluate.Protocol, choose int, s evaluate.Summary) error {
	away := max(choose, len(p.Strangers))
	fmt.Fprintf(w, "%d of %d people enrolled with %s each, %s order", len(names)-away, len(names), count(p.Enroll, "face"), p.Order)
	if p.Stride > 1 {
		fmt.Fprintf(w, ", every %dth face", p.Stride)
	}
	switch {
	case choose > 0:
		fmt.Fprintf(w, "; means over %d choices of %s\n", s.Runs, count(choose, "stranger"))
	case len(p.Strangers) > 0:
		fmt.Fprintf(w, "; strangers: %s\n", strings.Join(p.Strangers, ", "))
	default:
		fmt.Fprintf(w, "; no strangers\n")
	}
	fmt.Fprintf(w, "judged: %s of enrolled people, %s of strangers; %s without a usable face\n\n",
		count(s.Faces.Known, "face"), count(s.Faces.Strangers, "face"), count(s.Faces.Undetected, "frame"))
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "method\tprecision\trecall\tFAR\trecall at FAR 0\tat FAR .001\tprecision at the learner's recall\tms a face\t")
	for _, m := range s.Methods {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%.3f\t\n", m.Name, figure(m.Precision), figure(m.Recall), share(m.FAR, math.Ceil),
			figure(m.RecallAtFAR0), figure(m.RecallAtFAR001), figure(m.PrecisionAtRecall), m.MSPerStep)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, m := range s.Methods {
		if p := m.Strangers; p.Total > 0 {
			fmt.Fprintf(w, "%s: %d of %s accepted at least once (95 %% interval %.2f to %.2f)\n",
				m.Name, p.Accepted, count(p.Total, "stranger"), math.Floor(p.Interval.Low*100)/100, math.Ceil(p.Interval.High*100)/100)
		}
	}
	for _, m := range s.Worst {
		fmt.Fprintf(w, "%s: least recall %s (strangers %s)", m.Name, figure(m.Recall), m.RecallWithout)
		if m.FARWithout != "" {
			fmt.Fprintf(w, ", largest FAR %s (strangers %s)", share(m.FAR, math.Ceil), m.FARWithout)
		}
		fmt.Fprintln(w)
	}
	return nil
}

// figure writes a rate with four places, rounded down.
func figure(r evaluate.Rate) string { return share(r, math.Floor) }

// share writes a rate with four places. Nothing is rounded so that it looks better.
func share(r evaluate.Rate, round func(float64) float64) string {
	if math.IsNaN(float64(r)) {
		return "-"
	}
	return fmt.Sprintf("%.4f", round(float64(r)*1e4)/1e4)
}
