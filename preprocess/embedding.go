// SPDX-License-Identifier: Apache-2.0

package preprocess

import (
	"fmt"
	"image"
	"math"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/internal/cv"
	"github.com/faceauth/faceauth/internal/network"
	"github.com/faceauth/faceauth/models"
)

// embedding is a network that maps an aligned face to a point on the unit sphere.
type embedding struct {
	net   *network.Network
	space face.Space
}

// NewEmbedding opens the network of a description from the folder dir, and runs it once as a test.
// It maps an aligned face to a point on the unit sphere; its Align wraps [ErrLandmarks] if a face
// cannot be aligned. The caller must close it. The error wraps the errors of
// [models.Description.Path], or [models.ErrShape].
func NewEmbedding(d models.Description, dir string) (Extractor, error) {
	net, err := open(d, models.Embedding, dir, d.Dim)
	if err != nil {
		return nil, err
	}
	return &embedding{net, d.Space()}, nil
}

// open opens a network that maps a picture to the given number of values.
func open(d models.Description, kind models.Kind, dir string,
	values int) (*network.Network, error) {
	net, err := network.Open(d, kind, dir)
	if err != nil {
		return nil, err
	}
	if err := net.Try(func(blank *cv.Image) error {
		_, err := forward(net, blank, values)
		return err
	}); err != nil {
		net.Close()
		return nil, err
	}
	return net, nil
}

// forward returns the output of the network for a picture.
func forward(net *network.Network, img *cv.Image, values int) ([]float32, error) {
	out, err := net.Forward(img)
	if err != nil {
		return nil, err
	}
	if len(out[0].Data) != values {
		return nil, net.Unfit("its output has the shape %v, want %d values", out[0].Shape, values)
	}
	return out[0].Data, nil
}

func (e *embedding) Space() face.Space { return e.space }

func (e *embedding) Align(img *facedet.Picture, _ image.Rectangle,
	landmarks []face.Point) (*facedet.Picture, error) {
	points, ok := face.FivePoints(landmarks)
	if !ok {
		return nil, fmt.Errorf("%w: 5 or 68 are needed; use the network detector", ErrLandmarks)
	}
	to := canonical
	for i := range to {
		to[i][0] *= float64(e.net.Input.Width) / 112
		to[i][1] *= float64(e.net.Input.Height) / 112
	}
	a, err := similarity(points, to)
	if err != nil {
		return nil, err
	}
	aligned, err := img.Warp(a, image.Pt(e.net.Input.Width, e.net.Input.Height))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrLandmarks, err)
	}
	return aligned, nil
}

func (e *embedding) Vector(aligned *facedet.Picture) (x []float32, norm float64, err error) {
	x, err = forward(e.net, aligned, e.space.Dim)
	if err != nil {
		return nil, 0, fmt.Errorf("embedding a face: %w", err)
	}
	var sum float64
	for _, v := range x {
		sum += float64(v) * float64(v)
	}
	norm = math.Sqrt(sum)
	if norm == 0 {
		return nil, 0, fmt.Errorf("embedding a face: model %s gave a vector of zero length",
			e.net.Name)
	}
	for i := range x {
		x[i] = float32(float64(x[i]) / norm)
	}
	return x, norm, nil
}

// Infrared returns an extractor of the same network for pictures of an infrared camera, whose
// vectors are of another space. It owns e.
func Infrared(e Extractor) Extractor { return infrared{e} }

type infrared struct{ Extractor }

func (i infrared) Space() face.Space { return i.Extractor.Space().Infrared() }

func (e *embedding) Close() error { return e.net.Close() }

// canonical has the positions of both eyes, the tip of the nose and both corners of the mouth in an
// aligned picture of 112x112 pixels (Deng et al., ArcFace, 2019).
var canonical = [5][2]float64{
	{38.2946, 51.6963}, {73.5318, 51.5014}, {56.0252, 71.7366}, {41.5493, 92.3655},
	{70.7299, 92.2041},
}

// similarity returns the rotation, uniform scale and shift that maps the points from to the points
// to with the least squared error (Umeyama 1991). With complex numbers for points of the plane it
// is z → a z + b with a = Σ conj(z_i - z̄)(w_i - w̄) / Σ |z_i - z̄|².
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
	if !(norm > 1e-6) || math.IsInf(norm, 1) || math.IsNaN(re) || math.IsNaN(im) || re == 0 &&
		im == 0 {
		return cv.Affine{}, fmt.Errorf("%w: they are not finite or lie on one spot", ErrLandmarks)
	}
	return cv.Affine{
		re, -im, w[0] - re*z[0] + im*z[1],
		im, re, w[1] - im*z[0] - re*z[1],
	}, nil
}
