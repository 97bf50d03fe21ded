// SPDX-License-Identifier: Apache-2.0

package login_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/stage"
	"github.com/faceauth/faceauth/lab/trial/login"
	"github.com/faceauth/faceauth/tablet"
)

// scored returns a recording of frames 40 ms apart with these scores. A score below zero means a
// frame without a score.
func scored(person, attack string, scores ...float32) login.Recording {
	var frames []face.Frame
	for _, x := range scores {
		s := stage.Sample(stage.Alice)
		if x >= 0 {
			s.Liveness = &x
		}
		frames = append(frames, face.Frame{Samples: []face.Sample{s}})
	}
	r := recording(person, person+attack, frames)
	r.Attack = attack
	return r
}

func livenessOptions() login.LivenessOptions {
	return login.LivenessOptions{
		Policy: tablet.Policy{MinLiveness: .5},
		Gate: func(q face.Quality) face.Reason {
			if q.Turn > .6 {
				return face.TurnedAway
			}
			return ""
		},
		Sweep: []float64{.1, .95},
	}
}

func measure(t *testing.T, all ...login.Recording) login.LivenessReport {
	t.Helper()
	r := fixture.Must(login.MeasureLiveness(t.Context(), all, livenessOptions()))(t)
	return r
}

// The score of a presentation is the highest threshold at which a login would let it in.
func TestLivenessScores(t *testing.T) {
	turned := scored("turned", "", 1, 1, 1, 1)
	for i := range turned.Frames {
		turned.Frames[i].Samples[0].Quality.Turn = .7
	}
	none := scored("none", "", 1, 1, 1, 1)
	for i := range none.Frames {
		none.Frames[i].Samples[0].Vector = nil
	}
	two := scored("two", "", 1, 1, 1, 1)
	for i := range two.Frames {
		two.Frames[i].Samples = append(two.Frames[i].Samples, stage.Sample(stage.Bob))
	}
	for _, c := range []struct {
		rec  login.Recording
		want []float64
	}{
		// three frames are enough
		{scored("a", "", .5, .75, .25), []float64{.5}},
		{scored("b", "", .5, .5), []float64{}},                            // two are not
		{scored("c", "", 0, 0, 0, .75, .75, .75, 0), []float64{.75 * .6}}, // the best five
		// without a score it never passes
		{scored("d", "", -1, -1, -1), []float64{0}},
		{scored("e", "", 1, 1, 1), []float64{1}},
		{turned, []float64{}},
		{none, []float64{}},
		{two, []float64{}},
		{login.Recording{Person: "empty"}, []float64{}},
	} {
		r := measure(t, c.rec, scored("other", "", 1, 1, 1))
		got := r.Recordings[0]
		unanswered := 1
		if len(c.want) > 0 || len(c.rec.Frames) == 0 {
			unanswered = 0
		}
		if !reflect.DeepEqual(got.Scores, c.want) || got.Unanswered != unanswered {
			t.Errorf("%s: %v and %d unanswered, want %v and %d", c.rec.Person, got.Scores,
				got.Unanswered, c.want, unanswered)
		}
	}
}

// A presentation begins at each second, and is as long as a login.
func TestPresentations(t *testing.T) {
	scores := make([]float32, 201) // eight seconds
	for i := range scores {
		scores[i] = float32(i/25) / 8
	}
	r := measure(t, scored("a", "", scores...))
	if got, want := r.Recordings[0].Scores,
		[]float64{.5, .625, .75, .875, .9, .9, .9, .9}; !reflect.DeepEqual(got,
		want) {
		// the last frame scores 1; it counts from the fourth second on
		t.Errorf("%v, want %v", got, want)
	}
	if r.Seconds != 5 || r.Every != 1 {
		t.Errorf("%+v", r)
	}
	o := livenessOptions()
	o.Every, o.Policy.Deadline = 3*time.Second, 2*time.Second
	r, err := login.MeasureLiveness(t.Context(), []login.Recording{scored("a", "", scores...)}, o)
	if got, want := r.Recordings[0].Scores, []float64{.125, .5, .875}; err != nil ||
		!reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
}

// Each half is measured at the threshold of the other half, and never at its own threshold.
func TestLivenessHalves(t *testing.T) {
	r := measure(t,
		scored("ann", "", .75, .75, .75), scored("ann", "print", .25, .25, .25), // half 1: .5
		// half 2, with dan: .3125
		scored("bea", "", .5, .5, .5), scored("bea", "print", .125, .125, .125),
		scored("cat", "", .875, .875, .875),       // half 1
		scored("dan", "", 1, 1, 1),                // half 2
		scored("ann", "", .25, .25, .25),          // stays in half 1: refused at .3125
		scored("bea", "replay", .375, .375, .375), // would be let in at .3125
	)
	for i, want := range []int{1, 1, 2, 2, 1, 2, 1, 2} {
		if r.Recordings[i].Half != want {
			t.Errorf("recording %d is in half %d, want %d", i+1, r.Recordings[i].Half, want)
		}
	}
	// Half 1 has live .75 .875 .25 and a print .25: 1 of 3 live are refused from .25 to .75, so .5.
	// Half 2 has live .5 1, a print .125 and a replay .375: .4375.
	if len(r.Halves) != 2 || r.Halves[0].Threshold != .4375 || r.Halves[1].Threshold != .5 {
		t.Fatalf("%+v", r.Halves)
	}
	one, two := r.Halves[0], r.Halves[1]
	if one.Half != 1 || one.Live.All != 3 || one.Live.Wrong != 1 || one.Live.People != 2 ||
		one.Live.WrongOf != 1 ||
		one.APCER != 0 ||
		len(one.Attacks) != 1 ||
		one.Attacks["print"].All != 1 {
		t.Errorf("%+v", one)
	}
	if two.Half != 2 || two.Live.All != 2 || two.Live.Wrong != 0 || two.APCER != 0 ||
		two.BPCER != 0 ||
		len(two.Attacks) != 2 {
		t.Errorf("%+v", two)
	}
	if b := r.Both; b.Live.All != 5 || b.Live.Wrong != 1 || b.BPCER != .2 ||
		b.Attacks["print"].All != 2 ||
		b.Attacks["replay"].Wrong != 0 ||
		!math.IsNaN(float64(b.Threshold)) {
		t.Errorf("%+v", b)
	}
	// The rates of the attack species are separate, and the highest rate counts.
	if low := r.Sweep[0]; low.Threshold != .1 || low.APCER != 1 || low.BPCER != 0 ||
		low.Attacks["print"].Wrong != 2 ||
		low.Attacks["print"].WrongOf != 2 {
		t.Errorf("%+v", low)
	}
	if high := r.Sweep[1]; high.APCER != 0 || high.BPCER != .8 || high.Live.Interval.Low < .28 ||
		high.Live.Interval.High > .996 {
		t.Errorf("%+v", high) // Clopper and Pearson's interval for 4 of 5: .2836 to .9949
	}
	if p := r.Policy; p.Threshold != .5 || p.BPCER != .2 || p.APCER != 0 {
		t.Errorf("%+v", p)
	}
	b, err := json.Marshal(r)
	var back login.LivenessReport
	if err != nil || json.Unmarshal(b, &back) != nil || back.Halves[0].Threshold != .4375 {
		t.Errorf("%s, %v", b, err)
	}
}

// Unless both halves have attacks, no threshold is chosen. The threshold of the policy is measured
// all the same.
func TestLivenessWithoutHalves(t *testing.T) {
	r := measure(t, scored("ann", "", 1, 1, 1), scored("ann", "print", .25, .25, .25),
		scored("bea", "", .25, .25, .25), scored("cat", "", 1, 1, 1))
	if len(r.Halves) != 0 || r.Both != nil || r.Policy.Live.Wrong != 1 || r.Policy.Live.All != 3 ||
		r.Policy.APCER != 0 {
		t.Errorf("%+v", r)
	}
	r = measure(t, scored("ann", "", 1, 1, 1))
	if r.Policy.Live.Wrong != 0 || !math.IsNaN(float64(r.Policy.APCER)) {
		t.Errorf("%+v", r)
	}
	if _, err := json.Marshal(r); err != nil {
		t.Error(err)
	}
}

func TestLivenessErrors(t *testing.T) {
	for _, all := range [][]login.Recording{nil, {scored("ann", "print", 1, 1, 1)},
		{scored("ann", "", 1, 1)}} {
		if _, err := login.MeasureLiveness(t.Context(), all, livenessOptions()); !errors.Is(err,
			login.ErrNoPresentation) {
			t.Errorf("%d recordings: %v", len(all), err)
		}
	}
	o := livenessOptions()
	o.Policy.Deadline = time.Hour
	if _, err := login.MeasureLiveness(t.Context(), []login.Recording{scored("ann", "", 1, 1, 1)},
		o); !errors.Is(err,
		tablet.ErrPolicy) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := login.MeasureLiveness(ctx, []login.Recording{scored("ann", "", 1, 1, 1)},
		livenessOptions()); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
