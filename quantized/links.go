// SPDX-License-Identifier: Apache-2.0

package quantized

import (
	"cmp"
	"slices"
)

// Link is a contracted edge: two points had an edge, and at least one of them was merged into
// another vertex. It joins the vertices where the points are now.
type Link struct {
	_    struct{} `cbor:",toarray"`
	A, B int64    // IDs of the vertices, the smaller first
	P, Q int64    // present or former vertex IDs of the point at A, and of the point at B
}

func (l Link) ends() [2]int64 { return [2]int64{l.A, l.B} }

func compareLinks(a, b Link) int { return cmp.Or(cmp.Compare(a.A, b.A), cmp.Compare(a.B, b.B)) }

// contract returns the links in the place of the edges that the merges of p would lose. In the
// printed algorithm a merged vertex loses its edges. Where R is near the edge radius the vertices
// that are left have no edges to each other, and a chain of points from a label to a turned head
// breaks.
//
// So an edge of i and j is replaced by a link of their new vertices, if these are two, without an
// edge, not both labelled, and at most [Config].Link apart, and if i and j share a class: through
// an edge of two people's faces, one person would be carried to the other. Of several edges between
// the same new vertices, the first one in the order of the vertices counts.
//
// No point moves and R does not change, so [State].Spread holds as before. A link goes if either of
// its points is taken back, or either of its vertices is removed; a point that was merged before
// the journal begins cannot be taken back, and neither can its link. Its weight in the solution
// falls with the multiplicities of its vertices.
func (g *Graph) contract(p partition) (links []Link) {
	if g.c.Link <= g.reach {
		return nil
	}
	there := make(map[[2]int64]bool)
	for i, edges := range g.edges.of {
		for _, e := range edges {
			if e.to >= i {
				break
			}
			a, b := p.to[i], p.to[e.to]
			labelled := g.label[a] != unlabelled && g.label[b] != unlabelled
			if a == b || a == i && b == e.to || labelled || !g.akin(i, e.to) {
				continue
			}
			l := Link{A: g.origin[a].ID, B: g.origin[b].ID, P: g.origin[i].ID, Q: g.origin[e.to].ID}
			// the edge is a link: pass on its points
			if old, again := g.contracted[[2]int64{l.Q, l.P}]; again {
				l.P, l.Q = old.Q, old.P
			}
			if l.A > l.B {
				l = Link{A: l.B, B: l.A, P: l.Q, Q: l.P}
			}
			if _, edge := g.edges.find(a, b); edge || there[l.ends()] {
				continue
			}
			there[l.ends()] = true
			links = append(links, l)
		}
	}
	return links
}

// akin reports whether two vertices share a class: their label, or a class through which their
// points were accepted.
func (g *Graph) akin(i, j int) bool {
	has := func(i, class int) bool {
		return g.label[i] == class || slices.Contains(g.source[i], class)
	}
	return g.label[i] != unlabelled && has(j, g.label[i]) ||
		slices.ContainsFunc(g.source[i], func(class int) bool { return has(j, class) })
}

// join adds a link between two vertices, unless it is too long. It reports whether it did.
func (g *Graph) join(l Link) bool {
	a, b := g.vertex(l.A), g.vertex(l.B)
	d := g.measure(g.points.at(a), g.squares[a], b)
	w := g.c.linkWeight(d)
	if d <= g.reach || w == 0 || !g.edges.fit(1) {
		return false
	}
	g.edges.join(a, b, d, w)
	g.note(l)
	return true
}

// note records that an edge is a link.
func (g *Graph) note(l Link) {
	if g.contracted == nil {
		g.contracted = make(map[[2]int64]Link)
	}
	g.contracted[l.ends()] = l
}

// cut removes the links for which gone is true.
func (g *Graph) cut(gone func(l Link) bool) {
	for at, l := range g.contracted {
		if gone(l) {
			g.edges.cut(g.vertex(l.A), g.vertex(l.B))
			delete(g.contracted, at)
		}
	}
}

// lose forgets the links whose edge is gone.
func (g *Graph) lose() {
	for at, l := range g.contracted {
		a, b := g.vertex(l.A), g.vertex(l.B)
		if a >= 0 && b >= 0 {
			if q, there := g.edges.find(a, b); there && !g.ordinary(g.edges.of[a][q]) {
				continue
			}
		}
		delete(g.contracted, at)
	}
}
