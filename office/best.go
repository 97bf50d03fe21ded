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
	"github.com/faceauth/faceauth/office/unknown"
)

// clarities remembers how clear pictures of faces are, by the number of the face.
type clarities struct {
	mu    sync.Mutex
	known map[uint64]float64
}

// mostClarities bounds what is remembered. All albums of an office together have fewer faces.
const mostClarities = 1 << 14

// of returns how clear the picture of a face is.
func (c *clarities) of(f unknown.Face) float64 {
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

// mostPixels bounds the pictures that are looked at: faces come as small ones.
const mostPixels = 1 << 20

// clarity returns how clear a picture is, from 0 for none: the logarithm of the variance of its Laplacian, which is
// small where the picture is blurred, flat or dark.
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

// best returns at most n of the faces, the clearest first, and then faces that are clear and differ from the faces before.
func (c *clarities) best(space face.Space, faces []unknown.Face, n int) []unknown.Face {
	clear := make([]float64, len(faces))
	apart := make([]float64, len(faces)) // from the nearest that is chosen
	for i, f := range faces {
		clear[i], apart[i] = c.of(f), 1
	}
	var chosen []unknown.Face
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

// space returns the feature space of the faces. The lock must not be held.
func (w *Office) space() face.Space {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.gallery.Space()
}

// Best returns the numbers of at most n of the faces, for [Office.Face]: those by which a person sees best who it is.
// They are clear and unlike each other.
func (w *Office) Best(faces []unknown.Face, n int) []uint64 {
	ids := []uint64{}
	for _, f := range w.clear.best(w.space(), faces, n) {
		ids = append(ids, f.ID)
	}
	return ids
}
