// SPDX-License-Identifier: Apache-2.0

package evaluate_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/lab/evaluate"
	"github.com/faceauth/faceauth/online"
)

// sitting is an identification with one enrolled face of each person.
var sitting = evaluate.Identification{Protocol: evaluate.Protocol{Enroll: 1, Stride: 1,
	Order: evaluate.Sequential}}

func identify(
	t *testing.T, ids []evaluate.Identity, o evaluate.Identification, methods ...evaluate.Entry,
) evaluate.Identified {
	t.Helper()
	out := fixture.Must(evaluate.Identify(context.Background(), ids, o, methods))(t)
	return out
}

// poor returns faces that are not good enough to enrol from.
func poor(x ...float32) []evaluate.Face {
	faces := at(x...)
	for i := range faces {
		faces[i].Usable = false
	}
	return faces
}

// Six mated and five non-mated probes, counted by hand. Scores from the top:
//
//	.9 alice, right   .8 bob, right   .7 stranger   .7 alice, right   .6 bob taken for alice   .5 stranger
//	.4 bob, right     nobody: one probe of alice, three of strangers
func TestIdentify(t *testing.T) {
	ids := []evaluate.Identity{
		// 5 may be a probe
		{Name: "alice", Faces: append(poor(5), at(0, 1, 2)...), Undetected: 2, NoVector: 1,
			Several: 1},
		{Name: "bob", Faces: at(10, 11, 12, 13)},
		{Name: "eve", Faces: at(20)},
		// Nobody enrols fay, so a poor face is allowed.
		{Name: "fay", Faces: poor(21), Refused: map[face.Reason]int{face.Blurred: 1}},
		// The protocol names guy as a stranger.
		{Name: "guy", Faces: at(22, 23, 24)},
		{Name: "hal", Faces: poor(30, 31),
			Refused: map[face.Reason]int{face.Blurred: 1, face.TooDark: 1}},
		{Name: "ida", Undetected: 3},
	}
	s := new(script)
	s.say(1, "alice", .9)
	s.say(2, "alice", .7)
	s.say(11, "bob", .8)
	s.say(12, "alice", .6)
	s.say(13, "bob", .4)
	s.say(20, "bob", .7)
	s.say(23, "alice", .5)
	o := sitting
	o.Strangers, o.Targets = []string{"guy"}, []float64{.5, .25, .2, .1}
	out := identify(t, ids, o, s.entry(false))
	if got, want := strings.Join(s.shown, " "),
		"alice=0 bob=10 5! 1! 2! 11! 12! 13! 20! 21! 22! 23! 24!"; got != want {
		t.Errorf("shown %s, want %s", got, want)
	}
	if got, want := fmt.Sprintf("%+v", out.Counts),
		"{People:7 Frames:20 Enrolled:2 Labelled:2 Mated:6 NonMated:5 "+
			"Strangers:3 Skipped:0 Several:1 FailureToAcquire:{NoFace:4 NoVector:1 People:[ida]} "+
			"FailureToEnrol:{People:[hal] Faces:2 Reasons:map[blurred:1 too dark:1]}}"; got != want {
		t.Errorf("counts %s, want %s", got, want)
	}
	m := out.Methods[0]
	point := func(o *evaluate.Operating) string {
		if o == nil {
			return "none"
		}
		threshold := "any"
		if o.Threshold != nil {
			threshold = fmt.Sprint(*o.Threshold)
		}
		return fmt.Sprintf(
			"from %s: %d of %d, %d misnamed, %d of %d people; %d of %d false, of %d of %d people",
			threshold, o.Right(), o.FNIR.Faces, o.Misnamed, o.FNIR.PeopleWrong, o.FNIR.People,
			o.FPIR.Errors,
			o.FPIR.Faces, o.FPIR.PeopleWrong, o.FPIR.People)
	}
	want := "from any: 4 of 6, 1 misnamed, 2 of 2 people; 2 of 5 false, of 2 of 3 people"
	if got := point(&m.Rank1); got != want {
		t.Errorf("rank 1: %s, want %s", got, want)
	}
	for i, want := range []struct {
		target float64
		needed int
		at     string
	}{
		{.5, 2, "from any: 4 of 6, 1 misnamed, 2 of 2 people; 2 of 5 false, of 2 of 3 people"},
		{.25, 4, "from 0.6: 3 of 6, 1 misnamed, 2 of 2 people; 1 of 5 false, of 1 of 3 people"},
		// exactly one of five
		{.2, 5, "from 0.6: 3 of 6, 1 misnamed, 2 of 2 people; 1 of 5 false, of 1 of 3 people"},
		{.1, 10, "none"},
		// Alice's .7 is no better than a stranger's .7.
		{0, 1, "from 0.8: 2 of 6, 0 misnamed, 2 of 2 people; 0 of 5 false, of 0 of 3 people"},
	} {
		p := m.Points[i]
		if got := point(p.Operating); p.Target != want.target || p.Needed != want.needed ||
			got != want.at {
			t.Errorf("point %d: target %g, %d needed, %s; want %+v", i, p.Target, p.Needed, got,
				want)
		}
	}
	if len(m.Points) != 5 {
		t.Errorf("%d points", len(m.Points))
	}
	strictest := m.Points[4].Operating
	near(t, "TPIR", strictest.TPIR, 2./6)
	near(t, "FNIR", strictest.FNIR.Rate, 4./6)
	// Two people prove little: one of three probes is named rightly for the first, and one of four
	// for the second.
	if i := strictest.TPIRInterval; !(i.Low < .0432719) || !(i.High > .7772219) ||
		i.Low != 1-strictest.FNIR.Interval.High {
		t.Errorf("interval of TPIR %+v is narrower than if the six probes were independent", i)
	}
	// The five probes without a false positive are of three people.
	if i := strictest.FPIR.Interval; i.Low != 0 ||
		math.Abs(i.High-(1-math.Pow(.025, 1./3))) > 1e-9 {
		t.Errorf("interval of FPIR %+v", i)
	}
	if got, want := fmt.Sprintf("%.4f", m.Curve),
		"[{0.9000 0.1667 0.0000} {0.8000 0.3333 0.0000} {0.7000 0.5000 "+
			"0.2000} "+
			"{0.6000 0.5000 0.2000} {0.5000 0.5000 0.4000} {0.4000 0.6667 0.4000}]"; got != want {
		t.Errorf("curve %s, want %s", got, want)
	}
	b := fixture.Must(json.Marshal(out))(t)
	for _, want := range []string{
		`"rank1":{"threshold":null,"tpir":0.6666666666666666,"tpir_interval":[`,
		`{"target_fpir":0.1,"needed":10,"operating":null}`,
		`{"target_fpir":0,"needed":1,"operating":{"threshold":0.8,`,
		`"failure_to_acquire":{"no_face":4,"no_vector":1,"people":["ida"]}`,
		`"failure_to_enrol":{"people":["hal"],"faces":2,"reasons":{"blurred":1,"too dark":1}}`,
	} {
		if !strings.Contains(string(b), want) {
			t.Errorf("the JSON lacks %s: %s", want, b)
		}
	}
}

// If a stranger's score is the best of all, or ties with the best, then no false positive means
// that nobody is accepted.
func TestIdentifyStrangerOnTop(t *testing.T) {
	ids := []evaluate.Identity{{Name: "alice", Faces: at(0, 1)}, {Name: "eve", Faces: at(20)}}
	for _, score := range []float64{.7, .9} {
		s := new(script)
		s.say(1, "alice", .7)
		s.say(20, "alice", score)
		m := identify(t, ids, sitting, s.entry(false)).Methods[0]
		p := m.Points[len(m.Points)-1]
		if p.Operating == nil || *p.Operating.Threshold <= score || p.Operating.Right() != 0 ||
			p.Operating.FPIR.Errors != 0 {
			t.Errorf("a stranger with %g: %+v", score, p.Operating)
		}
		if m.Rank1.Right() != 1 || m.Rank1.FPIR.Errors != 1 {
			t.Errorf("a stranger with %g: rank 1 %+v", score, m.Rank1)
		}
	}
}

// A threshold works for scores of any sign, also for the negative distances of the nearest face.
func TestIdentifyNearest(t *testing.T) {
	ids := []evaluate.Identity{
		{Name: "alice", Faces: at(0, .25)},
		{Name: "bob", Faces: at(10, 10.125, 12)},
		{Name: "eve", Faces: at(1)},
	}
	o := sitting
	o.Targets = []float64{.5}
	out := identify(t, ids, o, evaluate.Learner(line, online.Settings{}), evaluate.Nearest(line))
	for _, want := range []struct {
		at        *evaluate.Operating
		threshold float64
		right     int
	}{
		// The learner has no edge to eve or bob's 12: every candidate counts.
		{out.Methods[0].Points[1].Operating, 0, 2},
		{&out.Methods[0].Rank1, 0, 2},
		{out.Methods[1].Points[1].Operating, -.25, 2},
		{&out.Methods[1].Rank1, 0, 3},
	} {
		threshold := 0.
		if want.at.Threshold != nil {
			threshold = *want.at.Threshold
		}
		if threshold != want.threshold || want.at.Right() != want.right {
			t.Errorf("%+v, want %+v", want.at, want)
		}
	}
	if out.Methods[1].Points[0].Operating != nil {
		t.Error("an FPIR of a half was measured with one probe")
	}
}

// Without strangers no FPIR can be measured, but the rank-1 rate can.
func TestIdentifyNoStrangers(t *testing.T) {
	s := new(script)
	s.say(1, "alice", .9)
	one := []evaluate.Identity{{Name: "alice", Faces: at(0, 1, 2)}} // one person only
	out := identify(t, one, sitting, s.entry(false))
	m := out.Methods[0]
	if r := m.Rank1; r.Right() != 1 || r.FNIR.Faces != 2 || !math.IsNaN(float64(r.FPIR.Rate)) ||
		r.Threshold != nil {
		t.Errorf("%+v", r)
	}
	if len(m.Points) != len(evaluate.FPIRTargets)+1 {
		t.Errorf("%d points", len(m.Points))
	}
	for _, p := range m.Points {
		if p.Operating != nil {
			t.Errorf("an FPIR of %g was measured without strangers", p.Target)
		}
	}
	if b, err := json.Marshal(out); err != nil || strings.Contains(string(b), "NaN") {
		t.Errorf("%s, %v", b, err)
	}
}

// If a method claims nobody, every threshold has the same result.
func TestIdentifyNobodyClaimed(t *testing.T) {
	ids := []evaluate.Identity{{Name: "alice", Faces: at(0, 1)}, {Name: "eve", Faces: at(20)}}
	m := identify(t, ids, sitting, new(script).entry(false)).Methods[0]
	p := m.Points[len(m.Points)-1].Operating
	if p == nil || p.Threshold != nil || p.TPIR != 0 || p.FPIR.Rate != 0 || len(m.Curve) != 0 {
		t.Errorf("%+v, curve %v", p, m.Curve)
	}
}

// Frozen methods give the same results in every order. With Learn, the learner learns from probes
// that may be learned.
func TestIdentifyLearn(t *testing.T) {
	ids := []evaluate.Identity{
		// Each is within reach of the next one, and the last ones are not within reach of the
		// first.
		{Name: "alice", Faces: at(0, .25, .5, .75, 1, 1.25, 1.5, 1.75, 2)},
		{Name: "eve", Faces: at(-9)},
	}
	right := func(o evaluate.Identification) int {
		return identify(t, ids, o, evaluate.Learner(line,
			online.Settings{})).Methods[0].Rank1.Right()
	}
	o := sitting
	frozen := right(o)
	if frozen == 0 || frozen == 8 {
		t.Fatalf("%d of 8 are right: the recording tests too little", frozen)
	}
	for seed := range uint64(5) {
		o.Order, o.Seed = evaluate.Shuffled, seed
		if n := right(o); n != frozen {
			t.Errorf("seed %d: %d right, and %d in another order", seed, n, frozen)
		}
	}
	o = sitting
	o.Learn = true
	if n := right(o); n != 8 {
		t.Errorf("%d of 8 right with learning", n)
	}
	if slices.ContainsFunc(ids[0].Faces, func(f evaluate.Face) bool { return f.Hold }) {
		t.Error("the caller's faces were changed")
	}
}

// If more faces are enrolled, people with few faces become strangers. The stride skips probes.
func TestIdentifyEnrollAndStride(t *testing.T) {
	ids := []evaluate.Identity{
		{Name: "alice", Faces: at(0, 1, 2, 3, 4)},
		{Name: "bob", Faces: at(10, 11)},
		{Name: "eve", Faces: at(20)},
		{Name: "ned", Faces: append(at(30), poor(31, 32)...)},
	}
	o := sitting
	o.Enroll, o.Stride = 2, 2
	s := new(script)
	c := identify(t, ids, o, s.entry(false)).Counts
	if got, want := strings.Join(s.shown, " "), "alice=0 alice=1 2! 4! 10! 20!"; got != want {
		t.Errorf("shown %s, want %s", got, want)
	}
	if c.Enrolled != 1 || c.Labelled != 2 || c.Mated != 2 || c.NonMated != 2 || c.Strangers != 2 ||
		c.Skipped != 2 ||
		c.FailureToEnrol.Faces != 3 {
		t.Errorf("counts %+v", c)
	}
	if c.Frames != c.Labelled+c.Mated+c.NonMated+c.Skipped+c.FailureToEnrol.Faces+
		c.FailureToAcquire.Frames() {
		t.Errorf("a frame is lost: %+v", c)
	}
}

func TestIdentifyErrors(t *testing.T) {
	ids := []evaluate.Identity{
		{Name: "alice", Faces: at(0, 1)}, {Name: "bob", Faces: at(3)},
		{Name: "hal", Faces: poor(30, 31)}, {Name: "ida", Undetected: 3},
	}
	change := func(f func(*evaluate.Identification)) evaluate.Identification {
		o := sitting
		f(&o)
		return o
	}
	for _, c := range []struct {
		o    evaluate.Identification
		err  error
		text string
	}{
		{change(func(o *evaluate.Identification) { o.Enroll = 2 }), evaluate.ErrTooFew,
			"too few usable faces: " +
				"nobody can be enrolled: a person needs at least 3 faces, 2 of them good enough " +
				"to enrol from, and must " +
				"not be " +
				"a stranger (people: 4; strangers, or with fewer faces: 3; with too few good " +
				"enough: 0; " +
				"without a face: 1)"},
		{change(func(o *evaluate.Identification) { o.Strangers = []string{"alice"} }),
			evaluate.ErrTooFew, "with too few good enough: 1; "},
		{change(func(o *evaluate.Identification) { o.Strangers = []string{"zoe"} }),
			evaluate.ErrProtocol,
			`stranger "zoe" is not among the recordings`},
		{change(func(o *evaluate.Identification) { o.Enroll = 0 }), evaluate.ErrProtocol,
			"at least 1"},
		{change(func(o *evaluate.Identification) { o.Enroll = -1 }), evaluate.ErrProtocol,
			"at least 1"},
		{change(func(o *evaluate.Identification) { o.Stride = 0 }), evaluate.ErrProtocol,
			"at least 1"},
		{change(func(o *evaluate.Identification) { o.Apart = .5 }), evaluate.ErrProtocol,
			"kept apart"},
		{change(func(o *evaluate.Identification) { o.Targets = []float64{0} }),
			evaluate.ErrProtocol, "an FPIR of 0"},
		{change(func(o *evaluate.Identification) { o.Targets = []float64{math.NaN()} }),
			evaluate.ErrProtocol, "an FPIR of NaN"},
	} {
		_, err := evaluate.Identify(context.Background(), ids, c.o,
			[]evaluate.Entry{new(script).entry(false)})
		if !errors.Is(err, c.err) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%+v: error %v", c.o, err)
		}
	}
	if _, err := evaluate.Identify(context.Background(), nil, sitting, nil); !errors.Is(err,
		evaluate.ErrTooFew) {
		t.Errorf("nobody at all: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &stopper{cancel: cancel}
	_, err := evaluate.Identify(ctx, []evaluate.Identity{{Name: "alice", Faces: at(0, 1, 2, 3)}},
		sitting,
		[]evaluate.Entry{{Name: "stopper", New: func() (evaluate.Method, error) { return s, nil }}})
	if !errors.Is(err, context.Canceled) || len(s.shown) != 2 {
		t.Errorf("%v after %v", err, s.shown)
	}
	broken := errors.New("broken")
	_, err = evaluate.Identify(context.Background(), ids, sitting,
		[]evaluate.Entry{{Name: "x", New: func() (evaluate.Method, error) { return nil, broken }}})
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "method x") {
		t.Errorf("a method that cannot be made: %v", err)
	}
}

func TestNonMatedNeeded(t *testing.T) {
	for rate, want := range map[float64]int{0: 1, .5: 2, .01: 100, .001: 1000, .0001: 10000,
		.003: 334, .3: 4,
		.07: 15} {
		if n := evaluate.NonMatedNeeded(rate); n != want {
			t.Errorf("an FPIR of %g needs %d, want %d", rate, n, want)
		}
	}
}
