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

// NewNetwork opens the networks of the two descriptions from the folder dir, and runs them once as
// a test. The error wraps the errors of [models.Description.Path], or [models.ErrShape].
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
	err = boxes.Try(func(blank *Picture) error {
		if _, err := n.find(blank, blank.Bounds()); err != nil {
			return err
		}
		_, err := n.Points(blank, blank.Bounds())
		return err
	})
	if err != nil {
		n.Close()
		return nil, fmt.Errorf("opening detector: %w", err)
	}
	return n, nil
}

// Detect implements [Detector]. The picture is scaled to the input of the network, all of it and
// each of the [Windows] of a large one. A picture that is hardly larger than the face in it, such
// as the stills of a gallery, gets a border first, because the network was trained on faces with
// surroundings.
func (n *Network) Detect(img *Picture) ([]Face, error) {
	if n.small(img) {
		return n.bordered(img)
	}
	found, err := n.still(img)
	if err != nil {
		return nil, err
	}
	return found, n.mark(img, found)
}

// still finds the faces of a picture that nothing follows. A network of any size takes all of it
// twice: once small, for faces that are too large otherwise, and once half as large again as a
// frame. Only if this has found small faces, or a hint of some, it looks closely, in one run unless
// the picture is very large.
func (n *Network) still(img *Picture) ([]Face, error) {
	d := n.boxes.Description
	if d.Input.Step == 0 {
		return n.Boxes(img, Windows(d, img.Bounds())...)
	}
	all := img.Bounds()
	longest := max(all.Dx(), all.Dy())
	sides := []int{d.Input.Width / closer, d.Input.Width + d.Input.Width/closer}
	var found []Face
	small := false
	for i, side := range sides {
		if i > 0 && longest <= sides[i-1] {
			break
		}
		faces, err := n.run(img, all, side, hint)
		if err != nil {
			return nil, err
		}
		scale := float64(min(side, longest)) / float64(longest)
		small = false
		for _, f := range faces {
			small = small || float64(f.Box.Dy())*scale < float64(closer*d.LeastFound())
			if float64(f.Score) >= certain(d, d.Threshold) {
				found = append(found, f)
			}
		}
	}
	if small && longest > sides[len(sides)-1] {
		closely := d
		closely.Input.Width, closely.Input.Height = closer*d.Input.Width, closer*d.Input.Height
		parts := Windows(closely, all)
		if len(parts) > 1 { // all of it has been looked at
			parts = parts[1:]
		}
		for _, part := range parts {
			faces, err := n.run(img, part, closely.Input.Width, d.Threshold)
			if err != nil {
				return nil, err
			}
			found = append(found, faces...)
		}
	}
	return n.merge(found), nil
}

const (
	// closer is the ratio of the sizes in which a still is looked at.
	closer = 2
	// hint is the least score of a part of a picture that may be a small face (lab/NOTES.md).
	hint = .2
)

// bordered detects faces in a small picture.
func (n *Network) bordered(img *Picture) ([]Face, error) {
	border := max(img.Size().X, img.Size().Y) / 2
	padded, err := img.Pad(border, 127)
	if err != nil {
		return nil, err
	}
	defer padded.Close()
	faces, err := n.find(padded, padded.Bounds())
	if err != nil {
		return nil, err
	}
	if err := n.mark(padded, faces); err != nil {
		return nil, err
	}
	kept := faces[:0]
	for _, f := range faces {
		f.Box = f.Box.Sub(image.Pt(border, border)).Intersect(img.Bounds())
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

// small reports whether a picture gets a border. A strip that is too long for a border holds no
// face that a border would help to find.
func (n *Network) small(img *Picture) bool {
	size := img.Size()
	return (size.X < n.boxes.Input.Width/2 || size.Y < n.boxes.Input.Height/2) &&
		max(size.X, size.Y) <= longestSmall
}

// Boxes finds faces in parts of the picture, without landmarks, in one run of the network for each;
// [Network.Points] finds landmarks. Faces in a small picture may already have some. A face that the
// edge of a part may have cut is left out.
func (n *Network) Boxes(p *Picture, parts ...image.Rectangle) ([]Face, error) {
	if n.small(p) {
		return n.bordered(p)
	}
	var found []Face
	for _, part := range parts {
		faces, err := n.find(p, part)
		if err != nil {
			return nil, err
		}
		found = append(found, faces...)
	}
	if len(parts) > 1 {
		found = n.merge(found)
	}
	return found, nil
}

// longestSmall is the longest side in pixels of a picture that gets a border.
const longestSmall = 4096

// find returns the faces in a part of a picture, the largest first.
func (n *Network) find(img *Picture, part image.Rectangle) ([]Face, error) {
	return n.run(img, part, n.boxes.Input.Width, n.boxes.Threshold)
}

// run is find with the longest side of an input of any size, and the least score.
func (n *Network) run(img *Picture, part image.Rectangle, longest int,
	least float64) ([]Face, error) {
	part = part.Intersect(img.Bounds())
	in := img
	if part != img.Bounds() {
		crop, err := img.Crop(part)
		if err != nil {
			return nil, fmt.Errorf("detecting faces: %w", err)
		}
		defer crop.Close()
		in = crop
	}
	fed := n.boxes.Feed(part.Size(), longest)
	out, err := n.boxes.ForwardAs(in, fed)
	if err != nil {
		return nil, fmt.Errorf("detecting faces: %w", err)
	}
	faces, err := n.decode(out, fed, part.Size(), least)
	kept := faces[:0]
	for _, f := range faces {
		f.Box = f.Box.Add(part.Min)
		if whole(f.Box, part, img.Bounds()) {
			kept = append(kept, f)
		}
	}
	return kept, err
}

// mark finds the landmarks of faces.
func (n *Network) mark(img *Picture, faces []Face) (err error) {
	for i := range faces {
		faces[i].Landmarks, err = n.Points(img, faces[i].Box)
		if err != nil {
			return err
		}
	}
	return nil
}

// decode returns the faces in a part of the given size, by the layout of the network.
func (n *Network) decode(out []cv.Tensor, fed, size image.Point, least float64) ([]Face, error) {
	var found []Face
	var err error
	if n.boxes.Layout == "" {
		found, err = n.corners(out, size, least)
	} else {
		found, err = n.cells(out, fed, size, least)
	}
	for i, f := range found {
		found[i].Score = float32(certain(n.boxes.Description, float64(f.Score)))
	}
	if err != nil {
		return nil, fmt.Errorf("detecting faces: %w", err)
	}
	found = suppress(found, n.boxes.NMS)
	largestFirst(found)
	return found, nil
}

// cells reads the outputs of YuNet and SCRFD: a score and a box for each cell of 8, 16 and 32
// pixels of an input of size fed.
func (n *Network) cells(out []cv.Tensor, fed, size image.Point,
	least float64) (found []Face, err error) {
	anchors, boxes := 2, 3 // SCRFD has two boxes a cell
	if n.boxes.Layout == "yunet" {
		anchors, boxes = 1, 6
	}
	for level := range 3 {
		side := 8 << level
		columns := fed.X / side
		cells := columns * (fed.Y / side) * anchors
		for i, values := range map[int]int{level: 1, boxes - 3 + level: 1, boxes + level: 4} {
			if len(out[i].Data) != cells*values {
				return nil, n.boxes.Unfit(
					"output %s has the shape %v, want %d values for each of %d cells",
					n.boxes.Outputs[i], out[i].Shape, values, cells)
			}
		}
		for i := range cells {
			score := float64(out[level].Data[i])
			// the probability of a face, and that there is an object
			if n.boxes.Layout == "yunet" {
				score = math.Sqrt(min(max(score, 0), 1) * min(max(float64(out[3+level].Data[i]), 0),
					1))
			}
			if !(score >= least) {
				continue
			}
			x, y := float64(i/anchors%columns), float64(i/anchors/columns)
			var b [4]float64 // left, top, right and bottom, in cells
			for k, v := range out[boxes+level].Data[4*i : 4*i+4] {
				b[k] = float64(v)
			}
			if n.boxes.Layout == "yunet" { // the centre, and the logarithm of width and height
				w, h := math.Exp(b[2])/2, math.Exp(b[3])/2
				b = [4]float64{x + b[0] - w, y + b[1] - h, x + b[0] + w, y + b[1] + h}
			} else { // distances from the corner of the cell
				b = [4]float64{x - b[0], y - b[1], x + b[2], y + b[3]}
			}
			wide, high := float64(side)/float64(fed.X), float64(side)/float64(fed.Y)
			f, ok := boxed([4]float64{b[0] * wide, b[1] * high, b[2] * wide, b[3] * high}, score,
				size)
			if ok {
				found = append(found, f)
			}
		}
	}
	return found, nil
}

// boxed returns the face with these corners, relative to a part of the given size; ok is false if
// the part holds nothing of it.
func boxed(b [4]float64, score float64, size image.Point) (f Face, ok bool) {
	at := func(rel float64, side int) int {
		return int(math.Round(min(max(rel, -1), 2) * float64(side)))
	}
	box := image.Rect(at(b[0], size.X), at(b[1], size.Y), at(b[2], size.X), at(b[3], size.Y))
	box = box.Intersect(image.Rectangle{Max: size})
	return Face{Box: box, Score: float32(min(score, 1))}, box.Dx() >= 2 && box.Dy() >= 2
}

// corners reads boxes [1,N,4], corners relative to the picture, and scores [1,N,2]. The second
// score is the score of a face.
func (n *Network) corners(out []cv.Tensor, size image.Point,
	least float64) (found []Face, err error) {
	boxes, scores := out[0], out[1]
	if len(boxes.Shape) != 3 || boxes.Shape[2] != 4 || len(scores.Shape) != 3 ||
		scores.Shape[2] != 2 ||
		boxes.Shape[1] != scores.Shape[1] {
		return nil, n.boxes.Unfit("its outputs have the shapes %v and %v, want [1 N 4] and [1 N 2]",
			boxes.Shape, scores.Shape)
	}
	for i := range boxes.Shape[1] {
		score := scores.Data[2*i+1]
		if !(float64(score) >= least) {
			continue
		}
		b := boxes.Data[4*i:]
		f, ok := boxed([4]float64{float64(b[0]), float64(b[1]), float64(b[2]), float64(b[3])},
			float64(score), size)
		if ok {
			found = append(found, f)
		}
	}
	return found, nil
}

// suppress keeps the box with the best score of each set of boxes that overlap by more than limit.
func suppress(faces []Face, limit float64) []Face {
	return bestOf(faces, func(a, b image.Rectangle) bool { return face.Overlap(a, b) > limit })
}

// merge suppresses boxes of several windows. A window may see a part of a face as a face: a box
// that lies mostly in another is the same face, too.
func (n *Network) merge(faces []Face) []Face {
	kept := bestOf(faces, func(a, b image.Rectangle) bool {
		both := a.Intersect(b)
		least := min(a.Dx()*a.Dy(), b.Dx()*b.Dy())
		return face.Overlap(a, b) > n.boxes.NMS ||
			float64(both.Dx()*both.Dy()) > mostlyIn*float64(least)
	})
	largestFirst(kept)
	return kept
}

// mostlyIn is the share of a box that lies in another box of the same face.
const mostlyIn = .6

// bestOf keeps the box with the best score of each set of boxes that are the same.
func bestOf(faces []Face, same func(a, b image.Rectangle) bool) []Face {
	slices.SortStableFunc(faces, func(a, b Face) int { return cmp.Compare(b.Score, a.Score) })
	var kept []Face
	for _, f := range faces {
		if !slices.ContainsFunc(kept, func(k Face) bool { return same(k.Box, f.Box) }) {
			kept = append(kept, f)
		}
	}
	return kept
}

// Points returns the landmarks of a face whose box is in the picture: the output of the second
// network, which is relative to the box.
func (n *Network) Points(img *Picture, box image.Rectangle) ([]face.Point, error) {
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

// Looks describes the network that finds boxes.
func (n *Network) Looks() models.Description { return n.boxes.Description }

// Runs names the program that runs the network that finds boxes, with its version.
func (n *Network) Runs() string {
	name, _ := n.boxes.Runs()
	return name
}

// Close implements [Detector].
func (n *Network) Close() error {
	n.boxes.Close()
	return n.points.Close()
}

// certain returns the score of a detector on the scale of the builtin one, so that faces of which
// it is sure (Description.Sure) have at least [models.Sure].
func certain(d models.Description, score float64) float64 {
	own := cmp.Or(d.Sure, models.Sure)
	if own == models.Sure {
		return score
	}
	if score < own {
		return score / own * models.Sure
	}
	return models.Sure + (score-own)/(1-own)*(1-models.Sure)
}
