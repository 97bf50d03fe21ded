// SPDX-License-Identifier: Apache-2.0

// Package enrolment guides a person through being enrolled: four faces in different poses, each asked for in words, and
// each refused frame with a reason.
//
// An [Enrolment] is told what each frame holds and says what to do next. Like a login session it reads no clock and no
// camera.
package enrolment

import (
	"math"
	"slices"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/graph"
)

// Word says how an enrolment stands, or how it ended.
type Word string

// Words that are final.
const (
	Enrolled Word = "enrolled"
	TimedOut Word = "out of time"
	Taken    Word = "this face is another user's"
	Failed   Word = "something went wrong"
)

// Words that are not final: what the person in front of the camera can do.
const (
	Straight    Word = "look straight into the camera"
	TurnLeft    Word = "turn your head a little to your left"
	TurnRight   Word = "turn your head a little to your right"
	Tilt        Word = "look straight again and tilt your head a little up or down"
	NoFace      Word = "nobody in view"
	TwoFaces    Word = "more than one face"
	OtherPerson Word = "not the person who began"
	Lifeless    Word = "taken for a picture so far"
	Retry       Word = "retry" // the result's Reason says why the picture was of no use
)

// stages are the poses in the order in which they are asked for. After the first, they may come in any.
var stages = []Word{Straight, TurnLeft, TurnRight, Tilt}

// Stages is how many faces are taken.
var Stages = len(stages)

// Result is how an enrolment stands.
type Result struct {
	Word   Word
	Reason face.Reason // of Retry
	Stage  int         // faces taken
	Took   Word        // the pose of the face that was taken just now, or ""
	Final  bool
}

// Face is one face in a frame.
type Face struct {
	Reason face.Reason // why the picture is not good enough to be labelled, or ""
	Pose   *face.Pose  // nil where it is not known
	Vector []float32

	Liveness *float32 // passive score; nil where it was not measured
}

// Poses: how far the tip of the nose goes. What looks straight on lies within level; what is turned a little, beyond it
// and within what the gate of quality lets through. Heads differ in Nod, so that of the straight one counts.
const (
	level  = .2
	tilted = .06
)

// window is how many judged frames since the last face was taken a mean of liveness is over. When a pose was held there
// are two or more.
const window = 5

// Enrolment is one enrolment. It is used by one goroutine at a time. Make one with [New].
type Enrolment struct {
	radius      float64
	minLiveness float64
	scale       float64
	end         time.Time
	last        time.Time
	result      Result

	faces [][]float32
	open  []Word    // poses that are still to come
	nod   float64   // of the face that looked straight on
	held  Word      // the open pose that the last frame was in, or ""
	live  []float64 // the scores of the last judged frames since a face was taken, the newest last
}

// New begins an enrolment at a moment, that is over after a time. Radius is the distance, in the units of the space,
// from the nearest of those taken beyond which a face is another person's. MinLiveness is the mean passive score that a
// face takes, over the last judged frames since the one before it was taken; a frame that was not scored counts as 0,
// and a MinLiveness of 0 asks for none.
func New(space face.Space, radius, minLiveness float64, now time.Time, limit time.Duration) *Enrolment {
	return &Enrolment{radius: radius, minLiveness: minLiveness, scale: space.Scale, end: now.Add(limit), last: now, open: slices.Clone(stages), result: Result{Word: stages[0]}}
}

// Result returns how the enrolment stands.
func (e *Enrolment) Result() Result { return e.result }

// Faces returns the vectors of the faces taken.
func (e *Enrolment) Faces() [][]float32 { return e.faces }

// Frame tells the enrolment what a frame of that moment holds, and returns how it stands. A pose counts when it is held
// for two frames. After the end it changes nothing.
func (e *Enrolment) Frame(now time.Time, faces []Face) Result {
	if e.Tick(now).Final {
		return e.result
	}
	held := e.held
	e.held = ""
	switch {
	case len(faces) == 0:
		e.live = nil
		return e.say(NoFace, "")
	case len(faces) > 1:
		e.live = nil
		return e.say(TwoFaces, "")
	}
	f := faces[0]
	if f.Reason != "" {
		return e.say(Retry, f.Reason)
	}
	if f.Vector == nil || f.Pose == nil {
		return e.say(Retry, face.NoVector)
	}
	if !e.same(f.Vector) {
		e.live = nil
		return e.say(OtherPerson, "")
	}
	if !e.alive(f.Liveness) {
		return e.say(Lifeless, "")
	}
	pose := e.pose(*f.Pose)
	if e.held = pose; pose == "" || pose != held {
		return e.say(e.open[0], "")
	}
	if pose == Straight {
		e.nod = f.Pose.Nod
	}
	e.faces, e.held, e.live = append(e.faces, f.Vector), "", nil
	e.open = slices.DeleteFunc(e.open, func(w Word) bool { return w == pose })
	if len(e.open) == 0 {
		e.finish(Enrolled)
	} else {
		e.say(e.open[0], "")
	}
	e.result.Took = pose
	return e.result
}

// alive takes the score of a judged frame, and reports whether the last ones are those of a live face.
func (e *Enrolment) alive(score *float32) bool {
	x := 0.
	if score != nil {
		x = float64(*score)
	}
	if e.live = append(e.live, x); len(e.live) > window {
		e.live = e.live[1:]
	}
	sum := 0.
	for _, x := range e.live {
		sum += x
	}
	return sum >= e.minLiveness*float64(len(e.live))
}

// pose returns the open pose that a head is in, or "".
func (e *Enrolment) pose(p face.Pose) Word {
	pose := Straight
	switch {
	case p.Turn > level: // the owner's left is at the right of the picture
		pose = TurnLeft
	case p.Turn < -level:
		pose = TurnRight
	case e.open[0] != Straight && math.Abs(p.Nod-e.nod) >= tilted:
		pose = Tilt
	}
	if !slices.Contains(e.open, pose) || e.open[0] == Straight && pose != Straight {
		return ""
	}
	return pose
}

// same reports whether a face may be that of the person who began.
func (e *Enrolment) same(x []float32) bool {
	for _, y := range e.faces {
		if graph.Distance(x, y, e.scale) <= e.radius {
			return true
		}
	}
	return len(e.faces) == 0
}

// Tick tells the enrolment what time it is, and returns how it stands. A clock that was set back ends it.
func (e *Enrolment) Tick(now time.Time) Result {
	switch {
	case e.result.Final:
	case now.Before(e.last):
		return e.finish(Failed)
	case !now.Before(e.end):
		return e.finish(TimedOut)
	}
	e.last = now
	return e.result
}

// End ends the enrolment with a final word, where it has not ended. What was found out after the last face goes before
// Enrolled.
func (e *Enrolment) End(w Word) Result {
	if e.result.Final && e.result.Word != Enrolled {
		return e.result
	}
	took := e.result.Took // with the last face
	e.finish(w)
	e.result.Took = took
	return e.result
}

func (e *Enrolment) say(w Word, why face.Reason) Result {
	e.result = Result{Word: w, Reason: why, Stage: len(e.faces)}
	return e.result
}

func (e *Enrolment) finish(w Word) Result {
	e.result = Result{Word: w, Stage: len(e.faces), Final: true}
	return e.result
}
