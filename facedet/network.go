// SPDX-License-Identifier: Apache-2.0

package facedet

import (
	"cmp"
	"fmt"
	"image"
	"math"
	"slices"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/cv"
	"github.com/faceauth/faceauth/internal/network"
	"github.com/faceauth/faceauth/models"
)

// Network is a detector of two neural networks: one finds boxes, the other 68 points in each.
type Network struct{ boxes, points *network.Network }

var _ Detector = (*Network)(nil)

// NewNetwork opens the networks of the two descriptions from the folder dir, and runs them once as a test. The error
// wraps the errors of [models.Description.Path], or [models.ErrShape].
func NewNetwork(detector, landmarks models.Description, dir string) (*Network, error) {
	boxes, err := network.Open(detector, models.Detector, dir)
	if err != nil {
		return nil, fmt.Errorf("opening detector: %w", err)
	}
	points, err := network.Open(landmarks, models.Landmarks, dir)
	if err != nil {
		boxes.Close()
		return nil, fmt.Errorf("opening detector: %w", err)
	}
	n := &Network{boxes, points}
	err = boxes.Try(func(blank *cv.Image) error {
		if _, err := n.detect(blank); err != nil {
			return err
		}
		_, err := n.landmarks(blank, blank.Bounds())
		return err
	})
	if err != nil {
		n.Close()
		return nil, fmt.Errorf("opening detector: %w", err)
	}
	return n, nil
}

// Detect implements [Detector]. The whole picture is scaled to the input of the network. A picture that is hardly
// larger than the face in it, such as the stills of a gallery, gets a border first, because the network was trained on
// faces with surroundings.
func (n *Network) Detect(p *Picture) ([]Face, error) {
	img := p.native()
	if n.small(img) {
		border := max(img.Size().X, img.Size().Y) / 2
		padded, err := img.Pad(border, 127)
		if err != nil {
			return nil, err
		}
		defer padded.Close()
		faces, err := n.detect(padded)
		if err != nil {
			return nil, err
		}
		shift := image.Pt(-border, -border)
		kept := faces[:0]
		for _, f := range faces {
			f.Box = f.Box.Add(shift).Intersect(img.Bounds())
			if f.Box.Empty() {
				continue
			}
			for i := range f.Landmarks {
				f.Landmarks[i].X -= float32(border)
				f.Landmarks[i].Y -= float32(border)
			}
			kept = append(kept, f)
		}
		return kept, nil
	}
	return n.detect(img)
}

// small reports whether a picture gets a border. A strip that is too long for a border holds no face that a border
// would help to find.
func (n *Network) small(img *cv.Image) bool {
	size := img.Size()
	return (size.X < n.boxes.Input.Width/2 || size.Y < n.boxes.Input.Height/2) && max(size.X, size.Y) <= longestSmall
}

// Boxes is Detect without landmarks; [Network.Points] finds them. Faces in a small picture may already have landmarks.
func (n *Network) Boxes(p *Picture) ([]Face, error) {
	if n.small(p.native()) {
		return n.Detect(p)
	}
	return n.find(p.native())
}

// Points returns the landmarks of a face whose box is in the picture.
func (n *Network) Points(p *Picture, box image.Rectangle) ([]face.Point, error) {
	return n.landmarks(p.native(), box)
}

// longestSmall is the longest side in pixels of a picture that gets a border.
const longestSmall = 4096

func (n *Network) find(img *cv.Image) ([]Face, error) {
	out, err := n.boxes.Forward(img)
	if err != nil {
		return nil, fmt.Errorf("detecting faces: %w", err)
	}
	return n.decode(out, img.Size())
}

func (n *Network) detect(img *cv.Image) ([]Face, error) {
	faces, err := n.find(img)
	if err != nil {
		return nil, err
	}
	for i := range faces {
		if faces[i].Landmarks, err = n.landmarks(img, faces[i].Box); err != nil {
			return nil, err
		}
	}
	return faces, nil
}

// decode reads boxes [1,N,4], corners relative to the picture, and scores [1,N,2]. The second score is the score of a
// face.
func (n *Network) decode(out []cv.Tensor, size image.Point) ([]Face, error) {
	boxes, scores := out[0], out[1]
	if len(boxes.Shape) != 3 || boxes.Shape[2] != 4 || len(scores.Shape) != 3 || scores.Shape[2] != 2 ||
		boxes.Shape[1] != scores.Shape[1] {
		return nil, fmt.Errorf("detecting faces: %w",
			n.boxes.Unfit("its outputs have the shapes %v and %v, want [1 N 4] and [1 N 2]", boxes.Shape, scores.Shape))
	}
	frame := image.Rectangle{Max: size}
	var found []Face
	for i := range boxes.Shape[1] {
		score := scores.Data[2*i+1]
		if !(float64(score) >= n.boxes.Threshold) {
			continue
		}
		b := boxes.Data[4*i:]
		at := func(rel float32, side int) int {
			return int(math.Round(min(max(float64(rel), -1), 2) * float64(side)))
		}
		box := image.Rect(at(b[0], size.X), at(b[1], size.Y), at(b[2], size.X), at(b[3], size.Y)).Intersect(frame)
		if box.Dx() >= 2 && box.Dy() >= 2 {
			found = append(found, Face{Box: box, Score: min(score, 1)})
		}
	}
	found = suppress(found, n.boxes.NMS)
	largestFirst(found)
	return found, nil
}

// suppress keeps the box with the best score of each set of boxes that overlap by more than limit.
func suppress(faces []Face, limit float64) []Face {
	slices.SortStableFunc(faces, func(a, b Face) int { return cmp.Compare(b.Score, a.Score) })
	var kept []Face
	for _, f := range faces {
		if !slices.ContainsFunc(kept, func(k Face) bool { return face.Overlap(k.Box, f.Box) > limit }) {
			kept = append(kept, f)
		}
	}
	return kept
}

// landmarks runs the second network on a box. Its output is relative to the box.
func (n *Network) landmarks(img *cv.Image, box image.Rectangle) ([]face.Point, error) {
	crop, err := img.Crop(box)
	if err != nil {
		return nil, err
	}
	defer crop.Close()
	out, err := n.points.Forward(crop)
	if err != nil {
		return nil, fmt.Errorf("finding landmarks: %w", err)
	}
	x := out[0].Data
	if len(x) != 2*68 {
		return nil, fmt.Errorf("finding landmarks: %w",
			n.points.Unfit("its output has the shape %v, want 68 points", out[0].Shape))
	}
	points := make([]face.Point, 68)
	for i := range points {
		points[i] = face.Point{
			X: float32(box.Min.X) + x[2*i]*float32(box.Dx()),
			Y: float32(box.Min.Y) + x[2*i+1]*float32(box.Dy()),
		}
	}
	return points, nil
}

// Close implements [Detector].
func (n *Network) Close() error {
	n.boxes.Close()
	return n.points.Close()
}
