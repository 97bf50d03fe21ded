// SPDX-License-Identifier: Apache-2.0

package tablet

import (
	"slices"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/fixture"
)

var (
	noon  = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	plane = face.Space{ID: "plane", Dim: 2, Scale: 1}
)

// posed returns a face in a pose.
func posed(p face.Pose) face.Sample {
	return face.Sample{Landmarks: fixture.Landmarks(p.Turn, p.Nod, .3), Vector: []float32{0, 0}}
}

// play plays frames a tenth of a second apart.
//
//   - straight on < turned to the right > to the left ^ chin up o somebody else, straight on d too
//     dark . nobody 2 two faces p without landmarks
func play(script string) (*enrolment, []Word) {
	e := newEnrolment(plane, 1, 0, noon)
	words := []Word{e.result.Word}
	for i, c := range script {
		pose, n := face.Pose{Nod: .5}, 1
		switch c {
		case '<':
			pose.Turn = -.4
		case '>':
			pose.Turn = .4
		case '^':
			pose.Nod = .4
		case '.':
			n = 0
		case '2':
			n = 2
		}
		f := posed(pose)
		f.Vector[0] = float32(i) / 1000
		switch c {
		case 'o':
			f.Vector[1] = 1.5
		case 'd':
			f.Reason = face.TooDark
		case 'p':
			f.Landmarks = nil
		}
		faces := face.Frame{Samples: slices.Repeat([]face.Sample{f}, n)}
		if w := e.Frame(noon.Add(time.Duration(i+1)*100*time.Millisecond),
			faces).Word; words[len(words)-1] != w {
			words = append(words, w)
		}
	}
	return e, words
}

// A face that scores like a picture is not enrolled, and neither is a face without a score. A live
// face is enrolled when enough of the last frames are live.
func TestEnrolmentLiveness(t *testing.T) {
	const none = -1 // not scored
	for _, c := range []struct {
		name   string
		scores []float32 // of eight frames, two for each pose; further scores are of the last pose
		stage  int
		want   Word
	}{
		{"alive", []float32{.9, .9, .9, .9, .9, .9, .9, .9}, 4, Enrolled},
		{"at the threshold", []float32{.5, .5, .5, .5, .5, .5, .5, .5}, 4, Enrolled},
		{"a picture", []float32{.1, .1, .1, .1, .1, .1, .1, .1}, 0, lifeless},
		{"not scored", []float32{none, none, none, none, none, none, none, none}, 0, lifeless},
		{"a picture after a face", []float32{.9, .9, .9, .9, .1, .1, .1, .1}, 2, lifeless},
		{"a bad frame ends a pose", []float32{.9, .9, .9, .1, .9, .9, .9, .9}, 3, TurnLeft},
		{"alive after a while", []float32{.9, .9, .9, .9, .9, .9, 0, 0, 0, .9, .9, .9, .9}, 4,
			Enrolled},
	} {
		e := newEnrolment(plane, 1, .5, noon)
		poses := []face.Pose{{Nod: .5}, {Nod: .5, Turn: .4}, {Nod: .5, Turn: -.4}, {Nod: .4}}
		for i, x := range c.scores {
			f := posed(poses[min(i/2, 3)])
			if x != none {
				f.Liveness = &x
			}
			e.Frame(noon.Add(time.Duration(i+1)*100*time.Millisecond),
				face.Frame{Samples: []face.Sample{f}})
		}
		if r := e.result; r.Word != c.want || r.Stage != c.stage {
			t.Errorf("%s: %+v, want stage %d and %q", c.name, r, c.stage, c.want)
		}
	}
}

// An enrolment ends at once, and says the score, if a camera's pictures are taken for a screen's
// again and again. It does not end so in infrared, whose score is another one.
func TestScreenLike(t *testing.T) {
	for _, infrared := range []bool{false, true} {
		e := newEnrolment(plane, 1, .5, noon)
		e.infrared = infrared
		x := float32(.25)
		f := posed(face.Pose{Nod: .5})
		f.Liveness = &x
		n := 0
		for ; n < 2*dullFrames && !e.result.Final; n++ {
			e.Frame(noon.Add(time.Duration(n)*100*time.Millisecond),
				face.Frame{Samples: []face.Sample{f}})
		}
		if r := e.result; infrared && r.Final || !infrared &&
			(r.Word != screenLike || n != dullFrames) {
			t.Errorf("infrared %v: %+v after %d frames", infrared, r, n)
		}
		if got := e.liveness(); got != .25 {
			t.Errorf("infrared %v: a score of %v", infrared, got)
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
		e := newEnrolment(c.space, 1, 0, noon)
		f := posed(face.Pose{Nod: .5})
		f.Quality.Norm = c.norm
		for i := 1; i <= c.frames; i++ {
			r := e.Frame(noon.Add(time.Duration(i)*100*time.Millisecond),
				face.Frame{Samples: []face.Sample{f}})
			want := Result{Word: Retry, Reason: face.Unclear}
			switch i {
			case c.frames:
				want = Result{Word: TurnLeft, Stage: 1, Took: Straight}
			case 1:
				want = Result{Word: Straight}
			}
			if r != want {
				t.Errorf("%s, frame %d: %+v, want %+v", c.name, i, r, want)
			}
		}
	}
}

func TestEnrolment(t *testing.T) {
	type w = []Word
	for _, c := range []struct {
		script string
		stage  int
		want   w
	}{
		{"-->><<^^", 4, w{Straight, TurnLeft, TurnRight, tilt,
			Enrolled}},
		{"-", 0, w{Straight}},
		// held for two frames
		{"-d-d-", 0, w{Straight, Retry, Straight, Retry, Straight}},
		{">>", 0, w{Straight}},
		{"--<<", 2, w{Straight, TurnLeft}}, // the other side first
		{"--^^<<>>", 4, w{Straight, TurnLeft, Enrolled}},
		{"--<<<<", 2, w{Straight, TurnLeft}}, // once is enough
		{"--<><>", 1, w{Straight, TurnLeft}}, // not held
		{"-->><<--", 3, w{Straight, TurnLeft, TurnRight, tilt}},
		{".2p", 0, w{Straight, noFace, twoFaces, Retry}},
		{"--oo>>", 2, w{Straight, TurnLeft, otherPerson, TurnLeft,
			TurnRight}},
	} {
		e, words := play(c.script)
		r := e.result
		if !slices.Equal(words, c.want) || r.Stage != c.stage || len(e.faces) != c.stage ||
			r.Final != (c.stage == len(stages)) {
			t.Errorf("%q: %q, %+v; want %q, %d", c.script, words, r, c.want, c.stage)
		}
	}
	e, _ := play("d")
	if r := e.result; r.Reason != face.TooDark {
		t.Errorf("reason %q", r.Reason)
	}
}

func TestEnrolmentEnds(t *testing.T) {
	e, _ := play("-->>")
	if r := e.tick(noon.Add(59999 * time.Millisecond)); r.Final {
		t.Errorf("over too soon: %+v", r)
	}
	if r := e.tick(noon.Add(time.Minute)); r.Word != timedOut || !r.Final {
		t.Errorf("at the deadline: %+v", r)
	}
	e, _ = play("-->><<^^")
	if r := e.Frame(noon.Add(time.Hour), face.Frame{}); r.Word != Enrolled {
		t.Errorf("after the end: %+v", r)
	}
	e, _ = play("--")
	if r := e.tick(noon); r.Word != Failed {
		t.Errorf("a clock that was set back: %+v", r)
	}
}

// A face that is better when it is turned enrols nobody: the sum over all poses decides.
func TestTurnedCamera(t *testing.T) {
	upright, turned := &face.Turns{4, 2, 2, 2}, &face.Turns{2, 2, 5, 2}
	for _, test := range []struct {
		name  string
		turns [4]*face.Turns
		want  Word
	}{
		{"upright", [4]*face.Turns{upright, upright, upright, upright}, Enrolled},
		{"not measured", [4]*face.Turns{}, Enrolled},
		{"one in doubt", [4]*face.Turns{upright, upright, turned, upright}, Enrolled},
		{"turned", [4]*face.Turns{turned, turned, turned, upright}, cameraTurned},
	} {
		e := newEnrolment(plane, 1, 0, noon)
		now := noon
		var r Result
		for i, pose := range []face.Pose{{Nod: .5}, {Turn: .4, Nod: .5}, {Turn: -.4, Nod: .5},
			{Nod: .4}} {
			for range 2 {
				now = now.Add(100 * time.Millisecond)
				f := posed(pose)
				f.Turns = test.turns[i]
				r = e.Frame(now, face.Frame{Samples: []face.Sample{f}})
			}
		}
		if r.Word != test.want || !r.Final {
			t.Errorf("%s: %+v, want %q", test.name, r, test.want)
		}
	}
}
