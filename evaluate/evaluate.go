// Package evaluate measures recognisers on labelled recordings: some people are enrolled from their
// first faces, the rest is streamed, and every verdict is counted.
//
// [Run] carries a [Protocol] out on a set of identities and returns a [Result] for each [Method],
// all on the same faces in the same order. [RunAll] does so for every choice of strangers.
//
// # Figures of merit
//
// Precision is the share of accepted faces that were given the right name; a stranger who was
// accepted counts against it. Recall is the share of the streamed faces of enrolled people that were
// given the right name. FAR, the false accept rate, is the share of the strangers' faces that were
// given any name. A rate without trials is not a number, and null in JSON.
//
// # Caveats
//
// Consecutive frames of one person are not independent trials. A rate over ten thousand frames of
// six people says little about the seventh: [Result].Strangers counts people instead, with an interval.
package evaluate

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// Errors of [Run].
var (
	ErrProtocol = errors.New("protocol that cannot be carried out")
	ErrTooFew   = errors.New("too few usable faces")
)

// Face is one streamed face.
type Face struct {
	Vector []float32
	Usable bool // good enough to enrol from
	Hold   bool // too poor to learn from
}

// Identity is one person and the faces of their recording in the order of time.
type Identity struct {
	Name       string
	Faces      []Face
	Undetected int // frames without a usable face
}

// Order is how the recordings of several people are put into one stream.
type Order string

const (
	Sequential  Order = "sequential"  // one recording after the other
	Interleaved Order = "interleaved" // one face of each in turn
	Shuffled    Order = "shuffled"    // at random: no face follows from the one before
)

// ParseOrder returns the order of that name.
func ParseOrder(s string) (Order, error) {
	for _, o := range []Order{Sequential, Interleaved, Shuffled} {
		if s == string(o) {
			return o, nil
		}
	}
	return "", fmt.Errorf("unknown order %q; use sequential, interleaved or shuffled", s)
}

// Protocol says who is enrolled and how the rest is streamed.
type Protocol struct {
	Enroll    int      `json:"enroll"`    // first usable faces of each enrolled person that are labelled
	Strangers []string `json:"strangers"` // never enrolled
	Order     Order    `json:"order"`
	Seed      uint64   `json:"seed"`   // of the shuffled order
	Stride    int      `json:"stride"` // every how manieth streamed face is used
}

// Method is a recogniser under test. A fresh one is made for each run.
type Method interface {
	// Enroll shows it a labelled face. All are shown before the first is judged.
	Enroll(x []float32, name string) error
	// Judge returns whom it takes a face for and how sure it is; larger is surer, on a scale of its
	// own. It may learn from the face unless hold is set. An empty name is a refusal that no
	// threshold could turn into an acceptance.
	Judge(x []float32, hold bool) (claim string, score float64, err error)
	// Accepts reports whether the method by itself accepts a claim of that score. A method without
	// a threshold of its own is given its best one in hindsight.
	Accepts(score float64) bool
}

// Entry names a method and makes a new one. Hindsight marks a method without a threshold of its own:
// its operating point is the best threshold in hindsight at the first method's FAR.
type Entry struct {
	Name      string
	New       func() (Method, error)
	Hindsight bool
}

// trial is one judged face.
type trial struct {
	person   string
	known    bool // of an enrolled person
	correct  bool // the claim is right
	claimed  bool
	accepted bool
	score    float64
}

// Counts says how many faces a run was over.
type Counts struct {
	Enrolled   int `json:"enrolled"`   // labelled faces
	Known      int `json:"known"`      // streamed faces of enrolled people
	Strangers  int `json:"strangers"`  // streamed faces of strangers
	Undetected int `json:"undetected"` // frames without a usable face
}

// Run carries out p on the identities for each method, and returns the results in the order of the
// methods. The error wraps [ErrProtocol] when a stranger is not among the identities or nobody is
// left to enrol, and [ErrTooFew] when an enrolled person has no more usable faces than are to be
// labelled.
func Run(ids []Identity, p Protocol, methods []Entry) (Counts, []Result, error) {
	labelled, stream, counts, err := p.split(ids)
	if err != nil {
		return counts, nil, err
	}
	var results []Result
	for _, e := range methods {
		r, err := runOne(e, labelled, stream)
		if err != nil {
			return counts, nil, fmt.Errorf("method %s: %w", e.Name, err)
		}
		results = append(results, r)
	}
	for i := range results {
		results[i].conclude(methods[i].Hindsight, results[0])
	}
	return counts, results, nil
}

func runOne(e Entry, labelled, stream []labelledFace) (Result, error) {
	m, err := e.New()
	if err != nil {
		return Result{}, err
	}
	for _, f := range labelled {
		if err := m.Enroll(f.Vector, f.name); err != nil {
			return Result{}, err
		}
	}
	r := Result{Name: e.Name, trials: make([]trial, 0, len(stream))}
	start := time.Now()
	for _, f := range stream {
		claim, score, err := m.Judge(f.Vector, f.Hold)
		if err != nil {
			return Result{}, err
		}
		t := trial{person: f.name, known: f.known, claimed: claim != "", correct: f.known && claim == f.name, score: score}
		t.accepted = t.claimed && m.Accepts(score)
		r.trials = append(r.trials, t)
	}
	r.elapsed = time.Since(start)
	return r, nil
}

type labelledFace struct {
	Face
	name  string
	known bool
}

// split divides the faces into those that are labelled and the stream of the others.
func (p Protocol) split(ids []Identity) (labelled, stream []labelledFace, counts Counts, err error) {
	for _, s := range p.Strangers {
		if !slices.ContainsFunc(ids, func(id Identity) bool { return id.Name == s }) {
			return nil, nil, counts, fmt.Errorf("%w: stranger %q is not among the recordings", ErrProtocol, s)
		}
	}
	if p.Enroll < 1 || p.Stride < 1 {
		return nil, nil, counts, fmt.Errorf("%w: %d faces enrolled at a stride of %d; both must be at least 1", ErrProtocol, p.Enroll, p.Stride)
	}
	queues := make([][]labelledFace, len(ids))
	known := 0
	for i, id := range ids {
		counts.Undetected += id.Undetected
		stranger := slices.Contains(p.Strangers, id.Name)
		taken, n := 0, 0
		for _, f := range id.Faces {
			lf := labelledFace{f, id.Name, !stranger}
			if !stranger && taken < p.Enroll && f.Usable {
				labelled = append(labelled, lf)
				taken++
				continue
			}
			if n%p.Stride == 0 {
				queues[i] = append(queues[i], lf)
			}
			n++
		}
		if stranger {
			counts.Strangers += len(queues[i])
			continue
		}
		if taken < p.Enroll || len(queues[i]) == 0 {
			return nil, nil, counts, fmt.Errorf("%w: %s has %d of %d that are to be enrolled, and %d to be judged",
				ErrTooFew, id.Name, taken, p.Enroll, len(queues[i]))
		}
		known++
		counts.Known += len(queues[i])
	}
	if known == 0 {
		return nil, nil, counts, fmt.Errorf("%w: nobody is left to enrol", ErrProtocol)
	}
	counts.Enrolled = len(labelled)
	return labelled, p.merge(queues), counts, nil
}

// merge puts the queues into one stream.
func (p Protocol) merge(queues [][]labelledFace) []labelledFace {
	var stream []labelledFace
	if p.Order == Interleaved {
		longest := slices.MaxFunc(queues, func(a, b []labelledFace) int { return cmp.Compare(len(a), len(b)) })
		for i := range longest {
			for _, q := range queues {
				if i < len(q) {
					stream = append(stream, q[i])
				}
			}
		}
		return stream
	}
	for _, q := range queues {
		stream = append(stream, q...)
	}
	if p.Order == Shuffled {
		r := rand.New(rand.NewPCG(p.Seed, 0))
		r.Shuffle(len(stream), func(i, j int) { stream[i], stream[j] = stream[j], stream[i] })
	}
	return stream
}

// Choices returns every choice of n of the names, in lexical order of their positions.
func Choices(names []string, n int) [][]string {
	if n <= 0 {
		return [][]string{{}}
	}
	var all [][]string
	for i := range names {
		for _, rest := range Choices(names[i+1:], n-1) {
			all = append(all, append([]string{names[i]}, rest...))
		}
	}
	return all
}
