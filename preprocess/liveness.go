// SPDX-License-Identifier: Apache-2.0

package preprocess

import (
	"fmt"
	"image"
	"math"

	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/internal/network"
	"github.com/faceauth/faceauth/models"
)

// Liveness is a network that tells a live face from a picture of a face. It sees the face and its
// surroundings in one frame. One score is weak evidence, so a login uses the mean over several
// frames.
type Liveness struct{ net *network.Network }

// NewLiveness opens the network of a description from the folder dir, and runs it once as a test.
// The error wraps the errors of [models.Description.Path], or [models.ErrShape].
func NewLiveness(d models.Description, dir string) (*Liveness, error) {
	net, err := open(d, models.Liveness, dir, 3)
	if err != nil {
		return nil, err
	}
	return &Liveness{net}, nil
}

// Score returns the probability in [0,1] that the face in the box is live.
func (l *Liveness) Score(img *facedet.Picture, box image.Rectangle) (float32, error) {
	crop, err := img.Crop(surroundings(box, l.net.Crop, l.net.BoxScale, img.Size()))
	if err != nil {
		return 0, err
	}
	defer crop.Close()
	x, err := forward(l.net, crop, 3)
	if err != nil {
		return 0, fmt.Errorf("scoring liveness: %w", err)
	}
	top := max(x[0], x[1], x[2])
	var sum float64
	for _, v := range x {
		sum += math.Exp(float64(v - top))
	}
	return float32(math.Exp(float64(x[0]-top)) / sum), nil
}

// Close frees the network.
func (l *Liveness) Close() error { return l.net.Close() }

// surroundings returns the part of a frame that the network sees. The part has the shape of the
// crop, is scale times as large as the box, and has the same centre. If the part crosses the edge
// of the frame, it is moved inside. If the frame is too small, the part shrinks and keeps its
// shape. There is no border around the frame, because the network takes the edge of a picture for
// the edge of a telephone.
func surroundings(box image.Rectangle, crop string, scale float64,
	frame image.Point) image.Rectangle {
	w, h := float64(box.Dx()), float64(box.Dy())
	if crop == "square" {
		w = max(w, h)
		h = w
	}
	scale = min(scale, float64(frame.X)/w, float64(frame.Y)/h)
	size := image.Pt(max(1, int(w*scale)), max(1, int(h*scale)))
	at := box.Min.Add(box.Max).Div(2).Sub(size.Div(2))
	at.X = min(max(at.X, 0), frame.X-size.X)
	at.Y = min(max(at.Y, 0), frame.Y-size.Y)
	return image.Rectangle{at, at.Add(size)}
}
