// SPDX-License-Identifier: Apache-2.0

// Package distil turns a learner's knowledge of one person into a small verifier that needs no graph.
//
// [New] learns a [Verifier] from a learner's labelled and learned faces: a max-margin graph cut (M. Valko, 2011,
// Section "Max-Margin Graph Cuts"; package maxmargin), of which only the support vectors remain. [Verifier.Value]
// judges a face, [Verifier.Save] writes it to a file, and [Load] reads it.
//
// # File format
//
// The bytes "faceauth verifier", the version as a big-endian uint32, a CBOR map (RFC 8949, core deterministic encoding)
// with the name, the space, the settings, the weights, and the support vectors as little-endian float32, and the
// SHA-256 of all that.
//
// # Caveats
//
// The support vectors are faces: the file is as secret as the gallery, and not encrypted. A verifier does not learn,
// and later faces of its learner do not change it.
package distil

import (
	"cmp"
	"errors"
	"fmt"
	"math"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/safefile"
	"github.com/faceauth/faceauth/internal/vector"
	"github.com/faceauth/faceauth/lab/maxmargin"
	"github.com/faceauth/faceauth/online"
	"github.com/fxamacker/cbor/v2"
)

// Errors of [New], [Parse] and [Load].
var (
	ErrSettings = errors.New("unusable setting")
	ErrInvalid  = errors.New("unusable verifier")
	ErrDamaged  = safefile.ErrDamaged
	ErrVersion  = safefile.ErrVersion
)

// Settings of a verifier. Zero values mean defaults.
type Settings struct {
	// Width of the radial kernel, in units of the longest edge of the learner's graph. Default .6.
	Width float64 `json:"width"`
	// Gamma weighs |f|² against the sum of the hinge losses. Default .1.
	Gamma float64 `json:"gamma"`
	// Epsilon is the least margin, in (0,1], of a stored face that is used. Default 1e-6, as in the thesis.
	Epsilon float64 `json:"epsilon"`
	// Threshold is the least value of an accepted face. Default .5.
	Threshold float64 `json:"threshold"`
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
	name      string
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
func New(l *online.Learner, name string, s Settings) (*Verifier, error) {
	s = s.defaults()
	if err := s.check(); err != nil {
		return nil, err
	}
	stored, err := l.Stored(name)
	if err != nil {
		return nil, err
	}
	v := &Verifier{name: name, space: l.Space(), width: s.Width * l.Graph().Config().EdgeRadius(),
		threshold: s.Threshold}
	x, margins := make([][]float32, len(stored)), make([]float64, len(stored))
	for i, f := range stored {
		x[i], margins[i] = f.Vector, f.Margin
	}
	e, err := maxmargin.NewExamples(x, v.kernel())
	if err != nil {
		return nil, err
	}
	e.Origin = true
	if v.machine, err = e.Cut(margins, s.Epsilon, s.Gamma); err != nil {
		return nil, fmt.Errorf("distilling %s: %w", name, err)
	}
	for i, x := range v.machine.Support { // copies, because the learner changes its own vectors
		v.machine.Support[i] = append([]float32(nil), x...)
	}
	return v, nil
}

func (v *Verifier) kernel() maxmargin.Kernel { return maxmargin.Radial(v.width / v.space.Scale) }

// Name returns the person's name.
func (v *Verifier) Name() string { return v.name }

// Space returns the feature space of the faces that v judges.
func (v *Verifier) Space() face.Space { return v.space }

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

// kind identifies a verifier's file.
var kind = safefile.Kind{Magic: "faceauth verifier", Version: 1}

// content is the content of the file.
type content struct {
	Name      string     `cbor:"name"`
	Space     face.Space `cbor:"space"`
	Width     float64    `cbor:"width"`
	Threshold float64    `cbor:"threshold"`
	Weights   []float64  `cbor:"weights"`
	Support   []byte     `cbor:"support"`
}

var encoding = func() cbor.EncMode {
	m, err := cbor.CoreDetEncOptions().EncMode()
	if err != nil {
		panic(err) // the options are constant
	}
	return m
}()

// MarshalBinary returns the bytes of a file.
func (v *Verifier) MarshalBinary() ([]byte, error) {
	c := content{Name: v.name, Space: v.space, Width: v.width, Threshold: v.threshold, Weights: v.machine.Weights}
	for _, x := range v.machine.Support {
		c.Support = vector.Append(c.Support, x)
	}
	body, err := encoding.Marshal(c)
	if err != nil {
		return nil, err
	}
	return safefile.Seal(kind, body), nil
}

// Parse reads the bytes of a file and checks all of them. The error wraps [ErrInvalid], [ErrDamaged] or [ErrVersion].
func Parse(data []byte) (*Verifier, error) {
	body, err := safefile.Unseal(kind, data)
	if err != nil {
		return nil, err
	}
	var c content
	if err := cbor.Unmarshal(body, &c); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	switch {
	case online.CheckName(c.Name) != nil:
		return nil, fmt.Errorf("%w: no person can have this name", ErrInvalid)
	case c.Space.Dim < 1 || c.Space.Dim > 1<<24 || !positive(c.Space.Scale) || !positive(c.Width) ||
		!positive(c.Threshold):
		return nil, fmt.Errorf("%w: a setting is out of its range", ErrInvalid)
	case len(c.Weights) == 0 || len(c.Support) != 4*len(c.Weights)*c.Space.Dim:
		return nil, fmt.Errorf("%w: %d weights and %d bytes of support vectors", ErrInvalid, len(c.Weights),
			len(c.Support))
	}
	v := &Verifier{name: c.Name, space: c.Space, width: c.Width, threshold: c.Threshold}
	v.machine = &maxmargin.Machine{Kernel: v.kernel(), Weights: c.Weights}
	for i, w := range c.Weights {
		if math.IsNaN(w) || math.IsInf(w, 0) {
			return nil, fmt.Errorf("%w: weight %d is not finite", ErrInvalid, i)
		}
		x := vector.Floats(c.Support[4*i*c.Space.Dim:][:4*c.Space.Dim])
		if err := c.Space.Check(x); err != nil {
			return nil, fmt.Errorf("%w: support vector %d: %w", ErrInvalid, i, err)
		}
		v.machine.Support = append(v.machine.Support, x)
	}
	return v, nil
}

// Save writes the file, readable only by its owner. On error the old file stays.
func (v *Verifier) Save(path string) (bytes int, err error) {
	data, err := v.MarshalBinary()
	if err != nil {
		return 0, err
	}
	return len(data), safefile.Write(path, data)
}

// Load reads the file at path. The error wraps fs.ErrNotExist, or comes from [Parse].
func Load(path string) (*Verifier, error) {
	data, err := safefile.ReadBytes(path)
	if err != nil {
		return nil, fmt.Errorf("opening verifier: %w", err)
	}
	v, err := Parse(data)
	if err != nil {
		return nil, fmt.Errorf("opening verifier %s: %w", path, err)
	}
	return v, nil
}
