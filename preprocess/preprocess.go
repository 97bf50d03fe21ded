// Package preprocess turns a face in a picture into a point of a feature space, and says whether the
// picture is good enough to be learned from.
//
// [NewPixels] is the thesis's own preprocessing, [NewEmbedding] a modern network on the aligned
// face; both are an [Extractor]. [Measure] and a [Gate] judge the picture before anybody is
// recognised in it, and [NewLiveness] tells a face from a picture of one.
//
// Everything that touches OpenCV ends here: what leaves is a [Sample] of plain Go values.
package preprocess

import (
	"errors"
	"image"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/cv"
)

// Sample is one face in one frame.
type Sample = face.Sample

// ErrNoLandmarks is returned by an extractor that has to align a face of which no points are known.
var ErrNoLandmarks = errors.New("no landmarks to align the face by; use the network detector")

// Extractor turns a face into a vector of its space. It is used by one goroutine at a time.
type Extractor interface {
	// Space returns the feature space of the vectors.
	Space() face.Space
	// Extract returns the vector of the face in the box of img, whose landmarks are 68 points or nil.
	Extract(img *cv.Image, box image.Rectangle, landmarks []face.Point) ([]float32, error)
	// Close frees what the extractor holds.
	Close() error
}
