package bus

import (
	"strings"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/tablet/enrolment"
	"github.com/faceauth/faceauth/tablet/session"
)

// Words as they go over the bus, after verify- or enroll-.
var (
	reasons = map[face.Reason]string{
		face.TooSmall: "too-small", face.TooDark: "too-dark", face.TooBright: "too-bright", face.Flat: "low-contrast",
		face.Blurred: "blurred", face.TurnedAway: "turned-away", face.NoVector: "no-vector",
	}
	verifyWords = map[session.Word]string{
		session.Match: "match", session.NoMatch: "no-match", session.NoFace: "no-face", session.Poor: "poor-picture", session.Failed: "error",
		session.Looking: "looking", session.TwoFaces: "two-faces", session.Straight: "look-straight",
		session.TurnLeft: "turn-left", session.TurnRight: "turn-right", session.BlinkNow: "blink",
	}
	enrollWords = map[enrolment.Word]string{
		enrolment.Enrolled: "completed", enrolment.TimedOut: "timed-out", enrolment.Taken: "already-another-user", enrolment.Failed: "error",
		enrolment.Straight: "look-straight", enrolment.TurnLeft: "turn-left", enrolment.TurnRight: "turn-right", enrolment.Tilt: "tilt",
		enrolment.NoFace: "no-face", enrolment.TwoFaces: "two-faces", enrolment.OtherPerson: "other-person",
	}
)

func verifyWord(r session.Result) string {
	if r.Word == session.Retry {
		return "verify-" + reasons[r.Reason]
	}
	return "verify-" + verifyWords[r.Word]
}

func enrollWord(r enrolment.Result) string {
	if r.Word == enrolment.Retry {
		return "enroll-" + reasons[r.Reason]
	}
	return "enroll-" + enrollWords[r.Word]
}

// sentences are what words mean to the person in front of the camera.
var sentences = map[string]string{
	"match": "recognised", "no-match": "not recognised", "no-face": "nobody was seen", "poor-picture": "no picture was good enough",
	"error": "something went wrong", "looking": "looking", "two-faces": "more than one face is in view",
	"look-straight": "look straight into the camera", "turn-left": "turn your head to your left", "turn-right": "turn your head to your right",
	"blink": "blink", "too-small": "come nearer", "too-dark": "it is too dark", "too-bright": "it is too bright",
	"low-contrast": "there is too little contrast; is the lens clean?", "blurred": "hold still", "turned-away": "look at the camera",
	"no-vector": "your face is not all in view", "completed": "enrolled", "timed-out": "out of time",
	"already-another-user": "this face is enrolled for another user", "tilt": "look straight again, and tilt your head a little up or down",
	"other-person": "this is not the person who began",
	"stage-passed": "good", "interrupted": "another program took the camera; try again",
}

// Sentence returns what a word of a signal means to the person in front of the camera. A word that is not known, from a newer
// service, is returned as it is.
func Sentence(word string) string {
	for _, prefix := range []string{"verify-", "enroll-"} {
		if rest, ok := strings.CutPrefix(word, prefix); ok && sentences[rest] != "" {
			return sentences[rest]
		}
	}
	return word
}
