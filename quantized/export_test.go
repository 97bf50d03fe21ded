// SPDX-License-Identifier: Apache-2.0

package quantized

// SetMaxEdges bounds the edges of all graphs until the returned function is called.
func SetMaxEdges(n int) (undo func()) {
	old := maxEdges
	maxEdges = n
	return func() { maxEdges = old }
}

// SketchAlways makes graphs use sketches for any number of points, and several processors for few, until the returned
// function is called.
func SketchAlways() (undo func()) {
	from, part := sketchedFrom, leastPart
	sketchedFrom, leastPart = 0, 8
	return func() { sketchedFrom, leastPart = from, part }
}

// Sketched returns how many vertices were compared by their sketches recently, and how many of them had to be measured.
func (g *Graph) Sketched() (asked, left int64) { return g.sketches.asked, g.sketches.left }

// Resting reports whether sketches have saved so little work that they are not used for a while.
func (g *Graph) Resting() bool { return g.sketches.rest > 0 }
