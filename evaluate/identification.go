// SPDX-License-Identifier: Apache-2.0

package evaluate

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/faceauth/faceauth/face"
)

// FPIRTargets are the false positive identification rates at which an [Identification] is measured by default.
var FPIRTargets = []float64{.01, .001}

// Identification is the protocol of an open-set identification, in the terms of ISO/IEC 19795-1. Everybody with more
// faces than Protocol.Enroll is enrolled with that many, the first usable ones, and their other faces are mated
// probes. All faces of the others, and of Protocol.Strangers, are non-mated probes: their person is not enrolled.
type Identification struct {
	Protocol
	// Learn lets the methods learn from the probes, whose order then matters. Without it nothing is learned, and the
	// outcome is the same in every order.
	Learn bool `json:"learn"`
	// Targets are the largest false positive identification rates (FPIR), each above 0 and below 1. Default [FPIRTargets].
	Targets []float64 `json:"targets"`
}

// Identified is the outcome of an identification.
type Identified struct {
	Counts  IdentificationCounts   `json:"counts"`
	Methods []IdentificationResult `json:"methods"`
}

// IdentificationCounts says what became of every person and every frame.
type IdentificationCounts struct {
	People   int `json:"people"`   // all that there are recordings of
	Frames   int `json:"frames"`   // of all recordings
	Enrolled int `json:"enrolled"` // people
	Labelled int `json:"labelled"` // their faces that are labelled
	Mated    int `json:"mated"`    // probes of enrolled people
	NonMated int `json:"non_mated"`
	// Strangers are the people of the non-mated probes.
	Strangers int `json:"strangers"`
	// Skipped are probes that [Protocol].Stride passes over.
	Skipped int `json:"skipped"`
	// Several are frames with several faces, of which the first counts.
	Several int `json:"several"`

	FailureToAcquire FailureToAcquire `json:"failure_to_acquire"`
	FailureToEnrol   FailureToEnrol   `json:"failure_to_enrol"`
}

// FailureToAcquire counts the frames of which no vector was made. They are left out of all rates.
type FailureToAcquire struct {
	NoFace   int      `json:"no_face"`   // frames in which no face was found
	NoVector int      `json:"no_vector"` // frames with a face of which no vector could be made
	People   []string `json:"people"`    // who have no other frames
}

// Frames returns how many frames are left out.
func (f FailureToAcquire) Frames() int { return f.NoFace + f.NoVector }

// FailureToEnrol counts the people with enough faces, too few of which are good enough to enrol from. They are
// left out with all their faces.
type FailureToEnrol struct {
	People  []string            `json:"people"`
	Faces   int                 `json:"faces"`
	Reasons map[face.Reason]int `json:"reasons"` // faces of these people that are not good enough, by the cause
}

// IdentificationResult is how one method did. The candidate for a probe is the person whom the method takes it for,
// that of rank 1, with the method's own score.
type IdentificationResult struct {
	Name string `json:"name"`
	// Rank1 is the outcome without a threshold: every candidate counts.
	Rank1 Operating `json:"rank1"`
	// Points are in the order of the targets. The last one, with a target of 0, is that of no false positive.
	Points     []IdentificationPoint `json:"points"`
	Curve      []IdentificationRates `json:"curve"` // strictest first
	MSPerProbe float64               `json:"ms_per_probe"`
}

// IdentificationPoint is the outcome at one target.
type IdentificationPoint struct {
	Target float64 `json:"target_fpir"` // the largest FPIR that is allowed
	Needed int     `json:"needed"`      // non-mated probes: with fewer, the least FPIR above 0 is larger than the target
	// Operating is nil where there are fewer non-mated probes than are needed.
	Operating *Operating `json:"operating"`
}

// Operating is the outcome at one threshold.
type Operating struct {
	// Threshold is the least score of a candidate that counts, on the method's own scale; nil where every one counts.
	Threshold *float64 `json:"threshold"`
	// TPIR is the true positive identification rate of rank 1, which is 1-FNIR: the share of the mated probes that were
	// given the right name. Its interval at 95 % is that of FNIR, turned over: people are taken for independent, not
	// probes.
	TPIR         Rate     `json:"tpir"`
	TPIRInterval Interval `json:"tpir_interval"`
	// FNIR is the false negative identification rate: mated probes that were given no name, or another one.
	FNIR ErrorRate `json:"fnir"`
	// Misnamed are the mated probes of FNIR that were given another person's name.
	Misnamed int `json:"misnamed"`
	// FPIR is the false positive identification rate: non-mated probes that were given any name.
	FPIR ErrorRate `json:"fpir"`
}

// Right returns how many mated probes were given the right name.
func (o Operating) Right() int { return o.FNIR.Faces - o.FNIR.Errors }

// IdentificationRates are the rates at one threshold of a curve.
type IdentificationRates struct {
	Threshold float64 `json:"threshold"`
	TPIR      Rate    `json:"tpir"`
	FPIR      Rate    `json:"fpir"`
}

// NonMatedNeeded returns the number of non-mated probes without which an FPIR cannot be measured: one false positive
// among fewer is a larger rate. It is 1 for a rate of 0.
func NonMatedNeeded(fpir float64) int {
	if fpir <= 0 {
		return 1
	}
	return int(math.Ceil(1/fpir - 1e-9)) // 1/.001 need not be 1000 to the last bit
}

// Identify carries out an identification for each method, all on the same probes.
//
// The error wraps [ErrProtocol] for a protocol that cannot be carried out, and [ErrTooFew] where nobody can be
// enrolled. That there are no strangers is no error; without them no FPIR can be measured.
func Identify(ctx context.Context, ids []Identity, o Identification, methods []Entry) (Identified, error) {
	var out Identified
	if o.Targets == nil {
		o.Targets = FPIRTargets
	}
	for _, t := range o.Targets {
		if !(t > 0 && t < 1) {
			return out, fmt.Errorf("%w: an FPIR of %g; it must be above 0 and below 1", ErrProtocol, t)
		}
	}
	if o.Apart != 0 {
		return out, fmt.Errorf("%w: no part of the probes of an identification can be kept apart, and %g was to be",
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

// divide returns the people who take part, and the people among them who are not enrolled. It counts the others.
func (o Identification) divide(ids []Identity) ([]Identity, []string, IdentificationCounts, error) {
	var part []Identity
	var strangers []string
	var c IdentificationCounts
	for _, s := range o.Strangers {
		if !slices.ContainsFunc(ids, func(id Identity) bool { return id.Name == s }) {
			return nil, nil, c, fmt.Errorf("%w: stranger %q is not among the recordings", ErrProtocol, s)
		}
	}
	c.People = len(ids)
	c.FailureToAcquire.People, c.FailureToEnrol.People = []string{}, []string{} // an empty list in JSON, and not null
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
	if c.Enrolled > 0 || o.Enroll < 1 { // split has a word on the latter
		return part, strangers, c, nil
	}
	return nil, nil, c, fmt.Errorf("%w: nobody can be enrolled: a person needs at least %d faces, "+
		"%d of them good enough to enrol from, and must not be a stranger (people: %d; strangers, or with fewer "+
		"faces: %d; with too few good enough: %d; without a face: %d)",
		ErrTooFew, o.Enroll+1, o.Enroll, c.People, c.Strangers, len(c.FailureToEnrol.People), len(c.FailureToAcquire.People))
}

// identified computes the rates from the trials.
func (r *Result) identified(targets []float64) IdentificationResult {
	all := r.points()
	out := IdentificationResult{Name: r.Name, Rank1: r.operatingAt(nil), Curve: []IdentificationRates{}}
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
		out.Curve = append(out.Curve, IdentificationRates{Threshold: p.Threshold, TPIR: p.Recall, FPIR: p.FAR})
	}
	return out
}

// strict returns the least threshold at which the FPIR does not exceed the target, or nil where every candidate may
// count. All are the operating points of all thresholds, strictest first.
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

// operatingAt returns the rates at a threshold; nil for none.
func (r *Result) operatingAt(threshold *float64) Operating {
	positive := func(t trial) bool { return t.claim != "" && (threshold == nil || t.score >= *threshold) }
	o := Operating{
		Threshold: threshold,
		FNIR:      errorRate(r.trials, func(t trial) (counts, wrong bool) { return t.known, !positive(t) || !t.correct() }),
		FPIR:      errorRate(r.trials, func(t trial) (counts, wrong bool) { return !t.known, positive(t) }),
	}
	for _, t := range r.trials {
		if t.known && positive(t) && !t.correct() {
			o.Misnamed++
		}
	}
	o.TPIR, o.TPIRInterval = rate(o.Right(), o.FNIR.Faces), Interval{1 - o.FNIR.Interval.High, 1 - o.FNIR.Interval.Low}
	return o
}
