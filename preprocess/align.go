// SPDX-License-Identifier: Apache-2.0

package preprocess

import (
	"errors"
	"math"

	"github.com/faceauth/faceauth/internal/cv"
)

// ErrLandmarks is returned if landmarks cannot belong to a face.
var ErrLandmarks = errors.New("unusable landmarks: they are not finite or lie on one spot")

// canonical has the positions of both eyes, the tip of the nose and both corners of the mouth in an aligned picture of
// 112x112 pixels (Deng et al., ArcFace, 2019).
var canonical = [5][2]float64{
	{38.2946, 51.6963}, {73.5318, 51.5014}, {56.0252, 71.7366}, {41.5493, 92.3655}, {70.7299, 92.2041},
}

// similarity returns the rotation, uniform scale and shift that maps the points from to the points to with the least
// squared error (Umeyama 1991). With complex numbers for points of the plane it is z → a z + b with a = Σ conj(z_i -
// z̄)(w_i - w̄) / Σ |z_i - z̄|².
func similarity(from, to [5][2]float64) (cv.Affine, error) {
	var z, w [2]float64
	for i := range from {
		for c := range 2 {
			z[c] += from[i][c] / 5
			w[c] += to[i][c] / 5
		}
	}
	var re, im, norm float64
	for i := range from {
		x, y := from[i][0]-z[0], from[i][1]-z[1]
		u, v := to[i][0]-w[0], to[i][1]-w[1]
		re += x*u + y*v
		im += x*v - y*u
		norm += x*x + y*y
	}
	re, im = re/norm, im/norm
	if !(norm > 1e-6) || math.IsInf(norm, 1) || math.IsNaN(re) || math.IsNaN(im) || re == 0 && im == 0 {
		return cv.Affine{}, ErrLandmarks
	}
	return cv.Affine{
		re, -im, w[0] - re*z[0] + im*z[1],
		im, re, w[1] - im*z[0] - re*z[1],
	}, nil
}
