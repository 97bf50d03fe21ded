// SPDX-License-Identifier: Apache-2.0

package socket

import (
	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/tablet"
)

// reasons are the words for the reasons of [tablet.Retry].
var reasons = map[face.Reason]string{
	face.TooSmall: "too-small", face.TooDark: "too-dark", face.TooBright: "too-bright", face.Flat: "low-contrast",
	face.Moved: "blurred", face.Tilted: "tilted", face.CutOff: "no-vector", face.Covered: "covered",
	face.Blurred: "blurred", face.TurnedAway: "turned-away", face.NoVector: "no-vector",
	face.Unclear: "unclear",
}

func wordOf(r tablet.Result, enrolling bool) string {
	switch {
	case r.Word != tablet.Retry:
		return string(r.Word)
	case enrolling && r.Reason == face.TurnedAway: // people are asked to turn, but not so far
		return "turned-too-far"
	}
	return reasons[r.Reason]
}
