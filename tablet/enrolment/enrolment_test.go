// SPDX-License-Identifier: Apache-2.0

package enrolment_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/tablet/enrolment"
)

var (
	noon  = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	plane = face.Space{ID: "plane", Dim: 2, Scale: 1}
)

// play plays frames a tenth of a second apart.
//
//   - straight on   <  turned to the right   >  to the left   ^  chin up   o  somebody else, straight on
//     d  too dark   .  nobody   2  two faces   p  without landmarks
func play(script string) (*enrolment.Enrolment, []enrolment.Word) {
	e := enrolment.New(plane, 1, 0, noon, 10*time.Second)
	words := []enrolment.Word{e.Result().Word}
	for i, c := range script {
		f := enrolment.Face{Pose: &face.Pose{Nod: .5}, Vector: []float32{float32(i) / 1000, 0}}
		faces := []enrolment.Face{f}
		switch c {
		case '<':
			f.Pose.Turn = -.4
		case '>':
			f.Pose.Turn = .4
		case '^':
			f.Pose.Nod = .4
		case 'o':
			f.Vector[1] = 1.5
		case 'd':
			faces[0].Reason = face.TooDark
		case '.':
			faces = nil
		case '2':
			faces = append(faces, f)
		case 'p':
			faces[0].Pose = nil
		}
		if w := e.Frame(noon.Add(time.Duration(i+1)*100*time.Millisecond), faces).Word; words[len(words)-1] != w {
			words = append(words, w)
		}
	}
	return e, words
}

// A face that scores like a picture is not enrolled, and neither is a face without a score. A live face is enrolled
// when enough of the last frames are live.
func TestLiveness(t *testing.T) {
	const none = -1 // not scored
	for _, c := range []struct {
		name   string
		scores []float32 // of eight frames, two for each pose; further scores are of the last pose
		stage  int
		want   enrolment.Word
	}{
		{"alive", []float32{.9, .9, .9, .9, .9, .9, .9, .9}, 4, enrolment.Enrolled},
		{"at the threshold", []float32{.5, .5, .5, .5, .5, .5, .5, .5}, 4, enrolment.Enrolled},
		{"a picture", []float32{.1, .1, .1, .1, .1, .1, .1, .1}, 0, enrolment.Lifeless},
		{"not scored", []float32{none, none, none, none, none, none, none, none}, 0, enrolment.Lifeless},
		{"a picture after a face", []float32{.9, .9, .9, .9, .1, .1, .1, .1}, 2, enrolment.Lifeless},
		{"a bad frame ends a pose", []float32{.9, .9, .9, .1, .9, .9, .9, .9}, 3, enrolment.TurnLeft},
		{"alive after a while", []float32{.9, .9, .9, .9, .9, .9, 0, 0, 0, .9, .9, .9, .9}, 4, enrolment.Enrolled},
	} {
		e := enrolment.New(plane, 1, .5, noon, time.Minute)
		poses := []face.Pose{{Nod: .5}, {Nod: .5, Turn: .4}, {Nod: .5, Turn: -.4}, {Nod: .4}}
		for i, x := range c.scores {
			f := enrolment.Face{Pose: &poses[min(i/2, 3)], Vector: []float32{0, 0}, Liveness: &x}
			if x == none {
				f.Liveness = nil
			}
			e.Frame(noon.Add(time.Duration(i+1)*100*time.Millisecond), []enrolment.Face{f})
		}
		if r := e.Result(); r.Word != c.want || r.Stage != c.stage {
			t.Errorf("%s: %+v, want stage %d and %q", c.name, r, c.stage, c.want)
		}
	}
}

// An enrolment asks for another picture of an unclear face, and takes it in the end.
func TestUnclear(t *testing.T) {
	space := plane
	space.ClearNorm = 2.8
	for _, c := range []struct {
		name   string
		space  face.Space
		norm   float64
		frames int // until the first face is taken
	}{
		{"clear", space, 2.8, 2},
		{"unclear", space, 2.79, 17},
		{"unclear in a space without norms", plane, 0, 2},
	} {
		e := enrolment.New(c.space, 1, 0, noon, time.Minute)
		f := enrolment.Face{Pose: &face.Pose{Nod: .5}, Vector: []float32{0, 0}, Norm: c.norm}
		for i := 1; i <= c.frames; i++ {
			r := e.Frame(noon.Add(time.Duration(i)*100*time.Millisecond), []enrolment.Face{f})
			want := enrolment.Result{Word: enrolment.Retry, Reason: face.Unclear}
			switch i {
			case c.frames:
				want = enrolment.Result{Word: enrolment.TurnLeft, Stage: 1, Took: enrolment.Straight}
			case 1:
				want = enrolment.Result{Word: enrolment.Straight}
			}
			if r != want {
				t.Errorf("%s, frame %d: %+v, want %+v", c.name, i, r, want)
			}
		}
	}
}

func TestEnrolment(t *testing.T) {
	type w = []enrolment.Word
	for _, c := range []struct {
		script string
		stage  int
		want   w
	}{
		{"-->><<^^", 4, w{enrolment.Straight, enrolment.TurnLeft, enrolment.TurnRight, enrolment.Tilt,
			enrolment.Enrolled}},
		{"-", 0, w{enrolment.Straight}},
		// held for two frames
		{"-d-d-", 0, w{enrolment.Straight, enrolment.Retry, enrolment.Straight, enrolment.Retry, enrolment.Straight}},
		{">>", 0, w{enrolment.Straight}},
		{"--<<", 2, w{enrolment.Straight, enrolment.TurnLeft}}, // the other side first
		{"--^^<<>>", 4, w{enrolment.Straight, enrolment.TurnLeft, enrolment.Enrolled}},
		{"--<<<<", 2, w{enrolment.Straight, enrolment.TurnLeft}}, // once is enough
		{"--<><>", 1, w{enrolment.Straight, enrolment.TurnLeft}}, // not held
		{"-->><<--", 3, w{enrolment.Straight, enrolment.TurnLeft, enrolment.TurnRight, enrolment.Tilt}},
		{".2p", 0, w{enrolment.Straight, enrolment.NoFace, enrolment.TwoFaces, enrolment.Retry}},
		{"--oo>>", 2, w{enrolment.Straight, enrolment.TurnLeft, enrolment.OtherPerson, enrolment.TurnLeft,
			enrolment.TurnRight}},
	} {
		e, words := play(c.script)
		r := e.Result()
		if !slices.Equal(words, c.want) || r.Stage != c.stage || len(e.Faces()) != c.stage ||
			r.Final != (c.stage == enrolment.Stages) {
			t.Errorf("%q: %q, %+v; want %q, %d", c.script, words, r, c.want, c.stage)
		}
	}
	e, _ := play("d")
	if r := e.Result(); r.Reason != face.TooDark {
		t.Errorf("reason %q", r.Reason)
	}
}

func TestEnrolmentEnds(t *testing.T) {
	e, _ := play("-->>")
	if r := e.Tick(noon.Add(9999 * time.Millisecond)); r.Final {
		t.Errorf("over too soon: %+v", r)
	}
	if r := e.Tick(noon.Add(10 * time.Second)); r.Word != enrolment.TimedOut || !r.Final {
		t.Errorf("at the deadline: %+v", r)
	}
	if r := e.End(enrolment.Failed); r.Word != enrolment.TimedOut {
		t.Errorf("after the end: %+v", r)
	}
	e, _ = play("-->><<^^")
	if r := e.Frame(noon.Add(time.Hour), nil); r.Word != enrolment.Enrolled {
		t.Errorf("after the end: %+v", r)
	}
	if r := e.End(enrolment.Taken); r.Word != enrolment.Taken {
		t.Errorf("what was found out afterwards: %+v", r)
	}
	e, _ = play("--")
	if r := e.Tick(noon); r.Word != enrolment.Failed {
		t.Errorf("a clock that was set back: %+v", r)
	}
}

func ExampleEnrolment() {
	e := enrolment.New(plane, 1, 0, noon, time.Minute)
	fmt.Println(e.Result().Word)
	for i := range 2 {
		e.Frame(noon.Add(time.Duration(i)*time.Second),
			[]enrolment.Face{{Pose: &face.Pose{Nod: .5}, Vector: []float32{0, 1}}})
	}
	fmt.Println(e.Result().Word)
	fmt.Println(e.Frame(noon.Add(3*time.Second), []enrolment.Face{{Reason: face.Blurred}}).Reason)
	// Output:
	// look straight into the camera
	// turn your head a little to your left
	// blurred
}

// A face that is better when it is turned enrols nobody: the sum over all poses decides.
func TestTurnedCamera(t *testing.T) {
	upright, turned := &face.Turns{4, 2, 2, 2}, &face.Turns{2, 2, 5, 2}
	for _, test := range []struct {
		name  string
		turns [4]*face.Turns
		want  enrolment.Word
	}{
		{"upright", [4]*face.Turns{upright, upright, upright, upright}, enrolment.Enrolled},
		{"not measured", [4]*face.Turns{}, enrolment.Enrolled},
		{"one in doubt", [4]*face.Turns{upright, upright, turned, upright}, enrolment.Enrolled},
		{"turned", [4]*face.Turns{turned, turned, turned, upright}, enrolment.Turned},
	} {
		e := enrolment.New(plane, 1, 0, noon, 10*time.Second)
		now := noon
		var r enrolment.Result
		for i, pose := range []face.Pose{{Nod: .5}, {Turn: .4, Nod: .5}, {Turn: -.4, Nod: .5}, {Nod: .4}} {
			for range 2 {
				now = now.Add(100 * time.Millisecond)
				r = e.Frame(now, []enrolment.Face{{Pose: &pose, Vector: []float32{0, 0}, Turns: test.turns[i]}})
			}
		}
		if r.Word != test.want || !r.Final {
			t.Errorf("%s: %+v, want %q", test.name, r, test.want)
		}
	}
}
