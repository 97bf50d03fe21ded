// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/faceauth/faceauth/eye"
	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/gallery"
	"github.com/faceauth/faceauth/internal/recordings/replay"
	"github.com/faceauth/faceauth/internal/viewer"
	"github.com/faceauth/faceauth/models"
	"github.com/faceauth/faceauth/online"
	"github.com/spf13/cobra"
)

// Vision finds faces and turns them into vectors. It owns an eye: a process that opens one source
// after another. A broken eye is replaced. The caller closes it.
type Vision struct {
	Space  face.Space
	Name   string             // of the kind of detector
	Looks  models.Description // the network that finds boxes; without a name for haar
	Config eye.Config         // of the eye
	Roots  []string           // folders of all sources, if they are known beforehand

	Networks []models.Description // that it opens
	verify   func() error         // looks once whether these are what they should be
	detail   func(string)         // says once what runs the detector
	mu       sync.Mutex
	eye      *eye.Eye
}

// Open opens a source in the eye.
func (v *Vision) Open(ctx context.Context, name string, o eye.Options) (*eye.Stream, error) {
	e, err := v.ready(ctx)
	if err != nil {
		return nil, err
	}
	o.Roots = append(o.Roots, v.Roots...)
	stream, err := e.Open(ctx, name, o)
	if errors.Is(err, eye.ErrBroken) || ctx.Err() != nil {
		e.Close()
	} else if runs := e.Report().Runs; runs != "" && v.detail != nil {
		v.detail(runs)
	}
	return stream, err
}

// ready returns the eye, and starts one if necessary.
func (v *Vision) ready(ctx context.Context) (*eye.Eye, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.eye != nil && v.eye.Err() != nil {
		v.eye.Close()
		v.eye = nil
	}
	if v.eye == nil {
		viewer.Sweep()
		e, err := eye.Start(ctx, v.Config)
		if err != nil {
			return nil, withoutEye(err)
		}
		err = v.verify() // while the eye loads its libraries
		if err != nil {
			e.Close()
			return nil, err
		}
		v.eye = e
	}
	return v.eye, nil
}

// Close ends the eye; a later source gets a new one.
func (v *Vision) Close() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.eye != nil {
		v.eye.Close()
		v.eye = nil
	}
}

// Another returns a vision like v with an eye of its own. The caller closes it.
func (v *Vision) Another() *Vision {
	return &Vision{Space: v.Space, Name: v.Name, Looks: v.Looks, Config: v.Config, Roots: v.Roots,
		Networks: v.Networks, verify: v.verify, detail: v.detail}
}

// Look is [Options.Later] with an eye that begins at once to open its networks.
func (o *Options) Look(c *cobra.Command, space *face.Space) (*Vision, error) {
	v, err := o.Later(c, space)
	if err != nil {
		return nil, err
	}
	_, err = v.ready(c.Context())
	if err != nil {
		v.Close()
		return nil, err
	}
	return v, nil
}

// Later plans detector and extractor; the first source starts the eye that opens them. Space is the
// feature space of the gallery, or nil. It warns if the gallery has lesser features than are
// installed.
func (o *Options) Later(c *cobra.Command, space *face.Space) (*Vision, error) {
	v, err := o.Plan(space, func(s string) { Warn(c, s) })
	if err != nil {
		return nil, err
	}
	for _, d := range v.Networks {
		Detail(c, "the network %s is in %s", d.Name, o.Models)
	}
	Detail(c, "pictures are looked at by %s", v.Config.Command[0])
	var once sync.Once
	v.detail = func(runs string) {
		once.Do(func() { Detail(c, "the detector %s is run by %s", v.Looks.Name, runs) })
	}
	return v, nil
}

// Plan decides which detector and extractor to use, and whether their files exist. Note is called
// with a sentence if the gallery has lesser features than are installed. It opens nothing yet.
func (o *Options) Plan(space *face.Space, note func(string)) (*Vision, error) {
	embedding, err := o.Embedding()
	if err != nil {
		return nil, err
	}
	if err := embedding.Tuned(); err != nil && !o.Untuned {
		return nil, Fail(BadModel, err)
	}
	pixels := models.Pixels()
	v := &Vision{Name: o.Detector, Space: pixels}
	features := o.Features
	if features == "auto" {
		missing := embedding.Missing(o.Models)
		switch {
		case space != nil && space.ID == pixels.ID:
			features = "pixels"
			if missing == nil {
				note("this gallery compares faces by their pixels, which is much weaker than the " +
					"networks that are installed; enrol its people again, in another --gallery")
			}
		case space != nil || missing == nil || o.EmbeddingModel != "":
			features = "embedding"
		case errors.Is(missing, models.ErrMissing):
			return nil, Fail(BadModel, fmt.Errorf(
				"%w; or compare faces by their pixels, which is much weaker: "+
					"--features pixels", missing))
		default:
			return nil, Fail(BadModel, missing)
		}
	}
	switch features {
	case "pixels":
	case "embedding":
		v.Space, v.Networks = embedding.Space(), []models.Description{embedding}
	default:
		return nil, Fail(BadUsage, fmt.Errorf("unknown features %q; use embedding, pixels or auto",
			o.Features))
	}
	if space != nil && space.ID != v.Space.ID {
		return nil, Fail(BadGallery, fmt.Errorf("%w: %s; use another gallery or other features",
			gallery.ErrSpace, v.Space.Mismatch(space.ID)))
	}
	if err := o.planDetector(v); err != nil {
		return nil, err
	}
	v.Config = eye.Config{Space: v.Space, Command: EyeCommand(), Loader: o.Loader}
	v.Config.Vision = eye.Vision{
		Features: features, Detector: v.Name, Models: o.Models, DetectorModel: o.DetectorModel,
		EmbeddingModel: o.EmbeddingModel,
	}
	v.verify = sync.OnceValue(func() error { return o.VerifyNetworks(v.Networks) })
	if o.DetectorModel == "" && v.Looks.Name != models.Default(models.Detector).Name {
		v.Config.Vision.DetectorModel = v.Looks.Name
	}
	return v, nil
}

func (o *Options) planDetector(v *Vision) error {
	boxes, points, err := o.Detectors()
	if err != nil {
		return err
	}
	if v.Name == "auto" {
		v.Name = "network"
		if err := boxes.Missing(o.Models); errors.Is(err, models.ErrMissing) &&
			o.DetectorModel == "" && !v.Space.Unit {
			v.Name = "haar"
		}
	}
	switch v.Name {
	case "network":
		v.Looks, v.Networks = boxes, append(v.Networks, boxes, points)
	case "haar":
		if v.Space.Unit {
			return Fail(BadUsage, errors.New(
				"the haar detector finds no landmarks, and embeddings need them; "+
					"use --detector network or --features pixels"))
		}
	default:
		return Fail(BadUsage, fmt.Errorf("unknown detector %q; use network, haar or auto",
			o.Detector))
	}
	return nil
}

// Describe lists the settings for a report. Path is the file of the gallery, or empty.
func Describe(v *Vision, s online.Settings, path string) []replay.Setting {
	space := v.Space
	add := func(name, format string, args ...any) replay.Setting {
		return replay.Setting{Name: name, Value: fmt.Sprintf(format, args...)}
	}
	all := []replay.Setting{
		add("feature space", "%s, %d values", space.ID, space.Dim),
		add("detector", "%s", v.looks()),
		add("centroids k", "%d", s.K),
		add("kernel width sigma", "%g", s.Sigma),
		add("regulariser gamma_g", "%g", s.Gamma),
		add("longest edge", "%g", s.Reach),
		add("accept from", "%g", s.Accept),
		add("learn from", "%g", s.Learn),
	}
	if path != "" {
		all = append(all, add("gallery", "%s", path))
	}
	return all
}

// looks names the detector, and, once a source is open, what runs it.
func (v *Vision) looks() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	name := v.Detector()
	if v.eye != nil && v.eye.Report().Runs != "" {
		name += " in " + v.eye.Report().Runs
	}
	return name
}

// Detector names the network that finds boxes, or else the kind of the detector.
func (v *Vision) Detector() string { return cmp.Or(v.Looks.Name, v.Name) }

// StreamError gives an error of a stream the exit code of a source that cannot be read, unless it
// has a code.
func StreamError(c *cobra.Command, err error) error {
	if err == nil || c.Context().Err() != nil || Code(err) != 0 {
		return err
	}
	return Fail(BadSource, err)
}

const eyeProgram = "faceauth-eye"

// EyeCommand returns a command line of faceauth-eye, the program with OpenCV: it lies beside this
// program, or else in $PATH.
func EyeCommand(args ...string) []string {
	path := eyeProgram
	if self, err := os.Executable(); err == nil {
		path = filepath.Join(filepath.Dir(self), eyeProgram)
	}
	if _, err := os.Stat(path); err != nil {
		if found, err := exec.LookPath(eyeProgram); err == nil {
			path = found
		}
	}
	return append([]string{path}, args...)
}

// AskEye runs faceauth-eye with arguments, and decodes its answer into v.
func AskEye(ctx context.Context, v any, args ...string) error {
	args = EyeCommand(args...)
	out, err := exec.CommandContext(ctx, args[0], args[1:]...).Output()
	var failed *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &failed) && len(failed.Stderr) > 0:
		return errors.New(strings.TrimPrefix(strings.TrimSpace(string(failed.Stderr)), eyeProgram+
			": "))
	case err != nil:
		return withoutEye(err)
	}
	if err := json.Unmarshal(out, v); err != nil {
		return fmt.Errorf("the answer of %s: %w", args[0], err)
	}
	return nil
}

// withoutEye says what to do if the program is not there.
func withoutEye(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%w; put %s, which is built and packaged with this program, beside it",
			err, eyeProgram)
	}
	return err
}

// Finding is a row of doctor: what was looked at, and how it is.
type Finding struct {
	// ok, or what a problem means: missing, optional (the program works without it), note
	State string `json:"state"`
	What  string `json:"what"`
	Text  string `json:"text"`
}

// Findings are rows of doctor, in order.
type Findings []Finding

// Add adds a row: ok and a text, or else the state and the text of a problem.
func (f *Findings) Add(otherwise, what string, problem error, good string) {
	row := Finding{"ok", what, good}
	if problem != nil {
		row.State, row.Text = otherwise, strings.TrimPrefix(problem.Error(), what+": ")
	}
	*f = append(*f, row)
}

// Note adds a row that is neither good nor bad.
func (f *Findings) Note(what, text string) { *f = append(*f, Finding{"note", what, text}) }
