// SPDX-License-Identifier: Apache-2.0

// Package still says which parts of a picture need no new examination, because they did not change.
//
// A [Scene] compares small grey pictures of a camera and says where something moved since the last
// search for faces. [Faces] says whether a face that was found again has changed, so that a new
// vector may be new evidence. Package pipeline asks both if it is told to spare work. Nothing here
// uses OpenCV.
//
// # Movement
//
// The picture is compared with the picture of the last search for faces, and not with the picture
// before. Slow movement therefore adds up until it is seen, and a slow change of light only leads
// to one more search now and then. Each cell of 4x4 pixels has its own measure of noise, which
// follows the camera and its compression while nothing moves. If a search finds the same faces as
// before, cells far from any face tolerate more for a while, because compressed video pulses with
// each key frame.
//
// # Caveats
//
// A Scene does not see a face that comes into view with less movement than noise. Search for faces
// now and then, even if nothing moved.
package still

import (
	"image"
	"iter"
	"slices"
	"time"
)

// Side is the longer side in pixels of the small grey pictures that a [Scene] compares. The
// smallest face that the default detector finds is at least five pixels wide in them.
const Side = 160

// Shrunk returns the size of the small picture for a picture of this size. A small picture keeps
// its size.
func Shrunk(size image.Point) image.Point {
	long := max(size.X, size.Y)
	if long <= Side {
		return size
	}
	return image.Pt(max(1, (size.X*Side+long/2)/long), max(1, (size.Y*Side+long/2)/long))
}

const (
	cell = 4 // side of a cell, in pixels of the small picture

	// A cell has moved if its mean absolute difference, in grey values, is above its threshold. The
	// values were chosen beforehand and adjusted on synthetic film.
	least      = 2.0 // threshold of a cell without any noise
	timesNoise = 2.0 // times the noise is added to the threshold
	alone      = 2.0 // a cell without a neighbour that moved counts only above this many thresholds

	firstNoise = 1.0 // noise of a new cell
	mostNoise  = 6.0 // largest noise that is believed
	noiseUp    = .02 // weight of a new value that is above the noise
	noiseDown  = .10 // weight of a new value that is below the noise
	// largest tolerance on top of the threshold, after searches that found nothing new
	mostWaived = 6.0
	waivedTime = 300. // seconds after which about half of the tolerance is gone
	// tolerance beyond the difference that was seen, so that the next pulse stays below it
	waivedMore = 1.0
)

// Scene is the state of a camera's picture at the last search for faces. One goroutine at a time
// may use it. The zero value has seen nothing.
type Scene struct {
	size       image.Point
	cols, rows int
	now        []uint8   // the newest picture
	looked     []uint8   // the picture of the last search for faces
	noise      []float32 // for each cell: mean absolute difference of successive pictures
	waived     []float32 // for each cell: tolerance beside noise
	diff       []float32 // for each cell: difference from looked
	moved      []bool
	any        bool
	at         time.Duration
}

// See takes in the picture at a time: grey values, row by row. It panics if their number does not
// fit the size. In the first picture, and in the first picture of another size, everything moved.
func (s *Scene) See(at time.Duration, size image.Point, grey []uint8) {
	if size.X < 1 || size.Y < 1 || len(grey) != size.X*size.Y {
		panic("still: picture of another size than was said")
	}
	if size != s.size {
		s.reset(size)
		copy(s.now, grey)
		copy(s.looked, grey)
		for i := range s.moved {
			s.moved[i] = true
		}
		s.any, s.at = true, at
		return
	}
	s.compare(grey, s.fade(at))
	copy(s.now, grey)
	s.at = at
}

func (s *Scene) reset(size image.Point) {
	s.size, s.cols, s.rows = size, (size.X+cell-1)/cell, (size.Y+cell-1)/cell
	cells := s.cols * s.rows
	s.now, s.looked = make([]uint8, size.X*size.Y), make([]uint8, size.X*size.Y)
	s.noise, s.waived, s.diff = make([]float32, cells), make([]float32, cells),
		make([]float32, cells)
	s.moved = make([]bool, cells)
	for i := range s.noise {
		s.noise[i] = firstNoise
	}
}

// fade returns the share of the tolerance that is left.
func (s *Scene) fade(at time.Duration) float32 {
	passed := (at - s.at).Seconds() / waivedTime
	return float32(1 / (1 + max(0, passed))) // close to a half-life over short times, and cheap
}

// compare finds the cells that moved.
func (s *Scene) compare(grey []uint8, fade float32) {
	for row := range s.rows {
		top, bottom := row*cell, min((row+1)*cell, s.size.Y)
		for col := range s.cols {
			left, right := col*cell, min((col+1)*cell, s.size.X)
			var before, looked int32
			for y := top; y < bottom; y++ {
				at := y * s.size.X
				g := grey[at+left : at+right]
				n, l := s.now[at+left:][:len(g)], s.looked[at+left:][:len(g)]
				for x, v := range g {
					before += distance(v, n[x])
					looked += distance(v, l[x])
				}
			}
			pixels := float32((bottom - top) * (right - left))
			s.cell(row*s.cols+col, float32(before)/pixels, float32(looked)/pixels, fade)
		}
	}
	s.any = false
	for i, m := range s.moved {
		if m && !s.counts(i) {
			s.moved[i] = false
		}
		s.any = s.any || s.moved[i]
	}
}

// distance is |a - b| without a branch, because noise makes the branch unpredictable.
func distance(a, b uint8) int32 {
	d := int32(a) - int32(b)
	return (d ^ d>>31) - d>>31
}

// cell takes in the differences of one cell from the previous picture and from the picture of the
// last search.
func (s *Scene) cell(i int, before, looked, fade float32) {
	s.waived[i] *= fade
	threshold := s.threshold(i)
	s.diff[i], s.moved[i] = looked, looked > threshold
	switch noise := s.noise[i]; {
	case before > noise && before < threshold: // a larger difference is movement
		s.noise[i] = min(mostNoise, noise+noiseUp*(before-noise))
	case before <= noise:
		s.noise[i] = noise + noiseDown*(before-noise)
	}
}

func (s *Scene) threshold(i int) float32 { return least + timesNoise*s.noise[i] + s.waived[i] }

// counts reports whether a cell that moved has a neighbour that moved, or moved far.
func (s *Scene) counts(i int) bool {
	if s.diff[i] > alone*s.threshold(i) {
		return true
	}
	row, col := i/s.cols, i%s.cols
	for y := max(0, row-1); y <= min(s.rows-1, row+1); y++ {
		for x := max(0, col-1); x <= min(s.cols-1, col+1); x++ {
			if k := y*s.cols + x; k != i && s.diff[k] > s.threshold(k) {
				return true
			}
		}
	}
	return false
}

// Moved reports whether anything moved since the last search for faces.
func (s *Scene) Moved() bool { return s.any }

// MovedIn reports whether anything moved in a part of the picture. The part is in pixels of a
// picture of size of.
func (s *Scene) MovedIn(part image.Rectangle, of image.Point) bool {
	c := s.cells(part, of)
	for y := c.Min.Y; y < c.Max.Y; y++ {
		for x := c.Min.X; x < c.Max.X; x++ {
			if s.moved[y*s.cols+x] {
				return true
			}
		}
	}
	return false
}

// MovedOnlyIn reports whether all movement is in these parts of the picture. The parts are in
// pixels of a picture of size of.
func (s *Scene) MovedOnlyIn(parts []image.Rectangle, of image.Point) bool {
	for range s.movedOutside(parts, of) {
		return false
	}
	return true
}

// movedOutside gives the cells that moved, except cells that touch some parts of a picture of size
// of.
func (s *Scene) movedOutside(parts []image.Rectangle, of image.Point) iter.Seq[int] {
	in := make([]image.Rectangle, len(parts))
	for i, p := range parts {
		in[i] = s.cells(p, of)
	}
	return func(yield func(int) bool) {
		for i, m := range s.moved {
			at := image.Pt(i%s.cols, i/s.cols)
			if m && !slices.ContainsFunc(in, func(r image.Rectangle) bool { return at.In(r) }) &&
				!yield(i) {
				return
			}
		}
	}
}

// cells returns the cells that a part of a picture of size of touches.
func (s *Scene) cells(part image.Rectangle, of image.Point) image.Rectangle {
	if of.X < 1 || of.Y < 1 {
		return image.Rectangle{}
	}
	down := func(x, side, small int) int { return x * small / (side * cell) }
	up := func(x, side, small int) int { return (x*small + side*cell - 1) / (side * cell) }
	part = part.Intersect(image.Rectangle{Max: of})
	if part.Empty() {
		return image.Rectangle{}
	}
	return image.Rect(
		down(part.Min.X, of.X, s.size.X), down(part.Min.Y, of.Y, s.size.Y),
		up(part.Max.X, of.X, s.size.X), up(part.Max.Y, of.Y, s.size.Y),
	).Intersect(image.Rect(0, 0, s.cols, s.rows))
}

// Looked says that faces were searched for in a part of the newest picture, in pixels of a picture
// of size of. Later pictures are compared with it there; movement elsewhere stays.
func (s *Scene) Looked(part image.Rectangle, of image.Point) {
	c := s.cells(part, of)
	for y := cell * c.Min.Y; y < min(cell*c.Max.Y, s.size.Y); y++ {
		from, to := y*s.size.X+cell*c.Min.X, y*s.size.X+min(cell*c.Max.X, s.size.X)
		copy(s.looked[from:to], s.now[from:to])
	}
}

// Parts returns boxes around what moved, in pixels of a picture of size of: one for all cells with
// at most one cell between them.
func (s *Scene) Parts(of image.Point) (parts []image.Rectangle) {
	seen := make([]bool, len(s.moved))
	for i, m := range s.moved {
		if !m || seen[i] {
			continue
		}
		var box image.Rectangle
		seen[i] = true
		for queue := []int{i}; len(queue) > 0; {
			k := queue[0]
			queue = queue[1:]
			row, col := k/s.cols, k%s.cols
			box = box.Union(image.Rect(col, row, col+1, row+1))
			for y := max(0, row-2); y <= min(s.rows-1, row+2); y++ {
				for x := max(0, col-2); x <= min(s.cols-1, col+2); x++ {
					if n := y*s.cols + x; s.moved[n] && !seen[n] {
						seen[n] = true
						queue = append(queue, n)
					}
				}
			}
		}
		at := func(x, side, small int) int { return min(side, x*cell*side/small) }
		parts = append(parts, image.Rect(
			at(box.Min.X, of.X, s.size.X), at(box.Min.Y, of.Y, s.size.Y),
			at(box.Max.X, of.X, s.size.X), at(box.Max.Y, of.Y, s.size.Y)))
	}
	return parts
}

// Nothing says that a search because of movement found nothing new. Cells that moved then tolerate
// more for a while, except cells near the given faces. If parts are given, the search was in these
// alone. All are in pixels of a picture of size of. Call it before [Scene.Looked].
func (s *Scene) Nothing(faces []image.Rectangle, of image.Point, parts ...image.Rectangle) {
	searched := make([]image.Rectangle, len(parts))
	for i, p := range parts {
		searched[i] = s.cells(p, of)
	}
	near := make([]image.Rectangle, len(faces))
	for i, f := range faces {
		near[i] = Around(f)
	}
	for i := range s.movedOutside(near, of) {
		at := image.Pt(i%s.cols, i/s.cols)
		if len(parts) > 0 && !slices.ContainsFunc(searched, func(r image.Rectangle) bool {
			return at.In(r)
		}) {
			continue
		}
		s.waived[i] = min(mostWaived, s.waived[i]+max(0, s.diff[i]-s.threshold(i))+waivedMore)
	}
}

// Around returns the box of a face, enlarged by half on each side, where movements of the head
// happen.
func Around(box image.Rectangle) image.Rectangle {
	return image.Rect(box.Min.X-box.Dx()/2, box.Min.Y-box.Dy()/2, box.Max.X+box.Dx()/2,
		box.Max.Y+box.Dy()/2)
}

// Crowded reports whether another face is so near to box i that the two may be confused.
func Crowded(boxes []image.Rectangle, i int) bool {
	around := Around(boxes[i])
	for j, b := range boxes {
		if j != i && b.Overlaps(around) {
			return true
		}
	}
	return false
}
