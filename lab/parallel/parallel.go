// SPDX-License-Identifier: Apache-2.0

// Package parallel judges by several small learners at once, as the thesis does (Section "Parallel
// Multi-Manifold Learning"): [New] makes a set of them.
package parallel

import (
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/online"
)

// Set is a set of small learners that are updated at the same time, on several cores: one for each
// labelled face. Every learner gets every face and has its own rule for outliers, and the most
// confident learner wins (thesis, Section "Parallel Multi-Manifold Learning").
//
// n graphs of k centroids take the memory of n·k centroids, and their solutions cost less than the
// solution of one graph of this size. But no graph knows the people of the other graphs: a face
// between two people goes to the person with the higher confidence, and there is no negative
// evidence. A Set is not safe for concurrent use.
type Set struct {
	space    face.Space
	settings online.Settings
	workers  int
	learners []*online.Learner
	verdicts []online.Verdict
	errors   []error
}

// resolution is the difference of confidences that counts as equal.
const resolution = 1e-9

// New returns a set without learners. All get the same settings, with K centroids each. Workers is
// the number of cores to use, 0 for all. The error wraps [online.ErrSettings].
func New(space face.Space, s online.Settings, workers int) (*Set, error) {
	if workers < 0 {
		return nil, fmt.Errorf("%w: workers is %d, but must not be negative", online.ErrSettings,
			workers)
	}
	if workers == 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	if _, err := online.New(space, s); err != nil {
		return nil, err
	}
	return &Set{space: space, settings: s, workers: workers}, nil
}

// Label adds a labelled face of a person. The error comes from [online.Learner.Label]. On error p
// is unchanged.
func (p *Set) Label(x []float32, person online.Person) error {
	l, err := online.New(p.space, p.settings)
	if err != nil {
		return err
	}
	if err := l.Label(x, person); err != nil {
		return err
	}
	p.learners = append(p.learners, l)
	return nil
}

// Observe judges a face, and every graph near the face learns from it.
//
// The error comes from [face.Space.Check]. On error p is unchanged.
func (p *Set) Observe(x []float32) (online.Verdict, error) {
	if err := p.space.Check(x); err != nil {
		return online.Verdict{}, err
	}
	n := len(p.learners)
	p.verdicts = slices.Grow(p.verdicts[:0], n)[:n]
	p.errors = slices.Grow(p.errors[:0], n)[:n]
	share := func(w int) {
		for i := w; i < n; i += p.workers {
			p.verdicts[i], p.errors[i] = p.learners[i].Observe(x)
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
func (p *Set) best() (online.Verdict, error) {
	best := online.Verdict{Sink: 1, Reason: online.Outlier}
	learned := false
	for i, v := range p.verdicts {
		if err := p.errors[i]; err != nil {
			return online.Verdict{}, err
		}
		learned = learned || v.Learned
		switch {
		case v.Reason == online.Outlier:
		case best.Reason == online.Outlier || v.Confidence > best.Confidence+resolution:
			best = v
		case v.Best != best.Best && v.Confidence > best.Confidence-resolution:
			best.Person, best.Best, best.Reason = 0, 0, online.Tie
		}
	}
	best.Learned = learned
	return best, nil
}
