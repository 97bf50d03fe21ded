// SPDX-License-Identifier: Apache-2.0

// Package preprocess turns a face in a picture into a point of a feature space, and says whether the picture is good
// enough for learning.
//
// [NewPixels] is the preprocessing of the thesis, and [NewEmbedding] a modern network on the aligned face; both are an
// [Extractor]. [Measure] and a [Gate] judge the picture before anybody is recognised in it, and [NewLiveness] tells a
// live face from a picture of a face.
//
// Code that uses OpenCV ends here: callers get a [face.Sample] of plain Go values.
package preprocess

import (
	"errors"
	"image"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/internal/cv"
)

// ErrNoLandmarks is returned if an extractor must align a face without landmarks.
var ErrNoLandmarks = errors.New("no landmarks to align the face by; use the network detector")

// Extractor turns a face into a vector of its space. One goroutine at a time may use it.
type Extractor interface {
	// Space returns the feature space of the vectors.
	Space() face.Space
	// Align returns the face in the size and position in which faces are compared; the vector is made from it.
	// Landmarks are 5 or 68 points, see [face.FivePoints], or nil. The caller closes the picture.
	Align(img *facedet.Picture, box image.Rectangle, landmarks []face.Point) (*facedet.Picture, error)
	// Vector returns the vector of a picture that Align has made.
	Vector(aligned *facedet.Picture) ([]float32, error)
	// Close frees the resources of the extractor.
	Close() error
}

func native(p *facedet.Picture) *cv.Image { return (*cv.Image)(p) }

// Blend returns (1 - share) times the first picture plus share times the second, which must have the same size. The
// caller closes the picture.
func Blend(from, to *facedet.Picture, share float64) (*facedet.Picture, error) {
	mixed, err := native(from).Blend(native(to), share)
	return (*facedet.Picture)(mixed), err
}

// Extract returns the vector of the face in the box of img. Landmarks are 5 or 68 points, see [face.FivePoints], or nil.
func Extract(e Extractor, img *facedet.Picture, box image.Rectangle, landmarks []face.Point) ([]float32, error) {
	aligned, err := e.Align(img, box, landmarks)
	if err != nil {
		return nil, err
	}
	defer aligned.Close()
	return e.Vector(aligned)
}

// Blends returns the vectors of n blends between two aligned faces. Blend i, from 1 to n, holds a share of i/n of the
// second face, so the last blend is the second face. Such blends lead a recogniser that learns from one person to
// another (Biggio et al. 2012; Lovisotto et al. 2020).
func Blends(e Extractor, from, to *facedet.Picture, n int) ([][]float32, error) {
	var all [][]float32
	for i := 1; i <= n; i++ {
		mixed, err := Blend(from, to, float64(i)/float64(n))
		if err != nil {
			return nil, err
		}
		x, err := e.Vector(mixed)
		mixed.Close()
		if err != nil {
			return nil, err
		}
		all = append(all, x)
	}
	return all, nil
}
