// SPDX-License-Identifier: Apache-2.0

package quantized

import "slices"

// View shows a [Graph] and cannot change it. It follows its graph; all that it returns is the caller's own. The methods
// do the same as those of Graph.
type View struct{ g *Graph }

// View returns a view of g.
func (g *Graph) View() View { return View{g} }

// Config returns the configuration.
func (v View) Config() Config { return v.g.c }

// Len returns the number of vertices.
func (v View) Len() int { return v.g.Len() }

// Labelled returns the number of labelled vertices.
func (v View) Labelled() int { return v.g.Labelled() }

// Learned returns the number of vertices that are not labelled.
func (v View) Learned() int { return v.g.Learned() }

// Classes returns the number of classes.
func (v View) Classes() int { return v.g.classes }

// R returns the radius below which learned points are merged.
func (v View) R() float64 { return v.g.r }

// Bound returns the greatest possible distance of a point from its centroid.
func (v View) Bound() float64 { return v.g.spread }

// Mass returns the number of learned points.
func (v View) Mass() float64 { return v.g.Mass() }

// Point returns the coordinates of vertex i.
func (v View) Point(i int) []float32 { return slices.Clone(v.g.Point(i)) }

// Multiplicity returns the number of points that vertex i stands for.
func (v View) Multiplicity(i int) float64 { return v.g.v[i] }

// Class returns the class of vertex i, and whether it is labelled.
func (v View) Class(i int) (class int, ok bool) { return v.g.Class(i) }

// Source returns the classes through which the points of vertex i were accepted.
func (v View) Source(i int) []int { return slices.Clone(v.g.source[i]) }

// Origin returns the origin of vertex i.
func (v View) Origin(i int) Origin { return v.g.origin[i] }

// State returns the state of the graph.
func (v View) State() State {
	s := v.g.State()
	for i := range s.Vertices {
		s.Vertices[i].Point, s.Vertices[i].Source = v.Point(i), v.Source(i)
	}
	return s
}
