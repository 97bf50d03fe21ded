// SPDX-License-Identifier: Apache-2.0

package quantized

// pageValues is the number of coordinates in a page.
const pageValues = 1 << 16

// points holds the coordinates of vertices in pages, so it grows without copies and without unused
// memory.
//
// Points begin at multiples of 16 bytes. The order of summation of a vector product, and so its
// last bit, depends on this. A distance therefore does not change when a point moves.
type points struct {
	dim, stride int // values of a point, and distance of the starts of two points
	rows        int // points in a page
	n           int
	pages       [][]float32
}

func newPoints(dim int) points {
	stride := (dim + 3) &^ 3
	return points{dim: dim, stride: stride, rows: min(256, max(1, pageValues/stride))}
}

// at returns the coordinates of point i.
func (p *points) at(i int) []float32 {
	from := i % p.rows * p.stride
	return p.pages[i/p.rows][from : from+p.dim : from+p.dim]
}

func (p *points) push(x []float32) {
	if p.n == len(p.pages)*p.rows {
		p.pages = append(p.pages, make([]float32, p.rows*p.stride))
	}
	p.n++
	copy(p.at(p.n-1), x)
}

// keep leaves only the points of kept, which is in ascending order, and erases the others from
// memory.
func (p *points) keep(kept []int) {
	for q, i := range kept {
		if q != i {
			copy(p.at(q), p.at(i))
		}
	}
	for i := len(kept); i < p.n; i++ {
		clear(p.at(i))
	}
	p.n = len(kept)
	// One spare page: a full graph then does not allocate at every repartition.
	if used := (p.n+p.rows-1)/p.rows + 1; used < len(p.pages) {
		clear(p.pages[used:])
		p.pages = p.pages[:used]
	}
}
