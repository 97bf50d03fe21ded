package gallery

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/faceauth/faceauth/anomaly"
	"github.com/faceauth/faceauth/graph"
	"github.com/faceauth/faceauth/online"
	"gonum.org/v1/gonum/floats"
)

// ErrOnePerson is wrapped by the error of [Gallery.Audit] where there are not two people with faces.
var ErrOnePerson = errors.New("faces of fewer than two people")

// The settings of an audit, chosen on recordings that docs/results.md names.
const (
	auditWidth = 2.5 // of the kernel, in units of the learner's sigma
	auditFit   = .1  // c of SoftHAD, how much a label is believed
	auditGamma = .01 // its sink
)

// Unusual is a face that the gallery keeps, and how much the faces around it speak against its name.
type Unusual struct {
	ID       int64   `json:"id"` // for [Gallery.TakeOut]
	Name     string  `json:"name"`
	Learned  bool    `json:"learned"`         // nobody gave it that name: it was learned as that person's
	Faces    float64 `json:"faces"`           // that it stands for
	Likes    string  `json:"seems,omitempty"` // the other person whose faces are nearest by their weight; "" where there are none
	Score    float64 `json:"score"`           // from 0 to 2: by how much the other person's soft label exceeds that of its own, plus 1
	Suspect  bool    `json:"suspect"`         // the score is above 1: its soft label is the other person's
	Distance float64 `json:"distance"`        // to the nearest face of the other person, in units of the space's distance; 0 without one
	// Vector is the face. It must not be changed.
	Vector []float32 `json:"-"`
}

// Audit ranks the labelled faces, and with learned also those that were learned, by how unusual their names are given the
// faces (SoftHAD, conditional anomaly detection; package anomaly): a face enrolled under another person's name comes first,
// and one that is merely unlike all others does not. A learned face has the name of the person through whom it was
// accepted; one of several, and one that is known not to be somebody's, is left out.
//
// The error wraps [ErrOnePerson].
func (g *Gallery) Audit(learned bool) ([]Unusual, error) {
	stored, err := g.learner.Stored("")
	if err != nil {
		return nil, err
	}
	var all []Unusual
	var x [][]float32
	var y []int
	var v []float64
	names := g.learner.Names()
	for _, s := range stored {
		if s.Negative || s.Name == "" || !s.Labelled && !learned {
			continue
		}
		all = append(all, Unusual{ID: s.ID, Name: s.Name, Learned: !s.Labelled, Faces: s.Points, Vector: s.Vector})
		x, y, v = append(x, s.Vector), append(y, slices.Index(names, s.Name)), append(v, s.Weight)
	}
	if len(all) == 0 || slices.Min(y) == slices.Max(y) {
		return nil, fmt.Errorf("%w; no name can be unusual", ErrOnePerson)
	}
	d := graph.Distances(x, g.Space().Scale)
	c := g.learner.Graph().Config()
	kernel := graph.Kernel{Denominator: auditWidth * auditWidth * c.Kernel.Denominator}
	// Edges are as long as the learner's: a face on its own is joined to nothing, however small a weight might be.
	w := graph.Similarity(d, kernel, kernel.Weight(c.EdgeRadius()))
	scores, err := anomaly.SoftHarmonic(w, v, y, auditFit, auditGamma)
	if err != nil {
		return nil, err
	}
	for i := range all {
		all[i].Score = scores[i]
		near, least := make([]float64, len(names)), slices.Repeat([]float64{math.Inf(1)}, len(names))
		for j, class := range y {
			if class != y[i] {
				near[class] += w.At(i, j) * v[j]
				least[class] = min(least[class], d.At(i, j))
			}
		}
		if other := floats.MaxIdx(near); near[other] > 0 {
			all[i].Likes, all[i].Suspect, all[i].Distance = names[other], scores[i] > 1, least[other]
		}
	}
	slices.SortStableFunc(all, func(a, b Unusual) int { return cmp.Compare(b.Score, a.Score) })
	return all, nil
}

// TakeOut removes a face that the gallery keeps: a labelled one, and its person with the last one, or a learned one with
// what was accepted through it. It returns how many learned faces are gone. The error wraps [online.ErrUnknown].
func (g *Gallery) TakeOut(id int64) (faces int, err error) {
	if err := g.Unlabel(id); !errors.Is(err, online.ErrUnknown) {
		return 0, err
	}
	return g.learner.Remove(id)
}
