// SPDX-License-Identifier: Apache-2.0

package login

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/lab/evaluate"
	"github.com/faceauth/faceauth/tablet"
)

// ErrNoPresentation is returned by [MeasureLiveness] if no recording has a live face with a score.
var ErrNoPresentation = errors.New("no recording holds a live face that could be scored")

// LivenessOptions are the options of [MeasureLiveness].
type LivenessOptions struct {
	// policy of the logins; its MinLiveness is one of the measured thresholds
	Policy tablet.Policy
	Gate   func(face.Quality) face.Reason // quality gate of a login
	Every  time.Duration                  // time between the starts of presentations. Default 1 s
	Sweep  []float64                      // further thresholds
}

// LivenessReport tells how well a threshold of liveness separates live faces from pictures of
// faces, in the terms of ISO/IEC 30107-3.
//
// A presentation is the part of a recording from one moment on, as long as a login lasts. Every
// usable face in it counts as the user's, because the gate is measured and not the recogniser. A
// presentation passes a threshold if a login with that threshold would succeed. A presentation that
// never has enough usable frames has no result, and is in no rate.
type LivenessReport struct {
	People     int                 `json:"people"`
	Seconds    float64             `json:"presentation_seconds"` // greatest length
	Every      float64             `json:"presentations_every_seconds"`
	Recordings []LivenessRecording `json:"recordings"`
	// Halves are the results of the two halves of the people, each at the threshold that the other
	// half has chosen. There are none if a half lacks attacks or live faces.
	Halves []LivenessErrors `json:"halves"`
	// all presentations, each at the threshold of the other half
	Both   *LivenessErrors  `json:"both,omitempty"`
	Policy LivenessErrors   `json:"policy"` // all presentations, at the threshold of the policy
	Sweep  []LivenessErrors `json:"sweep"`  // all presentations, at other thresholds
}

// LivenessRecording is one recording and the scores of its presentations.
type LivenessRecording struct {
	Person     string    `json:"person"`
	Name       string    `json:"name"`
	Attack     string    `json:"attack,omitempty"`
	Half       int       `json:"half"` // 1 or 2
	Scores     []float64 `json:"scores"`
	Unanswered int       `json:"unanswered"`
}

// LivenessErrors are the errors at a threshold.
type LivenessErrors struct {
	// NaN if it differs between presentations
	Threshold evaluate.Rate            `json:"threshold"`
	Half      int                      `json:"half,omitempty"` // the measured half
	Attacks   map[string]Presentations `json:"attacks"`        // wrong means accepted; by species
	// of the species with the highest rate
	APCER evaluate.Rate `json:"apcer"`
	Live  Presentations `json:"live"` // wrong means refused
	BPCER evaluate.Rate `json:"bpcer"`
}

// Presentations counts presentations and wrong results among them.
type Presentations struct {
	All   int `json:"presentations"`
	Wrong int `json:"wrong"`
	// 95 % interval of the wrong share, for independent presentations
	Interval   evaluate.Interval `json:"interval"`
	People     int               `json:"people"`
	WrongOf    int               `json:"people_with_a_wrong_one"`
	Unanswered int               `json:"unanswered"`
}

// Rate returns the share of wrong results, or NaN.
func (p Presentations) Rate() evaluate.Rate {
	return evaluate.Rate(float64(p.Wrong) / float64(p.All))
}

// MeasureLiveness measures the liveness gate on recordings with scores. The people with attacks are
// divided into two halves by turns, in order, and so are those without; nobody is in both halves.
// Each half chooses the threshold with the least sum of BPCER and the highest APCER of a species;
// of equal thresholds, the middle of the widest range. The error wraps [ErrNoPresentation] or
// [tablet.ErrPolicy], or is that of ctx.
func MeasureLiveness(ctx context.Context, all []Recording,
	o LivenessOptions) (LivenessReport, error) {
	o.Every = cmp.Or(o.Every, time.Second)
	least := o.Policy.MinLiveness
	// a session then runs to its end, and returns its highest score
	o.Policy.MinLiveness, o.Policy.Challenge = 1, ""
	o.Policy = o.Policy.Defaults()
	r := LivenessReport{
		Seconds: o.Policy.Deadline.Seconds(), Every: o.Every.Seconds(),
		Recordings: []LivenessRecording{}, Halves: []LivenessErrors{}, Sweep: []LivenessErrors{},
	}
	half := halves(all)
	r.People = len(half)
	live := 0
	for _, rec := range all {
		l := LivenessRecording{
			Person: rec.Person,
			Name:   rec.Name,
			Attack: rec.Attack,
			Half:   half[rec.Person],
			Scores: []float64{},
		}
		for _, frames := range presentations(rec.Frames, o.Every, o.Policy.Deadline) {
			if err := ctx.Err(); err != nil {
				return r, err
			}
			mean, ok, err := livenessOf(frames, o)
			if err != nil {
				return r, err
			}
			if ok {
				l.Scores = append(l.Scores, mean)
			} else {
				l.Unanswered++
			}
		}
		if rec.Attack == "" {
			live += len(l.Scores)
		}
		r.Recordings = append(r.Recordings, l)
	}
	if live == 0 {
		return r, ErrNoPresentation
	}
	in := func(h int) func(LivenessRecording) bool {
		return func(l LivenessRecording) bool { return l.Half == h }
	}
	a, okA := choose(r.Recordings, in(1))
	b, okB := choose(r.Recordings, in(2))
	if okA && okB {
		thresholds := [3]float64{0, b, a}
		for h := 1; h <= 2; h++ {
			e := errorsAt(r.Recordings, func(LivenessRecording) float64 { return thresholds[h] },
				in(h))
			e.Threshold, e.Half = evaluate.Rate(thresholds[h]), h
			r.Halves = append(r.Halves, e)
		}
		both := errorsAt(r.Recordings, func(l LivenessRecording) float64 {
			return thresholds[l.Half]
		}, everyone)
		both.Threshold = evaluate.Rate(math.NaN())
		r.Both = &both
	}
	at := func(x float64) LivenessErrors {
		e := errorsAt(r.Recordings, func(LivenessRecording) float64 { return x }, everyone)
		e.Threshold = evaluate.Rate(x)
		return e
	}
	r.Policy = at(least)
	for _, x := range o.Sweep {
		r.Sweep = append(r.Sweep, at(x))
	}
	return r, nil
}

func everyone(LivenessRecording) bool { return true }

// halves returns the half of each person.
func halves(all []Recording) map[string]int {
	attacked := make(map[string]bool)
	for _, rec := range all {
		attacked[rec.Person] = attacked[rec.Person] || rec.Attack != ""
	}
	half := make(map[string]int)
	n := make(map[bool]int)
	for _, rec := range all {
		if half[rec.Person] == 0 {
			with := attacked[rec.Person]
			half[rec.Person] = 1 + n[with]%2
			n[with]++
		}
	}
	return half
}

// presentations returns the frames of each presentation. A recording shorter than a second is one
// presentation.
func presentations(frames []face.Frame, every, length time.Duration) (all [][]face.Frame) {
	if len(frames) == 0 {
		return nil
	}
	first, last := frames[0].Time, frames[len(frames)-1].Time
	for start := first; start == first || last-start >= time.Second; start += every {
		from := slices.IndexFunc(frames, func(f face.Frame) bool { return f.Time >= start })
		to := slices.IndexFunc(frames, func(f face.Frame) bool { return f.Time >= start+length })
		if to < 0 {
			to = len(frames)
		}
		all = append(all, frames[from:to])
	}
	return all
}

// livenessOf returns the highest MinLiveness at which a login with these frames succeeds, if there
// is one. Every face counts as the user's.
func livenessOf(frames []face.Frame, o LivenessOptions) (mean float64, ok bool, err error) {
	if len(frames) == 0 {
		return 0, false, nil
	}
	begun := time.Unix(0, 0)
	s, err := tablet.NewSession(o.Policy, face.Space{}, tablet.TurnLeft, begun)
	if err != nil {
		return 0, false, err
	}
	for _, f := range frames {
		faces := make([]tablet.Face, len(f.Samples))
		for i, x := range f.Samples {
			faces[i] = tablet.Face{Track: x.Track, Reason: o.Gate(x.Quality), Match: true,
				Liveness: x.Liveness}
			if x.Vector == nil {
				faces[i].Reason = face.NoVector
			}
		}
		s.Frame(begun.Add(f.Time-frames[0].Time), faces)
	}
	mean, ok = s.Liveness()
	return mean, ok, nil
}

// errorsAt returns the errors on recordings, each at its threshold.
func errorsAt(
	all []LivenessRecording,
	threshold func(LivenessRecording) float64,
	which func(LivenessRecording) bool,
) LivenessErrors {
	e := LivenessErrors{Attacks: make(map[string]Presentations), APCER: evaluate.Rate(math.NaN())}
	type part struct{ attack, person string }
	people, wrongOf := make(map[part]bool), make(map[part]bool)
	for _, l := range all {
		if !which(l) {
			continue
		}
		p := e.Live
		if l.Attack != "" {
			p = e.Attacks[l.Attack]
		}
		wrong := 0
		for _, x := range l.Scores {
			if passes := x >= threshold(l); passes == (l.Attack != "") {
				wrong++
			}
		}
		p.All, p.Wrong, p.Unanswered = p.All+len(l.Scores), p.Wrong+wrong, p.Unanswered+l.Unanswered
		if of := (part{l.Attack, l.Person}); len(l.Scores) > 0 && !people[of] {
			people[of] = true
			p.People++
		}
		if of := (part{l.Attack, l.Person}); wrong > 0 && !wrongOf[of] {
			wrongOf[of] = true
			p.WrongOf++
		}
		if l.Attack == "" {
			e.Live = p
		} else {
			e.Attacks[l.Attack] = p
		}
	}
	e.BPCER = e.Live.Rate()
	e.Live.Interval = evaluate.ClopperPearson(e.Live.Wrong, e.Live.All)
	for species, p := range e.Attacks {
		p.Interval = evaluate.ClopperPearson(p.Wrong, p.All)
		e.Attacks[species] = p
		if x := p.Rate(); !(e.APCER >= x) && p.All > 0 {
			e.APCER = x
		}
	}
	return e
}

// choose returns the threshold that recordings choose, and whether they have both attacks and live
// faces.
func choose(all []LivenessRecording,
	which func(LivenessRecording) bool) (threshold float64, ok bool) {
	edges := map[float64]bool{0: true, 1: true}
	for _, l := range all {
		if which(l) {
			for _, x := range l.Scores {
				edges[x] = true
			}
		}
	}
	sorted := slices.Sorted(maps.Keys(edges))
	least, width := math.Inf(1), 0.
	for i, low := range sorted[:len(sorted)-1] {
		high := sorted[i+1] // all thresholds above low and up to high have the same result
		e := errorsAt(all, func(LivenessRecording) float64 { return high }, which)
		sum := float64(e.APCER) + float64(e.BPCER)
		if math.IsNaN(sum) {
			return 0, false
		}
		if w := high - low; sum < least || sum == least && w > width {
			least, width, threshold = sum, w, (low+high)/2
		}
	}
	return threshold, true
}
