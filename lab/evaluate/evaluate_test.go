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

var line = face.Space{ID: "line", Dim: 1, Scale: 1, Sigma: .2, Gamma: 1e-3}

// at returns usable faces at places on the line.
func at(x ...float32) []evaluate.Face {
	faces := make([]evaluate.Face, len(x))
	for i, x := range x {
		faces[i] = evaluate.Face{Vector: []float32{x}, Usable: true}
	}
	return faces
}

// script is a method that gives prepared answers, and records the faces that it is shown.
type script struct {
	shown    []string
	verdicts map[float32]struct {
		claim string
		score float64
	}
	accept float64
}

func (s *script) Enroll(x []float32, name string) error {
	s.shown = append(s.shown, fmt.Sprintf("%s=%g", name, x[0]))
	return nil
}

func (s *script) Judge(x []float32, hold bool) (string, float64, error) {
	s.shown = append(s.shown, fmt.Sprintf("%g%s", x[0], map[bool]string{true: "!"}[hold]))
	v := s.verdicts[x[0]]
	return v.claim, v.score, nil
}

func (s *script) Accepts(score float64) bool { return score >= s.accept }

func (s *script) entry(hindsight bool) evaluate.Entry {
	return evaluate.Entry{Name: "script", Hindsight: hindsight,
		New: func() (evaluate.Method, error) { s.shown = nil; return s, nil }}
}

func (s *script) say(x float32, claim string, score float64) {
	if s.verdicts == nil {
		s.verdicts = map[float32]struct {
			claim string
			score float64
		}{}
	}
	s.verdicts[x] = struct {
		claim string
		score float64
	}{claim, score}
}

// beta15 is the distribution function of Beta(1.5, .5).
func beta15(x float64) float64 {
	return 2 / math.Pi * (math.Asin(math.Sqrt(x)) - math.Sqrt(x*(1-x)))
}

// Eight streamed faces, counted by hand:
//
//	alice   right .9, right .6, bob .5, nobody
//	bob     right .8, nobody
//	eve     alice .7, nobody       (a stranger)
func TestCounts(t *testing.T) {
	ids := []evaluate.Identity{
		{Name: "alice", Faces: at(0, 1, 2, 3, 4), Undetected: 2},
		{Name: "bob", Faces: at(10, 11, 12), Undetected: 1},
		{Name: "eve", Faces: at(20, 21)},
	}
	s := &script{accept: .55}
	s.say(1, "alice", .9)
	s.say(2, "alice", .6)
	s.say(3, "bob", .5)
	s.say(11, "bob", .8)
	s.say(20, "alice", .7)
	p := evaluate.Protocol{Enroll: 1, Strangers: []string{"eve"}, Order: evaluate.Sequential,
		Stride: 1}
	counts, results, err := evaluate.Run(ids, p, []evaluate.Entry{s.entry(false), s.entry(true)})
	if err != nil {
		t.Fatal(err)
	}
	if counts != (evaluate.Counts{Enrolled: 2, Known: 6, Strangers: 2, Undetected: 3}) {
		t.Errorf("counts %+v", counts)
	}
	r := results[0]
	near(t, "precision", r.Precision, 3./4) // accepted: .9 .8 .7 .6, of which .7 is eve's
	near(t, "recall", r.Recall, 3./6)
	near(t, "FAR", r.FAR, 1./2)
	near(t, "recall at FAR 0", r.RecallAtFAR0, 2./6) // the threshold must lie above .7
	near(t, "recall at FAR .001", r.RecallAtFAR001, 2./6)
	near(t, "precision at that recall", r.PrecisionAtRecall, 3./4)
	// Eve, the only stranger, was taken for alice. One positive trial proves only that the share is
	// not below .025. Two people are enrolled, so this is an identification.
	if r.FMR != nil || r.FNMR != nil {
		t.Errorf("rates of a verification: %+v, %+v", r.FMR, r.FNMR)
	}
	if e := r.FPIR; e.Errors != 1 || e.Faces != 2 || e.Rate != .5 || e.People != 1 ||
		e.PeopleWrong != 1 ||
		math.Abs(e.PeopleInterval.Low-.025) > 1e-9 || e.PeopleInterval.High != 1 {
		t.Errorf("FPIR %+v", e)
	}
	// Both faces are eve's, and one trial: the quantiles of Beta(.5, 1.5) and Beta(1.5, .5), which
	// are mirror images.
	if i := r.FPIR.Interval; math.Abs(i.Low+i.High-1) > 1e-9 ||
		math.Abs(beta15(i.High)-.975) > 1e-9 {
		t.Errorf("interval of FPIR %+v", i)
	}
	if e := r.FNIR; e.Errors != 3 || e.Faces != 6 || e.Rate != .5 || e.People != 2 ||
		e.PeopleWrong != 2 {
		t.Errorf("FNIR %+v", e)
	}
	// Bob's .5 is below the threshold, so alice's face is unknown, and not taken for bob's.
	confusion := "{[alice bob] [{alice true [2 0] 2} {bob true [0 1] 1} {eve false [1 0] 1}]}"
	if got := fmt.Sprint(r.Confusion); got != confusion {
		t.Errorf("confusion %s", got)
	}
	if got := fmt.Sprint(r.OverTime); got != "[{0 1 2 2 1} {1 2 2 1 0.5} {2 3 1 0 0} {3 4 1 0 0}]" {
		t.Errorf("over time %s", got)
	}
	want := []evaluate.Point{
		{Threshold: .9, Precision: 1, Recall: 1. / 6, FAR: 0},
		{Threshold: .8, Precision: 1, Recall: 2. / 6, FAR: 0},
		{Threshold: .7, Precision: 2. / 3, Recall: 2. / 6, FAR: .5},
		{Threshold: .6, Precision: 3. / 4, Recall: 3. / 6, FAR: .5},
		{Threshold: .5, Precision: 3. / 5, Recall: 3. / 6, FAR: .5},
	}
	if len(r.Curve) != len(want) {
		t.Fatalf("curve %+v", r.Curve)
	}
	for i, w := range want {
		if g := r.Curve[i]; g.Threshold != w.Threshold ||
			math.Abs(float64(g.Precision-w.Precision)) > 1e-12 ||
			g.Recall != w.Recall || g.FAR != w.FAR {
			t.Errorf("point %d of the curve %+v, want %+v", i, g, w)
		}
	}
	for _, c := range []struct{ far, threshold, recall float64 }{
		{0, .75, 2. / 6}, // between bob's .8 and eve's .7
		{.4, .75, 2. / 6},
		{.5, 0, 3. / 6}, // every claim
	} {
		if threshold, at := r.ThresholdAt(c.far); math.Abs(threshold-c.threshold) > 1e-12 ||
			float64(at.Recall) != c.recall {
			t.Errorf("threshold at %g: %g with %+v, want %g with recall %g", c.far, threshold, at,
				c.threshold, c.recall)
		}
	}
	if r.Pairs != (evaluate.Pairs{Total: 1, Accepted: 1}) {
		t.Errorf("pairs %+v", r.Pairs)
	}
	// The second method gets the best threshold at the FAR of the first, .5.
	near(t, "recall in hindsight", results[1].Recall, 3./6)
	near(t, "precision in hindsight", results[1].Precision, 3./4)
}

func near(t *testing.T, what string, got evaluate.Rate, want float64) {
	t.Helper()
	if math.Abs(float64(got)-want) > 1e-12 {
		t.Errorf("%s is %g, want %g", what, got, want)
	}
}

// If a stranger has the best score, a FAR of 0 accepts nobody.
func TestThresholdAboveAll(t *testing.T) {
	ids := []evaluate.Identity{{Name: "alice", Faces: at(0, 1)}, {Name: "eve", Faces: at(20)}}
	s := new(script)
	s.say(1, "alice", .7)
	s.say(20, "alice", .9)
	_, results, err := evaluate.Run(ids,
		evaluate.Protocol{Enroll: 1, Strangers: []string{"eve"}, Stride: 1,
			Order: evaluate.Sequential},
		[]evaluate.Entry{s.entry(false)})
	if err != nil {
		t.Fatal(err)
	}
	if threshold, at := results[0].ThresholdAt(.5); threshold <= .9 || at.Recall != 0 {
		t.Errorf("threshold %g, %+v", threshold, at)
	}
}

// Equal scores are accepted or refused together: no threshold lies between them.
func TestEqualScores(t *testing.T) {
	ids := []evaluate.Identity{{Name: "alice", Faces: at(0, 1, 2)}, {Name: "eve", Faces: at(20)}}
	s := new(script)
	s.say(1, "alice", .7)
	s.say(2, "alice", .7)
	s.say(20, "alice", .7)
	_, results, err := evaluate.Run(ids,
		evaluate.Protocol{Enroll: 1, Strangers: []string{"eve"}, Stride: 1,
			Order: evaluate.Sequential},
		[]evaluate.Entry{s.entry(false)})
	if err != nil {
		t.Fatal(err)
	}
	if r := results[0]; len(r.Curve) != 1 || r.RecallAtFAR0 != 0 {
		t.Errorf("%+v", r)
	}
}

func TestOrder(t *testing.T) {
	poor := at(7)[0]
	poor.Usable, poor.Hold = false, true
	ids := []evaluate.Identity{
		{Name: "alice", Faces: append([]evaluate.Face{poor}, at(0, 1, 2, 3)...)},
		{Name: "bob", Faces: at(10, 11, 12)},
		{Name: "eve", Faces: at(20)},
	}
	for _, c := range []struct {
		p    evaluate.Protocol
		want string
	}{
		{evaluate.Protocol{Order: evaluate.Sequential, Stride: 1, Enroll: 1},
			"alice=0 bob=10 7! 1 2 3 11 12 20"},
		{evaluate.Protocol{Order: evaluate.Sequential, Stride: 2, Enroll: 1},
			"alice=0 bob=10 7! 2 11 20"},
		{evaluate.Protocol{Order: evaluate.Interleaved, Stride: 1, Enroll: 2},
			"alice=0 alice=1 bob=10 bob=11 7! 12 20 2 3"},
		// Kept apart, the last third of everybody's faces comes last, and nothing is learned from
		// it.
		{evaluate.Protocol{Order: evaluate.Sequential, Stride: 1, Enroll: 1, Apart: .34},
			"alice=0 bob=10 7! 1 2 11 20 3! 12!"},
	} {
		s := new(script)
		c.p.Strangers = []string{"eve"}
		if _, _, err := evaluate.Run(ids, c.p, []evaluate.Entry{s.entry(false)}); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(s.shown, " "); got != c.want {
			t.Errorf("%+v: %s, want %s", c.p, got, c.want)
		}
	}
	// A shuffle is the same for the same seed, another for another seed, and loses no face.
	shuffled := func(seed uint64) []string {
		s := new(script)
		p := evaluate.Protocol{Order: evaluate.Shuffled, Seed: seed, Stride: 1, Enroll: 1,
			Strangers: []string{"eve"}}
		if _, _, err := evaluate.Run(ids, p, []evaluate.Entry{s.entry(false)}); err != nil {
			t.Fatal(err)
		}
		return s.shown
	}
	a, b, c := shuffled(1), shuffled(1), shuffled(2)
	if !slices.Equal(a, b) || slices.Equal(a, c) {
		t.Errorf("shuffles %v, %v and %v", a, b, c)
	}
	slices.Sort(a)
	slices.Sort(c)
	if !slices.Equal(a, c) {
		t.Errorf("shuffles of other faces: %v and %v", a, c)
	}
}

// Faces of strangers are mixed in at random; those of enrolled people keep their order.
func TestMixed(t *testing.T) {
	ids := []evaluate.Identity{{Name: "alice", Faces: at(0, 1, 2, 3, 4, 5, 6)},
		{Name: "eve", Faces: at(20, 21, 22, 23, 24, 25)}}
	mixed := func(seed uint64) []string {
		s := new(script)
		p := evaluate.Protocol{Order: evaluate.Mixed, Seed: seed, Stride: 1, Enroll: 1,
			Strangers: []string{"eve"}}
		if _, _, err := evaluate.Run(ids, p, []evaluate.Entry{s.entry(false)}); err != nil {
			t.Fatal(err)
		}
		return s.shown
	}
	a := mixed(1)
	if !slices.Equal(a, mixed(1)) || slices.Equal(a, mixed(2)) {
		t.Errorf("the seed does not decide: %v", a)
	}
	var alice, eve []string
	switches := 0
	for i, x := range a[1:] {
		if len(x) == 1 {
			alice = append(alice, x)
		} else {
			eve = append(eve, x)
		}
		if i > 0 && len(x) != len(a[i]) {
			switches++
		}
	}
	if got := strings.Join(alice, " "); got != "1 2 3 4 5 6" {
		t.Errorf("alice's faces come as %s", got)
	}
	if slices.IsSorted(eve) || len(eve) != 6 || switches < 3 {
		t.Errorf("not mixed: %v", a)
	}
}

// If adaptation is separate, only the test is counted.
func TestApart(t *testing.T) {
	ids := []evaluate.Identity{{Name: "alice", Faces: at(0, .1, .2, .3, .4)},
		{Name: "eve", Faces: at(9, 9.1)}}
	p := evaluate.Protocol{Enroll: 1, Strangers: []string{"eve"}, Order: evaluate.Sequential,
		Stride: 1, Apart: .5}
	counts, results, err := evaluate.Run(ids, p,
		[]evaluate.Entry{evaluate.Learner(line, online.Settings{})})
	if err != nil {
		t.Fatal(err)
	}
	if counts != (evaluate.Counts{Enrolled: 1, Adaptation: 3, Known: 2, Strangers: 1}) {
		t.Errorf("counts %+v", counts)
	}
	if r := results[0]; r.FNMR == nil || r.FNMR.Faces != 2 || r.FMR.Faces != 1 ||
		len(r.OverTime) != 2 ||
		r.OverTime[0].From != 2 {
		t.Errorf("%+v", r)
	}
}

// The attempts of several runs are added up: a face that is judged in two runs is two attempts.
func TestErrorRateOverRuns(t *testing.T) {
	ids := []evaluate.Identity{{Name: "alice", Faces: at(0, 1)}, {Name: "bob", Faces: at(10, 11)},
		{Name: "eve", Faces: at(20, 21)}}
	s := &script{accept: .5}
	s.say(1, "alice", .9)
	s.say(11, "alice", .9) // always wrong: it is bob's face, or a stranger's
	s.say(20, "alice", .6)
	all := evaluate.OneUser([]string{"alice", "bob", "eve"}, []string{"alice"})
	if got := fmt.Sprint(all); got != "[[bob eve]]" {
		t.Fatalf("one user: %s", got)
	}
	choices := append(all, []string{"eve"})
	sum := fixture.Must(evaluate.RunAll(context.Background(), ids,
		evaluate.Protocol{Enroll: 1, Stride: 1, Order: evaluate.Sequential}, choices,
		[]evaluate.Entry{s.entry(false)},
		nil))(t)
	m := sum.Methods[0]
	// Strangers: bob's 10 and 11 in the first run, eve's 20 and 21 in both; 11 and 20 were
	// accepted. One of the runs has two enrolled people, so these are rates of an identification.
	if e := m.FPIR; e.Faces != 6 || e.Errors != 3 || e.Rate != .5 || e.People != 2 ||
		e.PeopleWrong != 2 {
		t.Errorf("FPIR %+v", e)
	}
	near(t, "FAR", m.FAR, 3./6)
	// bob and eve against alice, eve against both
	if m.Pairs != (evaluate.Pairs{Total: 3, Accepted: 3}) {
		t.Errorf("pairs %+v", m.Pairs)
	}
	if e := m.FNIR; e.Faces != 3 || e.Errors != 1 || e.People != 2 || e.PeopleWrong != 1 {
		t.Errorf("FNIR %+v", e)
	}
	near(t, "recall", m.Recall, 2./3) // and not 3/4, the mean of the runs
	confusion := "{[alice bob] [{alice true [2 0] 0} {bob true [1 0] 0} {bob false [1 0] 1} {eve " +
		"false [2 0] 2}]}"
	if got := fmt.Sprint(m.Confusion); got != confusion {
		t.Errorf("confusion %s", got)
	}
}

// One impostor of four gets in as each of two users. This is a rate of 4 attempts in 24 for any
// number of users. The interval assumes that neither the attempts nor the pairs are independent.
func TestRatesDoNotGrowWithUsers(t *testing.T) {
	var ids []evaluate.Identity
	var names []string
	s := &script{accept: .5}
	for i, name := range []string{"a", "b", "c", "d"} {
		ids, names = append(ids, evaluate.Identity{Name: name,
			Faces: at(float32(10*i), float32(10*i+1))}),
			append(names, name)
		s.say(float32(10*i+1), name, .9)
	}
	s.say(30, "a", .9) // in every run of the script, for every user
	sum := fixture.Must(evaluate.RunAll(context.Background(), ids,
		evaluate.Protocol{Enroll: 1, Stride: 1, Order: evaluate.Sequential},
		evaluate.OneUser(names, names),
		[]evaluate.Entry{s.entry(false)}, nil))(t)
	m := sum.Methods[0]
	if m.FPIR != nil || m.FNIR != nil {
		t.Errorf("rates of an identification: %+v, %+v", m.FPIR, m.FNIR)
	}
	// The script accepts 1, 11, 21 and 31 in every run, and 30 in the three runs in which d is a
	// stranger.
	if e := m.FMR; e.Faces != 24 || e.Errors != 15 || float64(e.Rate) != 15./24 ||
		e.Rate != m.FAR || e.People != 4 ||
		e.PeopleWrong != 4 {
		t.Errorf("FMR %+v", e)
	}
	if e := m.FNMR; e.Faces != 4 || e.Errors != 0 || e.Interval != e.PeopleInterval {
		t.Errorf("FNMR %+v", e)
	}
	if i := m.FMR.Interval; !(i.Low < evaluate.ClopperPearson(15, 24).Low &&
		i.High > evaluate.ClopperPearson(15, 24).High) {
		t.Errorf("interval %+v is narrower than if all attempts were independent", i)
	}
}

func TestRunErrors(t *testing.T) {
	ids := []evaluate.Identity{{Name: "alice", Faces: at(0, 1)}, {Name: "bob", Faces: at(3)}}
	s := new(script)
	for _, c := range []struct {
		p    evaluate.Protocol
		err  error
		text string
	}{
		{evaluate.Protocol{Enroll: 1, Stride: 1, Strangers: []string{"eve"}}, evaluate.ErrProtocol,
			`"eve"`},
		{evaluate.Protocol{Enroll: 1, Stride: 1, Strangers: []string{"alice", "bob"}},
			evaluate.ErrProtocol, "nobody is left"},
		{evaluate.Protocol{Enroll: 0, Stride: 1}, evaluate.ErrProtocol, "at least 1"},
		{evaluate.Protocol{Enroll: 1, Stride: 0}, evaluate.ErrProtocol, "at least 1"},
		{evaluate.Protocol{Enroll: 1, Stride: 1, Apart: 1}, evaluate.ErrProtocol,
			"a test of 1 of the faces"},
		{evaluate.Protocol{Enroll: 1, Stride: 1, Apart: math.NaN()}, evaluate.ErrProtocol,
			"a test of NaN of the faces"},
		{evaluate.Protocol{Enroll: 2, Stride: 1, Strangers: []string{"bob"}}, evaluate.ErrTooFew,
			"alice has 2, of which 2 are enrolled"},
		{evaluate.Protocol{Enroll: 3, Stride: 1, Strangers: []string{"bob"}}, evaluate.ErrTooFew,
			"alice has 2 of the 3"},
		{evaluate.Protocol{Enroll: 1, Stride: 1}, evaluate.ErrTooFew,
			"bob has 1, of which 1 are enrolled; no face is left to judge"},
	} {
		if _, _, err := evaluate.Run(ids, c.p, []evaluate.Entry{s.entry(false)}); !errors.Is(err,
			c.err) ||
			!strings.Contains(err.Error(), c.text) {
			t.Errorf("%+v: error %v", c.p, err)
		}
	}
	if _, err := evaluate.ParseOrder("backwards"); err == nil {
		t.Error("an order that there is not")
	}
}

// Rates and curve use all attempts together.
func TestRunAll(t *testing.T) {
	ids := []evaluate.Identity{
		{Name: "alice", Faces: at(0, .1, .2, .3)},
		{Name: "bob", Faces: at(10, 10.1, 10.2)},
		{Name: "eve", Faces: at(.35, 30)}, // nearly alice
	}
	choices := evaluate.Choices([]string{"alice", "bob", "eve"}, 1)
	p := evaluate.Protocol{Enroll: 1, Stride: 1, Order: evaluate.Sequential}
	var done []int
	s, err := evaluate.RunAll(context.Background(), ids, p, choices,
		[]evaluate.Entry{evaluate.Learner(line, online.Settings{K: 50}), evaluate.Nearest(line)},
		func(i int) { done = append(done, i) })
	if err != nil {
		t.Fatal(err)
	}
	if s.Runs != 3 || !slices.Equal(done, []int{0, 1, 2}) {
		t.Errorf("%d runs, progress %v", s.Runs, done)
	}
	l := s.Methods[0]
	// Eve is accepted as alice, and alice as eve: two strangers' faces of the 2+4+3 in three runs.
	near(t, "FAR", l.FAR, (1./2*2+4+0)/9)
	if s.Worst[0].FARRun != "strangers alice" || s.Worst[0].FAR != 1 {
		t.Errorf("worst %+v", s.Worst[0])
	}
	if s.Faces.Known != 5+3+4 || s.Faces.Strangers != 2+3+4 {
		t.Errorf("faces %+v", s.Faces)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := evaluate.RunAll(ctx, ids, p, choices, nil, nil); !errors.Is(err,
		context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// A run can be interrupted between two faces, and not only between two runs.
func TestInterruptedRun(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	ids := []evaluate.Identity{{Name: "alice", Faces: at(0, 1, 2, 3)}}
	s := &stopper{cancel: cancel}
	_, err := evaluate.RunAll(ctx, ids,
		evaluate.Protocol{Enroll: 1, Stride: 1, Order: evaluate.Sequential},
		[][]string{nil}, []evaluate.Entry{{Name: "stopper", New: func() (evaluate.Method, error) {
			return s, nil
		}}},
		nil)
	if !errors.Is(err, context.Canceled) || len(s.shown) != 2 {
		t.Errorf("%v after %v", err, s.shown)
	}
}

// stopper interrupts the run at the first face that it judges.
type stopper struct {
	script
	cancel func()
}

func (s *stopper) Judge(x []float32, hold bool) (string, float64, error) {
	s.cancel()
	return s.script.Judge(x, hold)
}

func TestChoices(t *testing.T) {
	names := []string{"a", "b", "c", "d", "e", "f"}
	if n := len(evaluate.Choices(names, 2)); n != 15 {
		t.Errorf("%d choices of two of six, want 15", n)
	}
	if got := fmt.Sprint(evaluate.Choices(names[:3], 2)); got != "[[a b] [a c] [b c]]" {
		t.Errorf("%s", got)
	}
	if got := fmt.Sprint(evaluate.Choices(names[:2], 3)); got != "[]" {
		t.Errorf("%s", got)
	}
}

func TestDrawChoices(t *testing.T) {
	names := []string{"a", "b", "c", "d", "e", "f"}
	all, err := evaluate.DrawChoices(names, 2, 0, 1)
	if err != nil || len(all) != 15 {
		t.Fatalf("%v, %v", all, err)
	}
	for n := 1; n <= 15; n++ {
		some, err := evaluate.DrawChoices(names, 2, n, 1)
		if err != nil || len(some) != n {
			t.Fatalf("%d drawn: %v, %v", n, some, err)
		}
		last := -1
		for _, c := range some { // each is one of all, in their order, once
			at := slices.IndexFunc(all, func(d []string) bool { return slices.Equal(c, d) })
			if at <= last {
				t.Errorf("%d drawn: %v", n, some)
			}
			last = at
		}
	}
	a, _ := evaluate.DrawChoices(names, 3, 5, 1)
	b, _ := evaluate.DrawChoices(names, 3, 5, 2)
	if fmt.Sprint(a) == fmt.Sprint(b) {
		t.Error("the seed does not decide")
	}
	many := make([]string, 40)
	for i := range many {
		many[i] = fmt.Sprint(i)
	}
	if _, err := evaluate.DrawChoices(many, 20, 0, 1); err == nil ||
		!strings.Contains(err.Error(), "1.38e+11 choices") {
		t.Errorf("all choices of 20 of 40: %v", err)
	}
	if some, err := evaluate.DrawChoices(many, 20, 3, 1); err != nil || len(some) != 3 {
		t.Errorf("three choices of 20 of 40: %v, %v", some, err)
	}
}

// A rate without trials is null, because JSON has no other value for it.
func TestNoStrangers(t *testing.T) {
	ids := []evaluate.Identity{{Name: "alice", Faces: at(0, .1)}}
	s := fixture.Must(evaluate.RunAll(context.Background(), ids,
		evaluate.Protocol{Enroll: 1, Stride: 1, Order: evaluate.Sequential}, [][]string{nil},
		[]evaluate.Entry{evaluate.Learner(line, online.Settings{}), evaluate.Nearest(line)},
		nil))(t)
	b := fixture.Must(json.Marshal(s))(t)
	if !strings.Contains(string(b), `"far":null`) || strings.Contains(string(b), "NaN") {
		t.Errorf("%s", b)
	}
	for _, m := range s.Methods {
		if m.Recall != 1 {
			t.Errorf("%s: recall %g", m.Name, m.Recall)
		}
	}
}
