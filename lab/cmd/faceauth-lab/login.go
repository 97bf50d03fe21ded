// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/faceauth/faceauth/eye"
	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/internal/cli"
	"github.com/faceauth/faceauth/internal/policy"
	"github.com/faceauth/faceauth/lab/dataset"
	"github.com/faceauth/faceauth/lab/evaluate"
	"github.com/faceauth/faceauth/lab/trial/login"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/pipeline"
	"github.com/faceauth/faceauth/preprocess"
	"github.com/spf13/cobra"
)

// trialFlags holds the flags of a trial.
type trialFlags struct {
	options
	policy.Flags
	noPoses bool
	hear    bool
	every   time.Duration
	attacks []string
	steps   []int
}

// heldPictures are values of --attack: species of pictures of the user, held before a camera.
var heldPictures = []string{dataset.Photo, dataset.Print, dataset.Screen}

// heldHelp describes them.
const heldHelp = "photo: a picture of the user, moved, tilted and bent by computation; print, " +
	"screen: the same\non made-up paper or a made-up display, in a hand"

func newLoginTrial() *cobra.Command {
	var o trialFlags
	c := &cobra.Command{
		Use:   "login DIR",
		Short: "measure logins on recordings: who gets in, and how fast",
		Long: "Login enrols each person of DIR separately, as the daemon does. Then each person " +
			"tries to log in\n" +
			"as every person, in the time of the recordings. It needs no daemon, and saves " +
			"nothing.\n\n" +
			labelledRecordings + "\n" +
			"In a person's folder, recordings whose names begin with " + dataset.AttackPrefix +
			" are attacks on this person.",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return o.trial(c, args[0]) },
	}
	o.flags(c)
	o.LearnerFlags(c)
	f := c.Flags()
	f.BoolVar(&o.hear, "hear", false,
		"with a challenge, users turn as their recording shows it when they are asked, "+
			"and back by the same frames when they are told")
	f.BoolVar(&o.noPoses, "no-poses", false,
		"enrol the first four usable faces in any pose, instead of the daemon's four poses")
	f.StringSliceVar(&o.attacks, "attack", nil,
		"bridge: blends of the user's and the attacker's face, one for each login; "+heldHelp)
	stepsFlag(c, &o.steps)
	return c
}

// flags adds the flags of both trials of logins.
func (o *trialFlags) flags(c *cobra.Command) {
	o.NetworkFlags(c)
	o.PolicyFlags(c)
	o.SourceFlags(c)
	c.Flags().DurationVar(&o.every, "every", time.Second,
		"time between the starts of attempts in a recording")
}

// check returns nil if the flags of both trials of logins are valid.
func (o *trialFlags) check() error {
	err := o.Login.Policy.Defaults().Check()
	if o.every < 40*time.Millisecond {
		err = errors.Join(err, fmt.Errorf("attempts every %v are too many; use 40ms or more",
			o.every))
	}
	return cli.Fail(cli.BadUsage, err)
}

// checkAttacks returns nil if the attacks are known.
func (o *trialFlags) checkAttacks(known ...string) error {
	for _, a := range o.attacks {
		if !slices.Contains(known, a) {
			return cli.Fail(cli.BadUsage,
				fmt.Errorf("unknown attack %q; use %s", a, strings.Join(known, ", ")))
		}
	}
	return nil
}

func (o *trialFlags) trial(c *cobra.Command, dir string) error {
	if err := o.check(); err != nil {
		return err
	}
	if err := o.checkAttacks(append(heldPictures, "bridge")...); err != nil {
		return err
	}
	if err := checkSteps(o.steps); err != nil {
		return cli.Fail(cli.BadUsage, err)
	}
	v, liveness, err := o.measured(c)
	if err != nil {
		return err
	}
	defer v.Close()
	defer liveness.Close()
	o.Login.Learner = o.Settings(c, online.Settings{})
	films := &films{Reader: o.reader(c, v), liveness: liveness, attacks: o.attacks,
		portraits: dataset.Portraits{}}
	defer films.portraits.Close()
	all, err := films.read(c.Context(), dir)
	if err != nil {
		return cli.StreamError(c, err)
	}
	t := login.Options{
		Tablet: o.Login, Every: o.every, First: o.noPoses, Hear: o.hear, Steps: o.steps,
		Gate: func(p eye.Gate) func(face.Quality) face.Reason { return gateOf(p, v.Space).Check },
	}
	if slices.Contains(o.attacks, "bridge") {
		t.Bridge = films.blends
	}
	bar := cli.NewProgress(-1, "logging in")
	t.Step = func(string) { bar.Add(1) }
	r, err := login.Run(c.Context(), v.Space, all, t)
	bar.Finish()
	if errors.Is(err, login.ErrNobody) {
		return cli.Fail(cli.NoFace, fmt.Errorf(
			"%w; with --no-poses the first four usable faces are enrolled", err))
	}
	if err != nil {
		return err
	}
	if o.JSON {
		return json.NewEncoder(c.OutOrStdout()).Encode(r)
	}
	return printTrial(c.OutOrStdout(), r)
}

// gateOf returns the quality gate of a login or an enrolment.
func gateOf(p eye.Gate, space face.Space) preprocess.Gate {
	g := preprocess.LoginGate
	if p == eye.Enrol {
		g = preprocess.EnrolGate
	}
	g.MinNorm = space.LearnNorm
	return g
}

func printTrial(w io.Writer, r login.Report) error {
	fmt.Fprintf(w, "enrolled: %d of %s", len(r.Enrolled), cli.Count(r.People, "person"))
	if len(r.Failed) > 0 {
		fmt.Fprintf(w, " (not: %s)", strings.Join(r.Failed, ", "))
	}
	fmt.Fprint(w, "\n\n")
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t,
		"logins\tlet in\tshare\t95 % interval *\trecordings with one let in\t95 % interval **\t"+
			"taken for a picture\t")
	row := func(name string, a login.Attempts, worse func(evaluate.Rate) string) {
		if a.All > 0 {
			share := evaluate.Rate(float64(a.Matches) / float64(a.All))
			fmt.Fprintf(t, "%s\t%d of %d\t%s\t%s\t%d of %d\t%s\t%d\t\n", name, a.Matches, a.All,
				worse(share), span(a.Interval),
				a.PairsIn, a.Pairs, span(evaluate.ClopperPearson(a.PairsIn, a.Pairs)),
				a.Ends[string("taken-for-picture")])
		}
	}
	row("the user, recording of the enrolment", r.Same, low)
	row("the user, other recordings", r.Other, low)
	row("other people", r.Impostor, high)
	for _, name := range slices.Sorted(maps.Keys(r.Attacks)) {
		row("attacks on the user ("+name+")", r.Attacks[name], high)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if r.Bridges > 0 {
		fmt.Fprintf(w, "bridges: %d of %s lead in\n", r.BridgesIn, cli.Count(r.Bridges, "pair"))
	}
	if len(r.Times) > 0 {
		fmt.Fprintf(w, "time until the user is let in, by the recordings' clock: median %.2f s, "+
			"95 %% within %.2f s\n",
			login.Quantile(r.Times, .5), login.Quantile(r.Times, .95))
	}
	fmt.Fprintln(w, "a login is an attempt, and a share is over all attempts: 1-FRR for users, "+
		"FAR for others, in the terms of ISO/IEC 19795-1, and APCER for attacks (ISO/IEC 30107-3)")
	fmt.Fprintln(w, "* if logins were independent trials, which those in one recording are not")
	fmt.Fprintln(w,
		"** of the share of recordings, if pairs of a user and a recording were independent, "+
			"which those that share a person are not")
	return nil
}

// films reads the recordings of a trial.
type films struct {
	*dataset.Reader
	liveness  *preprocess.Liveness
	attacks   []string          // as in --attack
	portraits dataset.Portraits // an aligned picture of each person's first good face
}

// read returns the recordings of all identities in dir, and those of held pictures of them.
func (f *films) read(ctx context.Context, dir string) (all []login.Recording, err error) {
	err = f.Each(dir, func(person, path string, attack bool) error {
		rec := login.Recording{Person: person, Name: dataset.NameOf(path)}
		if attack {
			rec.Attack = species(path)
		}
		picture, err := f.frames(ctx, &rec, path)
		if err != nil {
			return err
		}
		all = append(all, rec)
		if picture == nil {
			return nil
		}
		defer picture.Close()
		for _, species := range f.attacks {
			if !slices.Contains(heldPictures, species) {
				continue
			}
			source, err := dataset.Held(picture, species, uint64(len(f.portraits)))
			if err != nil {
				return err
			}
			fake := login.Recording{Person: person, Name: rec.Name, Attack: species}
			if fake.Frames, err = f.FramesOf(ctx, source, fake.Name, f.options(nil)); err != nil {
				return err
			}
			all = append(all, fake)
		}
		return nil
	})
	return all, err
}

func (f *films) options(show func(*facedet.Picture, face.Frame) error) pipeline.Options {
	return pipeline.Options{Gate: preprocess.LoginGate, Liveness: f.liveness, Show: show}
}

// frames reads the frames of a recording. It returns the first picture with a good face of a person
// who has none yet.
func (f *films) frames(ctx context.Context, rec *login.Recording,
	path string) (picture *facedet.Picture, err error) {
	rec.Frames, err = f.Frames(ctx, rec.Name, path,
		f.options(func(img *facedet.Picture, frame face.Frame) error {
			if rec.Attack != "" || len(f.portraits[rec.Person]) > 0 || len(frame.Samples) != 1 {
				return nil
			}
			s := frame.Samples[0]
			if s.Vector == nil || preprocess.EnrolGate.Check(s.Quality) != "" ||
				math.Abs(s.Quality.Turn) > .2 {
				return nil
			}
			aligned, err := f.Extractor.Align(img, s.Box, s.Landmarks)
			if err != nil {
				return err
			}
			f.portraits[rec.Person] = []*facedet.Picture{aligned}
			picture, err = img.Clone()
			return err
		}))
	return picture, err
}

// blends returns the vectors of n blends from one person to another, or none if one of them has no
// picture.
func (f *films) blends(user, attacker string, n int) ([][]float32, error) {
	if len(f.portraits[user]) == 0 || len(f.portraits[attacker]) == 0 {
		return nil, nil
	}
	return f.portraits.Blends(f.Extractor, user, 0, attacker, 0, n)
}
