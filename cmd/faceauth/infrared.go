// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/faceauth/faceauth/eye"
	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/cli"
	"github.com/faceauth/faceauth/internal/input"
	"github.com/faceauth/faceauth/internal/v4l2"
	"github.com/faceauth/faceauth/tablet"
	"golang.org/x/sys/unix"
)

// hardware says which camera it is. For a recording it is empty.
type hardware struct {
	Name    string   `json:"name,omitempty"`
	Driver  string   `json:"driver,omitempty"`
	USB     string   `json:"usb,omitempty"` // vendor and product
	Kernel  string   `json:"kernel,omitempty"`
	Formats []string `json:"formats,omitempty"` // with the sizes of frames

	infrared bool // all formats are grey
}

// greyFormats are the formats that no camera in colour offers.
var greyFormats = []string{"GREY", "Y8", "Y8I", "Y10", "Y12", "Y14", "Y16", "Y10P", "Y10B", "Y12P", "ip3y"}

// cameraOf returns what the system knows of a camera.
func cameraOf(path string) (h hardware, err error) {
	modes, err := v4l2.Modes(path)
	if err != nil {
		return h, err
	}
	h.infrared = len(modes) > 0
	for _, m := range modes {
		h.Formats = append(h.Formats, m.String())
		if !slices.Contains(greyFormats, strings.TrimSpace(string(m.Format))) {
			h.infrared = false
		}
	}
	sys := filepath.Join("/sys/class/video4linux", filepath.Base(path))
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join(sys, name))
		if err != nil {
			return ""
		}
		return strings.TrimSpace(string(b))
	}
	h.Name = read("name")
	if driver, err := filepath.EvalSymlinks(filepath.Join(sys, "device", "driver")); err == nil {
		h.Driver = filepath.Base(driver)
	}
	if vendor := read("device/../idVendor"); vendor != "" {
		h.USB = vendor + ":" + read("device/../idProduct")
	}
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		h.Kernel = unix.ByteSliceToString(u.Release[:])
	}
	return h, nil
}

// infraredCamera returns the first infrared camera.
func infraredCamera() (string, error) {
	devices, _ := filepath.Glob("/dev/video*")
	for _, path := range devices {
		if c, err := cameraOf(path); err == nil && c.infrared {
			return path, nil
		}
	}
	return "", cli.Fail(cli.BadSource, fmt.Errorf("none of %s offers grey pictures only, as an infrared camera does; "+
		"name one: faceauth doctor --infrared /dev/video2", cli.Count(len(devices), "camera")))
}

// infrared is what was seen through an infrared camera.
type infrared struct {
	Does    bool   `json:"does"` // it will do for logins
	Verdict string `json:"verdict"`
	Camera  string `json:"camera"`
	hardware
	Size    [2]int    `json:"size"`
	Pairs   int       `json:"pairs"`             // pairs of pictures, as frames of an infrared camera are
	Flashed int       `json:"flashed"`           // pairs with a lit and a dark picture
	Pulse   float64   `json:"pulse"`             // median difference of lit and dark, in grey levels
	Faces   int       `json:"faces"`             // faces in the pairs
	Lit     []float32 `json:"lit,omitempty"`     // the scores of these faces, in order
	Reasons []string  `json:"reasons,omitempty"` // why faces would not be used
}

// flash is the least pulse, in grey levels, of a pair with a lit and a dark picture.
const flash = 12

// look looks through the camera for some time.
func (s *infrared) look(ctx context.Context, stream face.Stream, within time.Duration) error {
	var pulses []float64
	for end := time.Now().Add(within); time.Now().Before(end); {
		f, err := stream.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		s.Size, s.Pairs = [2]int{f.Size.X, f.Size.Y}, s.Pairs+1
		if pulses = append(pulses, f.Pulse); f.Pulse >= flash {
			s.Flashed++
		}
		for _, x := range f.Samples {
			s.Faces++
			if x.Liveness != nil {
				s.Lit = append(s.Lit, *x.Liveness)
			}
			if why := string(x.Reason); why != "" && !slices.Contains(s.Reasons, why) {
				s.Reasons = append(s.Reasons, why)
			}
		}
	}
	slices.Sort(s.Lit)
	if slices.Sort(pulses); len(pulses) > 0 {
		s.Pulse = pulses[len(pulses)/2]
	}
	return nil
}

// infraredLook is how long a camera is looked at.
const infraredLook = 3 * time.Second

// seenInfrared looks through an infrared camera; "auto" is the first one.
func (o *options) seenInfrared(ctx context.Context, device string) (s infrared, err error) {
	if device == "auto" {
		if device, err = infraredCamera(); err != nil {
			return s, err
		}
	}
	s.Camera = device
	if index, ok := input.Camera(device); ok {
		s.Camera = fmt.Sprintf("/dev/video%d", index)
		if s.hardware, err = cameraOf(s.Camera); err != nil {
			return s, cli.Fail(cli.BadSource, fmt.Errorf("opening the camera: %w", err))
		}
	}
	with := *o
	with.Features, with.Detector = "embedding", "network"
	v, err := with.Plan(nil, func(string) {})
	if err != nil {
		return s, err
	}
	defer v.Close()
	v.Config.Space = v.Config.Space.Infrared()
	v.Config.Vision.Infrared = true
	stream, err := v.Open(ctx, device, eye.Options{Gate: eye.Login, AsIs: true, Faces: 1, Live: true})
	if err != nil {
		return s, cli.Fail(cli.BadSource, err)
	}
	err = s.look(ctx, stream, infraredLook)
	s.Does, s.Verdict = s.judged()
	return s, err
}

// median returns the median score of the faces.
func (s infrared) median() float32 { return s.Lit[len(s.Lit)/2] }

// judged returns whether the camera will do, and the first line of the report.
func (s infrared) judged() (does bool, why string) {
	const no = "this camera will not do, because "
	switch {
	case s.Pairs == 0:
		return false, no + "it sends no pictures that can be used"
	case s.Flashed == 0:
		return false, no + "no picture is lit: its emitter does not flash, or nobody is near. Some emitters need " +
			"linux-enable-ir-emitter, a program by others"
	case len(s.Lit) == 0:
		return false, "it is not known whether this camera will do: no face was found. Sit before it and run this again"
	case s.median() < tablet.LeastLit:
		return false, no + fmt.Sprintf("the emitter lights a face too little (%.2f, and %.2f is needed)", s.median(),
			tablet.LeastLit)
	}
	return true, fmt.Sprintf("this camera will do: add --infrared %s to FACEAUTH_OPTIONS in /etc/default/faceauth, "+
		"and enrol again", s.Camera)
}

// errInfrared is the error for a camera that will not do.
var errInfrared = errors.New("this camera cannot serve logins yet")

// String returns the report for a person.
func (s infrared) String() string {
	var b strings.Builder
	line := func(what, text string) {
		if text != "" {
			fmt.Fprintf(&b, "%-9s  %s\n", what, text)
		}
	}
	b.WriteString(s.Verdict + "\n")
	line("camera", strings.TrimSpace(s.Camera+" "+s.Name))
	line("driver", strings.TrimSpace(s.Driver+" "+s.USB))
	line("kernel", s.Kernel)
	for _, f := range s.Formats {
		line("offers", f)
	}
	line("frames", fmt.Sprintf("%s of %dx%d pixels", cli.Count(s.Pairs, "pair"), s.Size[0], s.Size[1]))
	line("emitter", fmt.Sprintf("it flashed in %s; a lit picture is brighter by %.0f of 255",
		cli.Count(s.Flashed, "pair"), s.Pulse))
	if len(s.Lit) > 0 {
		line("face", fmt.Sprintf("in %s, lit %.2f (median; %.2f is needed)", cli.Count(s.Faces, "pair"), s.median(),
			tablet.LeastLit))
		line("", strings.Join(s.Reasons, ", "))
	}
	if s.Name != "" {
		b.WriteString("Please send this, with the model of your laptop, whatever the result is:\n" +
			"https://github.com/faceauth/faceauth/issues/new?template=infrared.yml\n")
	}
	return b.String()
}
