// SPDX-License-Identifier: Apache-2.0

// Package face holds the plain values that travel from a camera to a decision. A [Space] says how
// face vectors are compared, a [Sample] is one face in one frame, and a [Frame] holds all faces of
// one moment of a recording.
//
// Nothing here needs OpenCV. All code that uses OpenCV returns Samples, so a program that only
// judges faces, such as a login daemon, can receive samples from another process and needs no video
// decoder.
//
// # The norm
//
// The raw norm of an embedding ([Quality].Norm) predicts missed matches better than anything that
// is measured in the picture. Below [Space].LearnNorm a face is not learned, and below
// [Space].ClearNorm an enrolment asks for another picture. It is not a gate against impostors:
// frontal faces of two people come as near with great norms as with small norms (lab/NOTES.md).
//
// # Caveats
//
// The vector and the picture of a Sample are biometric data. They belong only in a gallery, or in a
// report that the owner of the data asked for. This module never puts them into a log line or an
// error.
package face

import (
	"context"
	"errors"
	"image"
	"io"
	"iter"
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
	// constant while one person stays in view; counts from 1
	Track int             `json:"track"`
	Box   image.Rectangle `json:"box"` // in pixels, inside the frame
	// the detector's own confidence; 1 where it has none
	Score     float32 `json:"score"`
	Landmarks []Point `json:"landmarks,omitempty"` // 68 points in the iBUG 300-W order, 5, or none
	Space     string  `json:"space"`               // Space.ID of Vector
	// Vector has Space.Dim values. It is nil if Reason says why no vector could be made.
	Vector  []float32 `json:"vector,omitempty"`
	Quality Quality   `json:"quality"`
	// Reason says why this face should not be labelled or learned; "" if it may be.
	Reason Reason `json:"reason,omitempty"`
	// probability of a live face in [0,1]; nil when not measured
	Liveness *float32 `json:"liveness,omitempty"`
	// JPEG is a small picture of the face for reports; nil unless asked for.
	JPEG []byte `json:"jpeg,omitempty"`
	// Held says that the face looks as in an earlier frame, so it is no new evidence. A held sample
	// has no vector, landmarks, picture or aligned face. Its Quality and Reason come from the last
	// frame in which the face was examined.
	Held bool `json:"held,omitempty"`
	// Aligned is the face in grey, scaled, turned and moved so that its landmarks are where those
	// of all faces are: AlignedSide rows of as many values. It tells a still from a person, and
	// stays in memory. Nil for a space without [Space].Look, and without a vector.
	Aligned []byte `json:"-"`
	// Turns are the norms of the face when it is turned, for an enrolment; nil if not measured.
	Turns *Turns `json:"-"`
}

// AlignedSide is the side of [Sample].Aligned in pixels.
const AlignedSide = 56

// Stream gives the frames of a recording or a camera in order, and io.EOF after the last one. One
// goroutine at a time may use it. When its context ends, Next returns the error of the context.
type Stream interface {
	Next(ctx context.Context) (Frame, error)
}

// Holding is a stream that may hold faces: see [Sample].
type Holding interface {
	Stream
	// Look asks for a new vector of some faces in the next frame, by the Track of their samples in
	// the last one. What is no longer in view is left out, and other faces may be held. Of several
	// calls before Next the last one counts.
	Look(tracks ...int)
}

// Frames yields the frames of a stream until it ends. An error is yielded last, with no frame.
func Frames(ctx context.Context, s Stream) iter.Seq2[Frame, error] {
	return func(yield func(Frame, error) bool) {
		for {
			f, err := s.Next(ctx)
			if errors.Is(err, io.EOF) || !yield(f, err) || err != nil {
				return
			}
		}
	}
}

// Frame holds the place of one frame in a recording, and the faces in it. A frame without faces is
// also a Frame, so a reader can count frames.
type Frame struct {
	Index   int           `json:"index"` // counts from 0, in the order of the source
	Time    time.Duration `json:"time"`  // since the beginning of the source
	Samples []Sample      `json:"samples,omitempty"`
	Size    image.Point   `json:"-"` // size of the picture, in pixels
	// degrees clockwise by which the picture was turned
	Turned int `json:"turned,omitempty"`
	// Still says that the picture is a photograph, which does not follow the frame before it. File
	// is the name of the picture's file; it is empty for frames of films and cameras.
	Still bool   `json:"still,omitempty"`
	File  string `json:"-"`
	// Partial says that a part of the picture did not come, as in [Quality].
	Partial bool `json:"partial,omitempty"`
	// Film says that the file of the picture holds a film, too, at which nobody has looked.
	Film bool `json:"film,omitempty"`
	// Pulse is by how many grey levels the largest face, or else the middle, is brighter in one of
	// a pair of infrared pictures; 0 for pictures in colour.
	Pulse float64 `json:"pulse,omitempty"`
	JPEG  []byte  `json:"-"` // the picture, perhaps scaled down; nil unless asked for
}

// Vectors returns the vectors of the faces, in their order; nil for a face without one.
func (f Frame) Vectors() [][]float32 {
	all := make([][]float32, len(f.Samples))
	for i, s := range f.Samples {
		all[i] = s.Vector
	}
	return all
}
