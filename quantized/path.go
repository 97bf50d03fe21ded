// SPDX-License-Identifier: Apache-2.0

package quantized

// Step is a point on the path along which another point was accepted.
type Step struct {
	Moment       // when the point was kept; zero for a labelled vertex
	ID     int64 // present or former vertex ID of the point
	Vertex int   // vertex where it is now
	Merged bool  // a repartition merged it into that vertex; its own coordinates are lost
}

// Path returns the path along which the own point of vertex i was accepted: this point, the point through which it was
// accepted, and so on. Whole is true if the path ends at a labelled vertex. Otherwise the path is not complete: a point
// on it was removed, or was merged before the journal begins.
func (g *Graph) Path(i int) (path []Step, whole bool) {
	merged := make(map[int64]Entry)
	for _, e := range g.journal.entries {
		if e.ID != 0 {
			merged[e.ID] = e
		}
	}
	o := g.origin[i]
	path = []Step{{Moment: o.Moment, ID: o.ID, Vertex: i}}
	if g.label[i] != unlabelled {
		return path, true
	}
	// A point is younger than the point through which it was accepted, so the IDs fall and the loop ends.
	for id, via := o.ID, o.Via; via != 0 && via < id; {
		id = via
		if j := g.vertex(id); j >= 0 {
			o := g.origin[j]
			path = append(path, Step{Moment: o.Moment, ID: id, Vertex: j})
			if g.label[j] != unlabelled {
				return path, true
			}
			via = o.Via
			continue
		}
		e, known := merged[id]
		if !known {
			break
		}
		path = append(path, Step{Moment: e.Moment, ID: id, Vertex: g.vertex(e.Vertex), Merged: true})
		via = e.Via
	}
	return path, false
}
