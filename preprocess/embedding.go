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

// Embedding is a network that maps an aligned face to a point on the unit sphere. The caller must close it.
type Embedding struct {
	net   *network.Network
	space face.Space
}

var _ Extractor = (*Embedding)(nil)

// NewEmbedding opens the network of a description from the folder dir, and runs it once as a test. The error wraps the
// errors of [models.Description.Path], or [models.ErrShape].
func NewEmbedding(d models.Description, dir string) (*Embedding, error) {
	net, err := open(d, models.Embedding, dir, d.Dim)
	if err != nil {
		return nil, err
	}
	return &Embedding{net, d.Space()}, nil
}

// open opens a network that maps a picture to the given number of values.
func open(d models.Description, kind models.Kind, dir string, values int) (*network.Network, error) {
	net, err := network.Open(d, kind, dir)
	if err != nil {
		return nil, err
	}
	if err := net.Try(func(blank *cv.Image) error { _, err := forward(net, blank, values); return err }); err != nil {
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

// Space implements [Extractor].
func (e *Embedding) Space() face.Space { return e.space }

// Align implements [Extractor]. The error wraps [ErrNoLandmarks] or [ErrLandmarks] if the face cannot be aligned.
func (e *Embedding) Align(img *facedet.Picture, _ image.Rectangle, landmarks []face.Point) (*facedet.Picture, error) {
	points, ok := face.FivePoints(landmarks)
	if !ok {
		return nil, ErrNoLandmarks
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

// Vector implements [Extractor].
func (e *Embedding) Vector(aligned *facedet.Picture) (x []float32, norm float64, err error) {
	if x, err = forward(e.net, aligned, e.space.Dim); err != nil {
		return nil, 0, fmt.Errorf("embedding a face: %w", err)
	}
	var sum float64
	for _, v := range x {
		sum += float64(v) * float64(v)
	}
	norm = math.Sqrt(sum)
	if norm == 0 {
		return nil, 0, fmt.Errorf("embedding a face: model %s gave a vector of zero length", e.net.Name)
	}
	for i := range x {
		x[i] = float32(float64(x[i]) / norm)
	}
	return x, norm, nil
}

// Infrared returns an extractor of the same network for pictures of an infrared camera, whose vectors are of another
// space. It owns e.
func Infrared(e *Embedding) Extractor { return infrared{e} }

type infrared struct{ *Embedding }

// Space implements [Extractor].
func (i infrared) Space() face.Space { return i.Embedding.Space().Infrared() }

// Close implements [Extractor].
func (e *Embedding) Close() error { return e.net.Close() }
