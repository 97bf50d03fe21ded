// SPDX-License-Identifier: Apache-2.0

package quantized

// SetMaxEdges bounds the edges of all graphs until the returned function is called.
func SetMaxEdges(n int) (undo func()) {
	old := maxEdges
	maxEdges = n
	return func() { maxEdges = old }
}

// SketchAlways makes graphs use sketches for any number of points, and several processors for few,
// until the returned function is called.
func SketchAlways() (undo func()) {
	from, part := sketchedFrom, leastPart
	sketchedFrom, leastPart = 0, 8
	return func() { sketchedFrom, leastPart = from, part }
}

// Sketched returns how many vertices were compared by their sketches recently, and how many of them
// had to be measured.
func (g *Graph) Sketched() (asked, left int64) { return g.sketches.asked, g.sketches.left }

// Resting reports whether sketches have saved so little work that they are not used for a while.
func (g *Graph) Resting() bool { return g.sketches.rest > 0 }

// Room exports room.
func (c Candidate) Room() bool { return c.room() }

// Far reports whether the point has no edge, and is judged by the vertices within sight.
func (t Trial) Far() bool { return t.far }

// Edge returns the weight of the edge between two vertices, or 0.
func (g *Graph) Edge(i, j int) float64 {
	at, there := g.edges.find(i, j)
	if !there {
		return 0
	}
	return g.edges.of[i][at].w
}

// Gamma returns the weight of the regulariser.
func (g *Graph) Gamma() float64 { return g.c.Gamma }

// Multiplicities returns how many points each vertex stands for.
func (g *Graph) Multiplicities() []float64 { return g.v }

// Labels returns the class of each vertex; a negative one is unlabelled.
func (g *Graph) Labels() []int { return g.label }

// Bound returns the greatest possible distance of a point from its centroid, see [State].
func (g *Graph) Bound() float64 { return g.spread }

// Classes returns the number of classes, see [State].
func (g *Graph) Classes() int { return g.classes }
