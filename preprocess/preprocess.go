// SPDX-License-Identifier: Apache-2.0

// Package preprocess turns a face in a picture into a point of a feature space, and says whether
// the picture is good enough for learning.
//
// [Pixels] is the preprocessing of the thesis, and [Embedding] a modern network on the aligned
// face; both are an [Extractor]. [Measure] and a [Gate] judge the picture before anybody is
// recognised in it, and [NewLiveness] tells a live face from a picture of a face.
//
// Code that uses OpenCV ends here: callers get a [face.Sample] of plain Go values.
package preprocess

import (
	"errors"
	"image"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/facedet"
)

// ErrLandmarks is wrapped if an extractor cannot align a face by its landmarks.
var ErrLandmarks = errors.New("unusable landmarks")

// Extractor turns a face into a vector of its space. One goroutine at a time may use it.
type Extractor interface {
	// Space returns the feature space of the vectors.
	Space() face.Space
	// Align returns the face in the size and position in which faces are compared; the vector is
	// made from it. Landmarks are 5 or 68 points, see [face.FivePoints], or nil. The caller closes
	// the picture.
	Align(img *facedet.Picture, box image.Rectangle, landmarks []face.Point) (*facedet.Picture,
		error)
	// Vector returns the vector of a picture that Align has made. In a space of unit vectors the
	// norm is the length before the vector was scaled to 1, see [face.Quality], and in others 0.
	Vector(aligned *facedet.Picture) (x []float32, norm float64, err error)
	// Close frees the resources of the extractor.
	Close() error
}

// Extract returns the vector of the face in the box of img, and its norm; see [Extractor].
// Landmarks are 5 or 68 points, see [face.FivePoints], or nil.
func Extract(e Extractor, img *facedet.Picture, box image.Rectangle,
	landmarks []face.Point) (x []float32, norm float64,
	err error) {
	aligned, err := e.Align(img, box, landmarks)
	if err != nil {
		return nil, 0, err
	}
	defer aligned.Close()
	return e.Vector(aligned)
}

// Aligned returns an aligned face ([Extractor].Align) as [face.Sample].Aligned.
func Aligned(aligned *facedet.Picture) ([]byte, error) {
	small, err := scaled(aligned, face.AlignedSide)
	if err != nil {
		return nil, err
	}
	defer small.Close()
	return small.Bytes(), nil
}
