// SPDX-License-Identifier: Apache-2.0

// Package facedet takes frames from cameras, recordings and pictures, and finds the faces in them.
//
// [Open] opens a camera, file, folder or URL as a [Source] of frames. [NewNetwork] and [Haar] make
// a [Detector]. [FromImage] and [FromBGR] make a [Picture] for your own detector or source.
//
// # Caveats
//
// A [Frame] holds memory that Go's collector does not see. The caller must close each frame.
package facedet

import (
	"context"
	"fmt"
	"image"
	"io"
	"time"

	"github.com/faceauth/faceauth/face"
)

// Frame is one picture of a source.
type Frame struct {
	Index int           // counts from 0
	Time  time.Duration // since the beginning of the source
	Image *Picture      // the picture; a source must not leave it nil

	// Before is the picture before this one, of an infrared camera: see [OpenInfrared]. It is nil
	// otherwise.
	Before *Picture

	// degrees clockwise by which package pipeline has turned the picture; a source leaves it 0
	Turned int

	// Still says that the picture is a photograph: it does not follow the frame before it, may be
	// turned otherwise, and is not to be left out because others are looked at.
	Still bool
	// the size of the picture in its file, if it was read at half of it: see [ReadPicture]. Package
	// pipeline then says where faces are in the file
	Full image.Point
	// the name of the picture's file, without its folder; "" for frames of films and cameras
	File string
}

// Close frees the picture.
func (f *Frame) Close() error {
	if f == nil {
		return nil
	}
	if f.Before != nil {
		f.Before.Close()
	}
	return f.Image.Close()
}

// endOf returns the error at the end of a recording: one that gave no frame was not read.
func endOf(n face.Count) error {
	if n.Read == 0 {
		return fmt.Errorf("%w: no frame of it can be decoded", face.ErrNotVideo)
	}
	return io.EOF
}

// Source gives frames in order. One goroutine at a time may use it. Errors of [Open] and of a
// source wrap those of package face, such as [face.ErrNoCamera].
//
// Your own source makes its pictures with [FromBGR], [FromImage] or [DecodePicture].
type Source interface {
	// Next returns the next frame, or io.EOF after the last frame. The caller closes the frame. If
	// the source does not answer in time, the error wraps [face.ErrTimeout]. If ctx ends, Next
	// returns its error. After either error the source is finished.
	Next(ctx context.Context) (*Frame, error)
	// Count returns the number of frames read until now.
	Count() face.Count
	// Close releases the source. It does not wait for a read that hangs; this read releases the
	// source when it returns.
	Close() error
}

// Face is a face in a picture.
type Face struct {
	Box       image.Rectangle // inside the picture
	Score     float32         // the detector's confidence in [0,1]; 1 where it has none
	Landmarks []face.Point    // 68 points in the iBUG 300-W order, or nil
}

// Detector finds the faces in a picture, the largest first. One goroutine at a time may use it.
// Boxes must not be empty and must lie in the picture. Detect must not keep or close the picture.
type Detector interface {
	Detect(img *Picture) ([]Face, error)
	Close() error
}
