// SPDX-License-Identifier: Apache-2.0

// Package facedet takes frames from cameras, recordings and pictures, and finds the faces in them.
//
// [Open] turns what a user names, a camera, file, folder or URL, into a [Source] of frames;
// [NewNetwork], [Haar] and [LBP] make a [Detector], and [FromImage] and [FromMat] a [Picture] for a
// detector or a source of your own.
//
// # Caveats
//
// A [Frame] holds memory that Go's collector does not see: the caller who gets one closes it.
package facedet

import (
	"context"
	"errors"
	"image"
	"time"

	"github.com/faceauth/faceauth/face"
)

// Errors of [Open] and [Source]. A missing or forbidden file or device is fs.ErrNotExist or
// fs.ErrPermission.
var (
	ErrNoCamera = face.ErrNoCamera
	ErrNotVideo = face.ErrNotVideo
	ErrNoImages = face.ErrNoImages
	ErrTimeout  = face.ErrTimeout
	ErrScheme   = face.ErrScheme
)

// ErrSettings is wrapped by the errors of [Open] about [Options] that cannot be used. They say which one, and its
// value.
var ErrSettings = errors.New("unusable setting")

// Frame is one picture of a source.
type Frame struct {
	Index int           // counts from 0
	Time  time.Duration // since the beginning of the source
	Image *Picture      // what the frame shows; a source must not leave it nil
}

// Close frees the picture.
func (f *Frame) Close() error {
	if f == nil {
		return nil
	}
	return f.Image.Close()
}

// Count says how many frames a source has, as far as is known.
type Count = face.Count

// Source gives frames in order. It is used by one goroutine at a time.
//
// A source of your own makes its pictures with [FromMat], [FromImage] or [DecodePicture].
type Source interface {
	// Next returns the next frame, which the caller closes, or io.EOF after the last. It gives up
	// with an error that wraps [ErrTimeout] where the source does not answer, and with that of ctx
	// when it ends; in both cases the source is finished.
	Next(ctx context.Context) (*Frame, error)
	// Count returns what has been read so far.
	Count() Count
	// Close releases the source. A read that hangs is left behind and releases it when it returns.
	Close() error
}

// Face is a face in a picture.
type Face struct {
	Box       image.Rectangle // inside the picture
	Score     float32         // the detector's confidence in [0,1]; 1 where it has none
	Landmarks []face.Point    // 68 points in the iBUG 300-W order, or nil
}

// Detector finds the faces in a picture, the largest first. It is used by one goroutine at a time. Boxes must not be
// empty and must lie in the picture. Detect must not keep or close the picture.
type Detector interface {
	Detect(img *Picture) ([]Face, error)
	Close() error
}
