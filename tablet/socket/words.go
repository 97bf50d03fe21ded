// SPDX-License-Identifier: Apache-2.0

package socket

import (
	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/tablet"
)

// named are the words as they are sent.
var named = map[tablet.Word]string{
	tablet.Match: "match", tablet.NoMatch: "no-match", tablet.NotLive: "taken-for-picture", tablet.NoFace: "no-face",
	tablet.Poor: "poor-picture", tablet.Failed: "error", tablet.Unproven: "give-password",
	tablet.Unasked: "unasked", tablet.NoCamera: "no-camera",
	tablet.Looking: "looking", tablet.TwoFaces: "two-faces", tablet.Straight: "look-straight",
	tablet.TurnLeft: "turn-left", tablet.TurnRight: "turn-right", tablet.Tilt: "tilt", tablet.BlinkNow: "blink",
	tablet.Lifeless: "not-live", tablet.OtherPerson: "other-person",
	tablet.Enrolled: "completed", tablet.TimedOut: "timed-out", tablet.Taken: "already-another-user",
	tablet.Turned: "camera-turned", tablet.ScreenLike: "camera-like-screen",
}

// took are the words for a pose that was taken.
var took = map[tablet.Word]string{
	tablet.Straight: "took-straight", tablet.TurnLeft: "took-left",
	tablet.TurnRight: "took-right", tablet.Tilt: "took-tilt",
}

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
		return named[r.Word]
	case enrolling && r.Reason == face.TurnedAway: // people are asked to turn, but not so far
		return "turned-too-far"
	}
	return reasons[r.Reason]
}
