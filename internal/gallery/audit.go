// SPDX-License-Identifier: Apache-2.0

package gallery

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/faceauth/faceauth/internal/anomaly"
	"github.com/faceauth/faceauth/quantized"
)

// ErrOnePerson is wrapped by the error of [Gallery.Audit] if fewer than two people have faces.
var ErrOnePerson = errors.New("faces of fewer than two people")

// The settings of an audit, chosen on recordings that lab/NOTES.md names.
const (
	auditWidth = 3.5 // of the kernel, in units of the learner's sigma
	auditReach = 1.3 // of the longest edge, in units of the learner's
	auditFit   = .1  // c of SoftHAD, the weight of a label
	auditGamma = .01 // sink of SoftHAD
	// A suspect has a larger score. A limit of 1 would report twice as many faces whose name is
	// right.
	auditSuspect = 1.2
)

// Unusual is a face of the gallery with the evidence against its name.
type Unusual struct {
	ID      int64   `json:"id"` // for [Gallery.TakeOut]
	Name    string  `json:"name"`
	Learned bool    `json:"learned"` // the face was learned, and not labelled
	Faces   float64 `json:"faces"`   // number of faces that it stands for
	// Likes is the person of the nearest face with another name; "" if none is near.
	Likes string `json:"seems,omitempty"`
	// Score is the SoftHAD score, from 0 to 2, plus the margin in units of the learner's longest
	// edge, from -1 to 1; 0 if Isolated.
	Score float64 `json:"score"`
	// Margin is the distance to the nearest face with the same name, minus the distance to the
	// nearest face with another name, in the space's distance.
	Margin float64 `json:"margin"`
	// Suspect means a score above 1.2 and a margin above 0: the nearest face, and the faces around,
	// are another person's. The only face of a name has no margin: there the nearest face must lie
	// within the learner's longest edge.
	Suspect  bool `json:"suspect"`
	Isolated bool `json:"isolated"` // no face is near enough to support or contradict its name
	// Distance is the distance to the nearest face of Likes, in units of the space's distance; 0 if
	// there is none.
	Distance float64   `json:"distance"`
	Picture  []byte    `json:"-"` // of a learned face: a small JPEG, or nil
	Vector   []float32 `json:"-"` // the face; the caller must not change it
}

// Audit ranks labelled faces, and with learned also learned faces, by how unusual their names are.
// It compares each face with the faces around it (SoftHAD, conditional anomaly detection), with the
// nearest face of the same name, and with the nearest face of another name. A face that was
// enrolled under another person's name comes first. Isolated faces, which are unlike all others,
// come last, by their margin, because no near face says anything about their names. A learned face
// has the name of the person through whom it was accepted. Faces with several names and rejected
// faces are left out.
//
// The error wraps [ErrOnePerson].
func (g *Gallery) Audit(learned bool) ([]Unusual, error) {
	var all []Unusual
	var x [][]float32
	var y []int
	var v []float64
	for _, s := range g.learner.Stored() {
		if s.Negative || s.Person == 0 || !s.Labelled && !learned {
			continue
		}
		all = append(all, Unusual{ID: s.ID, Name: g.Name(s.Person), Learned: !s.Labelled,
			Faces: s.Points, Picture: s.Picture, Vector: s.Vector})
		x, y, v = append(x, s.Vector), append(y, int(s.Person)), append(v, s.Points)
	}
	if len(all) == 0 || slices.Min(y) == slices.Max(y) {
		return nil, fmt.Errorf("%w; no name can be unusual", ErrOnePerson)
	}
	c := g.learner.Graph().Config()
	kernel := quantized.Kernel{Denominator: auditWidth * auditWidth * c.Kernel.Denominator}
	// Edges have a longest length: an isolated face has no edge, instead of edges with tiny
	// weights. They are longer than the learner's edges, because turned heads would otherwise have
	// no neighbours. Nobody is recognised by them.
	near := anomaly.Near(x, y, g.Space().Scale, kernel, kernel.Weight(auditReach*c.EdgeRadius()))
	scores := near.SoftHarmonic(v, auditFit, auditGamma)
	for i := range all {
		u := &all[i]
		u.Margin, u.Isolated = near.OwnMinusOther(i), len(near.Edges[i]) == 0
		if !u.Isolated {
			u.Score = scores[i] + min(max(u.Margin/c.EdgeRadius(), -1), 1)
		}
		other := anomaly.Edge{Distance: math.Inf(1)}
		for _, e := range near.Edges[i] {
			if y[e.To] != y[i] && e.Distance < other.Distance {
				other = e
			}
		}
		if other.Weight > 0 {
			u.Likes, u.Distance = all[other.To].Name, other.Distance
			only := math.IsInf(near.Own[i], 1)
			u.Suspect = u.Score > auditSuspect && (u.Margin > 0 ||
				only && other.Distance < c.EdgeRadius())
		}
	}
	last := map[bool]int{true: 1}
	slices.SortStableFunc(all, func(a, b Unusual) int {
		return cmp.Or(last[a.Isolated]-last[b.Isolated], cmp.Compare(b.Score, a.Score),
			cmp.Compare(b.Margin, a.Margin))
	})
	return all, nil
}
