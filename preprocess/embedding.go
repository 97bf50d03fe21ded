package preprocess

import (
	"fmt"
	"image"
	"math"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/cv"
	"github.com/faceauth/faceauth/models"
)

// Embedding is a network that maps an aligned face to a point on the unit sphere. It holds the
// network; close it.
type Embedding struct {
	d     models.Description
	net   *cv.Net
	space face.Space
}

var _ Extractor = (*Embedding)(nil)

// NewEmbedding opens the network of a description, whose file lies in dir. The error wraps those of
// [models.Description.Path].
func NewEmbedding(d models.Description, dir string) (*Embedding, error) {
	net, err := open(d, models.Embedding, dir)
	if err != nil {
		return nil, err
	}
	return &Embedding{d, net, SpaceOf(d)}, nil
}

// SpaceOf returns the feature space of an embedding. Its ID is made of the hash of the network:
// another network is another space.
func SpaceOf(d models.Description) face.Space {
	return face.Space{
		ID: "embedding:" + d.SHA256[:12], Dim: d.Dim, Scale: 1, Unit: true,
		Sigma: d.Sigma, Gamma: d.Gamma, ImpostorRadius: d.ImpostorRadius,
	}
}

// Space implements [Extractor].
func (e *Embedding) Space() face.Space { return e.space }

// Extract implements [Extractor]. The error wraps [ErrNoLandmarks] or [ErrLandmarks] where the face
// cannot be aligned.
func (e *Embedding) Extract(img *cv.Image, _ image.Rectangle, landmarks []face.Point) ([]float32, error) {
	points, err := fivePoints(landmarks)
	if err != nil {
		return nil, err
	}
	to := canonical
	for i := range to {
		to[i][0] *= float64(e.d.Input.Width) / 112
		to[i][1] *= float64(e.d.Input.Height) / 112
	}
	a, err := similarity(points, to)
	if err != nil {
		return nil, err
	}
	aligned, err := img.Warp(a, image.Pt(e.d.Input.Width, e.d.Input.Height))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrLandmarks, err)
	}
	defer aligned.Close()
	out, err := e.net.Forward(aligned, blob(e.d.Input), e.d.Outputs...)
	if err != nil {
		return nil, fmt.Errorf("embedding a face: %w", err)
	}
	x := out[0].Data
	if len(x) != e.space.Dim {
		return nil, fmt.Errorf("embedding a face: model %s has an output of shape %v, want %d values", e.d.Name, out[0].Shape, e.space.Dim)
	}
	var sum float64
	for _, v := range x {
		sum += float64(v) * float64(v)
	}
	norm := math.Sqrt(sum)
	if norm == 0 {
		return nil, fmt.Errorf("embedding a face: model %s gave a vector of zero length", e.d.Name)
	}
	for i := range x {
		x[i] = float32(float64(x[i]) / norm)
	}
	return x, nil
}

// Close implements [Extractor].
func (e *Embedding) Close() error { return e.net.Close() }

func open(d models.Description, kind models.Kind, dir string) (*cv.Net, error) {
	if d.Kind != kind {
		return nil, fmt.Errorf("model %s is of kind %s, want %s", d.Name, d.Kind, kind)
	}
	path, err := d.Path(dir)
	if err != nil {
		return nil, err
	}
	return cv.OpenNet(path)
}

func blob(in models.Input) cv.Blob {
	return cv.Blob{
		Size: image.Pt(in.Width, in.Height), Scale: in.Scale, Mean: in.Mean,
		RGB: in.Colour == "rgb", Gray: in.Colour == "gray",
	}
}
