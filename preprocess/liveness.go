package preprocess

import (
	"fmt"
	"image"
	"math"

	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/internal/network"
	"github.com/faceauth/faceauth/models"
)

// Liveness is a network that tells a face from a picture of one, by the face and its surroundings in
// a single frame. Its score is one piece of evidence, not a gate: it is low on some real recordings
// in poor light.
type Liveness struct{ net *network.Network }

// NewLiveness opens the network of a description, whose file lies in dir, and tries it once. The
// error wraps those of [models.Description.Path], or [models.ErrShape].
func NewLiveness(d models.Description, dir string) (*Liveness, error) {
	net, err := open(d, models.Liveness, dir, 3)
	if err != nil {
		return nil, err
	}
	return &Liveness{net}, nil
}

// Score returns the probability in [0,1] that the face in the box is live.
func (l *Liveness) Score(img *facedet.Picture, box image.Rectangle) (float32, error) {
	crop, err := native(img).Crop(surroundings(box, l.net.BoxScale, img.Size()))
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

// surroundings returns the box scaled about its centre, by less where the frame is too small for it,
// and moved inside the frame.
func surroundings(box image.Rectangle, scale float64, frame image.Point) image.Rectangle {
	scale = min(scale, float64(frame.X)/float64(box.Dx()), float64(frame.Y)/float64(box.Dy()))
	size := image.Pt(int(float64(box.Dx())*scale), int(float64(box.Dy())*scale))
	at := box.Min.Add(box.Max).Div(2).Sub(size.Div(2))
	at.X = min(max(at.X, 0), frame.X-size.X)
	at.Y = min(max(at.Y, 0), frame.Y-size.Y)
	return image.Rectangle{at, at.Add(size)}
}
