// SPDX-License-Identifier: Apache-2.0

package bus

import (
	"strings"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/tablet/enrolment"
	"github.com/faceauth/faceauth/tablet/session"
	"github.com/faceauth/faceauth/tablet/words"
)

// took are the words for a pose that was taken.
var took = map[enrolment.Word]string{
	enrolment.Straight: "enroll-took-straight", enrolment.TurnLeft: "enroll-took-left",
	enrolment.TurnRight: "enroll-took-right", enrolment.Tilt: "enroll-took-tilt",
}

// Words as they go over the bus, after verify- or enroll-.
var (
	reasons = map[face.Reason]string{
		face.TooSmall: "too-small", face.TooDark: "too-dark", face.TooBright: "too-bright", face.Flat: "low-contrast",
		face.Moved: "blurred", face.Tilted: "tilted", face.CutOff: "no-vector", face.Covered: "covered",
		face.Blurred: "blurred", face.TurnedAway: "turned-away", face.NoVector: "no-vector",
		face.Unclear: "unclear",
	}
	verifyWords = map[session.Word]string{
		session.Match: "match", session.NoMatch: "no-match", session.NotLive: "taken-for-picture",
		session.NoFace: "no-face", session.Poor: "poor-picture", session.Failed: "error",
		session.Unproven: "give-password",
		session.Looking:  "looking", session.TwoFaces: "two-faces", session.Straight: "look-straight",
		session.TurnLeft: "turn-left", session.TurnRight: "turn-right", session.BlinkNow: "blink",
		session.Lifeless: "not-live",
	}
	enrollWords = map[enrolment.Word]string{
		enrolment.Enrolled: "completed", enrolment.TimedOut: "timed-out", enrolment.Taken: "already-another-user",
		enrolment.Failed: "error", enrolment.Turned: "camera-turned",
		enrolment.Straight: "look-straight", enrolment.TurnLeft: "turn-left", enrolment.TurnRight: "turn-right",
		enrolment.Tilt:   "tilt",
		enrolment.NoFace: "no-face", enrolment.TwoFaces: "two-faces", enrolment.OtherPerson: "other-person",
		enrolment.Lifeless: "not-live",
	}
)

func verifyWord(r session.Result) string {
	if r.Word == session.Retry {
		return "verify-" + reasons[r.Reason]
	}
	return "verify-" + verifyWords[r.Word]
}

func enrollWord(r enrolment.Result) string {
	if r.Word == enrolment.Retry && r.Reason == face.TurnedAway { // people are asked to turn, but not so far
		return "enroll-turned-too-far"
	}
	if r.Word == enrolment.Retry {
		return "enroll-" + reasons[r.Reason]
	}
	return "enroll-" + enrollWords[r.Word]
}

// Sentence returns the meaning of a signal's word for the person in front of the camera. An unknown word, from a
// newer service, is returned as it is.
func Sentence(l words.Language, word string) string {
	if s, ok := l.Say(word); ok {
		return s
	}
	return word
}

// Sentence returns the meaning of a refusal for the person who asked, with advice.
func (e *Error) Sentence(l words.Language) string {
	name := strings.TrimPrefix(e.Name, errorPrefix)
	if name == tooSoon && e.Wait > 0 {
		s, _ := l.Say("Wait", e.Wait)
		return s
	}
	if s, ok := l.Say(name); ok && l != words.English { // the service's own words say more
		return s
	}
	return e.Message
}
