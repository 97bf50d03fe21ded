// SPDX-License-Identifier: Apache-2.0

// Package face holds the plain values that travel from a camera to a decision: a [Space] names
// the metric a face vector lives in, a [Sample] is one face in one frame, and a [Frame] is what
// one moment of a recording came to.
//
// Nothing here refers to OpenCV. Everything that touches it ends in a Sample, so that a program
// which only judges, such as a login daemon, can take its samples from another process and never
// link a video decoder.
//
// # Caveats
//
// A Sample's vector and picture are biometric data. They belong in a gallery or in a report its
// owner asked for, and nowhere else: this module puts neither into a log line or an error.
package face

import (
	"context"
	"image"
	"time"
)

// Point is a position in a frame, in pixels from its top left corner.
type Point struct {
	X float32 `json:"x"`
	Y float32 `json:"y"`
}

// Sample is one face in one frame: where it was, how good the picture is, and its point in a
// feature space.
type Sample struct {
	Track     int             `json:"track"`               // constant while one person stays in view; counts from 1
	Box       image.Rectangle `json:"box"`                 // in pixels, inside the frame
	Score     float32         `json:"score"`               // the detector's own confidence; 1 where it has none
	Landmarks []Point         `json:"landmarks,omitempty"` // 68 points in the iBUG 300-W order, or none
	Space     string          `json:"space"`               // Space.ID of Vector
	Vector    []float32       `json:"vector,omitempty"`    // Space.Dim values; nil when Reason says that none could be made
	Quality   Quality         `json:"quality"`
	Reason    Reason          `json:"reason,omitempty"`   // why this face should not be labelled or learned; "" when it may
	Liveness  *float32        `json:"liveness,omitempty"` // probability of a live face in [0,1]; nil when not measured
	JPEG      []byte          `json:"jpeg,omitempty"`     // a small picture of the face for reports; nil unless asked for
	// Held says that the face looks as it did in an earlier frame, so that it is no new evidence. It has no vector, no
	// landmarks and no picture, and Quality and Reason come from the frame in which it was last looked at closely.
	Held bool `json:"held,omitempty"`
}

// Stream gives the frames of a recording or a camera in order, and io.EOF after the last. It is used by one goroutine
// at a time. A stream gives up with the error of its context when that ends.
type Stream interface {
	Next(ctx context.Context) (Frame, error)
}

// Looker is a [Stream] that may give faces which are held. Look asks it to hold no face in the next frame. Sure says
// that Look will not be called after the frames that follow, up to the first one with a face that is not held: they may
// be on their way before they are asked for.
type Looker interface {
	Look()
	Sure()
}

// Renewer is a [Stream] that can go on as if it began with the next frame, but for numbers and times, so that a run that
// is interrupted there can go on with a stream that begins there. Renew does nothing and returns false while frames are
// on their way.
type Renewer interface {
	Renew() bool
}

// Frame is what one frame of a recording came to: its place, and the faces in it. A frame
// without faces is still a Frame, so that a reader can count them.
type Frame struct {
	Index   int           `json:"index"` // counts from 0, in the order of the source
	Time    time.Duration `json:"time"`  // since the beginning of the source
	Samples []Sample      `json:"samples,omitempty"`
	Size    image.Point   `json:"-"` // of the picture, in pixels
	JPEG    []byte        `json:"-"` // the picture, perhaps scaled; nil unless asked for
}
