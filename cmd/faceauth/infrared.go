// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/faceauth/faceauth/eye"
	"github.com/faceauth/faceauth/internal/cli"
	"github.com/faceauth/faceauth/internal/input"
	"github.com/faceauth/faceauth/internal/v4l2"
	"github.com/faceauth/faceauth/tablet"
)

// infrared is what was seen through an infrared camera.
type infrared struct {
	Formats []string `json:"formats,omitempty"` // with the sizes of frames; none for a recording
	tablet.InfraredLight
}

// infraredLook is how long a camera is looked at.
const infraredLook = 3 * time.Second

// seenInfrared looks through an infrared camera.
func (o *options) seenInfrared(ctx context.Context, device string) (s infrared, err error) {
	if index, ok := input.Camera(device); ok {
		modes, err := v4l2.Modes(fmt.Sprintf("/dev/video%d", index))
		if err != nil {
			return s, cli.Fail(cli.BadSource, fmt.Errorf("opening the camera: %w", err))
		}
		for _, m := range modes {
			s.Formats = append(s.Formats, m.String())
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
	s.InfraredLight, err = tablet.LookInfrared(ctx, stream, infraredLook)
	return s, err
}

// String returns the report for a person.
func (s infrared) String() string {
	var b strings.Builder
	for _, f := range s.Formats {
		fmt.Fprintf(&b, "offers     %s\n", f)
	}
	fmt.Fprintf(&b, "frames     %s of %dx%d pixels\n", cli.Count(s.Pairs, "pair"), s.Size[0], s.Size[1])
	fmt.Fprintf(&b, "emitter    it flashed in %s; a lit picture is brighter by %.0f of 255\n",
		cli.Count(s.Flashed, "pair"), s.Pulse)
	if s.Flashed == 0 {
		b.WriteString("           it does not flash, or nobody is near; some need linux-enable-ir-emitter\n")
	}
	if s.Faces == 0 {
		b.WriteString("face       none was found; sit before the camera and run this again\n")
		return b.String()
	}
	slices.Sort(s.Lit)
	fmt.Fprintf(&b, "face       in %s, lit %.2f (median; .55 is needed)\n", cli.Count(s.Faces, "pair"),
		s.Lit[len(s.Lit)/2])
	if len(s.Reasons) > 0 {
		fmt.Fprintf(&b, "           some could not be used: %s\n", strings.Join(s.Reasons, ", "))
	}
	return b.String()
}
