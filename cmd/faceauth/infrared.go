// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
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
	"github.com/faceauth/faceauth/models"
	"github.com/faceauth/faceauth/tablet"
	"golang.org/x/sys/unix"
)

// hardware is what the system knows of a camera.
type hardware struct {
	name, driver, usb string // usb: vendor and product
	formats           []v4l2.Format
}

// greyFormats are the formats that no camera in colour offers.
var greyFormats = []v4l2.Format{"GREY", "Y8  ", "Y8I ", "Y10 ", "Y12 ", "Y14 ", "Y16 ", "Y10P",
	"Y10B", "Y12P", "ip3y"}

// infrared reports whether a camera offers grey pictures alone.
func (h hardware) infrared() bool {
	colour := func(f v4l2.Format) bool { return !slices.Contains(greyFormats, f) }
	return len(h.formats) > 0 && !slices.ContainsFunc(h.formats, colour)
}

// cameraOf returns what the system knows of a camera.
func cameraOf(path string) (h hardware, err error) {
	h.formats, err = v4l2.Formats(path)
	if err != nil {
		return h, err
	}
	sys := filepath.Join("/sys/class/video4linux", filepath.Base(path))
	read := func(name string) string {
		b, _ := os.ReadFile(filepath.Join(sys, name)) // not every camera has it
		return strings.TrimSpace(string(b))
	}
	h.name = read("name")
	if driver, err := filepath.EvalSymlinks(filepath.Join(sys, "device", "driver")); err == nil {
		h.driver = filepath.Base(driver)
	}
	h.usb = strings.Trim(read("device/../idVendor")+":"+read("device/../idProduct"), ":")
	return h, nil
}

// firstInfrared returns the first infrared camera.
func firstInfrared() (string, error) {
	devices, _ := filepath.Glob("/dev/video*")
	for _, path := range devices {
		if c, err := cameraOf(path); err == nil && c.infrared() {
			return path, nil
		}
	}
	return "", cli.Fail(cli.BadSource,
		fmt.Errorf("none of %s offers grey pictures only, as an infrared camera does; "+
			"name one: faceauth doctor --infrared /dev/video2", cli.Count(len(devices), "camera")))
}

// infraredLook is how long a camera is looked at; flash is the least pulse, in grey levels, of a
// pair of a lit and a dark picture.
const (
	infraredLook = 3 * time.Second
	flash        = 12
)

// infraredCamera looks through an infrared camera, and says whether it will do for logins; "auto"
// is the first one.
func (o *options) infraredCamera(ctx context.Context, device string) (d diagnosis, err error) {
	d.otherwise = "this camera cannot serve logins yet"
	all := &d.Findings
	if device == "auto" {
		device, err = firstInfrared()
		if err != nil {
			return d, err
		}
	}
	index, real := input.Camera(device)
	if real {
		device = fmt.Sprintf("/dev/video%d", index)
		h, err := cameraOf(device)
		if err != nil {
			return d, cli.Fail(cli.BadSource, fmt.Errorf("opening the camera: %w", err))
		}
		var u unix.Utsname
		unix.Uname(&u)
		all.Note("camera", device+" "+h.name)
		all.Note("driver", strings.TrimSpace(h.driver+" "+h.usb)+", Linux "+
			unix.ByteSliceToString(u.Release[:]))
		all.Note("offers", fmt.Sprintf("%q", h.formats))
	}
	d.Works, d.Verdict, err = o.seenInfrared(ctx, device, all)
	if real {
		all.Note("please send this", "with the model of your laptop, whatever the result is: "+
			"https://github.com/faceauth/faceauth/issues/new?template=infrared.yml")
	}
	return d, err
}

// seenInfrared looks through an infrared camera, adds what was seen, and says whether it will do.
func (o *options) seenInfrared(ctx context.Context, device string,
	all *cli.Findings) (does bool, verdict string,
	err error) {
	with := *o
	with.Features, with.Detector = "embedding", "network"
	with.DetectorModel = models.Default(models.Detector).Name // as logins
	v, err := with.Plan(nil, func(string) {})
	if err != nil {
		return false, "", err
	}
	defer v.Close()
	v.Config.Space = v.Config.Space.Infrared()
	v.Config.Vision.Infrared = true
	stream, err := v.Open(ctx, device,
		eye.Options{Gate: eye.Login, AsIs: true, Faces: 1, Live: true})
	if err != nil {
		return false, "", cli.Fail(cli.BadSource, err)
	}
	var pulses []float64
	var lit []float32 // scores of faces
	flashed := 0
	end := time.Now().Add(infraredLook)
	for f, err := range face.Frames(ctx, stream) { // pairs of pictures
		if err != nil {
			return false, "", err
		}
		pulses = append(pulses, f.Pulse)
		if f.Pulse >= flash {
			flashed++
		}
		for _, x := range f.Samples {
			if x.Liveness != nil {
				lit = append(lit, *x.Liveness)
			}
		}
		if !time.Now().Before(end) {
			break
		}
	}
	const no = "this camera will not do, because "
	if len(pulses) == 0 {
		return false, no + "it sends no pictures that can be used", nil
	}
	slices.Sort(pulses)
	all.Note("emitter", fmt.Sprintf(
		"it flashed in %d of %s; a lit picture is brighter by %.0f of 255", flashed,
		cli.Count(len(pulses), "pair"), pulses[len(pulses)/2]))
	if flashed == 0 {
		return false, no + "no picture is lit: its emitter does not flash, or nobody is near. " +
			"Some emitters need linux-enable-ir-emitter, a program by others", nil
	}
	if len(lit) == 0 {
		return false, "it is not known whether this camera will do: no face was found. Sit " +
			"before it and run this again", nil
	}
	slices.Sort(lit)
	median := lit[len(lit)/2]
	all.Note("face", fmt.Sprintf("in %s, lit %.2f (median; %.2f is needed)",
		cli.Count(len(lit), "pair"), median, tablet.LeastLit))
	if median < tablet.LeastLit {
		return false, no + fmt.Sprintf(
			"the emitter lights a face too little (%.2f, and %.2f is needed)", median,
			tablet.LeastLit), nil
	}
	return true, fmt.Sprintf("this camera will do: add --infrared %s to FACEAUTH_OPTIONS in "+
		"/etc/default/faceauth, and enrol again", device), nil
}
