// SPDX-License-Identifier: Apache-2.0

package quantized

// Step is a point on the way along which another one was accepted.
type Step struct {
	Moment       // when it was kept; zero for a labelled vertex
	ID     int64 // of the vertex that it is, or once was
	Vertex int   // where it lies now
	Merged bool  // a repartition has merged it into that vertex: its own coordinates are not kept
}

// Path returns the way along which the own point of vertex i was accepted: that point first, then the one through which
// it was accepted, and so on. Whole is true where the way ends at a labelled vertex. It is false where it ends before,
// at a point through which nothing is known to have come: that one was removed, has faded, or was merged longer ago than
// the journal reaches.
func (g *Graph) Path(i int) (path []Step, whole bool) {
	merged := make(map[int64]entry)
	for _, e := range g.journal.entries {
		if e.id != 0 {
			merged[e.id] = e
		}
	}
	o := g.origin[i]
	path = []Step{{Moment: o.Moment, ID: o.ID, Vertex: i}}
	if g.label[i] != unlabelled {
		return path, true
	}
	// A point is younger than the one through which it came: the numbers fall, and the way ends.
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
		path = append(path, Step{Moment: e.Moment, ID: id, Vertex: g.vertex(e.vertex), Merged: true})
		via = e.via
	}
	return path, false
}
