// SPDX-License-Identifier: Apache-2.0

// Package preprocess turns a face in a picture into a point of a feature space, and says whether the
// picture is good enough to be learned from.
//
// [NewPixels] is the thesis's own preprocessing, [NewEmbedding] a modern network on the aligned
// face; both are an [Extractor]. [Measure] and a [Gate] judge the picture before anybody is
// recognised in it, and [NewLiveness] tells a face from a picture of one.
//
// Everything that touches OpenCV ends here: what leaves is a [face.Sample] of plain Go values.
package preprocess

import (
	"errors"
	"image"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/internal/cv"
)

// ErrNoLandmarks is returned by an extractor that has to align a face of which no points are known.
var ErrNoLandmarks = errors.New("no landmarks to align the face by; use the network detector")

// Extractor turns a face into a vector of its space. It is used by one goroutine at a time.
type Extractor interface {
	// Space returns the feature space of the vectors.
	Space() face.Space
	// Align returns the part of img that the vector of the face in the box is made from, in the size and
	// position in which faces are compared. Landmarks are 68 points or nil. The caller closes it.
	Align(img *facedet.Picture, box image.Rectangle, landmarks []face.Point) (*facedet.Picture, error)
	// Vector returns the vector of a picture that Align has made.
	Vector(aligned *facedet.Picture) ([]float32, error)
	// Close frees what the extractor holds.
	Close() error
}

func native(p *facedet.Picture) *cv.Image { return (*cv.Image)(p) }

// Blend returns the sum of (1 - share) of one picture and share of another, which must be of the same size. The caller
// closes it.
func Blend(from, to *facedet.Picture, share float64) (*facedet.Picture, error) {
	mixed, err := native(from).Blend(native(to), share)
	return (*facedet.Picture)(mixed), err
}

// Extract returns the vector of the face in the box of img, whose landmarks are 68 points or nil.
func Extract(e Extractor, img *facedet.Picture, box image.Rectangle, landmarks []face.Point) ([]float32, error) {
	aligned, err := e.Align(img, box, landmarks)
	if err != nil {
		return nil, err
	}
	defer aligned.Close()
	return e.Vector(aligned)
}

// Blends returns the vectors of n pictures on the way from one aligned face to another: the i-th, from 1 on,
// holds a share of i/n of the other, which the last one is. It is how a recogniser that learns is led from one
// person to another (Biggio et al. 2012; Lovisotto et al. 2020).
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
