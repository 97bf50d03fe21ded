// SPDX-License-Identifier: Apache-2.0

package preprocess

import (
	"image"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/internal/cv"
)

// PixelSide is the width and the height in pixels of the picture in a vector of [Pixels]. The vector holds its grey
// values in [0,1], row by row.
const PixelSide = 96

// Pixels is the preprocessing of the thesis (Section "Vision Datasets"): the box in grey, resized to 96x96, smoothed
// with the 3x3 Gaussian kernel, with equalised histogram. The vector holds the 9216 grey values divided by 255. The
// distance is the root of the mean squared difference.
type Pixels struct{}

var _ Extractor = Pixels{}

// NewPixels returns the thesis's extractor.
func NewPixels() Pixels { return Pixels{} }

// Space implements [Extractor]. Sigma comes from the thesis. Gamma limits edges to .107, below the distance at which
// faces of two people begin to occur on att, umist, faces94_subset and fast_videos (docs/results.md).
func (Pixels) Space() face.Space {
	return face.Space{ID: "pixels", Dim: PixelSide * PixelSide, Scale: 1. / PixelSide, Sigma: .025, Gamma: 1e-3,
		Reach: .107, ImpostorRadius: .118}
}

// Align implements [Extractor]: the box in grey, 96x96. It needs no landmarks.
func (Pixels) Align(img *facedet.Picture, box image.Rectangle, _ []face.Point) (*facedet.Picture, error) {
	small, err := scaledFace(img, box)
	if err != nil {
		return nil, err
	}
	defer small.Close()
	return (*facedet.Picture)(small.BGR()), nil
}

// Vector implements [Extractor].
func (Pixels) Vector(aligned *facedet.Picture) ([]float32, error) {
	small, err := scaledFace(aligned, aligned.Bounds())
	if err != nil {
		return nil, err
	}
	defer small.Close()
	smooth := small.Smooth()
	defer smooth.Close()
	flat := smooth.Equalize()
	defer flat.Close()
	pix := flat.Bytes()
	x := make([]float32, len(pix))
	for i, p := range pix {
		x[i] = float32(p) / 255
	}
	return x, nil
}

// Close implements [Extractor].
func (Pixels) Close() error { return nil }

// scaledFace returns the box in grey, 96x96.
func scaledFace(img *facedet.Picture, box image.Rectangle) (*cv.Gray, error) {
	crop, err := native(img).Crop(box)
	if err != nil {
		return nil, err
	}
	defer crop.Close()
	gray := crop.Gray()
	defer gray.Close()
	return gray.Resize(image.Pt(PixelSide, PixelSide))
}
