// SPDX-License-Identifier: Apache-2.0

package evaluate

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/faceauth/faceauth/face"
)

// FPIRTargets are the default false positive identification rates of an [Identification].
var FPIRTargets = []float64{.01, .001}

// Identification is the protocol of an open-set identification, in the terms of ISO/IEC 19795-1. A
// person with more faces than Protocol.Enroll is enrolled with this number of first usable faces,
// and the other faces are mated probes. All faces of other people, and of Protocol.Strangers, are
// non-mated probes: their person is not enrolled.
type Identification struct {
	Protocol
	// Learn lets the methods learn from the probes; then their order matters. Without it nothing is
	// learned, and every order gives the same result.
	Learn bool `json:"learn"`
	// Targets are the largest false positive identification rates (FPIR), each above 0 and below 1.
	// Default [FPIRTargets].
	Targets []float64 `json:"targets"`
}

// Identified is the result of an identification.
type Identified struct {
	Counts  IdentificationCounts   `json:"counts"`
	Methods []IdentificationResult `json:"methods"`
}

// IdentificationCounts counts all people and frames.
type IdentificationCounts struct {
	People   int `json:"people"`   // people with recordings
	Frames   int `json:"frames"`   // of all recordings
	Enrolled int `json:"enrolled"` // people
	Labelled int `json:"labelled"` // their faces that are labelled
	Mated    int `json:"mated"`    // probes of enrolled people
	NonMated int `json:"non_mated"`
	// Strangers are the people of the non-mated probes.
	Strangers int `json:"strangers"`
	// Skipped counts probes that [Protocol].Stride skips.
	Skipped int `json:"skipped"`
	// Several counts frames with several faces; only the first face counts.
	Several int `json:"several"`

	FailureToAcquire FailureToAcquire `json:"failure_to_acquire"`
	FailureToEnrol   FailureToEnrol   `json:"failure_to_enrol"`
}

// FailureToAcquire counts the frames without a vector. They are left out of all rates.
type FailureToAcquire struct {
	NoFace   int      `json:"no_face"`   // frames in which no face was found
	NoVector int      `json:"no_vector"` // frames with a face but without a vector
	People   []string `json:"people"`    // people without other frames
}

// Frames returns how many frames are left out.
func (f FailureToAcquire) Frames() int { return f.NoFace + f.NoVector }

// FailureToEnrol counts the people with enough faces of which too few are good enough to enrol
// from. They are left out with all their faces.
type FailureToEnrol struct {
	People []string `json:"people"`
	Faces  int      `json:"faces"`
	// faces of these people that are not good enough, by reason
	Reasons map[face.Reason]int `json:"reasons"`
}

// IdentificationResult is the result of one method. The candidate for a probe is the person of rank
// 1, with the method's own score.
type IdentificationResult struct {
	Name string `json:"name"`
	// Rank1 is the result without a threshold: every candidate counts.
	Rank1 Operating `json:"rank1"`
	// Points are in the order of the targets. The last point has the target 0: no false positive.
	Points     []IdentificationPoint `json:"points"`
	Curve      []IdentificationRates `json:"curve"` // strictest first
	MSPerProbe float64               `json:"ms_per_probe"`
}

// IdentificationPoint is the result at one target.
type IdentificationPoint struct {
	Target float64 `json:"target_fpir"` // the largest allowed FPIR
	// Needed is the number of non-mated probes for this target: with fewer, a single false positive
	// exceeds it.
	Needed int `json:"needed"`
	// Operating is nil if there are fewer non-mated probes than needed.
	Operating *Operating `json:"operating"`
}

// Operating is the result at one threshold.
type Operating struct {
	// Threshold is the least score of a candidate that counts, on the method's own scale; nil if
	// every candidate counts.
	Threshold *float64 `json:"threshold"`
	// TPIR is the true positive identification rate of rank 1, 1-FNIR: the share of the mated
	// probes that got the right name. Its 95 % interval is 1 minus the interval of FNIR: people are
	// treated as independent, not probes.
	TPIR         Rate     `json:"tpir"`
	TPIRInterval Interval `json:"tpir_interval"`
	// FNIR is the false negative identification rate: the share of mated probes that got no name,
	// or another person's.
	FNIR ErrorRate `json:"fnir"`
	// Misnamed counts the mated probes that got another person's name.
	Misnamed int `json:"misnamed"`
	// FPIR is the false positive identification rate: the share of non-mated probes that got a
	// name.
	FPIR ErrorRate `json:"fpir"`
}

// Right returns the number of mated probes that got the right name.
func (o Operating) Right() int { return o.FNIR.Faces - o.FNIR.Errors }

// IdentificationRates are the rates at one threshold of a curve.
type IdentificationRates struct {
	Threshold float64 `json:"threshold"`
	TPIR      Rate    `json:"tpir"`
	FPIR      Rate    `json:"fpir"`
}

// NonMatedNeeded returns the number of non-mated probes that a measurement of this FPIR needs: with
// fewer probes one false positive gives a larger rate. It is 1 for a rate of 0.
func NonMatedNeeded(fpir float64) int {
	if fpir <= 0 {
		return 1
	}
	return int(math.Ceil(1/fpir - 1e-9)) // 1/.001 need not be 1000 to the last bit
}

// Identify measures an identification for each method, with the same probes.
//
// The error wraps [ErrProtocol] for an impossible protocol, and [ErrTooFew] if nobody can be
// enrolled. A lack of strangers is not an error, but then no FPIR can be measured.
func Identify(ctx context.Context, ids []Identity, o Identification,
	methods []Entry) (Identified, error) {
	var out Identified
	if o.Targets == nil {
		o.Targets = FPIRTargets
	}
	for _, t := range o.Targets {
		if !(t > 0 && t < 1) {
			return out, fmt.Errorf("%w: an FPIR of %g; it must be above 0 and below 1", ErrProtocol,
				t)
		}
	}
	if o.Apart != 0 {
		return out, fmt.Errorf(
			"%w: no part of the probes of an identification can be kept apart, and %g was to be",
			ErrProtocol, o.Apart)
	}
	ids, strangers, counts, err := o.divide(ids)
	if err != nil {
		return out, err
	}
	p := o.Protocol
	p.Strangers = strangers
	labelled, stream, n, err := p.split(ids)
	if err != nil {
		return out, err
	}
	counts.Labelled, counts.Mated, counts.NonMated = n.Enrolled, n.Known, n.Strangers
	left := counts.FailureToAcquire.Frames() + counts.FailureToEnrol.Faces
	counts.Skipped = counts.Frames - left - counts.Labelled - len(stream)
	if !o.Learn {
		for i := range stream {
			stream[i].Hold = true
		}
	}
	out.Counts = counts
	for _, e := range methods {
		r, err := runOne(ctx, e, labelled, stream)
		if err != nil {
			return out, fmt.Errorf("method %s: %w", e.Name, err)
		}
		out.Methods = append(out.Methods, r.identified(o.Targets))
	}
	return out, nil
}

// divide returns the people who take part, and the names of those who are not enrolled. It counts
// the others.
func (o Identification) divide(ids []Identity) ([]Identity, []string, IdentificationCounts, error) {
	var part []Identity
	var strangers []string
	var c IdentificationCounts
	for _, s := range o.Strangers {
		if !slices.ContainsFunc(ids, func(id Identity) bool { return id.Name == s }) {
			return nil, nil, c, fmt.Errorf("%w: stranger %q is not among the recordings",
				ErrProtocol, s)
		}
	}
	c.People = len(ids)
	// an empty list in JSON instead of null
	c.FailureToAcquire.People, c.FailureToEnrol.People = []string{}, []string{}
	c.FailureToEnrol.Reasons = make(map[face.Reason]int)
	for _, id := range ids {
		c.Frames += len(id.Faces) + id.Undetected
		c.Several += id.Several
		c.FailureToAcquire.NoFace += id.Undetected - id.NoVector
		c.FailureToAcquire.NoVector += id.NoVector
		usable, _, _ := id.Divide(o.Enroll)
		switch {
		case len(id.Faces) == 0:
			c.FailureToAcquire.People = append(c.FailureToAcquire.People, id.Name)
			continue
		case len(id.Faces) <= o.Enroll || slices.Contains(o.Strangers, id.Name):
			strangers = append(strangers, id.Name)
		case len(usable) < o.Enroll:
			c.FailureToEnrol.People = append(c.FailureToEnrol.People, id.Name)
			c.FailureToEnrol.Faces += len(id.Faces)
			for reason, n := range id.Refused {
				c.FailureToEnrol.Reasons[reason] += n
			}
			continue
		default:
			c.Enrolled++
		}
		part = append(part, id)
	}
	c.Strangers = len(strangers)
	if c.Enrolled > 0 || o.Enroll < 1 { // for Enroll < 1, split returns the error
		return part, strangers, c, nil
	}
	return nil, nil, c, fmt.Errorf("%w: nobody can be enrolled: a person needs at least %d faces, "+
		"%d of them good enough to enrol from, and must not be a stranger (people: %d; "+
		"strangers, or with fewer "+
		"faces: %d; with too few good enough: %d; without a face: %d)",
		ErrTooFew, o.Enroll+1, o.Enroll, c.People, c.Strangers, len(c.FailureToEnrol.People),
		len(c.FailureToAcquire.People))
}

// identified computes the rates from the trials.
func (r *Result) identified(targets []float64) IdentificationResult {
	all := r.points()
	out := IdentificationResult{Name: r.Name, Rank1: r.operatingAt(nil),
		Curve: []IdentificationRates{}}
	if r.steps > 0 {
		out.MSPerProbe = r.elapsed.Seconds() * 1000 / float64(r.steps)
	}
	for _, target := range append(slices.Clone(targets), 0) {
		p := IdentificationPoint{Target: target, Needed: NonMatedNeeded(target)}
		if out.Rank1.FPIR.Faces >= p.Needed {
			at := r.operatingAt(strict(all, target))
			p.Operating = &at
		}
		out.Points = append(out.Points, p)
	}
	for _, p := range thin(all) {
		out.Curve = append(out.Curve, IdentificationRates{Threshold: p.Threshold, TPIR: p.Recall,
			FPIR: p.FAR})
	}
	return out
}

// strict returns the least threshold at which the FPIR does not exceed the target, or nil if every
// candidate may count. All has the operating points of all thresholds, strictest first.
func strict(all []Point, target float64) *float64 {
	last := -1
	for i, p := range all {
		if float64(p.FAR) <= target {
			last = i
		}
	}
	if last == len(all)-1 {
		return nil
	}
	if last < 0 {
		above := math.Nextafter(all[0].Threshold, math.Inf(1)) // no candidate may count
		return &above
	}
	return &all[last].Threshold
}

// operatingAt returns the rates at a threshold; nil means no threshold.
func (r *Result) operatingAt(threshold *float64) Operating {
	positive := func(t trial) bool {
		return t.claim != "" && (threshold == nil || t.score >= *threshold)
	}
	o := Operating{
		Threshold: threshold,
		FNIR: errorRate(r.trials, func(t trial) (counts, wrong bool) {
			return t.known, !positive(t) || !t.correct()
		}),
		FPIR: errorRate(r.trials, func(t trial) (counts, wrong bool) {
			return !t.known, positive(t)
		}),
	}
	for _, t := range r.trials {
		if t.known && positive(t) && !t.correct() {
			o.Misnamed++
		}
	}
	o.TPIR, o.TPIRInterval = rate(o.Right(), o.FNIR.Faces),
		Interval{1 - o.FNIR.Interval.High, 1 - o.FNIR.Interval.Low}
	return o
}
