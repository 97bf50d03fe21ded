// SPDX-License-Identifier: Apache-2.0

package quantized

// SetMaxEdges bounds the edges of all graphs until the returned function is called.
func SetMaxEdges(n int) (undo func()) {
	old := maxEdges
	maxEdges = n
	return func() { maxEdges = old }
}

// Room exports room.
func (c Candidate) Room() bool { return c.room() }

// Far reports whether the point has no edge, and is judged by the vertices within its [Sight].
func (t Trial) Far() bool { return t.far }

// Direct returns the number of direct solutions.
func (g *Graph) Direct() int { return g.solver.direct }

// Edge returns the weight of the edge between two vertices, or 0.
func (g *Graph) Edge(i, j int) float64 {
	at, there := g.edges.find(i, j)
	if !there {
		return 0
	}
	return g.edges.of[i][at].w
}
