// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/faceauth/faceauth/eye"
	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/cli"
	"github.com/faceauth/faceauth/internal/drawing"
	"github.com/faceauth/faceauth/internal/gallery"
	"github.com/faceauth/faceauth/internal/install"
	"github.com/faceauth/faceauth/internal/store"
	"github.com/faceauth/faceauth/internal/viewer"
	"github.com/faceauth/faceauth/models"
	"github.com/spf13/cobra"
)

func newDoctor() *cobra.Command {
	var o options
	infrared, login := "", false
	c := &cobra.Command{
		Use:   "doctor",
		Short: "list what is missing on this machine, and the commands that install it",
		Args:  cobra.NoArgs, SuggestFor: []string{"check", "test", "diagnose", "setup", "config",
			"info"},
		RunE: func(c *cobra.Command, _ []string) error {
			examine := o.machine
			switch {
			case infrared != "":
				examine = func(ctx context.Context) (diagnosis, error) {
					return o.infraredCamera(ctx, infrared)
				}
			case login:
				examine = loginHere
			}
			d, err := examine(c.Context())
			if err != nil || c.Context().Err() != nil {
				return cmp.Or(err, c.Context().Err())
			}
			var rows strings.Builder
			for _, r := range d.Findings {
				fmt.Fprintf(&rows, "%-8s  %s: %s\n", r.State, r.What, r.Text)
			}
			err = o.Print(c, d, "%s\n%s", d.Verdict, &rows)
			if err == nil && !d.Works {
				err = errors.New(d.otherwise)
			}
			return err
		},
	}
	c.Flags().StringVar(&o.Models, "models", models.Dir(), "folder of the model files")
	c.Flags().StringVar(&infrared, "infrared", "",
		"instead, look through this infrared camera (or auto, the first one) for three seconds, "+
			"and say whether it will do for logins; no picture is shown or kept")
	c.Flags().BoolVar(&login, "login", false,
		"instead, say whether logins by face work here, and if not, why")
	o.JSONFlag(c.Flags())
	o.galleryFlags(c.Flags())
	return c
}

// States of what is not there: it is needed, or the program works without it.
const (
	needed = "missing"
	useful = "optional"
)

// diagnosis is what doctor found.
type diagnosis struct {
	Works     bool         `json:"works"`
	Verdict   string       `json:"verdict"` // in a sentence
	Findings  cli.Findings `json:"findings"`
	otherwise string       // what is said at the end if it does not work
}

// machine looks at what the commands need.
func (o *options) machine(ctx context.Context) (d diagnosis, err error) {
	var all cli.Findings
	if err := cli.AskEye(ctx, &all, "check", o.Models); err != nil {
		all.Add(needed, "faceauth-eye", err, "")
	}
	o.checkNetworks(&all)
	lookForCameras(&all)
	if install.Missing(o.Models) == nil { // otherwise nothing else follows
		decoding, err := o.decodes(ctx)
		all.Add(needed, "decoding", err, decoding)
	}
	path, err := o.galleryPath()
	if err != nil {
		all.Add(needed, "gallery", err, "")
	} else {
		o.checkGallery(&all, path)
	}
	all.Add(useful, "window", drawing.Answers(), "a display answers")
	broken := 0
	for _, f := range all {
		if f.State == needed {
			broken++
		}
	}
	if broken == 0 {
		return diagnosis{true, "nothing is missing", all, ""}, nil
	}
	missing := cli.Count(broken, "thing") + " missing"
	return diagnosis{false, missing, all, missing}, nil
}

// checkNetworks looks at the neural networks.
func (o *options) checkNetworks(all *cli.Findings) {
	if !slices.ContainsFunc(models.Builtin(), func(d models.Description) bool {
		return !errors.Is(d.Missing(o.Models), models.ErrMissing)
	}) {
		all.Add(needed, "neural networks", fmt.Errorf(
			"they are not installed in %s; run: faceauth models install", o.Models), "")
		return
	}
	for _, d := range models.Present(o.Models) {
		state := needed
		if d.Kind == models.Liveness || d.Tuned() != nil {
			state = useful
		}
		_, err := d.Path(o.Models)
		all.Add(state, "neural network "+d.Name, err, string(d.Kind))
	}
}

// others returns an error if other users can read a gallery.
func others(path string) error {
	info, err := os.Stat(path)
	if err == nil && info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("other users can read it; run: chmod 600 %s", path)
	}
	return nil
}

// checkGallery looks at a database and the gallery in it.
func (o *options) checkGallery(all *cli.Findings, path string) {
	var g *gallery.Gallery
	var people, faces int64
	h, err := store.Inspect(path, schema, map[string]*int64{
		"select count(*) from people_v1": &people, "select count(*) from faces_v1": &faces,
	})
	if err == nil {
		all.Add(needed, "database", nil,
			fmt.Sprintf("%s, %.1f MB and %.1f MB of log, %s, %s, schema %d", path,
				float64(h.Size)/1e6, float64(h.Log)/1e6, cli.Count(int(people), "person"),
				cli.Count(int(faces), "face"),
				h.Version))
		all.Add(useful, "integrity", nil, "every page, table and index is whole")
		var left error
		if h.Waiting {
			left = errors.New("somebody who was forgotten is still in the file, because another " +
				"program was using it or the disk was full; end the programs that have the " +
				"database open, make room, and run: faceauth people")
		}
		all.Add(useful, "forgotten people", left,
			"nobody is left in the file, its copies or its log")
		all.Add(useful, "daily copies", nil, cmp.Or(strings.Join(h.Copies, ", "), "none yet"))
		all.Add(needed, "privacy", others(path), "only its owner can read it")
		g, err = gallery.Read(path)
	}
	if len(h.Programs) > 0 {
		all.Add(useful, "programs with the database", nil, strings.Join(h.Programs, ", ")+
			"; those of other users cannot be seen")
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		all.Add(useful, "gallery", fmt.Errorf(
			"%s does not exist yet; run: faceauth enroll SOURCE --name NAME", path), "")
		return
	case err != nil:
		all.Add(needed, "gallery", fmt.Errorf("%s: %w", path, err), "")
		return
	}
	defer g.Close()
	all.Add(needed, "gallery", nil, fmt.Sprintf("%s, %s, %s", path, g.Space().ID,
		cmp.Or(strings.Join(g.Names(), ", "), "nobody")))
}

// decodes lets an eye decode a small picture with the detector and networks that other commands
// would use.
func (o *options) decodes(ctx context.Context) (string, error) {
	with := *o
	with.Features, with.Detector = "auto", "auto"
	v, err := with.Plan(nil, func(string) {})
	if err != nil {
		return "", err
	}
	var grey bytes.Buffer
	if err := png.Encode(&grey, image.NewGray(image.Rect(0, 0, 160, 120))); err != nil {
		return "", err
	}
	pictures := viewer.Viewer{Open: v.Open, Drop: v.Close}
	defer pictures.Close()
	if _, err := pictures.See(ctx, grey.Bytes(), ".png", eye.Options{Gate: eye.Learn}); err != nil {
		return "", err
	}
	return fmt.Sprintf("a picture was decoded, with the detector %s, which finds faces from %d "+
		"pixels even in large frames, and the features %s", v.Detector(), face.LeastSide,
		v.Config.Vision.Features), nil
}

// lookForCameras says of each camera whether it can be used, and whether it is an infrared one, by
// the formats that it offers.
func lookForCameras(all *cli.Findings) {
	devices, _ := filepath.Glob("/dev/video*")
	if len(devices) == 0 {
		all.Add(useful, "camera", errors.New(
			"there is no /dev/video*; connect one, or use a recording"), "")
	}
	for _, path := range devices {
		c, err := cameraOf(path)
		kind := "in colour"
		switch {
		case errors.Is(err, fs.ErrPermission):
			err = fmt.Errorf("%w; run: sudo usermod -aG video $USER, and log in again", err)
		case err != nil:
		case len(c.formats) == 0: // the data about the pictures of another camera
			continue
		case c.infrared():
			kind = "infrared; try it: faceauth doctor --infrared " + path
		}
		all.Add(useful, path, err, c.name+": "+kind)
	}
}
