// SPDX-License-Identifier: Apache-2.0

package preprocess

import (
	"image"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/facedet"
)

// normed is an extractor that knows the length of its vectors before they are scaled to 1.
type normed interface {
	Normed(aligned *facedet.Picture) (x []float32, norm float64, err error)
}

var _ normed = (*Embedding)(nil)

// HasNorm reports whether the extractor measures [face.Quality].Norm. The pixels of the thesis have no such norm.
func HasNorm(e Extractor) bool {
	_, ok := e.(normed)
	return ok
}

// ExtractNormed is [Extract] with the raw norm of the vector, or 0 if [HasNorm] is false.
func ExtractNormed(e Extractor, img *facedet.Picture, box image.Rectangle, landmarks []face.Point) (x []float32,
	norm float64, err error) {
	aligned, err := e.Align(img, box, landmarks)
	if err != nil {
		return nil, 0, err
	}
	defer aligned.Close()
	if n, ok := e.(normed); ok {
		return n.Normed(aligned)
	}
	x, err = e.Vector(aligned)
	return x, 0, err
}
