// SPDX-License-Identifier: Apache-2.0

package tablet

import (
	"math"
	"slices"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/quantized"
)

// stages are the poses in the order of the requests. After the first one, they may come in any
// order.
var stages = []Word{Straight, TurnLeft, TurnRight, tilt}

// Limits of the poses, by the position of the nose. A straight head is within level; a slightly
// turned head is beyond it and still passes the quality gate. Heads differ in Nod, so it counts
// relative to the straight face.
const (
	level   = .2
	tilting = .06
)

// LeastLit is the least mean liveness score in infrared: the emitter brightens the face a fifth
// more than the strips beside the head. lab/NOTES.md has the made-up recordings it was tried on.
const LeastLit = .55

// dullFrames is the number of judged frames in a row taken for a picture after which an enrolment
// ends: every login would end so, too.
const dullFrames = 40

// liveFrames is the number of judged frames since the last taken face for the mean liveness. After
// a held pose there are at least two.
const liveFrames = 5

// unclearFrames is the number of frames in which an unclear face of a pose is refused; the next one
// is taken.
const unclearFrames = 15

// enrolment guides a person through one enrolment: it asks in words for four faces in different
// poses, and gives a reason for each refused frame. It reads no clock and no camera. One goroutine
// may use it at a time.
type enrolment struct {
	course
	radius      float64
	minLiveness float64
	space       face.Space

	known    [][]float32 // faces of the person; nil if anybody may begin
	faces    [][]float32
	turns    face.Turns // sums over the faces
	open     []Word     // remaining poses
	nod      float64    // Nod of the straight face
	held     Word       // the remaining pose of the last frame, or ""
	asked    int        // frames since the last taken face that were refused as unclear
	infrared bool       // the score is that of the light, and says nothing of screens
	dull     int        // judged frames since the last face that may be live
	live     []float64  // scores of the judged frames since the last taken face, the newest last
	turned   int        // degrees by which the last frame was turned
}

// enrolmentLimit is the time limit of an enrolment by one camera.
const enrolmentLimit = time.Minute

// newEnrolment begins an enrolment at a moment. Radius is the distance from the nearest taken face,
// in units of the space, beyond which a face is another person's. MinLiveness is the least mean
// liveness score of the judged frames since the last taken face; a frame without a score counts as
// 0. With MinLiveness 0 no score is needed. For a face below the ClearNorm of the space, the
// enrolment asks for another picture, at most 15 times for each pose.
func newEnrolment(space face.Space, radius, minLiveness float64, now time.Time) *enrolment {
	return &enrolment{
		radius:      radius,
		minLiveness: minLiveness,
		space:       space,
		open:        slices.Clone(stages),
		course: course{end: now.Add(enrolmentLimit), last: now,
			result: Result{Word: stages[0]}},
	}
}

// Frame processes a frame of that moment, and returns the state. A pose counts when it is held for
// two frames. After the end it changes nothing.
func (e *enrolment) Frame(now time.Time, f face.Frame) Result {
	if e.tick(now).Final {
		return e.result
	}
	held, faces := e.held, f.Samples
	e.held, e.turned = "", f.Turned
	switch {
	case len(faces) == 0:
		e.live = nil
		return e.say(noFace, "")
	case len(faces) > 1:
		e.live = nil
		return e.say(twoFaces, "")
	}
	x := faces[0]
	if x.Reason != "" {
		return e.say(Retry, x.Reason)
	}
	p, posed := face.PoseOf(x.Landmarks)
	if x.Vector == nil || !posed {
		return e.say(Retry, face.NoVector)
	}
	if !e.same(x.Vector) {
		e.live = nil
		return e.say(otherPerson, "")
	}
	if !e.alive(x.Liveness) {
		if e.dull++; e.dull >= dullFrames && !e.infrared {
			return e.finish(screenLike, "")
		}
		return e.say(lifeless, "")
	}
	e.dull = 0
	pose := e.pose(p)
	e.held = pose
	if pose == "" || pose != held {
		return e.say(e.open[0], "")
	}
	if x.Quality.Norm < e.space.ClearNorm && e.asked < unclearFrames {
		e.asked++
		return e.say(Retry, face.Unclear)
	}
	if pose == Straight {
		e.nod = p.Nod
	}
	if x.Turns != nil {
		e.turns.Add(*x.Turns)
	}
	e.faces, e.held, e.live, e.asked = append(e.faces, x.Vector), "", nil, 0
	e.result.Stage++
	e.open = slices.DeleteFunc(e.open, func(w Word) bool { return w == pose })
	switch {
	case len(e.open) > 0:
		e.say(e.open[0], "")
	case e.turns.Best(1) != 0:
		e.finish(cameraTurned, "")
	default:
		e.finish(Enrolled, "")
	}
	e.result.Took = pose
	return e.result
}

// liveness returns the mean liveness score of the last judged frames.
func (e *enrolment) liveness() (mean float64) {
	for _, x := range e.live {
		mean += x / float64(len(e.live))
	}
	return mean
}

// alive adds the score of a judged frame, and reports whether the mean is that of a live face.
func (e *enrolment) alive(score *float32) bool {
	x := 0.
	if score != nil {
		x = float64(*score)
	}
	e.live = append(e.live, x)
	if len(e.live) > liveFrames {
		e.live = e.live[1:]
	}
	return e.liveness() >= e.minLiveness
}

// pose returns the remaining pose of a head, or "".
func (e *enrolment) pose(p face.Pose) Word {
	pose := Straight
	switch {
	case p.Turn > level: // the owner's left is at the right of the picture
		pose = TurnLeft
	case p.Turn < -level:
		pose = TurnRight
	case e.open[0] != Straight && math.Abs(p.Nod-e.nod) >= tilting:
		pose = tilt
	}
	if !slices.Contains(e.open, pose) || e.open[0] == Straight && pose != Straight {
		return ""
	}
	return pose
}

// same reports whether a face may belong to the person who began, or is known.
func (e *enrolment) same(x []float32) bool {
	all := slices.Concat(e.known, e.faces)
	return len(all) == 0 || slices.ContainsFunc(all, func(y []float32) bool {
		return quantized.Distance(x, y, e.space.Scale) <= e.radius
	})
}

// tick sets the time, and returns the state. A clock that was set back ends the enrolment.
func (e *enrolment) tick(now time.Time) Result {
	if e.late(now) {
		return e.finish(timedOut, "")
	}
	return e.result
}
