// SPDX-License-Identifier: Apache-2.0

package office

import (
	"bytes"
	"image"
	"image/jpeg"
	"math"
	"sync"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/graph"
)

// clarities caches how clear the pictures of faces are, by number of the face.
type clarities struct {
	mu    sync.Mutex
	known map[uint64]float64
}

// mostClarities limits the cache. All albums of an office together have fewer faces.
const mostClarities = 1 << 14

// of returns the clarity of a face's picture.
func (c *clarities) of(f Face) float64 {
	c.mu.Lock()
	known, ok := c.known[f.ID]
	c.mu.Unlock()
	if ok {
		return known
	}
	known = clarity(f.JPEG)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil || len(c.known) >= mostClarities {
		c.known = make(map[uint64]float64)
	}
	c.known[f.ID] = known
	return known
}

// mostPixels limits the size of decoded pictures. Pictures of faces are small.
const mostPixels = 1 << 20

// clarity returns the clarity of a JPEG picture: the logarithm of the variance of its Laplacian. It is small for a
// blurred, flat or dark picture, and 0 if the picture cannot be read.
func clarity(picture []byte) float64 {
	size, err := jpeg.DecodeConfig(bytes.NewReader(picture))
	if err != nil || size.Width*size.Height > mostPixels {
		return 0
	}
	decoded, err := jpeg.Decode(bytes.NewReader(picture))
	if err != nil {
		return 0
	}
	var grey func(x, y int) float64
	switch m := decoded.(type) {
	case *image.YCbCr:
		grey = func(x, y int) float64 { return float64(m.Y[m.YOffset(x, y)]) }
	case *image.Gray:
		grey = func(x, y int) float64 { return float64(m.GrayAt(x, y).Y) }
	default:
		return 0
	}
	b, n, sum, squares := decoded.Bounds(), 0., 0., 0.
	for y := b.Min.Y + 1; y < b.Max.Y-1; y++ {
		for x := b.Min.X + 1; x < b.Max.X-1; x++ {
			l := grey(x-1, y) + grey(x+1, y) + grey(x, y-1) + grey(x, y+1) - 4*grey(x, y)
			n, sum, squares = n+1, sum+l, squares+l*l
		}
	}
	if n == 0 {
		return 0
	}
	return math.Log1p(squares/n - sum/n*sum/n)
}

// best returns at most n of the faces, the clearest first, and then faces that are clear and differ from the faces
// before.
func (c *clarities) best(space face.Space, faces []Face, n int) []Face {
	clear := make([]float64, len(faces))
	apart := make([]float64, len(faces)) // distance to the nearest chosen face
	for i, f := range faces {
		clear[i], apart[i] = c.of(f), 1
	}
	var chosen []Face
	taken := make([]bool, len(faces))
	for len(chosen) < min(n, len(faces)) {
		at := -1
		for i := range faces {
			if !taken[i] && (at < 0 || clear[i]*apart[i] > clear[at]*apart[at]) {
				at = i
			}
		}
		taken[at] = true
		chosen = append(chosen, faces[at])
		for i := range faces {
			d := graph.Distance(faces[i].Vector, faces[at].Vector, space.Scale)
			if len(chosen) == 1 {
				apart[i] = d
			}
			apart[i] = min(apart[i], d)
		}
	}
	return chosen
}

// Best returns the numbers of at most n faces, for [Office.Face], by which a user best recognises the person: clear
// faces that differ from each other.
func (w *pictures) Best(faces []Face, n int) []uint64 {
	return append([]uint64{}, numbersOf(w.clear.best(w.space(), faces, n))...)
}
