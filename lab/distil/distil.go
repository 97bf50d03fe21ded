// SPDX-License-Identifier: Apache-2.0

// Package distil turns a learner's knowledge of one person into a small verifier that needs no graph.
//
// [New] learns a [Verifier] from a learner's labelled and learned faces: a max-margin graph cut (M. Valko, 2011,
// Section "Max-Margin Graph Cuts"; package maxmargin), of which only the support vectors remain. [Verifier.Value]
// judges a face. A verifier does not learn, and later faces of its learner do not change it. lab/NOTES.md compares
// it with the nearest enrolled faces.
package distil

import (
	"cmp"
	"errors"
	"fmt"
	"math"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/lab/maxmargin"
	"github.com/faceauth/faceauth/online"
)

// ErrSettings is wrapped by the error of [New].
var ErrSettings = errors.New("unusable setting")

// Settings of a verifier. Zero values mean defaults.
type Settings struct {
	// Width of the radial kernel, in units of the longest edge of the learner's graph. Default .6.
	Width float64
	// Gamma weighs |f|² against the sum of the hinge losses. Default .1.
	Gamma float64
	// Epsilon is the least margin, in (0,1], of a stored face that is used. Default 1e-6, as in the thesis.
	Epsilon float64
	// Threshold is the least value of an accepted face. Default .5.
	Threshold float64
}

func (s Settings) defaults() Settings {
	s.Width = cmp.Or(s.Width, .6)
	s.Gamma = cmp.Or(s.Gamma, .1)
	s.Epsilon = cmp.Or(s.Epsilon, 1e-6)
	s.Threshold = cmp.Or(s.Threshold, .5)
	return s
}

// positive reports whether x is positive and finite.
func positive(x float64) bool { return x > 0 && !math.IsInf(x, 1) }

func (s Settings) check() error {
	switch {
	case !positive(s.Width):
		return fmt.Errorf("%w: the width is %g, and must be positive", ErrSettings, s.Width)
	case !positive(s.Gamma):
		return fmt.Errorf("%w: gamma is %g, and must be positive", ErrSettings, s.Gamma)
	case !(s.Epsilon > 0 && s.Epsilon <= 1):
		return fmt.Errorf("%w: epsilon is %g, and must lie in (0,1]", ErrSettings, s.Epsilon)
	case !positive(s.Threshold):
		return fmt.Errorf("%w: the threshold is %g, and must be positive", ErrSettings, s.Threshold)
	}
	return nil
}

// Verifier decides whether a face belongs to one person.
type Verifier struct {
	person    online.Person
	space     face.Space
	width     float64 // of the kernel, in units of the space's distance
	threshold float64
	machine   *maxmargin.Machine
}

// New learns the verifier of a person from the faces in l. Faces whose harmonic values say that they are this person's
// are positive examples; faces of others and rejected faces are negative examples. If l knows nobody else, New learns
// from one class.
//
// The machine has no bias: far from all examples its value is 0, as for a stranger. The error wraps [online.ErrUnknown]
// or [ErrSettings].
func New(l *online.Learner, p online.Person, s Settings) (*Verifier, error) {
	s = s.defaults()
	if err := s.check(); err != nil {
		return nil, err
	}
	stored := l.Stored()
	margins, err := l.Margins(p)
	if err != nil {
		return nil, err
	}
	v := &Verifier{person: p, space: l.Space(), width: s.Width * l.Graph().Config().EdgeRadius(),
		threshold: s.Threshold}
	x := make([][]float32, len(stored))
	for i, f := range stored {
		x[i] = f.Vector
	}
	e, err := maxmargin.NewExamples(x, v.kernel())
	if err != nil {
		return nil, err
	}
	e.Origin = true
	if v.machine, err = e.Cut(margins, s.Epsilon, s.Gamma); err != nil {
		return nil, fmt.Errorf("distilling person %d: %w", p, err)
	}
	for i, x := range v.machine.Support { // copies, because the learner changes its own vectors
		v.machine.Support[i] = append([]float32(nil), x...)
	}
	return v, nil
}

func (v *Verifier) kernel() maxmargin.Kernel { return maxmargin.Radial(v.width / v.space.Scale) }

// Person returns the person.
func (v *Verifier) Person() online.Person { return v.person }

// Threshold returns the least value of an accepted face.
func (v *Verifier) Threshold() float64 { return v.threshold }

// Support returns the number of support vectors. The time of a judgement is proportional to it.
func (v *Verifier) Support() int { return len(v.machine.Support) }

// Value returns how surely a face is the person's: about 1 or more for the person, 0 for a face unlike all examples,
// and negative for another person. The error comes from [face.Space.Check].
func (v *Verifier) Value(x []float32) (float64, error) {
	if err := v.space.Check(x); err != nil {
		return 0, err
	}
	return v.machine.Value(x), nil
}

// Accepts reports whether a face is the person's. The error comes from [face.Space.Check].
func (v *Verifier) Accepts(x []float32) (bool, error) {
	f, err := v.Value(x)
	return err == nil && f >= v.threshold, err
}
