// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/faceauth/faceauth/eye"
	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/models"
	"github.com/faceauth/faceauth/online"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Options holds the flags that several commands share.
type Options struct {
	Features, Detector string
	Models             string // folder of the model files
	// Files that describe networks of the user's own. Empty means the built-in networks.
	DetectorModel, EmbeddingModel string
	Timeout                       time.Duration // of a source
	EveryFrame                    bool
	JSON                          bool
	Untuned                       bool        // the embedding need not have settings
	Loader                        *eye.Loader // of the eyes, or nil

	// Settings of the learner that the command line gives; see [Options.Settings].
	learner online.Settings
}

// VisionFlags adds the flags for detectors and embeddings.
func (o *Options) VisionFlags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&o.Features, "features", "auto",
		"feature space: embedding, pixels (of the thesis, much weaker), or "+
			"auto: the gallery's, else embedding")
	f.StringVar(&o.Detector, "detector", "auto",
		"face detector: network, haar, or auto: network if the models are installed, else haar")
	o.SourceFlags(c)
	o.NetworkFlags(c)
	tunes(f, "features", "detector")
	Values(c, "features", "auto", "embedding", "pixels")
	Values(c, "detector", "auto", "network", "haar")
}

// SourceFlags adds the flags of a command that reads a source.
func (o *Options) SourceFlags(c *cobra.Command) {
	o.Timeout = 10 * time.Second
	c.Flags().Func("timeout",
		"`time` to wait for a source to open, and for each frame (default 10s)",
		func(s string) (err error) {
			o.Timeout, err = time.ParseDuration(s)
			if err != nil || o.Timeout <= 0 {
				err = errors.New("it must be a time above 0, such as 10s")
			}
			return err
		})
	tunes(c.Flags(), "timeout")
	o.JSONFlag(c.Flags())
}

// JSONFlag adds --json, for [Options.Print].
func (o *Options) JSONFlag(f *pflag.FlagSet) {
	f.BoolVar(&o.JSON, "json", false, "print JSON for programs")
}

// Print prints a result: as JSON for programs, or as text.
func (o *Options) Print(c *cobra.Command, result any, format string, args ...any) error {
	if o.JSON {
		return json.NewEncoder(c.OutOrStdout()).Encode(result)
	}
	_, err := fmt.Fprintf(c.OutOrStdout(), format, args...)
	return err
}

// NetworkFlags adds the flags for the networks that find faces and make vectors.
func (o *Options) NetworkFlags(c *cobra.Command) {
	o.EmbeddingFlags(c)
	c.Flags().StringVar(&o.DetectorModel, "detector-model", "",
		"detector of `faceauth models list`, or the description (JSON) of one of your own "+
			"(default yunet if it is installed, or else fr_detect)")
	tunes(c.Flags(), "detector-model")
}

// EmbeddingFlags adds the flags for the network that makes vectors.
func (o *Options) EmbeddingFlags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&o.Models, "models", models.Dir(), "folder of the model files")
	f.StringVar(&o.EmbeddingModel, "embedding-model", "",
		"description (JSON) of an embedding network of your own")
	tunes(f, "models", "embedding-model")
}

// SpareFlag adds --every-frame, for commands that otherwise skip frames.
func (o *Options) SpareFlag(c *cobra.Command) {
	c.Flags().BoolVar(&o.EveryFrame, "every-frame", false,
		"look for faces in every frame, even if nothing moves")
}

// Embedding returns the description of the network that makes vectors.
func (o *Options) Embedding() (models.Description, error) {
	d, err := models.Of(models.Embedding, o.EmbeddingModel)
	return d, Fail(BadModel, err)
}

// Detectors returns the descriptions of the networks for faces and for landmarks.
func (o *Options) Detectors() (boxes, points models.Description, err error) {
	boxes = models.Best(o.Models)
	if o.DetectorModel != "" {
		boxes, err = models.Of(models.Detector, o.DetectorModel)
	}
	return boxes, models.Default(models.Landmarks), Fail(BadModel, err)
}

// VerifyNetworks reads the files of networks, so that a missing or altered file is found before the
// work.
func (o *Options) VerifyNetworks(networks []models.Description) error {
	for _, d := range networks {
		if _, err := d.Path(o.Models); err != nil {
			return Fail(BadModel, err)
		}
	}
	return nil
}

// Strangers are the words for rates of strangers, from the most to the least cautious.
var Strangers = []struct {
	Word string
	Rate float64
}{{"strict", 1e-4}, {"balanced", 1e-3}, {"generous", 1e-2}}

// StrangersFlag adds the flag of the rate of strangers, with the rate that the command has without
// it. Its name is --strangers, but where strangers are people.
func (o *Options) StrangersFlag(c *cobra.Command, name string, usual float64) {
	var words []string
	var named string
	for _, s := range Strangers {
		words = append(words, s.Word)
		if s.Rate == usual {
			named = s.Word
		}
	}
	c.Flags().Func(name, fmt.Sprintf(
		"`rate` of strangers who may get somebody's name, however many people are "+
			"enrolled: strict (1 in 10,000), balanced (1 in 1,000), generous (1 in 100), or a "+
			"number; a lower one misses "+
			"more people (default %s)", named), func(text string) error {
		for _, s := range Strangers {
			if text == s.Word {
				o.learner.Strangers = s.Rate
				return nil
			}
		}
		rate, err := strconv.ParseFloat(text, 64)
		if err != nil || !(rate > 0) {
			return fmt.Errorf("it must be %s, or a number above 0 and at most 0.1, such as 0.001",
				strings.Join(words, ", "))
		}
		o.learner.Strangers = rate
		return nil
	})
	Values(c, name, words...)
}

// LearnerFlags adds the settings of the learner.
func (o *Options) LearnerFlags(c *cobra.Command) {
	f, s := c.Flags(), &o.learner
	positive(f, &s.K, "k",
		"largest `number` of learned centroids; enrolled faces come on top of it (default 300)")
	positive(f, &s.Sigma, "sigma", "kernel `width` (default: the feature space's)")
	positive(f, &s.Gamma, "gamma", "regulariser `gamma_g` (default: the feature space's)")
	positive(f, &s.Reach, "reach", "longest `edge` of the graph (default: the feature space's)")
	f.Float64Var(&s.Accept, "accept", 0, "least confidence for a name, 0 to 1")
	f.Float64Var(&s.Learn, "learn-from", 0, "least confidence of a learned face, 0 to 1")
	tunes(f, "k", "sigma", "gamma", "reach", "accept", "learn-from")
}

// Settings returns s with the values of the command line.
func (o *Options) Settings(c *cobra.Command, s online.Settings) online.Settings {
	s.K = cmp.Or(o.learner.K, s.K)
	s.Sigma = cmp.Or(o.learner.Sigma, s.Sigma)
	s.Gamma = cmp.Or(o.learner.Gamma, s.Gamma)
	s.Reach = cmp.Or(o.learner.Reach, s.Reach)
	s.Strangers = cmp.Or(o.learner.Strangers, s.Strangers)
	if c.Flags().Changed("accept") {
		s.Accept = o.learner.Accept
	}
	if c.Flags().Changed("learn-from") {
		s.Learn = o.learner.Learn
	}
	return s
}

// tuning marks flags that few people need.
const tuning = "tuning"

// tunes marks flags as flags for tuning: help lists them after the others.
func tunes(f *pflag.FlagSet, names ...string) {
	for _, name := range names {
		if err := f.SetAnnotation(name, tuning, nil); err != nil {
			panic("cli: " + err.Error()) // no flag has the name: a fault of the program
		}
	}
}

// Values lets the shell complete the values of a flag.
func Values(c *cobra.Command, flag string, all ...string) {
	err := c.RegisterFlagCompletionFunc(flag,
		cobra.FixedCompletions(all, cobra.ShellCompDirectiveNoFileComp))
	if err != nil {
		panic("cli: " + err.Error()) // no flag has the name: a fault of the program
	}
}

// Cameras completes a source: the numbers of cameras, and files.
func Cameras(_ *cobra.Command, _ []string, _ string) (all []string, _ cobra.ShellCompDirective) {
	devices, _ := filepath.Glob("/dev/video[0-9]*")
	for _, d := range devices {
		all = append(all, strings.TrimPrefix(d, "/dev/video")+"\tcamera "+d)
	}
	return all, cobra.ShellCompDirectiveDefault
}

// usageTemplate is cobra's usage with the flags for tuning in a part of their own.
func usageTemplate(of string) string {
	const local = "{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}"
	cobra.AddTemplateFunc("everyday", func(c *cobra.Command) string { return flagUsages(c, false) })
	cobra.AddTemplateFunc("tuning", func(c *cobra.Command) string { return flagUsages(c, true) })
	return strings.Replace(of, local,
		"{{everyday . | trimTrailingWhitespaces}}{{with tuning .}}\n\nTuning:\n"+
			"{{. | trimTrailingWhitespaces}}{{end}}", 1)
}

func flagUsages(c *cobra.Command, tunes bool) string {
	var set pflag.FlagSet
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if _, few := f.Annotations[tuning]; few == tunes {
			set.AddFlag(f)
		}
	})
	return set.FlagUsages()
}

// positive adds a flag for a number above 0. The learner's settings use 0 for the default, so a
// user's 0 must be refused.
func positive[N int | float64](f *pflag.FlagSet, to *N, name, usage string) {
	f.Func(name, usage, func(s string) error {
		var n N
		var rest string
		if got, _ := fmt.Sscan(s+" ", &n, &rest); got != 1 {
			return errors.New("it is not a number")
		}
		if !(n > 0) || math.IsInf(float64(n), 1) {
			return errors.New("it must be positive and finite")
		}
		*to = n
		return nil
	})
}

// RotateFlag adds --rotate, which says how frames are turned.
func RotateFlag(c *cobra.Command, to *face.Rotation, usage string) {
	c.Flags().Func("rotate", usage, func(s string) error {
		if _, _, ok := face.Rotation(s).Degrees(); !ok || s == "" {
			return errors.New("use auto, 0, 90, 180 or 270")
		}
		*to = face.Rotation(s)
		return nil
	})
	Values(c, "rotate", string(face.Auto), "0", "90", "180", "270")
}
