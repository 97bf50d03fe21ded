package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/faceauth/faceauth/evaluate"
	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/internal/cv"
	"github.com/faceauth/faceauth/models"
	"github.com/faceauth/faceauth/pipeline"
	"github.com/faceauth/faceauth/preprocess"
	"github.com/faceauth/faceauth/tablet"
	"github.com/faceauth/faceauth/tablet/trial"
	"github.com/spf13/cobra"
)

// trying is what the flags of a trial say.
type trying struct {
	enrol   string
	every   time.Duration
	attacks []string
	steps   []int
}

// loginAttacks are the values of --attack.
var loginAttacks = []string{"bridge", "photo"}

func newTrial() *cobra.Command {
	var o login
	var how trying
	c := &cobra.Command{
		Use:   "trial DIR",
		Short: "measure logins on recordings: who gets in, who does not, and how fast",
		Long: "Trial enrols the people of DIR, each for themselves and as the daemon does, and has everybody try to log\n" +
			"in as everybody, by a clock that goes as the recordings do. It needs no daemon, and keeps nothing.\n" +
			labelledRecordings + "\n" +
			"Recordings of a folder whose names begin with " + fakePrefix + " are attacks on its person.",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return o.trial(c, args[0], how) },
	}
	o.policyFlags(c)
	o.learnerFlags(c)
	f := c.Flags()
	f.DurationVar(&o.timeout, "timeout", 10*time.Second, "how long to wait for a source to open, and for each frame")
	f.BoolVar(&o.json, "json", false, "print JSON for programs")
	f.StringVar(&how.enrol, "enrol", "guided", "guided: four poses, as the daemon asks for; first: the first four usable faces")
	f.DurationVar(&how.every, "every", time.Second, "time between the beginnings of attempts in a recording")
	f.StringSliceVar(&how.attacks, "attack", nil, "bridge: blends of the user's face and the attacker's, one in each login; photo: a picture of the user, moved, tilted and bent")
	f.IntSliceVar(&how.steps, "attack-steps", []int{2, 3, 5, 8, 20}, "numbers of blends of a bridge; each is tried")
	return c
}

func (how trying) check() error {
	switch {
	case how.enrol != "guided" && how.enrol != "first":
		return fmt.Errorf("unknown enrolment %q; use guided or first", how.enrol)
	case how.every < 40*time.Millisecond:
		return fmt.Errorf("attempts every %v are too many; use 40ms or more", how.every)
	}
	for _, a := range how.attacks {
		if !slices.Contains(loginAttacks, a) {
			return fmt.Errorf("unknown attack %q; use %s", a, strings.Join(loginAttacks, ", "))
		}
	}
	return (&assault{steps: how.steps, liveness: 1}).check()
}

func (o *login) trial(c *cobra.Command, dir string, how trying) error {
	if err := errors.Join(how.check(), o.policy().Defaults().Check()); err != nil {
		return fail(badUsage, err)
	}
	v, err := o.networks()
	if err != nil {
		return err
	}
	defer v.Close()
	liveness, err := preprocess.NewLiveness(models.Default(models.Liveness), o.models)
	if err != nil {
		return fail(badModel, err)
	}
	defer liveness.Close()
	opt, err := o.tabletOptions(c, v)
	if err != nil {
		return err
	}
	films := &films{o: o, c: c, v: v, liveness: liveness, photos: slices.Contains(how.attacks, "photo"), portraits: make(map[string]*facedet.Picture)}
	defer films.Close()
	all, err := films.read(dir)
	if err != nil {
		return err
	}
	t := trial.Options{
		Tablet: opt, Every: how.every, First: how.enrol == "first", Steps: how.steps,
		Gate: func(p tablet.Purpose) func(face.Quality) face.Reason { return gateOf(p).Check },
	}
	if slices.Contains(how.attacks, "bridge") {
		t.Bridge = films.blends
	}
	bar := newProgress(-1, "logging in")
	t.Step = func(string) { bar.step() }
	r, err := trial.Run(c.Context(), v.extractor.Space(), all, t)
	bar.end()
	if errors.Is(err, trial.ErrNobody) {
		return fail(noFace, fmt.Errorf("%w; --enrol first asks for no poses", err))
	}
	if err != nil {
		return err
	}
	if o.json {
		return json.NewEncoder(c.OutOrStdout()).Encode(r)
	}
	return printTrial(c.OutOrStdout(), r)
}

// gateOf returns what pictures are good enough for.
func gateOf(p tablet.Purpose) preprocess.Gate {
	if p == tablet.Enrolment {
		return preprocess.EnrolGate
	}
	return preprocess.LoginGate
}

func printTrial(w io.Writer, r trial.Report) error {
	fmt.Fprintf(w, "enrolled: %d of %s", len(r.Enrolled), count(r.People, "person"))
	if len(r.Failed) > 0 {
		fmt.Fprintf(w, " (not: %s)", strings.Join(r.Failed, ", "))
	}
	fmt.Fprint(w, "\n\n")
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "logins\tlet in\tshare\t95 % interval *\trecordings with one let in\t")
	row := func(name string, a trial.Attempts, worse func(evaluate.Rate) string) {
		if a.All > 0 {
			share := evaluate.Rate(float64(a.Matches) / float64(a.All))
			fmt.Fprintf(t, "%s\t%d of %d\t%s\t%s\t%d of %d\t\n", name, a.Matches, a.All, worse(share), span(a.Interval), a.PairsIn, a.Pairs)
		}
	}
	row("the user, recording of the enrolment", r.Same, low)
	row("the user, other recordings", r.Other, low)
	row("other people", r.Impostor, high)
	for _, name := range slices.Sorted(maps.Keys(r.Attacks)) {
		row(name, r.Attacks[name], high)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if r.Bridges > 0 {
		fmt.Fprintf(w, "bridges: %d of %s lead in\n", r.BridgesIn, count(r.Bridges, "pair"))
	}
	if len(r.Times) > 0 {
		fmt.Fprintf(w, "time until the user is let in, by the recordings' clock: median %.2f s, 95 %% within %.2f s\n",
			trial.Quantile(r.Times, .5), trial.Quantile(r.Times, .95))
	}
	fmt.Fprintln(w, "* if logins were independent trials, which those in one recording are not")
	return nil
}

// films reads the recordings of a trial.
type films struct {
	o         *login
	c         *cobra.Command
	v         *vision
	liveness  *preprocess.Liveness
	photos    bool
	portraits map[string]*facedet.Picture // an aligned picture of each person's first good face
}

func (f *films) Close() {
	for _, img := range f.portraits {
		img.Close()
	}
}

// read returns the recordings of all identities in dir.
func (f *films) read(dir string) (all []trial.Recording, err error) {
	err = eachRecording(f.c, dir, func(person, path string) error {
		rec := trial.Recording{Person: person, Name: identityName(path)}
		if isFake(path) {
			rec.Attack = "a replay of the user"
		}
		photo, err := f.frames(&rec, path)
		if err != nil {
			return err
		}
		all = append(all, rec)
		if photo == nil {
			return nil
		}
		defer photo.Close()
		fake := trial.Recording{Person: person, Name: rec.Name, Attack: "a photo of the user"}
		if fake.Frames, err = f.watch(&waved{img: photo}, fake.Name, nil); err == nil {
			all = append(all, fake)
		}
		return err
	})
	return all, err
}

// frames reads the frames of a recording, and returns the first picture with a good face in it where photos are wanted
// and the recording is no attack.
func (f *films) frames(rec *trial.Recording, path string) (photo *facedet.Picture, err error) {
	src, err := f.o.source(f.c, path)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	rec.Frames, err = f.watch(src, rec.Name, func(img *facedet.Picture, frame face.Frame) error {
		if rec.Attack != "" || f.portraits[rec.Person] != nil || len(frame.Samples) != 1 || frame.Samples[0].Vector == nil ||
			!preprocess.EnrolGate.Passes(frame.Samples[0].Quality) || math.Abs(frame.Samples[0].Quality.Turn) > .2 {
			return nil
		}
		if f.portraits[rec.Person], err = f.v.extractor.Align(img, frame.Samples[0].Box, frame.Samples[0].Landmarks); err != nil {
			delete(f.portraits, rec.Person)
			return err
		}
		if f.photos {
			photo, err = img.Clone()
		}
		return err
	})
	return photo, err
}

// watch returns what the frames of a source come to.
func (f *films) watch(src facedet.Source, name string, show func(*facedet.Picture, face.Frame) error) (all []face.Frame, err error) {
	return f.o.frames(f.c, f.v, src, name, pipeline.Options{Gate: preprocess.LoginGate, Liveness: f.liveness, Show: show})
}

// blends returns the vectors of n blends from one person to another.
func (f *films) blends(user, attacker string, n int) ([][]float32, error) {
	from, to := f.portraits[user], f.portraits[attacker]
	if from == nil || to == nil {
		return nil, nil
	}
	return preprocess.Blends(f.v.extractor, from, to, n)
}

// waved is a photo that somebody holds before the camera: for twelve seconds it is moved, turned in its plane, and
// foreshortened as by being turned away, up to 60 degrees to either side and 40 up and down.
type waved struct {
	img *facedet.Picture
	n   int
}

const wavedFrames = 300

func (w *waved) Next(context.Context) (*facedet.Frame, error) {
	if w.n == wavedFrames {
		return nil, io.EOF
	}
	s := float64(w.n) / 25
	wide, high := math.Cos(math.Pi/3*math.Sin(1.1*s)), math.Cos(math.Pi/4.5*math.Sin(.7*s))
	sin, cos := math.Sincos(.2 * math.Sin(1.7*s))
	size := w.img.Size()
	x, y := float64(size.X)/2, float64(size.Y)/2
	a := cv.Affine{wide * cos, -high * sin, 0, wide * sin, high * cos, 0}
	a[2] = x - a[0]*x - a[1]*y + 20*math.Sin(.9*s)
	a[5] = y - a[3]*x - a[4]*y + 15*math.Sin(1.3*s)
	img, err := (*cv.Image)(w.img).Warp(a, image.Pt(size.X, size.Y))
	if err != nil {
		return nil, err
	}
	w.n++
	return &facedet.Frame{Index: w.n - 1, Time: time.Duration(w.n-1) * 40 * time.Millisecond, Image: (*facedet.Picture)(img)}, nil
}

func (w *waved) Count() facedet.Count { return facedet.Count{Declared: wavedFrames, Read: w.n} }
func (w *waved) Close() error         { return nil }
