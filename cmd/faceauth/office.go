package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/internal/atomicfile"
	"github.com/faceauth/faceauth/office"
	"github.com/faceauth/faceauth/office/presence"
	"github.com/faceauth/faceauth/pipeline"
	"github.com/faceauth/faceauth/preprocess"
	"github.com/spf13/cobra"
)

// room is what the flags of the office say.
type room struct {
	state        string
	away         time.Duration
	fast         bool
	keep, freeze bool
}

func newOffice() *cobra.Command {
	var o options
	var r room
	c := &cobra.Command{
		Use:   "office [NAME=]SOURCE...",
		Short: "say who comes and goes, on several cameras at once",
		Long: "Office watches one or more cameras and says who has arrived, who has left and that somebody unknown is\n" +
			"there, each once and with the time at which it happened. A camera that fails is opened again. A\n" +
			"recording is played at its own pace and then ends. Times are this machine's.",
		Example: "  faceauth office door=0 hall=rtsp://camera.local/stream --state office.json",
		Args:    cobra.MinimumNArgs(1),
		RunE:    func(c *cobra.Command, args []string) error { return o.office(c, args, r) },
	}
	o.visionFlags(c)
	o.learnerFlags(c)
	o.galleryFlag(c)
	f := c.Flags()
	f.StringVar(&r.state, "state", "", "file that remembers who is there, so that nobody arrives again when office is started again")
	f.DurationVar(&r.away, "away", 10*time.Second, "after which one who is not seen has left")
	f.BoolVar(&r.fast, "fast", false, "play one recording as fast as it can be read; times are as if it began now")
	f.BoolVar(&r.keep, "learn", false, "keep what was learned in the gallery")
	f.BoolVar(&r.freeze, "freeze", false, "judge, but learn nothing")
	return c
}

// named is a source by the name that events give it.
type named struct{ name, source string }

// sources returns what the arguments name. A URL has a scheme before its first "=", if it has one.
func sources(args []string) (all []named, err error) {
	taken := make(map[string]bool)
	for _, a := range args {
		n := named{a, a}
		if name, source, ok := strings.Cut(a, "="); ok && name != "" && !strings.ContainsAny(name, "/:") {
			n = named{name, source}
		} else if facedet.IsRecording(a) {
			n.name = filepath.Base(a)
		} else if strings.Contains(a, "://") { // what may be secret in a URL is in no event
			return nil, errors.New("the URL needs a name; put NAME= before it")
		}
		if n.source == "" || taken[n.name] {
			return nil, fmt.Errorf("camera %q has no source, or is there twice", n.name)
		}
		taken[n.name] = true
		all = append(all, n)
	}
	return all, nil
}

func (o *options) office(c *cobra.Command, args []string, r room) error {
	all, err := sources(args)
	switch {
	case err != nil:
		return fail(badUsage, err)
	case r.away <= 0:
		return fail(badUsage, fmt.Errorf("--away %v is no time; use a positive one", r.away))
	case r.fast && (len(all) != 1 || !facedet.IsRecording(all[0].source)):
		return fail(badUsage, errors.New("--fast is for one recording"))
	}
	if err := o.checkTimeout(); err != nil {
		return err
	}
	g, path, err := o.ownGallery(c, r.keep, r.freeze)
	if err != nil {
		return err
	}
	from, err := readState(r.state)
	if err == nil {
		err = writeState(r.state, from) // what cannot be written is found out before anything happens
	}
	if err != nil {
		return fail(badUsage, err)
	}
	cameras, done, err := o.cameras(c, g, all, r)
	defer done()
	if err != nil {
		return err
	}
	opt := office.Options{Presence: presence.Settings{Away: r.away}, Freeze: r.freeze}
	if begun := time.Now(); r.fast {
		opt.Clock = func(f face.Frame) time.Time { return begun.Add(f.Time) }
		opt.Now = func() time.Time { return begun }
	}
	ctx, cancel := context.WithCancelCause(c.Context())
	defer cancel(nil)
	opt.Event = func(e presence.Event) {
		if err := o.say(c.OutOrStdout(), e); err != nil {
			cancel(err) // nobody reads it any more
		}
	}
	opt.Health = func(h office.Health) {
		if h.Up {
			fmt.Fprintf(c.ErrOrStderr(), "faceauth: %s: pictures come\n", h.Camera)
		} else {
			fmt.Fprintf(c.ErrOrStderr(), "faceauth: %s: %s; it is tried again\n", h.Camera, h.Error)
		}
	}
	opt.Room = func(s presence.State) {
		if err := writeState(r.state, s); err != nil {
			cancel(err)
		}
	}
	if _, err := office.Run(ctx, g.Learner(), cameras, from, opt); err != nil {
		return o.streamError(c, err)
	}
	if err := context.Cause(ctx); err != nil && c.Context().Err() == nil {
		return err
	}
	if r.keep {
		return fail(badGallery, g.Save(path))
	}
	return nil
}

// cameras returns the cameras, each with networks of its own; call done when they are not used any more. A source that is
// not there at first may come later, but not a recording.
func (o *options) cameras(c *cobra.Command, g *gallery.Gallery, all []named, r room) (cameras []office.Camera, done func(), err error) {
	var visions []*vision
	done = func() {
		for _, v := range visions {
			v.Close()
		}
	}
	space := g.Space()
	for _, n := range all {
		recording := facedet.IsRecording(n.source)
		if recording {
			if _, err := os.Stat(n.source); err != nil {
				return nil, done, fail(badSource, fmt.Errorf("opening source: %w", err))
			}
		}
		v, err := o.open(&space, func(s string) { warn(c, s) })
		if err != nil {
			return nil, done, err
		}
		visions = append(visions, v)
		cameras = append(cameras, office.Camera{Name: n.name, Ends: recording, Open: func(ctx context.Context) (office.Stream, error) {
			return v.watch(ctx, n.source, o.timeout, !r.fast, pipeline.Options{Gate: preprocess.LearnGate})
		}})
	}
	return cameras, done, nil
}

// say prints an event.
func (o *options) say(w io.Writer, e presence.Event) error {
	if o.json {
		return json.NewEncoder(w).Encode(e)
	}
	who := e.Name + " has " + string(e.Kind)
	if e.Kind == presence.Unknown {
		who = "somebody unknown is there"
	}
	_, err := fmt.Fprintf(w, "%s  %s  %s\n", e.At.Local().Format("2006-01-02 15:04:05"), e.Camera, who)
	return err
}

// readState returns what a file says of who was there, or that nobody was where there is no file.
func readState(path string) (s presence.State, err error) {
	if path == "" {
		return s, nil
	}
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &s)
	}
	if err != nil {
		return s, fmt.Errorf("reading who was there from %s: %w; remove it to begin anew", path, err)
	}
	return s, nil
}

func writeState(path string, s presence.State) error {
	if path == "" {
		return nil
	}
	b, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if err := atomicfile.Write(path, b); err != nil {
		return fmt.Errorf("writing who is there: %w", err)
	}
	return nil
}
