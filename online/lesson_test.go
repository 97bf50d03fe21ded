// SPDX-License-Identifier: Apache-2.0

package online_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/online"
	"github.com/fxamacker/cbor/v2"
)

// lesson returns a lesson of n centroids in a row, from x on, a tenth apart.
func lesson(name string, x, y float32, n int) online.Lesson {
	s := online.Lesson{Space: "plane", Name: name}
	for i := range n {
		s.Centroids = append(s.Centroids, online.Centroid{Vector: []float32{x, y + .1*float32(i)}, Multiplicity: 3,
			Radius: .05})
	}
	return s
}

func take(t *testing.T, l *online.Learner, source string, lessons ...online.Lesson) {
	t.Helper()
	if err := l.TakeLessons(source, lessons); err != nil {
		t.Fatal(err)
	}
}

func judge(t *testing.T, l *online.Learner, x ...float32) online.Verdict {
	t.Helper()
	v, err := l.Judge(x)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// A learner recognises faces that another learner has learned, and that it never saw itself. Such a name rests on
// learned faces.
func TestLessons(t *testing.T) {
	teacher, l := learner(t, online.Settings{}), learner(t, online.Settings{})
	for i := range 30 {
		if _, err := teacher.Observe([]float32{0, .1 * float32(i)}); err != nil {
			t.Fatal(err)
		}
	}
	lessons := teacher.Lessons()
	if len(lessons) != 1 || lessons[0].Name != "alice" || len(lessons[0].Centroids) < 20 {
		t.Fatalf("%+v", lessons)
	}
	if v := judge(t, l, 0, 2.9); v.Reason != online.Outlier {
		t.Fatalf("before: %+v", v)
	}
	before := snapshot(t, l)
	take(t, l, "door", lessons...)
	v := judge(t, l, 0, 2.9)
	if v.Label != "alice" || v.Anchored || v.Distance < 2.7 {
		t.Errorf("%+v", v)
	}
	// The learner does not give these lessons on, has no more labelled faces, and lists only faces that it learned
	// itself.
	stored, err := l.Stored("")
	if err != nil || len(l.Lessons()) != 0 || len(l.Labels()) != 6 || len(stored) != 6 {
		t.Errorf("%d lessons, %d labels, %d stored, %v", len(l.Lessons()), len(l.Labels()), len(stored), err)
	}
	want := []online.Source{{Name: "door", People: []string{"alice"}, Centroids: len(lessons[0].Centroids), Faces: 30}}
	if got := l.Sources(); !reflect.DeepEqual(got, want) {
		t.Errorf("sources are %+v, want %+v", got, want)
	}
	if err := l.WithdrawLessons("door"); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(before, snapshot(t, l)) || judge(t, l, 0, 2.9).Reason != online.Outlier {
		t.Error("something is left of what was withdrawn")
	}
	if err := l.WithdrawLessons("door"); !errors.Is(err, online.ErrUnknown) ||
		err.Error() != "nobody of that name: there are no lessons of door" {
		t.Error(err)
	}
}

// A lesson that no learner would give is refused with an error that says why, and no part of it is taken.
func TestBadLessons(t *testing.T) {
	l := learner(t, online.Settings{})
	take(t, l, "door", lesson("alice", 0, .2, 5))
	before := snapshot(t, l)
	good := lesson("alice", 0, .5, 3)
	with := func(do func(s *online.Lesson)) []online.Lesson {
		s := lesson("bob", 2, .2, 4)
		do(&s)
		return []online.Lesson{good, s}
	}
	many := lesson("bob", 0, 0, online.MaxCentroids-2)
	for what, c := range map[string]struct {
		source  string
		lessons []online.Lesson
		is      error
		says    string
	}{
		"nobody's name": {"", []online.Lesson{good}, online.ErrName, "taking lessons: source: unusable name"},
		"not printable": {"a\x00", []online.Lesson{good}, online.ErrName, "it has a character that does not print"},
		"unknown": {"x", with(func(s *online.Lesson) { s.Name = "eve" }), online.ErrUnknown, "nobody of that " +
			"name: eve; enrol them here first"},
		"bad name": {"x", with(func(s *online.Lesson) { s.Name = " b" }), online.ErrName, "begins or ends " +
			"with a space"},
		"other space": {"x", with(func(s *online.Lesson) {
			s.Space = "moon"
		}), online.ErrLesson, `the lesson of bob is of the feature space "moon", and this is plane`},
		"no centroid": {"x", with(func(s *online.Lesson) {
			s.Centroids = nil
		}), online.ErrLesson, "the lesson of bob " +
			"has no centroids"},
		"too many": {"x", []online.Lesson{good, many}, online.ErrLesson, "it has more than 4096 centroids"},
		"dimension": {"x", with(func(s *online.Lesson) {
			s.Centroids[3].Vector = []float32{1}
		}), face.ErrDimension, "centroid 4 of bob"},
		"NaN": {"x", with(func(s *online.Lesson) {
			s.Centroids[0].Vector[1] = float32(math.NaN())
		}), face.ErrNotFinite, "centroid 1 of bob"},
		"infinite": {"x", with(func(s *online.Lesson) {
			s.Centroids[0].Vector[1] = float32(math.Inf(1))
		}), face.ErrNotFinite, "centroid 1 of bob"},
		"counts nothing": {"x", with(func(s *online.Lesson) {
			s.Centroids[1].Multiplicity = 0
		}), online.ErrLesson, "of multiplicity 0;"},
		"counts less": {"x", with(func(s *online.Lesson) {
			s.Centroids[1].Multiplicity = -2
		}), online.ErrLesson, "of multiplicity -2;"},
		"counts too much": {"x", with(func(s *online.Lesson) {
			s.Centroids[1].Multiplicity = 1e18
		}), online.ErrLesson, "of multiplicity 1e+18;"},
		"counts NaN": {"x", with(func(s *online.Lesson) {
			s.Centroids[1].Multiplicity = math.NaN()
		}), online.ErrLesson, "of multiplicity NaN;"},
		"radius": {"x", with(func(s *online.Lesson) {
			s.Centroids[1].Radius = -1
		}), online.ErrLesson, "of radius -1;"},
		"radius NaN": {"x", with(func(s *online.Lesson) {
			s.Centroids[1].Radius = math.NaN()
		}), online.ErrLesson, "of radius NaN;"},
		"link nowhere": {"x", with(func(s *online.Lesson) {
			s.Links = [][2]int{{1, 4}}
		}), online.ErrLesson, "joins centroids 1 and 4"},
		"link below": {"x", with(func(s *online.Lesson) {
			s.Links = [][2]int{{-1, 2}}
		}), online.ErrLesson, "joins centroids -1 and 2"},
		"link to itself": {"x", with(func(s *online.Lesson) {
			s.Links = [][2]int{{2, 2}}
		}), online.ErrLesson, "joins centroids 2 and 2"},
		"link twice": {"x", with(func(s *online.Lesson) {
			s.Links = [][2]int{{1, 2}, {1, 2}}
		}), online.ErrLesson, "joins centroids 1 and 2"},
		"through no name": {"x", with(func(s *online.Lesson) {
			s.Through = []string{"a", " b"}
		}), online.ErrLesson, "the lesson of bob was learned through source 2: unusable name"},
		"through not in order": {"x", with(func(s *online.Lesson) {
			s.Through = []string{"b", "a"}
		}), online.ErrLesson, "was learned through b and a, which are not in order"},
		"through itself twice": {"x", with(func(s *online.Lesson) {
			s.Through = []string{"a", "a"}
		}), online.ErrLesson, "through a and a,"},
		"through too many": {"x", with(func(s *online.Lesson) {
			for i := range 257 {
				s.Through = append(s.Through, fmt.Sprintf("s%03d", i))
			}
		}), online.ErrLesson, "was learned through 257 sources; there may be 256"},
		"too many links": {"x", with(func(s *online.Lesson) {
			s.Links = make([][2]int, 65)
		}), online.ErrLesson, "joins 65 pairs of 4 centroids"},
	} {
		err := l.TakeLessons(c.source, c.lessons)
		if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", what, err)
		}
		if !bytes.Equal(before, snapshot(t, l)) {
			t.Fatalf("%s: the learner has changed", what)
		}
	}
	for i := range online.MaxSources - 1 {
		take(t, l, fmt.Sprint("s", i), online.Lesson{Space: "plane", Name: "bob",
			Centroids: []online.Centroid{{Vector: []float32{2, 0}, Multiplicity: 1}}})
	}
	if err := l.TakeLessons("one more", []online.Lesson{good}); !errors.Is(err, online.ErrFull) {
		t.Errorf("one more source: %v", err)
	}
	take(t, l, "door", good) // a source that is there already
}

// untaught returns what a snapshot of l would hold if l had never been given a lesson, except the counts of verdicts.
func untaught(t *testing.T, l *online.Learner) (map[string]any, *online.Learner) {
	t.Helper()
	var back online.Learner
	if err := back.UnmarshalBinary(snapshot(t, l)); err != nil {
		t.Fatal(err)
	}
	for len(back.Sources()) > 0 {
		if err := back.WithdrawLessons(back.Sources()[0].Name); err != nil {
			t.Fatal(err)
		}
	}
	var all map[string]any
	if err := cbor.Unmarshal(snapshot(t, &back), &all); err != nil {
		t.Fatal(err)
	}
	delete(all, "counts")
	return all, &back
}

// After all lessons are withdrawn, a learner is to the last bit the same as a learner that saw the same faces and never
// had a lesson. Its own lessons are the same all the time.
func TestWithdrawn(t *testing.T) {
	aided, learned, undone := 0, 0, 0
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 41))
		s := online.Settings{K: 3 + r.IntN(12), Reach: .6, Link: 1.2, Journal: 50, HalfLife: []int{0, 80}[seed%2]}
		l, never := learner(t, s), learner(t, s)
		people := []string{"alice", "bob", "carol"}
		var follows []int64
		for step := range 120 {
			both := func(do func(l *online.Learner) error) {
				t.Helper()
				a, b := do(l), do(never)
				if fmt.Sprint(a) != fmt.Sprint(b) {
					t.Fatalf("seed %d, step %d: %v, and without lessons %v", seed, step, a, b)
				}
			}
			person := r.IntN(len(people))
			x := []float32{2*float32(person%3) + .3*float32(r.NormFloat64()), 1.5 * r.Float32()}
			switch op := r.IntN(20); op {
			case 0, 1, 2:
				given := lesson(people[person], x[0], x[1], 1+r.IntN(9))
				for i := range len(given.Centroids) - 2 {
					given.Links = append(given.Links, [2]int{i, i + 2})
				}
				given.Through = [][]string{nil, nil, {"s0"}, {"s1", "s2"}}[r.IntN(4)]
				err := l.TakeLessons(fmt.Sprint("s", r.IntN(3)), []online.Lesson{given})
				if known := l.Knows(people[person]); known != (err == nil) {
					t.Fatal(err)
				}
			case 3:
				if all := l.Sources(); len(all) > 0 {
					if err := l.WithdrawLessons(all[r.IntN(len(all))].Name); err != nil {
						t.Fatal(err)
					}
				}
			case 4:
				since := l.Counts().Observed - int64(r.IntN(5))
				both(func(l *online.Learner) error { _, err := l.Undo(since); return err })
				undone++
			case 5:
				if seed%3 == 0 {
					name := people[person]
					both(func(l *online.Learner) error { return l.Forget(name) })
				}
			case 6:
				both(func(l *online.Learner) error { return l.Label(x, people[person]) })
			case 7:
				s := l.Settings()
				s.K, s.Freeze = 5+r.IntN(12), r.IntN(8) == 0
				both(func(l *online.Learner) error { return l.Configure(s) })
			case 8:
				var back online.Learner
				if err := back.UnmarshalBinary(snapshot(t, l)); err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(snapshot(t, l), snapshot(t, &back)) {
					t.Fatal("it is another one when it is read again")
				}
				l = &back
			case 9:
				from := r.Int64N(max(1, l.Counts().Observed))
				both(func(l *online.Learner) error { l.Unlearn([][2]int64{{from, from + 3}}); return nil })
			default:
				frame := []online.Observation{{Vector: x, As: []string{"", people[person]}[r.IntN(2)],
					Follows: slices.Clone(follows), Hold: r.IntN(9) == 0}}
				for range r.IntN(2) {
					frame = append(frame, online.Observation{Vector: []float32{x[0] + 2, x[1]},
						As: people[(person+1)%3]})
				}
				seen, err := l.ObserveFrame(frame)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := never.ObserveFrame(frame); err != nil {
					t.Fatal(err)
				}
				if v := seen[0]; v.Stored != 0 {
					if follows = append(follows, v.Stored); len(follows) > 3 {
						follows = follows[1:]
					}
					learned++
				}
			}
			aided = max(aided, l.Aided())
			own := slices.DeleteFunc(l.Lessons(), func(s online.Lesson) bool { return len(s.Through) > 0 })
			if want := never.Lessons(); len(own) != len(want) || len(own) > 0 && !reflect.DeepEqual(own, want) {
				t.Fatalf("seed %d, step %d: it gives %+v, and without lessons %+v", seed, step, own, want)
			}
			if step%5 > 0 {
				continue
			}
			got, back := untaught(t, l)
			if want, _ := untaught(t, never); !reflect.DeepEqual(got, want) {
				t.Fatalf("seed %d, step %d: withdrawn it is\n%v\nand without lessons\n%v", seed, step, got, want)
			}
			if v, want := judge(t, back, x...), judge(t, never, x...); v != want {
				t.Fatalf("seed %d, step %d: %+v, and without lessons %+v", seed, step, v, want)
			}
		}
	}
	if aided < 2 || learned < 500 || undone < 100 {
		t.Errorf("at most %d aided, %d learned, %d undone: the streams test too little", aided, learned, undone)
	}
}

// The learner is the same for any order in which sources give their lessons, and for any number of repetitions.
func TestOrderOfSources(t *testing.T) {
	var want []byte
	var verdicts []online.Verdict
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 42))
		l := learner(t, online.Settings{K: 9, Reach: .6})
		if seed > 0 {
			take(t, l, "s1", lesson("carol", 1, 1, 9))
			take(t, l, "gone", lesson("carol", 3, 1, 9))
			judge(t, l, 1, 1)
			if err := l.WithdrawLessons("gone"); err != nil {
				t.Fatal(err)
			}
		}
		for _, i := range r.Perm(5) {
			y := float32(i) / 3
			own := []online.Lesson{lesson("alice", 0, y, 4), lesson("bob", 2, y/2, 3)}
			if r.IntN(2) == 0 {
				slices.Reverse(own)
			}
			take(t, l, fmt.Sprint("s", i), own...)
		}
		var got []online.Verdict
		for i := range 40 {
			got = append(got, judge(t, l, float32(i%8)/3, float32(i)/20))
		}
		if want == nil {
			want, verdicts = snapshot(t, l), got
		}
		if !bytes.Equal(want, snapshot(t, l)) || !reflect.DeepEqual(verdicts, got) {
			t.Fatalf("seed %d: another order makes another learner", seed)
		}
	}
	if taken := judgeTaken(t, want); taken.Kept < 5 || taken.Kept > 9 || taken.R == 0 || taken.Radius > .05+taken.R {
		t.Errorf("%+v", taken)
	}
}

func judgeTaken(t *testing.T, data []byte) online.Taken {
	t.Helper()
	var l online.Learner
	if err := l.UnmarshalBinary(data); err != nil {
		t.Fatal(err)
	}
	return l.Taken()
}

// A snapshot has no trace of forgotten people. Lessons for a renamed person are taken under the new name.
func TestForgottenLessons(t *testing.T) {
	l := learner(t, online.Settings{})
	secret := []float32{.123, .789}
	pattern := binary.LittleEndian.AppendUint32(nil, math.Float32bits(secret[1]))
	s := lesson("alice", 0, .2, 9)
	s.Centroids[4].Vector = secret
	take(t, l, "door", s, lesson("bob", 2, .2, 9))
	take(t, l, "gate", s)
	if !bytes.Contains(snapshot(t, l), pattern) {
		t.Fatal("the face is not where it is looked for")
	}
	if err := l.Rename("alice", "zoe"); err != nil {
		t.Fatal(err)
	}
	if v := judge(t, l, 0, 1); v.Label != "zoe" || !reflect.DeepEqual(l.Sources()[0].People, []string{"bob", "zoe"}) {
		t.Errorf("%+v, %+v", v, l.Sources())
	}
	if err := l.Forget("zoe"); err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(snapshot(t, l), pattern) || bytes.Contains(snapshot(t, l), []byte("zoe")) {
		t.Error("a forgotten face is kept")
	}
	if got := l.Sources(); len(got) != 1 || !reflect.DeepEqual(got[0].People, []string{"bob"}) {
		t.Errorf("%+v", got)
	}
	if err := l.TakeLessons("gate", []online.Lesson{s}); !errors.Is(err, online.ErrUnknown) {
		t.Error(err)
	}
}

// A face that only lessons reach is learned if the caller knows the person, and is never given on. It goes with the
// withdrawal of any source, and with an undo.
func TestAided(t *testing.T) {
	turn := func(undo func(l *online.Learner)) *online.Learner {
		l := learner(t, online.Settings{Reach: .6, Link: 1.2})
		take(t, l, "door", lesson("alice", 0, .3, 12))
		take(t, l, "gate", lesson("bob", 2, .3, 3))
		follows := []int64(nil)
		for i := range 5 {
			v, err := l.Observe([]float32{0, 1.7 + .25*float32(i)})
			if err != nil || v.Learned {
				t.Fatalf("without a name: %+v, %v", v, err)
			}
			seen, err := l.ObserveFrame([]online.Observation{{Vector: []float32{0, 1.7 + .25*float32(i)}, As: "alice",
				Follows: follows}})
			if err != nil || seen[0].Label != "alice" || !seen[0].Learned || seen[0].Stored >= 0 || seen[0].Anchored {
				t.Fatalf("face %d: %+v, %v", i, seen, err)
			}
			follows = append(follows, seen[0].Stored)
		}
		given := l.Lessons()
		if l.Aided() != 5 || len(given) != 1 || given[0].Name != "alice" || len(given[0].Centroids) != 5 ||
			!slices.Equal(given[0].Through, []string{"door", "gate"}) || len(given[0].Links) != 10 {
			t.Fatalf("%d aided, and %+v given", l.Aided(), given)
		}
		if v := judge(t, l, 0, 3); v.Label != "alice" {
			t.Fatalf("%+v", v)
		}
		undo(l)
		return l
	}
	for what, undo := range map[string]func(l *online.Learner){
		"withdrawn": func(l *online.Learner) { l.WithdrawLessons("gate") },
		"empty":     func(l *online.Learner) { l.TakeLessons("gate", nil) },
		"undone":    func(l *online.Learner) { l.Undo(0) },
		"unlearned": func(l *online.Learner) { l.Unlearn([][2]int64{{1, 1}}) },
		"retracted": func(l *online.Learner) { l.Retract(1) },
		"forgotten": func(l *online.Learner) { l.Forget("alice") },
	} {
		if l := turn(undo); l.Aided() != 0 || judge(t, l, 0, 3).Label != "" {
			t.Errorf("%s: %d are left", what, l.Aided())
		}
	}
	l := turn(func(l *online.Learner) { l.Forget("bob") })
	if l.Aided() != 5 || l.Counts().Learned != 5 {
		t.Errorf("%d aided of alice when bob is forgotten, %+v", l.Aided(), l.Counts())
	}
	// At most K of them, and none in a learner that counts hops.
	l = turn(func(*online.Learner) {})
	s := l.Settings()
	s.MaxHops = 9
	if err := l.Configure(s); err != nil {
		t.Fatal(err)
	}
	if seen, err := l.ObserveFrame([]online.Observation{{Vector: []float32{0, 3}, As: "alice"}}); err != nil ||
		seen[0].Learned {
		t.Errorf("%+v, %v", seen, err)
	}
}

// Lessons age like the learner's own faces, and are new again when their source gives them again.
func TestLessonsFade(t *testing.T) {
	l := learner(t, online.Settings{HalfLife: 10, Reach: .6})
	take(t, l, "door", lesson("alice", 0, .3, 6))
	fresh := judge(t, l, 0, 1.1).Confidence
	for range 40 {
		if _, err := l.Observe([]float32{2, 0}); err != nil {
			t.Fatal(err)
		}
	}
	faded := judge(t, l, 0, 1.1).Confidence
	take(t, l, "door", lesson("alice", 0, .3, 6))
	again := judge(t, l, 0, 1.1).Confidence
	if !(faded < fresh) || math.Abs(again-fresh) > 1e-9 {
		t.Errorf("confidence %g, after four half-lives %g, given again %g", fresh, faded, again)
	}
}

// Every changed byte of a snapshot with lessons gives an error or a learner that works.
func TestLessonsSnapshot(t *testing.T) {
	data := assisted(t)
	r := rand.New(rand.NewPCG(1, 43))
	for i := range data {
		bad := slices.Clone(data)
		bad[i] ^= byte(1 + r.IntN(255))
		var l online.Learner
		switch err := l.UnmarshalBinary(bad); {
		case err == nil:
			works(t, &l)
		case !errors.Is(err, online.ErrDamaged) && !errors.Is(err, online.ErrVersion):
			t.Fatalf("byte %d: %v", i, err)
		}
	}
}

// What one device learned with the help of another is given on, and is withdrawn with the lessons that helped, also
// where these lessons never came.
func TestGivenOn(t *testing.T) {
	learns := func(l *online.Learner, y float32) {
		t.Helper()
		frame := []online.Observation{{Vector: []float32{0, y}, As: "alice"}}
		if seen, err := l.ObserveFrame(frame); err != nil || !seen[0].Learned || seen[0].Stored >= 0 {
			t.Fatalf("at %g: %+v, %v", y, seen, err)
		}
	}
	gate, hall := learner(t, online.Settings{Reach: .6}), learner(t, online.Settings{Reach: .6})
	take(t, gate, "door", lesson("alice", 0, .3, 12))
	learns(gate, 1.7)
	learns(gate, 2)
	take(t, hall, "gate", lesson("alice", 0, .3, 12)) // without help
	alone := snapshot(t, hall)
	take(t, hall, "gate", append(gate.Lessons(), lesson("alice", 0, .3, 12))...)
	if got := hall.Sources(); len(got) != 1 || got[0].Centroids != 14 || len(got[0].People) != 1 {
		t.Fatalf("%+v", got)
	}
	if v := judge(t, hall, 0, 2.3); v.Label != "alice" || !v.Lent {
		t.Fatalf("%+v", v)
	}
	learns(hall, 2.4)
	given := hall.Lessons()
	if len(given) != 1 || !slices.Equal(given[0].Through, []string{"door", "gate"}) {
		t.Fatalf("%+v", given)
	}
	var back online.Learner
	if err := back.UnmarshalBinary(snapshot(t, hall)); err != nil {
		t.Fatal(err)
	}
	for _, l := range []*online.Learner{hall, &back} {
		if !slices.Equal(l.Through(), []string{"door", "gate"}) {
			t.Errorf("through %v", l.Through())
		}
		if err := l.WithdrawLessons("door"); err != nil {
			t.Fatal(err)
		}
		if got := snapshot(t, l); !bytes.Equal(uncounted(t, got), uncounted(t, alone)) {
			t.Error("it is not as if the door had never helped the gate")
		}
		if err := l.WithdrawLessons("door"); !errors.Is(err, online.ErrUnknown) {
			t.Error(err)
		}
	}
	// More sources than a lesson can name may help, and then it is not given on.
	for i := range online.MaxThrough {
		take(t, hall, fmt.Sprint("s", i), lesson("alice", 0, 1.6, 8))
	}
	learns(hall, 2.7)
	if hall.Aided() != 1 || len(hall.Through()) != online.MaxThrough+1 || len(hall.Lessons()) != 0 {
		t.Errorf("%d aided through %d, %+v", hall.Aided(), len(hall.Through()), hall.Lessons())
	}
}

// uncounted returns a snapshot without the counts of verdicts and the number of the last aided face.
func uncounted(t *testing.T, data []byte) []byte {
	t.Helper()
	var fields map[string]cbor.RawMessage
	if err := cbor.Unmarshal(data, &fields); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"counts", "last_aided"} {
		delete(fields, name)
	}
	return encoded(t, fields)
}

// encoded returns the fields of a snapshot as CBOR, as MarshalBinary writes them.
func encoded(t *testing.T, fields any) []byte {
	t.Helper()
	mode, err := cbor.CoreDetEncOptions().EncMode()
	if err != nil {
		t.Fatal(err)
	}
	b, err := mode.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// assisted returns a snapshot with lessons, and with faces that were learned with their help.
func assisted(t testing.TB) []byte {
	t.Helper()
	var l online.Learner
	if err := l.UnmarshalBinary(small(t)); err != nil {
		t.Fatal(err)
	}
	s := l.Settings()
	s.LearnCap = 0
	if err := l.Configure(s); err != nil {
		t.Fatal(err)
	}
	given := lesson("al", 0, .2, 9)
	given.Links = [][2]int{{0, 3}, {2, 5}}
	onward := lesson("bo", 1, .5, 2)
	onward.Through = []string{"door"}
	if err := errors.Join(l.TakeLessons("door", []online.Lesson{given}),
		l.TakeLessons("gate", []online.Lesson{lesson("bo", 1, .2, 2), onward})); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if _, err := l.ObserveFrame([]online.Observation{{Vector: []float32{0, 1.3 + .3*float32(i)}, As: "al",
			Follows: []int64{-1, 1}}}); err != nil {
			t.Fatal(err)
		}
	}
	data, err := l.MarshalBinary()
	if err != nil || l.Aided() == 0 {
		t.Fatal(l.Aided(), err)
	}
	return data
}
