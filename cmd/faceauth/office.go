// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/faceauth/faceauth/eye"
	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/cli"
	"github.com/faceauth/faceauth/internal/config"
	"github.com/faceauth/faceauth/internal/fleet"
	"github.com/faceauth/faceauth/internal/frigate"
	"github.com/faceauth/faceauth/internal/gallery"
	"github.com/faceauth/faceauth/internal/input"
	"github.com/faceauth/faceauth/internal/office"
	"github.com/faceauth/faceauth/internal/office/presence"
	"github.com/faceauth/faceauth/internal/viewer"
	"github.com/faceauth/faceauth/models"
	"github.com/faceauth/faceauth/online"
	"github.com/spf13/cobra"
)

// room holds the flags of office.
type room struct {
	config, state             string
	office                    office.Options // presence, faceless
	past                      office.PastSettings
	keepDays, keepMB, clipsMB int
	fps                       float64
	fast, noUnknown, stay     bool
	outputFlags
}

func newOffice() *cobra.Command {
	var o options
	var r room
	c := &cobra.Command{
		Use:   "office ([NAME=]SOURCE... | --config FILE)",
		Short: "report who comes and goes, on several cameras",
		Long: "Watches cameras and reports each arrival, each departure and each stranger\n" +
			"once, with the time it happened. A camera that fails is opened again. A\n" +
			"recording plays at its own speed and then ends. Times are local.\n\n" +
			"--page shows the office in a browser, where you can name strangers and correct\n" +
			"mistakes. With --state the office survives a restart: who is there, what\n" +
			"happened, which events still wait for delivery, and strangers are kept in the\n" +
			"gallery's file under that name. What you correct on the page is saved at once,\n" +
			"with the faces learned so far. Other programs can use the gallery meanwhile.\n\n" +
			"It learns from people whom it has confirmed, and keeps that in the gallery,\n" +
			"unless you give --no-learn or a source is a recording. The page and faceauth\n" +
			"people undo take it back.\n\n" +
			"--config reads cameras, flags and secrets from a file; the command line\n" +
			"overrides the file.",
		Example: "  faceauth office door=0 hall=rtsp://camera.local/stream --state home --page " +
			"127.0.0.1:8090\n" +
			"  faceauth office 'door=frigate://broker.local/door?api=http://frigate.local:5000'\n" +
			"  faceauth office --config office.yaml",
		Args:       cobra.ArbitraryArgs,
		SuggestFor: []string{"serve", "server", "web", "start", "run"},
		RunE: func(c *cobra.Command, args []string) error {
			var sources []string
			all, secrets, err := config.Read(c, r.config, args)
			if err != nil {
				return cli.Fail(cli.BadUsage, err)
			}
			r.inline = secrets
			for _, camera := range all {
				sources = append(sources, camera.Source)
			}
			o.learns(c, sources...)
			return o.office(c, all, r)
		},
	}
	o.liveFlags(c)
	o.SpareFlag(c)
	r.flags(c)
	c.AddCommand(newVisits())
	return c
}

// flags adds the flags of office.
func (r *room) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&r.config, "config", "", "file (YAML) of cameras, flags and secrets")
	f.StringVar(&r.state, "state", "", "name of this office in the gallery's file, where "+
		"it keeps who is there, what happened, and strangers; without it they are forgotten at "+
		"the end")
	f.DurationVar(&r.office.Presence.Away, "away", 10*time.Second,
		"time after which a person who is not seen has left")
	f.DurationVar(&r.office.Presence.HomeFor, "home-for", 16*time.Hour,
		"with an entrance (see --config), how long a person who is not seen stays here")
	f.BoolVar(&r.office.Faceless, "faceless", false,
		"also report people whose face could not be recognised")
	f.DurationVar(&r.office.Presence.Hold, "hold", 5*time.Minute,
		"while a camera is down, how long its people count as present")
	f.BoolVar(&r.fast, "fast", false,
		"play one recording as fast as possible, with times as if it began now")
	f.Float64Var(&r.fps, "fps", 0,
		"largest number of frames per second of a camera; 0 for no limit")
	f.BoolVar(&r.noUnknown, "no-unknown", false,
		"keep no faces of strangers, and remove stored ones")
	f.DurationVar(&r.past.Retention, "retention", 30*24*time.Hour,
		"time after which a stranger who is not seen is forgotten")
	f.IntVar(&r.keepDays, "keep-days", 7,
		"days for which sightings are kept in the state, so that you can correct "+
			"them")
	f.IntVar(&r.clipsMB, "clips-mb", 0,
		"megabytes for clips in --state: films of the first eight seconds of "+
			"sightings; 0 for none")
	f.IntVar(&r.keepMB, "keep-mb", 256,
		"largest size of these sightings in megabytes; the oldest are removed first")
	f.BoolVar(&r.stay, "stay", false, "keep showing the page after the end of the recordings")
	r.outputFlags.flags(c)
}

// check returns an error about flags that cannot be used.
func (r *room) check(c *cobra.Command, all []config.Camera) error {
	seen := r.office.Presence
	switch {
	case seen.Away <= 0:
		return fmt.Errorf("--away must be positive, got %v", seen.Away)
	case seen.HomeFor < seen.Away:
		return fmt.Errorf("--home-for must not be shorter than --away, %v, got %v", seen.Away,
			seen.HomeFor)
	case seen.Hold < seen.Away && c.Flags().Changed("hold"):
		return fmt.Errorf("--hold must not be shorter than --away, %v, got %v", seen.Away,
			seen.Hold)
	case r.past.Retention <= 0:
		return fmt.Errorf(
			"--retention must be positive, got %v; to keep no strangers, use --no-unknown",
			r.past.Retention)
	case r.keepDays < 1 || r.keepDays > 3650:
		return fmt.Errorf("--keep-days must be between 1 and 3650, got %d", r.keepDays)
	case r.keepMB < 1 || r.keepMB > 1<<20:
		return fmt.Errorf("--keep-mb must be between 1 and %d, got %d", 1<<20, r.keepMB)
	case r.clipsMB < 0 || r.clipsMB > 1<<20:
		return fmt.Errorf("--clips-mb must be between 0 and %d, got %d", 1<<20, r.clipsMB)
	case r.clipsMB > 0 && r.state == "":
		return errors.New("--clips-mb keeps clips across restarts, which needs --state")
	case !(r.fps >= 0):
		return fmt.Errorf("--fps must not be negative, got %g", r.fps)
	case r.fast && (len(all) != 1 || !input.IsRecording(all[0].Source)):
		return errors.New("--fast is for one recording")
	case r.stay && r.address == "":
		return errors.New("--stay is for --page")
	case r.state == "" && r.sinks():
		return errors.New(
			"--webhook, --mqtt and --ntfy need --state: events that cannot be delivered wait there")
	}
	return nil
}

// unread is how long an office that was ended waits for a reader of its output that reads nothing.
const unread = 3 * time.Second

func (o *options) office(c *cobra.Command, all []config.Camera, r room) (err error) {
	if err := r.check(c, all); err != nil {
		return cli.Fail(cli.BadUsage, err)
	}
	for i := range all {
		all[i].Source, err = o.single(c, all[i].Source)
		if err != nil {
			return err
		}
	}
	detector, _, err := o.Detectors()
	if err != nil {
		return err
	}
	g, err := o.anyGallery(c) // people can be named later
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cli.Fail(cli.BadGallery, g.Close())) }()
	opt := r.office
	opt.Freeze, opt.Keep = o.freeze, o.keep
	r.past.Age, r.past.Bytes = time.Duration(r.keepDays)*24*time.Hour, int64(r.keepMB)<<20
	r.past.Clips = int64(r.clipsMB) << 20
	past, err := office.OpenPast(g, r.state, r.past)
	if err != nil {
		return cli.Fail(cli.BadGallery, err)
	}
	defer func() { err = errors.Join(err, past.Close()) }()
	if begun := time.Now(); r.fast {
		opt.Clock = func(f face.Frame) time.Time { return begun.Add(f.Time) }
		opt.Now = func() time.Time { return begun }
	}
	ctx, cancel := context.WithCancelCause(c.Context())
	defer cancel(nil)
	printer := cli.NewPrinter(cancel)
	defer func() { err = errors.Join(err, printer.End(c.Context(), unread)) }()
	note := func(s string) { printer.Print(func() error { cli.Note(c, s); return nil }) }
	opt.Event = func(e presence.Event) {
		printer.Print(func() error { return o.say(c.OutOrStdout(), e) })
	}
	opt.Health = func(h office.Health) { note(cameraWords(h, detector)) }
	opt.Disk = func(d office.Disk) { note("warning: " + diskWords(d)) }
	opt.Room = func(r online.Room) {
		note("warning: " + cmp.Or(r.Warning(), "there is room again: faces are learned"))
	}
	told := make(map[string]func([]presence.Seen)) // the cameras that are told whom they see
	opt.Frame = func(camera string, _ time.Time, seen []presence.Seen) {
		if tell := told[camera]; tell != nil {
			tell(seen)
		}
	}
	w := office.New(past, opt)
	if r.noUnknown {
		if err := w.KeepUnknown(false); err != nil {
			return cli.Fail(cli.BadUsage, err)
		}
	}
	var beside sync.WaitGroup
	defer beside.Wait()
	defer cancel(nil)
	beside.Go(func() { copyDaily(ctx, g.Path(), note) })
	beside.Go(func() {
		err := fleet.Run(ctx, g.Path(), note)
		if err != nil && !errors.Is(err, fleet.ErrNotMember) {
			note("warning: the people are not shared: " + err.Error())
		}
	})
	space := g.Space()
	v, err := o.Plan(&space, func(string) {})
	if err != nil {
		return err
	}
	pictures := viewer.Viewer{Open: v.Open, Drop: v.Close}
	defer pictures.Close()
	r.page.See = func(ctx context.Context, picture []byte, end string, enrol bool) (face.Frame,
		error) {
		how := eye.Options{Gate: eye.Learn, Rotate: face.Auto}
		if enrol {
			how.Gate, how.Picture = eye.Enrol, 112
		}
		return pictures.See(ctx, picture, end, how)
	}
	end, err := r.open(ctx, c, w, past, cancel)
	if err != nil {
		return err
	}
	defer end()
	cameras, done, err := o.cameras(c, g, all, r, told)
	defer done()
	if err != nil {
		return err
	}
	err = w.Run(ctx, cameras)
	if err == nil && r.stay && ctx.Err() == nil {
		<-ctx.Done()
	}
	switch {
	case err != nil:
		return cli.StreamError(c, err)
	case context.Cause(ctx) != nil && c.Context().Err() == nil:
		return context.Cause(ctx)
	case o.keep:
		err = cli.Fail(cli.BadGallery, w.Save())
	}
	return o.reading.end(err, len(all), "")
}

// copyDaily keeps daily copies of a gallery until ctx ends, and notes what prevents one.
func copyDaily(ctx context.Context, path string, note func(string)) {
	for said := ""; ; {
		trouble := ""
		if err := copyToday(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			trouble = err.Error()
		}
		if trouble != "" && trouble != said {
			note("warning: " + trouble)
		}
		said = trouble
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Hour):
		}
	}
}

// cameras returns the cameras, each with its own eye. Call done when they are no longer used. A
// camera that is missing at first may come later; a recording may not. Those that want to know whom
// they see add themselves to told.
func (o *options) cameras(c *cobra.Command, g *gallery.Gallery, all []config.Camera, r room,
	told map[string]func([]presence.Seen)) (cameras []office.Camera, done func(), err error) {
	var opened []func()
	done = func() {
		for _, end := range opened {
			end()
		}
	}
	if len(all) > 1 {
		o.Loader = &eye.Loader{Failed: func(err error) {
			cli.Detail(c, "a camera shares no memory with others: %v", err)
		}}
		opened = append(opened, func() { o.Loader.Close() })
	}
	space := g.Space()
	for _, n := range all {
		recording := input.IsRecording(n.Source)
		if recording {
			_, err := os.Stat(n.Source)
			if err != nil {
				return nil, done, cli.Fail(cli.BadSource, input.Unopened(n.Source, err))
			}
		}
		v, err := o.Look(c, &space)
		if err != nil {
			return nil, done, err
		}
		hide := input.Masker(n.Source)
		if n.Substream != "" {
			large, small := hide, input.Masker(n.Substream)
			hide = func(err error) error { return small(large(err)) }
		}
		if strings.HasPrefix(n.Source, "frigate") && !recording {
			pictures := &viewer.Viewer{Open: v.Open, Drop: v.Close}
			opened = append(opened, pictures.Close)
			camera, tell, err := o.frigate(c, n, pictures, hide)
			if err != nil {
				return nil, done, err
			}
			camera.Door, camera.Zones = presence.Door(n.Door), n.Zones
			cameras, told[n.Name] = append(cameras, camera), tell
			continue
		}
		opened = append(opened, v.Close)
		cameras = append(cameras, office.Camera{Name: n.Name, Ends: recording, Hide: hide,
			Rate: r.fps, Door: presence.Door(n.Door), Zones: n.Zones,
			Open: func(ctx context.Context, picture func() bool) (office.Stream, error) {
				return o.camera(ctx, c, v, n, !r.fast, r.fps, picture, hide)
			}})
	}
	return cameras, done, nil
}

// frigate returns a camera of Frigate, and the function that takes what the office says of it.
func (o *options) frigate(c *cobra.Command, n config.Camera, pictures *viewer.Viewer,
	hide func(error) error) (
	office.Camera, func([]presence.Seen), error) {
	if n.Rotate != "" {
		return office.Camera{}, nil, cli.Fail(cli.BadUsage,
			fmt.Errorf("camera %q: rotate is not for cameras of Frigate; turn "+
				"the camera there", n.Name))
	}
	camera, err := frigate.New(n.Source, frigate.Options{
		Timeout: o.Timeout,
		See: func(ctx context.Context, picture []byte) (face.Frame, error) {
			return pictures.See(ctx, picture, ".jpg", eye.Options{
				Gate: eye.Learn, Picture: 112, Frame: func() bool { return true },
				Timeout: o.Timeout, Mask: n.Mask,
			})
		},
		Warn: func(text string) { cli.Warn(c, n.Name+": "+text) },
	})
	if err != nil {
		return office.Camera{}, nil, cli.Fail(cli.BadUsage,
			fmt.Errorf("camera %q: %w", n.Name, err))
	}
	return office.Camera{Name: n.Name, Stills: true, Hide: hide, Open: camera.Open}, camera.Seen,
		nil
}

// cameraWords says how a camera is.
func cameraWords(h office.Health, detector models.Description) string {
	if h.Slow {
		asked := "those that come"
		if h.Asked > 0 {
			asked = fmt.Sprintf("the %g asked for", h.Asked)
		}
		return fmt.Sprintf(
			"warning: %s: %.1f frames a second are looked at, fewer than half of %s: "+
				"people are recognised later, and who passes quickly is missed", h.Camera, h.Rate,
			asked)
	}
	if h.Up {
		text := h.Camera + ": camera connected"
		if least := detector.LeastSeen(image.Pt(h.Size[0], h.Size[1])); least > 0 {
			text += fmt.Sprintf(", %dx%d: faces from %d pixels", h.Size[0], h.Size[1], least)
		}
		return text
	}
	return fmt.Sprintf("%s: %s; it is tried again", h.Camera, h.Error)
}

// diskWords says whether an office can write what it sees.
func diskWords(d office.Disk) string {
	switch {
	case d.Error != "":
		return d.Error + "; what cameras see stays in memory, and is written as soon as " +
			"possible; corrections wait"
	case d.Left != "":
		return d.Left + "; it is tried again each minute"
	case d.Lost > 0:
		return fmt.Sprintf("the state is written again; events and sightings that are lost: %d",
			d.Lost)
	}
	return "the state is written again, and nothing is lost"
}

// say prints an event.
func (o *options) say(w io.Writer, e presence.Event) error {
	if o.JSON {
		return json.NewEncoder(w).Encode(e)
	}
	what := e.Words()
	if e.Kind == presence.Unknown && e.Group > 0 {
		what += fmt.Sprintf(" (%d)", e.Group)
	}
	where := e.Camera
	if e.Zone != "" {
		where += " (" + e.Zone + ")"
	}
	at := e.At.Local().Format("2006-01-02 15:04:05")
	_, err := fmt.Fprintf(w, "%s  %s  %s\n", at, where, what)
	return err
}
