// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/cli"
	"github.com/faceauth/faceauth/internal/gallery"
	"github.com/faceauth/faceauth/internal/input"
	"github.com/faceauth/faceauth/internal/store"
	"github.com/faceauth/faceauth/internal/xdg"
	"github.com/faceauth/faceauth/online"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// options holds the flags that several commands share, beside those of the laboratory.
type options struct {
	cli.Options
	gallery    string
	key        string
	rotate     face.Rotation
	series     bool
	reading    *reading
	noPictures bool
	keep       bool // --learn
	forget     bool // --no-learn
	freeze     bool
}

// The rates of strangers of commands without --strangers. A name before a camera may announce
// somebody, and a name that who prints stands alone, in a picture that may be full of strangers: 1
// in 1,000. What search finds, somebody looks through, who cannot see what it missed: it lists whom
// 1 in 100 allows as perhaps the person.
const (
	cameraStrangers = 1e-3
	searchStrangers = 1e-2
)

// rotateFlag adds --rotate.
func (o *options) rotateFlag(c *cobra.Command) {
	o.rotate = face.Auto
	cli.RotateFlag(c, &o.rotate,
		"`degrees` by which pictures are turned clockwise: 0, 90, 180, 270, or auto: the first "+
			"five pictures with faces decide (default auto)")
}

// seriesFlag adds --series.
func (o *options) seriesFlag(c *cobra.Command) {
	c.Flags().BoolVar(&o.series, "series", false,
		"the pictures of each folder are the frames of a film")
}

// pictures says what the pictures of a folder are.
func (o *options) pictures() face.Series {
	if o.series {
		return face.Filmed
	}
	return face.Photographs
}

// recogniserFlags adds the flags of commands that recognise people and learn.
func (o *options) recogniserFlags(c *cobra.Command) {
	o.VisionFlags(c)
	o.rotateFlag(c)
	o.LearnerFlags(c)
	o.StrangersFlag(c, "strangers", cameraStrangers)
	o.picturesFlag(c)
	o.galleryFlags(c.Flags())
	c.Flags().BoolVar(&o.keep, "learn", false, "keep learned faces in the gallery")
	c.Flags().BoolVar(&o.freeze, "freeze", false, "judge, but learn nothing")
}

// liveFlags adds the flags of commands for cameras, which keep what they learn.
func (o *options) liveFlags(c *cobra.Command) {
	o.recogniserFlags(c)
	c.Flags().Lookup("learn").Usage = "keep learned faces in the gallery: the default before " +
		"cameras, and not if a source is a recording"
	c.Flags().BoolVar(&o.forget, "no-learn", false,
		"forget at the end what was learned before cameras")
}

// learns decides whether what is learned before these sources is kept.
func (o *options) learns(c *cobra.Command, sources ...string) {
	if !c.Flags().Changed("learn") {
		o.keep = !o.forget && !o.freeze && !slices.ContainsFunc(sources, input.IsRecording)
	}
}

// picturesFlag adds --no-pictures, for commands that keep faces in the gallery.
func (o *options) picturesFlag(c *cobra.Command) {
	c.Flags().BoolVar(&o.noPictures, "no-pictures", false,
		"keep no pictures of enrolled and learned faces in the "+
			"gallery, and remove those that are there; the gallery remembers this "+
			"(--no-pictures=false keeps them again)")
}

// galleryFlags adds the flags of commands that use the gallery.
func (o *options) galleryFlags(f *pflag.FlagSet) {
	o.reading = &reading{}
	f.StringVar(&o.gallery, "gallery", os.Getenv("FACEAUTH_GALLERY"),
		"file of the gallery (default: "+
			"$FACEAUTH_GALLERY, else faceauth/faceauth.db below $XDG_DATA_HOME or ~/.local/share)")
	f.StringVar(&o.key, "key", os.Getenv("FACEAUTH_KEY"),
		"file of the 32 random bytes that encrypt the gallery "+
			"(default: $FACEAUTH_KEY, else faceauth.key in $CREDENTIALS_DIRECTORY, if it exists)")
}

// settings returns s with the values of the command line.
func (o *options) settings(c *cobra.Command, s online.Settings) online.Settings {
	s = o.Settings(c, s)
	if c.Flags().Changed("no-pictures") {
		s.NoPictures = o.noPictures
	}
	return s
}

// names completes an argument or a flag with the people of the gallery.
func (o *options) names(c *cobra.Command, _ []string,
	_ string) ([]string, cobra.ShellCompDirective) {
	g, err := o.openGallery(c)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	defer g.Close()
	return g.Names(), cobra.ShellCompDirectiveNoFileComp
}

// namesFlag completes the flag --name with the people of the gallery.
func (o *options) namesFlag(c *cobra.Command) {
	if err := c.RegisterFlagCompletionFunc("name", o.names); err != nil {
		panic("faceauth: " + err.Error()) // there is no such flag: a fault of the program
	}
}

// galleryPath returns the path of the gallery, and sets its key.
func (o *options) galleryPath() (path string, err error) {
	path = o.gallery
	if path == "" {
		dir, err := xdg.Data()
		if err != nil {
			return "", cli.Fail(cli.BadGallery,
				fmt.Errorf("finding the default gallery: %w; name one", err))
		}
		path = filepath.Join(dir, "faceauth", "faceauth.db")
	}
	key, err := store.ReadKey(o.key)
	if err == nil {
		err = gallery.SetKey(path, key)
	}
	return path, cli.Fail(cli.BadUsage, err)
}

var errNoGallery = errors.New("there is no gallery")

// openGallery opens the user's gallery, with the settings of the command line and the present
// measurements of its feature space. The error wraps errNoGallery if there is none.
func (o *options) openGallery(c *cobra.Command) (*gallery.Gallery, error) {
	path, err := o.galleryPath()
	if err == nil {
		err = o.contradiction()
	}
	if err != nil {
		return nil, err
	}
	d, err := o.Embedding()
	if err != nil {
		return nil, err
	}
	g, err := gallery.Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w at %s; enrol somebody first: faceauth enroll SOURCE --name NAME",
			errNoGallery, path)
	}
	if err != nil {
		return nil, cli.Fail(cli.BadGallery, err)
	}
	space := d.Space()
	if space.ID == g.Space().ID && space.Stills.Measured() {
		err = g.Learner().SetMeasured(space)
	}
	if err == nil {
		err = g.Learner().Configure(o.settings(c, g.Learner().Settings()))
	}
	if err != nil {
		g.Close()
		return nil, cli.Fail(cli.BadUsage, err)
	}
	cli.Detail(c, "the gallery is %s: %s, in the space %s", path,
		cli.Count(len(g.People()), "person"), g.Space().ID)
	return g, nil
}

// newGallery makes the user's gallery, with the settings of the command line. If another program
// has just made one, it opens that.
func (o *options) newGallery(c *cobra.Command, space face.Space) (*gallery.Gallery, error) {
	path, err := o.galleryPath()
	if err != nil {
		return nil, err
	}
	g, err := gallery.Create(path, space, o.settings(c, online.Settings{}))
	switch {
	case errors.Is(err, fs.ErrExist):
		return o.openGallery(c)
	case errors.Is(err, online.ErrSettings):
		return nil, cli.Fail(cli.BadUsage, err)
	}
	return g, cli.Fail(cli.BadGallery, err)
}

// anyGallery opens the user's gallery. It makes a missing one, in the feature space that the
// command finds faces in.
func (o *options) anyGallery(c *cobra.Command) (*gallery.Gallery, error) {
	g, err := o.openGallery(c)
	if !errors.Is(err, errNoGallery) {
		return g, err
	}
	if o.Features == "" { // it finds none
		d, err := o.Embedding()
		if err != nil {
			return nil, err
		}
		return o.newGallery(c, d.Space())
	}
	v, err := o.Plan(nil, func(s string) { cli.Warn(c, s) })
	if err != nil {
		return nil, err
	}
	return o.newGallery(c, v.Space)
}

// contradiction returns an error if flags contradict each other.
func (o *options) contradiction() error {
	if o.keep && (o.freeze || o.forget) {
		return cli.Fail(cli.BadUsage,
			errors.New("--learn contradicts --freeze and --no-learn; give one of them"))
	}
	return nil
}

// recogniser opens the gallery and its detector and extractor.
func (o *options) recogniser(c *cobra.Command) (g *gallery.Gallery, v *cli.Vision, err error) {
	g, err = o.openGallery(c)
	if err != nil {
		return nil, nil, err
	}
	space := g.Space()
	v, err = o.Look(c, &space)
	return g, v, err
}
