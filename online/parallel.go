// SPDX-License-Identifier: Apache-2.0

package online

import (
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/faceauth/faceauth/face"
)

// Split says which faces share a graph in a [Parallel] learner.
type Split string

const (
	PerPerson  Split = "person"
	PerExample Split = "example" // one graph for each labelled face, as in the thesis
)

// Parallel is a set of small learners that are updated at the same time, on several cores: one for each person, or for
// each labelled face. Every learner gets every face and has its own rule for outliers, and the most confident learner
// wins (thesis, Section "Parallel Multi-Manifold Learning").
//
// n graphs of k centroids take the memory of n·k centroids, and their solutions cost less than the solution of one
// graph of this size. But no graph knows the people of the other graphs: a face between two people goes to the person
// with the higher confidence, and there is no negative evidence. Parallel is not safe for concurrent use.
type Parallel struct {
	space    face.Space
	settings Settings
	split    Split
	workers  int
	learners []*Learner
	verdicts []Verdict
	errors   []error
}

// NewParallel returns a set of learners without people. All have the same settings, with K centroids each. Workers is
// the number of cores to use, 0 for all. The error wraps [ErrSettings].
func NewParallel(space face.Space, s Settings, split Split, workers int) (*Parallel, error) {
	if split != PerPerson && split != PerExample {
		return nil, fmt.Errorf("%w: split is %q, but must be %q or %q", ErrSettings, split, PerPerson, PerExample)
	}
	if workers < 0 {
		return nil, fmt.Errorf("%w: workers is %d, but must not be negative", ErrSettings, workers)
	}
	if workers == 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	if _, err := New(space, s); err != nil {
		return nil, err
	}
	return &Parallel{space: space, settings: s, split: split, workers: workers}, nil
}

// Label adds a labelled face of the named person. The error comes from [Learner.Label]. On error p is unchanged.
func (p *Parallel) Label(x []float32, name string) error {
	if p.split == PerPerson {
		for _, l := range p.learners {
			if l.classes[0].name == name {
				return l.Label(x, name)
			}
		}
	}
	l, err := New(p.space, p.settings)
	if err != nil {
		return err
	}
	if err := l.Label(x, name); err != nil {
		return err
	}
	p.learners = append(p.learners, l)
	return nil
}

// Observe judges a face, and every graph near the face learns from it.
//
// The error comes from [face.Space.Check]. On error p is unchanged.
func (p *Parallel) Observe(x []float32) (Verdict, error) {
	if err := p.space.Check(x); err != nil {
		return Verdict{}, err
	}
	n := len(p.learners)
	p.verdicts = slices.Grow(p.verdicts[:0], n)[:n]
	p.errors = slices.Grow(p.errors[:0], n)[:n]
	share := func(w int) {
		for i := w; i < n; i += p.workers {
			p.verdicts[i], p.errors[i] = p.learners[i].observe(Observation{Vector: x})
		}
	}
	var others sync.WaitGroup
	for w := 1; w < min(p.workers, n); w++ {
		others.Go(func() { share(w) })
	}
	share(0)
	others.Wait()
	return p.best()
}

// best returns the verdict of the most confident graph. Equal confidence for two people is a tie.
func (p *Parallel) best() (Verdict, error) {
	best := Verdict{Sink: 1, Reason: Outlier}
	learned := false
	for i, v := range p.verdicts {
		if err := p.errors[i]; err != nil {
			return Verdict{}, err
		}
		learned = learned || v.Learned
		switch {
		case v.Reason == Outlier:
		case best.Reason == Outlier || v.Confidence > best.Confidence+resolution:
			best = v
		case v.Best != best.Best && v.Confidence > best.Confidence-resolution:
			best.Label, best.Best, best.Reason = "", "", Tie
		}
	}
	best.Learned = learned
	return best, nil
}

// Learners returns the learners of p for reading, in the order of their creation.
func (p *Parallel) Learners() []*Learner { return slices.Clone(p.learners) }

// Names returns the people that p knows, in the order of their first label.
func (p *Parallel) Names() []string {
	var names []string
	for _, l := range p.learners {
		if !slices.Contains(names, l.classes[0].name) {
			names = append(names, l.classes[0].name)
		}
	}
	return names
}
