// SPDX-License-Identifier: Apache-2.0

package preprocess

import (
	"image"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/internal/cv"
	"github.com/faceauth/faceauth/models"
)

// Pixels is the preprocessing of the thesis (Section "Vision Datasets"): the box in grey, resized
// to 96x96, smoothed with the 3x3 Gaussian kernel, with equalised histogram. The vector holds the
// 9216 grey values divided by 255. The distance is the root of the mean squared difference.
var Pixels Extractor = pixels{}

type pixels struct{}

func (pixels) Space() face.Space { return models.Pixels() }

// Align returns the box in grey, 96x96. It needs no landmarks.
func (pixels) Align(img *facedet.Picture, box image.Rectangle,
	_ []face.Point) (*facedet.Picture, error) {
	small, err := scaledFace(img, box)
	if err != nil {
		return nil, err
	}
	defer small.Close()
	return small.BGR(), nil
}

func (pixels) Vector(aligned *facedet.Picture) (x []float32, norm float64, err error) {
	small, err := scaledFace(aligned, aligned.Bounds())
	if err != nil {
		return nil, 0, err
	}
	defer small.Close()
	smooth := small.Smooth()
	defer smooth.Close()
	flat := smooth.Equalize()
	defer flat.Close()
	pix := flat.Bytes()
	x = make([]float32, len(pix))
	for i, p := range pix {
		x[i] = float32(p) / 255
	}
	return x, 0, nil
}

func (pixels) Close() error { return nil }

// scaledFace returns the box in grey, 96x96.
func scaledFace(img *facedet.Picture, box image.Rectangle) (*cv.Gray, error) {
	crop, err := img.Crop(box)
	if err != nil {
		return nil, err
	}
	defer crop.Close()
	return scaled(crop, models.PixelSide)
}

// scaled returns a picture in grey, as a square of the given side.
func scaled(img *cv.Image, side int) (*cv.Gray, error) {
	gray := img.Gray()
	defer gray.Close()
	return gray.Resize(image.Pt(side, side))
}
