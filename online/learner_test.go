// SPDX-License-Identifier: Apache-2.0

package online_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/online"
)

// plane is a simple space in which a person can be drawn as a spot.
var plane = face.Space{ID: "plane", Dim: 2, Scale: 1, Sigma: .2, Gamma: 1e-3, ImpostorRadius: .9}

func Example() {
	l, err := online.New(plane, online.Settings{K: 50})
	if err != nil {
		panic(err)
	}
	l.Label([]float32{0, 0}, "alice")
	l.Label([]float32{3, 0}, "bob")
	// Alice turns her head, step by step, far beyond what she was labelled with.
	for i := range 10 {
		l.Observe([]float32{0, .3 * float32(i)})
	}
	for _, x := range [][]float32{{0, 2.9}, {3, .1}, {-3, -3}} {
		v, err := l.Observe(x)
		if err != nil {
			panic(err)
		}
		fmt.Printf("label %q, confidence %.2f, reason %q\n", v.Label, v.Confidence, v.Reason)
	}
	// Output:
	// label "alice", confidence 0.88, reason ""
	// label "bob", confidence 1.00, reason ""
	// label "", confidence 0.00, reason "not near anybody known"
}

// faces returns a stream of labelled and unlabelled faces of three people and a stranger.
func faces(seed uint64, n int) [][]float32 {
	r := rand.New(rand.NewPCG(seed, 11))
	var xs [][]float32
	for range n {
		person := float64(r.IntN(4))
		x := []float32{float32(2*person + .15*r.NormFloat64()), float32(.5 * r.NormFloat64())}
		if person == 3 {
			x[1] += 20
		}
		xs = append(xs, x)
	}
	return xs
}

func learner(t *testing.T, s online.Settings) *online.Learner {
	t.Helper()
	l, err := online.New(plane, s)
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"alice", "bob", "carol"} {
		for _, y := range []float32{-.1, .1} {
			if err := l.Label([]float32{2 * float32(i), y}, name); err != nil {
				t.Fatal(err)
			}
		}
	}
	return l
}

func snapshot(t *testing.T, l *online.Learner) []byte {
	t.Helper()
	b, err := l.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestSameStreamSameBytes(t *testing.T) {
	run := func() []byte {
		l := learner(t, online.Settings{K: 25})
		for _, x := range faces(1, 500) {
			if _, err := l.Observe(x); err != nil {
				t.Fatal(err)
			}
		}
		return snapshot(t, l)
	}
	if !bytes.Equal(run(), run()) {
		t.Error("two runs over one stream differ")
	}
}

func TestOutlierChangesNothing(t *testing.T) {
	l := learner(t, online.Settings{K: 25})
	outliers := 0
	for _, x := range faces(2, 600) {
		before, counts := fmt.Sprint(l.Graph().State()), l.Counts()
		v, err := l.Observe(x)
		if err != nil {
			t.Fatal(err)
		}
		if v.Reason != online.Outlier {
			continue
		}
		outliers++
		if before != fmt.Sprint(l.Graph().State()) {
			t.Fatal("an outlier changed the graph")
		}
		counts.Observed++
		counts.Outliers++
		if l.Counts() != counts {
			t.Fatalf("counts %+v, want %+v", l.Counts(), counts)
		}
	}
	if outliers < 100 {
		t.Errorf("%d outliers: the stream tests too little", outliers)
	}
}

func TestJudgeChangesNothing(t *testing.T) {
	l := learner(t, online.Settings{K: 12})
	for i, x := range faces(3, 200) {
		before := snapshot(t, l)
		looked, err := l.Judge(x)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(before, snapshot(t, l)) {
			t.Fatal("a look changed the learner")
		}
		full := l.Graph().Learned() > l.Settings().K
		v, err := l.Observe(x)
		if err != nil {
			t.Fatal(err)
		}
		// At a full set Observe repartitions first, so the two may differ a little there.
		if !full && (v.Label != looked.Label || v.Confidence != looked.Confidence) {
			t.Fatalf("face %d: judged %+v, then observed %+v", i, looked, v)
		}
	}
}

// TestOncePerFrame shows a frame in which two faces look like alice.
func TestOncePerFrame(t *testing.T) {
	for _, order := range [][]int{{0, 1, 2}, {1, 0, 2}, {2, 1, 0}} {
		l := learner(t, online.Settings{K: 25})
		near, far, bob := []float32{0, .05}, []float32{0, .7}, []float32{2, 0}
		all := [][]float32{near, far, bob}
		var frame []online.Observation
		for _, i := range order {
			frame = append(frame, online.Observation{Vector: all[i]})
		}
		verdicts, err := l.ObserveFrame(frame)
		if err != nil {
			t.Fatal(err)
		}
		for q, i := range order {
			v := verdicts[q]
			want := []online.Verdict{{Label: "alice", Learned: true}, {Reason: online.BetterFace},
				{Label: "bob", Learned: true}}[i]
			if v.Label != want.Label || v.Reason != want.Reason || v.Learned != want.Learned {
				t.Errorf("order %v: face %d is %+v, want %+v", order, i, v, want)
			}
		}
		if m := l.Graph().Mass(); m != 2 {
			t.Errorf("order %v: %g faces learned, want 2", order, m)
		}
	}
}

func TestHold(t *testing.T) {
	l := learner(t, online.Settings{})
	before := fmt.Sprint(l.Graph().State())
	v, err := l.ObserveFrame([]online.Observation{{Vector: []float32{0, 0}, Hold: true}})
	if err != nil || v[0].Label != "alice" || v[0].Learned {
		t.Errorf("%+v, %v", v, err)
	}
	if before != fmt.Sprint(l.Graph().State()) {
		t.Error("a face on hold was learned")
	}
}

func TestThresholds(t *testing.T) {
	l := learner(t, online.Settings{Accept: .5, Learn: .9, Gamma: .1, Epsilon: 1e-4})
	far := []float32{0, .62}
	v, _ := l.Observe(far)
	if v.Label != "" || v.Reason != online.Unsure || v.Learned || v.Confidence <= 0 || v.Confidence >= .5 {
		t.Errorf("far face: %+v", v)
	}
	middle := []float32{0, .45}
	if v, _ = l.Observe(middle); v.Label != "alice" || v.Learned {
		t.Errorf("face between the thresholds: %+v", v)
	}
	if v, _ = l.Observe([]float32{0, .05}); v.Label != "alice" || !v.Learned {
		t.Errorf("near face: %+v", v)
	}
}

func TestTie(t *testing.T) {
	l, _ := online.New(plane, online.Settings{})
	l.Label([]float32{-.3, 0}, "alice")
	l.Label([]float32{.3, 0}, "bob")
	v, err := l.Observe([]float32{0, 0})
	if err != nil || v.Label != "" || v.Reason != online.Tie || math.Abs(v.Confidence-.5) > .01 {
		t.Errorf("%+v, %v", v, err)
	}
}

func TestNobodyLabelled(t *testing.T) {
	l, _ := online.New(plane, online.Settings{})
	v, err := l.Observe([]float32{0, 0})
	if err != nil || v != (online.Verdict{Sink: 1, Reason: online.Outlier}) {
		t.Errorf("%+v, %v", v, err)
	}
}

func TestLabelLate(t *testing.T) {
	l := learner(t, online.Settings{K: 25})
	dave := []float32{10, 10}
	if v, _ := l.Observe(dave); v.Label != "" {
		t.Errorf("a stranger is %q", v.Label)
	}
	for _, x := range faces(5, 300) {
		l.Observe(x)
	}
	if err := l.Label(dave, "dave"); err != nil {
		t.Fatal(err)
	}
	if v, _ := l.Observe([]float32{10.1, 10}); v.Label != "dave" {
		t.Errorf("dave is %+v", v)
	}
}

func TestSnapshot(t *testing.T) {
	l := learner(t, online.Settings{K: 25, Accept: .2, Learn: .3})
	stream := faces(7, 800)
	for _, x := range stream[:400] {
		l.Observe(x)
	}
	var m online.Learner
	if err := m.UnmarshalBinary(snapshot(t, l)); err != nil {
		t.Fatal(err)
	}
	for _, x := range stream[400:] {
		a, _ := l.Observe(x)
		b, _ := m.Observe(x)
		if a != b {
			t.Fatalf("a restored learner judges %+v, the other %+v", b, a)
		}
	}
	if !bytes.Equal(snapshot(t, l), snapshot(t, &m)) {
		t.Error("a restored learner went on with other bytes")
	}
}

func TestSnapshotDamaged(t *testing.T) {
	l := learner(t, online.Settings{K: 10})
	for _, x := range faces(8, 50) {
		l.Observe(x)
	}
	good := snapshot(t, l)
	for n := range good {
		var m online.Learner
		if err := m.UnmarshalBinary(good[:n]); !errors.Is(err, online.ErrDamaged) {
			t.Fatalf("the first %d of %d bytes: %v", n, len(good), err)
		}
	}
	var m online.Learner
	newer := bytes.Replace(good, []byte("\x67version\x01"), []byte("\x67version\x02"), 1)
	want := "snapshot of another version: a newer program wrote version 2, and this one reads 1; update this program"
	if err := m.UnmarshalBinary(newer); !errors.Is(err, online.ErrVersion) || err.Error() != want {
		t.Error(err)
	}
	// Whatever bit is flipped, the learner must not break.
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 1 << (i % 8)
		var m online.Learner
		if m.UnmarshalBinary(bad) == nil {
			v, err := m.Observe(make([]float32, m.Space().Dim))
			if err == nil && math.IsNaN(v.Confidence) {
				t.Fatalf("byte %d: a damaged snapshot gives NaN", i)
			}
		}
	}
}

func TestConfigure(t *testing.T) {
	l := learner(t, online.Settings{K: 60})
	for _, x := range faces(9, 300) {
		l.Observe(x)
	}
	mass := l.Graph().Mass()
	s := l.Settings()
	s.K, s.Sigma = 10, .25
	if err := l.Configure(s); err != nil {
		t.Fatal(err)
	}
	if l.Graph().Learned() > 11 || l.Graph().Mass() != mass || l.Settings() != s {
		t.Errorf("%d vertices, mass %g of %g", l.Graph().Len(), l.Graph().Mass(), mass)
	}
	before := snapshot(t, l)
	s.K = 1
	if err := l.Configure(s); !errors.Is(err, online.ErrSettings) ||
		!strings.Contains(err.Error(), "cannot be merged to fewer than") {
		t.Errorf("k smaller than what cannot be merged: %v", err)
	}
	s.K, s.Gamma = 10, math.NaN()
	if err := l.Configure(s); !errors.Is(err, online.ErrSettings) {
		t.Errorf("gamma NaN: %v", err)
	}
	if !bytes.Equal(before, snapshot(t, l)) {
		t.Error("refused settings changed the learner")
	}
}

func TestForget(t *testing.T) {
	l := learner(t, online.Settings{K: 40})
	for _, x := range faces(10, 200) {
		l.Observe(x)
	}
	if err := l.Forget("bob"); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(l.Names()); got != "[alice carol]" {
		t.Errorf("names %s", got)
	}
	if bytes.Contains(snapshot(t, l), []byte("bob")) {
		t.Error("the name is still in the snapshot")
	}
	if v, _ := l.Judge([]float32{2, 0}); v.Label != "" {
		t.Errorf("bob is %q", v.Label)
	}
	if v, _ := l.Judge([]float32{4, 0}); v.Label != "carol" {
		t.Errorf("carol is %+v", v)
	}
	if err := l.Forget("bob"); !errors.Is(err, online.ErrUnknown) || err.Error() != "nobody of that name: bob" {
		t.Errorf("forgotten twice: %v", err)
	}
}

func TestBadVectors(t *testing.T) {
	nan := float32(math.NaN())
	unit := plane
	unit.ID, unit.Unit = "directions", true
	for _, tt := range []struct {
		space face.Space
		x     []float32
		want  string
		is    error
	}{
		{plane, nil, "space plane: vector of another length: 0 values, want 2", face.ErrDimension},
		{plane, []float32{1}, "space plane: vector of another length: 1 values, want 2", face.ErrDimension},
		{plane, []float32{1, nan}, "space plane: vector with a value that is not a finite number: value 2 of 2",
			face.ErrNotFinite},
		{plane, []float32{float32(math.Inf(-1)), 0}, "space plane: vector with a value that is not a finite number: " +
			"value 1 of 2", face.ErrNotFinite},
		{unit, []float32{0, 0}, "space directions: vector of zero length where the space needs a direction",
			face.ErrZeroNorm},
		{unit, []float32{3, 4}, "space directions: vector that is not of unit length: norm 5", face.ErrNotUnit},
	} {
		l, err := online.New(tt.space, online.Settings{})
		if err != nil {
			t.Fatal(err)
		}
		l.Label([]float32{1, 0}, "alice")
		before := snapshot(t, l)
		for name, err := range map[string]error{
			"Label":   l.Label(tt.x, "alice"),
			"Judge":   func() error { _, err := l.Judge(tt.x); return err }(),
			"Observe": func() error { _, err := l.Observe(tt.x); return err }(),
		} {
			if !errors.Is(err, tt.is) || !strings.HasSuffix(err.Error(), tt.want) {
				t.Errorf("%s: got %v, want %s", name, err, tt.want)
			}
		}
		if !bytes.Equal(before, snapshot(t, l)) {
			t.Errorf("%s: a refused vector changed the learner", tt.want)
		}
	}
}

func TestNames(t *testing.T) {
	l, _ := online.New(plane, online.Settings{})
	for name, want := range map[string]string{
		"":                       `unusable name "": it is empty`,
		" alice":                 `unusable name " alice": it begins or ends with a space`,
		"\u200da":                `unusable name "\u200da": it begins or ends with a character that joins others`,
		"a\u202eb":               `unusable name "a\u202eb": it has a character that does not print`,
		"a\nb":                   `unusable name "a\nb": it has a character that does not print`,
		"\xff":                   `unusable name "\xff": it is not UTF-8`,
		strings.Repeat("a", 101): `unusable name: it has 101 characters; use at most 100`,
		"Unknown":                `unusable name "Unknown": reports call strangers so; choose another name`,
	} {
		if err := l.Label([]float32{0, 0}, name); !errors.Is(err, online.ErrName) || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if err := l.Label([]float32{0, 0}, "Žofie d'Arc 李"); err != nil {
		t.Error(err)
	}
	if err := l.Rename("Žofie d'Arc 李", "unknown"); !errors.Is(err, online.ErrName) {
		t.Error(err)
	}
}

func TestWarnings(t *testing.T) {
	l, _ := online.New(plane, online.Settings{})
	if w := l.Warnings(); w != nil {
		t.Errorf("defaults: %q", w)
	}
	l, _ = online.New(plane, online.Settings{Sigma: .24})
	if w := l.Warnings(); len(w) != 1 || !strings.HasPrefix(w[0],
		"edges of this graph reach 1.03, and faces of two people are met from 0.9 on") {
		t.Errorf("near the cliff: %q", w)
	}
	l, _ = online.New(plane, online.Settings{K: 3})
	for i := range 9 {
		l.Label([]float32{float32(10 * i), 0}, fmt.Sprint("person ", i))
	}
	for i := range 9 {
		if v, _ := l.Observe([]float32{float32(10*i) + .1, 0}); v.Label != fmt.Sprint("person ", i) ||
			v.Learned == v.NoRoom || v.NoRoom != (i > 3) {
			t.Errorf("person %d: %+v", i, v)
		}
	}
	if c := l.Counts(); !l.Room().Full || c.PassedOver != 5 || c.Learned != 4 {
		t.Errorf("full %t, %+v", l.Room().Full, c)
	}
	const full = "k = 3 is full: known faces are recognised, and most new ones are not learned (5 so far); use a k of " +
		"about 110, or take back learned faces"
	if w := l.Warnings(); len(w) != 1 || w[0] != full {
		t.Errorf("k too small: %q", w)
	}
	var back online.Learner
	if err := back.UnmarshalBinary(snapshot(t, l)); err != nil || !back.Room().Full {
		t.Errorf("restored: full %t, %v", back.Room().Full, err)
	}
	if n, err := l.Undo(3); err != nil || n != 1 || l.Room().Full {
		t.Errorf("%d undone, full %t, %v", n, l.Room().Full, err)
	}
}

func TestSettingsErrors(t *testing.T) {
	for _, s := range []online.Settings{
		{K: -1}, {K: math.MaxInt}, {K: 1 << 28}, {Reach: -2}, {Reach: math.NaN()}, {Journal: -2}, {DriftDistance: -2},
		{Sigma: -1}, {Sigma: math.NaN()}, {Gamma: -1}, {Gamma: math.Inf(1)},
		{Epsilon: 2}, {Multiplier: 1}, {Accept: 2}, {Accept: math.NaN()}, {Learn: -1},
	} {
		if _, err := online.New(plane, s); !errors.Is(err, online.ErrSettings) {
			t.Errorf("%+v: %v", s, err)
		}
	}
}

// The time that faces carry is kept with them.
func TestTimeInSnapshot(t *testing.T) {
	at := time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)
	l := learner(t, online.Settings{K: 20})
	l.SetTime(at)
	var back online.Learner
	if err := back.UnmarshalBinary(snapshot(t, l)); err != nil {
		t.Fatal(err)
	}
	if v, err := back.Observe([]float32{0, .1}); err != nil || !v.Learned {
		t.Fatalf("%+v, %v", v, err)
	}
	if n, err := back.UndoSince(at, at); err != nil || n != 0 {
		t.Errorf("%d faces are later than they were; %v", n, err)
	}
	if n, err := back.UndoSince(at.Add(-time.Second), at); err != nil || n != 1 {
		t.Errorf("%d faces; %v", n, err)
	}
}

// Faces that were undone are gone from the snapshot, byte by byte, and the verdicts are the same as before them.
func TestUndo(t *testing.T) {
	l := learner(t, online.Settings{K: 400})
	for _, x := range faces(30, 100) {
		l.Observe(x)
	}
	mark := l.Counts().Observed
	judge := func() (v []online.Verdict) {
		for _, x := range faces(31, 50) {
			w, err := l.Judge(x)
			if err != nil {
				t.Fatal(err)
			}
			w.Confidence, w.Sink = math.Round(w.Confidence*1e8), math.Round(w.Sink*1e8)
			v = append(v, w)
		}
		return v
	}
	before := judge()
	learned := 0
	var later [][]float32
	for _, x := range faces(32, 100) {
		v, err := l.Observe(x)
		if err != nil {
			t.Fatal(err)
		}
		if v.Learned {
			learned++
			later = append(later, x)
		}
	}
	n, err := l.Undo(mark)
	if err != nil || n != learned || learned == 0 {
		t.Fatalf("%d faces undone of %d; %v", n, learned, err)
	}
	if !reflect.DeepEqual(before, judge()) {
		t.Error("the verdicts are not those of before")
	}
	after := snapshot(t, l)
	for _, x := range later {
		if bytes.Contains(after, raw(x)) {
			t.Fatal("a face that was undone is still in the snapshot")
		}
	}
	if _, err := l.Undo(0); err != nil {
		t.Error(err)
	}
	if l.Graph().Mass() != 0 {
		t.Errorf("mass %g after all was undone", l.Graph().Mass())
	}
}

// A caller may use one buffer for all faces: what a learner has learned, and has told of, stays.
func TestOneBuffer(t *testing.T) {
	l, same := learner(t, online.Settings{K: 20}), learner(t, online.Settings{K: 20})
	var told []online.Taught
	l.OnLearned(func(face online.Taught) { told = append(told, face) })
	var buffer []float32
	var learned [][]float32
	for _, x := range faces(31, 60) {
		buffer = append(buffer[:0], x...)
		v, err := l.Observe(buffer)
		if err != nil {
			t.Fatal(err)
		}
		if v.Learned {
			learned = append(learned, x)
		}
		if _, err := same.Observe(x); err != nil {
			t.Fatal(err)
		}
		clear(buffer)
	}
	if !bytes.Equal(snapshot(t, l), snapshot(t, same)) {
		t.Error("another learner than with a buffer for each face")
	}
	if len(told) == 0 || len(told) != len(learned) {
		t.Fatalf("told of %d faces, learned %d", len(told), len(learned))
	}
	for i, x := range learned {
		if !slices.Equal(told[i].Vector, x) {
			t.Fatalf("face %d was %v, and is told as %v", i, x, told[i].Vector)
		}
	}
}

// A face that a wrong clock has stamped in the future does not widen an undo, unless all later faces have such stamps.
func TestUndoSinceFuture(t *testing.T) {
	begin := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	now := begin.Add(130 * time.Minute)
	for _, c := range []struct{ from, to, want int }{{20, 21, 121}, {125, 126, 121}, {121, 130, 121}, {110, 130, 110}} {
		l, same := learner(t, online.Settings{K: 20}), learner(t, online.Settings{K: 20})
		for i, x := range faces(31, 130) {
			at := begin.Add(time.Duration(i) * time.Minute)
			if i >= c.from && i < c.to {
				at = begin.AddDate(10, 0, 0)
			}
			for _, l := range []*online.Learner{l, same} {
				l.SetTime(at)
				if _, err := l.Observe(x); err != nil {
					t.Fatal(err)
				}
			}
		}
		got, err := l.UndoSince(begin.Add(120*time.Minute), now)
		want, wantErr := same.Undo(int64(c.want))
		if err != nil || wantErr != nil || got != want || want == 0 {
			t.Errorf("faces %d to %d in the future: %d undone, want %d; %v, %v", c.from, c.to, got, want, err, wantErr)
		}
	}
}

// An undo to a time takes back the same faces as an undo to a number. If a clock was set back, all faces after the
// first later face go, too; faces without a time stay.
func TestUndoSince(t *testing.T) {
	begin := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	for _, minutes := range []int{-5, 0, 40, 99, 500} {
		l, same := learner(t, online.Settings{K: 20}), learner(t, online.Settings{K: 20})
		for i, x := range faces(31, 130) {
			at := begin.Add(time.Duration(i) * time.Minute)
			switch {
			case i < 10:
				at = time.Time{}
			case i == 60:
				at = begin // the clock was set back
			}
			for _, l := range []*online.Learner{l, same} {
				l.SetTime(at)
				if _, err := l.Observe(x); err != nil {
					t.Fatal(err)
				}
			}
		}
		got, err := l.UndoSince(begin.Add(time.Duration(minutes)*time.Minute), begin.Add(500*time.Minute))
		want, wantErr := same.Undo(int64(max(10, minutes+1)))
		if err != nil || wantErr != nil || got != want || (got == 0) != (minutes == 500) {
			t.Errorf("since minute %d: %d faces undone, want %d; %v, %v", minutes, got, want, err, wantErr)
		}
		if minutes < 500 && !bytes.Equal(snapshot(t, l), snapshot(t, same)) {
			t.Errorf("since minute %d: another learner than that undone by the number", minutes)
		}
	}
	l := learner(t, online.Settings{K: 20, Journal: 5})
	l.SetTime(begin)
	for _, x := range faces(31, 130) {
		l.Observe(x)
	}
	if _, err := l.UndoSince(begin.Add(-time.Hour), begin); !errors.Is(err, online.ErrJournal) {
		t.Errorf("further back than the journal: %v", err)
	}
	// Also before 1970: a face without a time does not count as later.
	l = learner(t, online.Settings{K: 20})
	for i, x := range faces(31, 50) {
		if i == 20 {
			l.SetTime(begin)
		}
		l.Observe(x)
	}
	mass := l.Graph().Mass()
	if n, err := l.UndoSince(time.Date(1960, 1, 1, 0, 0, 0, 0, time.UTC), begin); err != nil || n == 0 ||
		l.Graph().Mass() != mass-float64(n) || l.Graph().Mass() == 0 {
		t.Errorf("%d faces undone, of %g; %v", n, mass, err)
	}
}

// raw returns a vector in the form that a snapshot has.
func raw(x []float32) []byte {
	b := make([]byte, 0, 4*len(x))
	for _, v := range x {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

// After a person is forgotten, there is no labelled face of the person, no face that was accepted as theirs, and no
// name.
func TestForgetLeavesNothing(t *testing.T) {
	l := learner(t, online.Settings{K: 300})
	var bobs [][]float32
	for _, x := range faces(33, 200) {
		v, err := l.Observe(x)
		if err != nil {
			t.Fatal(err)
		}
		if v.Label == "bob" {
			bobs = append(bobs, x)
		}
	}
	if len(bobs) < 20 || !bytes.Contains(snapshot(t, l), raw(bobs[0])) {
		t.Fatalf("%d faces of bob: the stream tests too little", len(bobs))
	}
	if err := l.Forget("bob"); err != nil {
		t.Fatal(err)
	}
	after := snapshot(t, l)
	for _, x := range append(bobs, []float32{2, -.1}, []float32{2, .1}) {
		if bytes.Contains(after, raw(x)) {
			t.Fatal("a face of bob is still in the snapshot")
		}
	}
	var back online.Learner
	if err := back.UnmarshalBinary(after); err != nil {
		t.Fatal(err)
	}
}

func TestFreeze(t *testing.T) {
	l := learner(t, online.Settings{K: 40, Freeze: true})
	for _, x := range faces(34, 50) {
		if v, err := l.Observe(x); err != nil || v.Learned {
			t.Fatalf("%+v, %v", v, err)
		}
	}
	if l.Graph().Mass() != 0 || l.Counts().Observed != 50 {
		t.Errorf("mass %g, counts %+v", l.Graph().Mass(), l.Counts())
	}
	s := l.Settings()
	s.Freeze = false
	if err := l.Configure(s); err != nil {
		t.Fatal(err)
	}
	if v, _ := l.Observe([]float32{0, 0}); !v.Learned {
		t.Errorf("thawed: %+v", v)
	}
}

// A step without a repartition allocates nothing, whatever the verdict is.
func TestAllocations(t *testing.T) {
	l := learner(t, online.Settings{K: 2000})
	stream := faces(40, 3000)
	for _, x := range stream[:500] {
		l.Observe(x)
	}
	// A learner with many rejected faces.
	told := learner(t, online.Settings{K: 2000})
	for _, x := range stream[:8] {
		if err := told.Reject(x, "alice"); err != nil {
			t.Fatal(err)
		}
	}
	for _, x := range stream[:500] {
		told.Observe(x)
	}
	frozen := told.Settings()
	frozen.Freeze = true
	still := learner(t, frozen)
	i, nowhere, near := 500, []float32{-50, -50}, []float32{0, .1}
	for name, f := range map[string]func(){
		"new vertex": func() { l.Observe(stream[i]); i++ },
		"merged":     func() { l.Observe(stream[0]) },
		"outlier":    func() { l.Observe(nowhere) },
		"judged":     func() { l.Judge(stream[1]) },
		"rejected":   func() { told.Observe(stream[0]) },
		"frozen":     func() { still.Observe(near) },
	} {
		if n := testing.AllocsPerRun(300, f); n != 0 {
			t.Errorf("%s: %g allocations a step", name, n)
		}
	}
}

// Learning the faces of a frame does not change the verdicts of other faces in that frame.
func TestFrameLearnsAsJudged(t *testing.T) {
	frame := func(s online.Settings, faces ...[]float32) (*online.Learner, []online.Verdict) {
		t.Helper()
		l, err := online.New(plane, s)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Label([]float32{0, 0}, "alice"); err != nil {
			t.Fatal(err)
		}
		if err := l.Label([]float32{2, 0}, "bob"); err != nil {
			t.Fatal(err)
		}
		var all []online.Observation
		for _, x := range faces {
			all = append(all, online.Observation{Vector: x})
		}
		v, err := l.ObserveFrame(all)
		if err != nil {
			t.Fatal(err)
		}
		return l, v
	}
	// The second face is near the first face only, which was an outlier: it must not be learned as alice.
	l, v := frame(online.Settings{Reach: .3}, []float32{.25, 0}, []float32{.5, 0})
	if !v[0].Learned || v[1].Learned || v[1].Reason != online.Outlier {
		t.Errorf("%+v", v)
	}
	if c := l.Counts(); c.Learned != 1 || c.Outliers != 1 || l.Graph().Learned() != 1 {
		t.Errorf("%+v", c)
	}
	// The second face may be alice, but the first face is alice and is surer: the second is not learned as hers.
	_, v = frame(online.Settings{Reach: .6, Accept: .99}, []float32{.01, 0}, []float32{.55, 0})
	if v[0].Label != "alice" || !v[0].Learned || v[1].Reason != online.Unsure || v[1].Best != "alice" || v[1].Learned {
		t.Errorf("%+v", v)
	}
}

// What a program sees of the graph is its own: nothing that it writes there reaches the learner.
func TestGraphIsAView(t *testing.T) {
	l := learner(t, online.Settings{})
	for _, x := range faces(40, 50) {
		l.Observe(x)
	}
	before, g := snapshot(t, l), l.Graph()
	for i := range g.Len() {
		clear(g.Point(i))
		clear(g.Source(i))
		g.State().Vertices[i].Point[0] = 9
	}
	if !bytes.Equal(before, snapshot(t, l)) {
		t.Error("the learner has changed")
	}
}

// The format of a snapshot does not change while its version stays: the golden file is read, and written again byte for
// byte.
func TestGoldenSnapshot(t *testing.T) {
	path := fixture.Golden(t, "snapshot.cbor", func(path string) error {
		return os.WriteFile(path, small(t), 0o600)
	})
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var l online.Learner
	if err := l.UnmarshalBinary(want); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(snapshot(t, &l), want) {
		t.Error("a learner from the golden file writes other bytes")
	}
	if l.Graph().Learned() == 0 {
		t.Error("the golden file has no learned faces")
	}
}
