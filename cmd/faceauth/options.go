// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/faceauth/faceauth/calibrate"
	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/fleet/ledger"
	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/internal/safefile"
	"github.com/faceauth/faceauth/models"
	"github.com/faceauth/faceauth/online"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Help of flags that several commands have with different values.
const (
	enrollHelp = "first usable faces of each enrolled person that are labelled"
	chooseHelp = "number of strangers; each choice of this many people is tried"
)

// options holds the flags that several commands share.
type options struct {
	features, detector           string
	models                       string
	detectorModel, embeddingFile string
	gallery, settingsFile, key   string
	timeout                      time.Duration
	rotate                       rotation
	everyFrame                   bool
	json                         bool
	member                       memberFlags
	numbers                      map[string]ledger.ID // numbers in the fleet of people of the gallery

	k                   positive[int]
	sigma, gamma, reach positive[float64]
	accept, learnFrom   float64
	maxHops, learnCap   int
	halfLife            int
	noPictures          bool
}

// visionFlags adds the flags for detectors and embeddings.
func (o *options) visionFlags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&o.features, "features", "auto", "feature space: embedding, pixels (of the thesis), or auto: the "+
		"gallery's, else embedding if the models "+
		"are installed")
	f.StringVar(&o.detector, "detector", "auto",
		"face detector: network, haar, lbp, or auto: network if the models are installed, else haar")
	f.DurationVar(&o.timeout, "timeout", 10*time.Second, "how long to wait for a source to open, and for each frame")
	f.BoolVar(&o.json, "json", false, "print JSON for programs")
	o.embeddingFlags(c)
	o.detectorFlag(c)
}

// embeddingFlags adds the flags for the network that makes vectors.
func (o *options) embeddingFlags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&o.models, "models", models.Dir(), "folder of the model files")
	f.StringVar(&o.embeddingFile, "embedding-model", "", "description (JSON) of an embedding network of your own")
}

// spareFlag adds --every-frame, for commands that otherwise skip frames.
func (o *options) spareFlag(c *cobra.Command) {
	c.Flags().BoolVar(&o.everyFrame, "every-frame", false,
		"look for faces in every frame, also if nothing moves")
}

func (o *options) detectorFlag(c *cobra.Command) {
	c.Flags().StringVar(&o.detectorModel, "detector-model", "", "description (JSON) of a detector network of your own")
}

// embedding returns the description of the network that makes vectors.
func (o *options) embedding() (models.Description, error) {
	if o.embeddingFile == "" {
		return models.Default(models.Embedding), nil
	}
	d, err := models.ParseDescription(o.embeddingFile)
	return d, fail(badModel, err)
}

// detectors returns the descriptions of the networks for faces and for landmarks.
func (o *options) detectors() (boxes, points models.Description, err error) {
	boxes, points = models.Default(models.Detector), models.Default(models.Landmarks)
	if o.detectorModel != "" {
		boxes, err = models.ParseDescription(o.detectorModel)
	}
	return boxes, points, fail(badModel, err)
}

// verifyNetworks reads the files of networks, so that a missing or altered file is found before the work.
func (o *options) verifyNetworks(networks []models.Description) error {
	for _, d := range networks {
		if _, err := d.Path(o.models); err != nil {
			return fail(badModel, err)
		}
	}
	return nil
}

// learnerFlags adds the settings of the learner.
func (o *options) learnerFlags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&o.settingsFile, "settings", "", "file of settings from faceauth tune; flags override it (default: "+
		"faceauth/settings.json below "+
		"$XDG_CONFIG_HOME or ~/.config, if it exists)")
	o.k.n = 300
	f.Var(&o.k, "k", "largest number of learned centroids; enrolled faces come on top of it (default 300)")
	f.Var(&o.sigma, "sigma", "kernel width (default: the feature space's)")
	f.Var(&o.gamma, "gamma", "regulariser gamma_g (default: the feature space's)")
	f.Var(&o.reach, "reach", "longest edge of the graph (default: the feature space's)")
	f.Float64Var(&o.accept, "accept", 0, "least confidence for a name, 0 to 1")
	f.IntVar(&o.maxHops, "max-hops", 0,
		"largest number of learned faces between a learned face and a labelled face; 0 for no limit")
	f.IntVar(&o.learnCap, "learn-cap", 0,
		"largest number of faces of one person learned in 1000 observations; 0 for no limit")
	f.IntVar(&o.halfLife, "half-life", 0,
		"number of observations after which a learned face counts half and may be removed; 0 for never")
	f.Float64Var(&o.learnFrom, "learn-from", 0, "least confidence of a learned face, 0 to 1")
}

// picturesFlag adds --no-pictures, for commands that keep learned faces in the gallery.
func (o *options) picturesFlag(c *cobra.Command) {
	c.Flags().BoolVar(&o.noPictures, "no-pictures", false, "keep no pictures of learned faces in the gallery, and "+
		"remove those that are there; the gallery remembers this (--no-pictures=false keeps them again)")
}

func (o *options) galleryFlag(c *cobra.Command) { o.galleryFlags(c.Flags()) }

func (o *options) galleryFlags(f *pflag.FlagSet) {
	f.StringVar(&o.gallery, "gallery", "",
		"file of the gallery (default: faceauth/faceauth.db below $XDG_DATA_HOME or ~/.local/share)")
	f.StringVar(&o.key, "key", "", "file of the 32 random bytes that encrypt the gallery (default: faceauth.key in "+
		"$CREDENTIALS_DIRECTORY, if it exists)")
}

// settings returns s with the values of the settings file, if there is one, and then the values of the command line.
func (o *options) settings(c *cobra.Command, space face.Space, s online.Settings) (online.Settings, error) {
	s, err := o.tuned(c, space, s)
	if err != nil {
		return s, fail(badUsage, err)
	}
	given := c.Flags().Changed
	if given("k") {
		s.K = o.k.n
	}
	if given("sigma") {
		s.Sigma = o.sigma.n
	}
	if given("gamma") {
		s.Gamma, s.Epsilon = o.gamma.n, 0 // epsilon follows gamma
	}
	if given("reach") {
		s.Reach = o.reach.n
	}
	if given("max-hops") {
		s.MaxHops = o.maxHops
	}
	if given("learn-cap") {
		s.LearnCap = o.learnCap
	}
	if given("half-life") {
		s.HalfLife = o.halfLife
	}
	if given("accept") {
		s.Accept = o.accept
	}
	if given("no-pictures") {
		s.NoPictures = o.noPictures
	}
	if given("learn-from") {
		s.Learn = o.learnFrom
	}
	return s, nil
}

// tuned returns s with the values of the settings file. If the default file is for another feature space, it is ignored
// with a warning.
func (o *options) tuned(c *cobra.Command, space face.Space, s online.Settings) (online.Settings, error) {
	path, asked := o.settingsFile, o.settingsFile != ""
	if !asked {
		var err error
		if path, err = calibrate.DefaultPath(); err != nil {
			return s, nil // without a home folder there is no default file
		}
	}
	f, err := calibrate.Read(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !asked:
		return s, nil
	case errors.Is(err, fs.ErrNotExist):
		return s, fmt.Errorf("%w; faceauth tune makes one", err)
	case err != nil:
		return s, fmt.Errorf("%w; make a new one with faceauth tune, or remove it", err)
	}
	if err := f.Check(space); err != nil {
		if asked {
			return s, fmt.Errorf("%s: %w", path, err)
		}
		warn(c, fmt.Sprintf("%s: %v; they are not used", path, err))
		return s, nil
	}
	return f.Outcome.Choice.Apply(s), nil
}

// galleryPath returns the path of the gallery, and sets its key.
func (o *options) galleryPath() (path string, err error) {
	if path = o.gallery; path == "" {
		if path, err = gallery.Default(); err != nil {
			return path, fail(badGallery, err)
		}
	}
	key, err := galleryKey(o.key)
	if err == nil {
		err = gallery.SetKey(path, key)
	}
	return path, fail(badUsage, err)
}

// galleryKey reads a key from a file, or else from the credentials of systemd. It is nil if there is none.
func galleryKey(path string) ([]byte, error) {
	read := secretBytes
	if dir := os.Getenv("CREDENTIALS_DIRECTORY"); path == "" && dir != "" {
		path, read = filepath.Join(dir, "faceauth.key"), safefile.ReadBytes // only this service can read the folder
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
	}
	if path == "" {
		return nil, nil
	}
	key, err := read(path)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the key of the gallery: %w", err)
	case len(key) != 32:
		return nil, fmt.Errorf("the key of the gallery: %s has %s, and a key has 32; make one: "+
			"(umask 077; head -c 32 /dev/urandom >FILE)", path, count(len(key), "byte"))
	}
	return key, nil
}

var errNoGallery = errors.New("there is no gallery")

// readGallery reads the gallery at path, with the present measurements of its feature space.
func (o *options) readGallery(path string) (*gallery.Gallery, error) {
	g, err := gallery.Read(path)
	if err != nil {
		return nil, err
	}
	d, err := o.embedding()
	if err != nil {
		return nil, err
	}
	if space := d.Space(); space.ID == g.Space().ID && space.Stills.Measured() {
		g.Learner().SetMeasured(space)
	}
	return g, nil
}

// openGallery reads the gallery at path and applies the settings of the command line.
func (o *options) openGallery(c *cobra.Command, path string) (*gallery.Gallery, error) {
	g, err := o.readGallery(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fail(badGallery, fmt.Errorf("%w at %s; enrol somebody first: faceauth enroll SOURCE --name NAME",
			errNoGallery, path))
	}
	if err != nil {
		return nil, fail(badGallery, err)
	}
	if err := o.configure(c, g); err != nil {
		g.Close()
		return nil, err
	}
	return g, nil
}

// newGallery returns an empty gallery with the settings of the file and the command line.
func (o *options) newGallery(c *cobra.Command, space face.Space) (*gallery.Gallery, error) {
	s, err := o.settings(c, space, online.Settings{})
	if err != nil {
		return nil, err
	}
	g, err := gallery.New(space, s)
	return g, fail(badUsage, err)
}

// configure applies the settings of the file and the command line to a gallery.
func (o *options) configure(c *cobra.Command, g *gallery.Gallery) error {
	s, err := o.settings(c, g.Space(), g.Learner().Settings())
	if err != nil {
		return err
	}
	return fail(badUsage, g.Learner().Configure(s))
}

// ownGallery opens the user's gallery to recognise people, and to learn unless freeze is set.
func (o *options) ownGallery(c *cobra.Command, keep, freeze bool) (g *gallery.Gallery, path string, err error) {
	if keep && freeze {
		return nil, "", fail(badUsage, errors.New("--learn and --freeze contradict each other"))
	}
	if path, err = o.galleryPath(); err != nil {
		return nil, path, err
	}
	g, err = o.openGallery(c, path)
	return g, path, err
}

// checkTimeout returns nil if the timeout is valid.
func (o *options) checkTimeout() error {
	if o.timeout <= 0 {
		return fail(badUsage, fmt.Errorf("--timeout must be positive, got %v", o.timeout))
	}
	return nil
}

// warn prints sentences for a person.
func warn(c *cobra.Command, sentences ...string) {
	for _, s := range sentences {
		fmt.Fprintf(c.ErrOrStderr(), "faceauth: warning: %s\n", strings.ReplaceAll(strings.TrimSpace(s), "\n", " "))
	}
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	switch {
	case noun == "person":
		noun = "people"
	case strings.HasSuffix(noun, "y"):
		noun = strings.TrimSuffix(noun, "y") + "ies"
	default:
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
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
