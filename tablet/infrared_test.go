// SPDX-License-Identifier: Apache-2.0

package tablet_test

import (
	"testing"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/stage"
	"github.com/faceauth/faceauth/tablet"
)

// night is a desk with an infrared camera as well.
type night struct {
	*desk
	film *stage.Camera
}

func newNight(t *testing.T) night {
	n := night{film: new(stage.Camera)}
	n.desk = newDesk(t, tablet.Options{Infrared: n.film.Open})
	t.Cleanup(func() {
		if now, most := n.film.Uses(); now != 0 || most > 1 {
			t.Errorf("%d infrared cameras left open, %d at once", now, most)
		}
	})
	return n
}

// lit gives the faces of frames a score of the emitter's light.
func lit(frames []face.Frame, score float32) []face.Frame {
	for _, f := range frames {
		for i := range f.Samples {
			f.Samples[i].Liveness = &score
		}
	}
	return frames
}

// enrol enrols a user by colour and by infrared, and returns the last word.
func (n night) enrol(t *testing.T, user string, colour, infrared []float32,
	score float32) tablet.Word {
	t.Helper()
	n.desk.film.Play(stage.Show{Frames: stage.Enrolling(colour)})
	n.film.Play(stage.Show{Frames: lit(stage.Enrolling(infrared), score)})
	took := 0
	count := func(r tablet.Result) {
		if r.Took != "" {
			took++
		}
	}
	r := fixture.Must(n.Enroll(t.Context(), user, "", false, count))(t)
	count(r)
	if r.Word == tablet.Enrolled && took != 8 {
		t.Errorf("%d faces taken", took)
	}
	return r.Word
}

// login returns the last word of a login for which the infrared camera shows frames. A look by
// colour shows the user.
func (n night) login(t *testing.T, user string, frames []face.Frame) tablet.Word {
	t.Helper()
	n.film.Play(stage.Show{Frames: frames})
	word, _ := n.verify(t, user, stage.Seen(stage.Alice, 20), nil)
	return word
}

// Carol's face stands for alice in infrared: in the made-up space it is far from alice in colour,
// so a comparison of the spaces would not match.
func TestInfrared(t *testing.T) {
	t.Run("decides alone", bubble(func(t *testing.T) {
		n := newNight(t)
		if w := n.enrol(t, "alice", stage.Alice, stage.Carol, .9); w != tablet.Enrolled {
			t.Fatal(w)
		}
		fixture.Check(t, n.Password("alice", 0, ""))
		for _, c := range []struct {
			frames []face.Frame
			want   tablet.Word
		}{
			{lit(stage.Seen(stage.At(stage.Carol, 0), 20), .9), tablet.Match},
			{stage.Seen(stage.At(stage.Carol, 0), 20), "taken-for-picture"}, // no score
			{lit(stage.Seen(stage.At(stage.Carol, 0), 20), .5), "taken-for-picture"},
			{lit(stage.Seen(stage.Alice, 20), .9), tablet.NoMatch}, // alice's vector in colour
			// a screen: colour shows alice, and infrared nobody
			{make([]face.Frame, 20), "no-face"},
		} {
			if w := n.login(t, "alice", c.frames); w != c.want {
				t.Errorf("%q, want %q", w, c.want)
			}
			n.pass(1e12)
			fixture.Check(t, n.Password("alice", 0, ""))
		}
		if s, err := n.Status("alice"); err != nil || s.Learned != 0 {
			t.Errorf("learned %v faces, %v", s.Learned, err)
		}
		events, err := n.History("alice")
		if err != nil || len(events) < 10 {
			t.Errorf("%d events, %v", len(events), err)
		}
		for _, e := range events {
			if login := e.Result != string(tablet.Enrolled) &&
				e.Result != "password"; e.Infrared != login {
				t.Errorf("the history: %+v", e)
			}
		}
	}))
	t.Run("is bound to the account", bubble(func(t *testing.T) {
		n := newNight(t)
		n.enrol(t, "alice", stage.Alice, stage.Carol, .9)
		fixture.Check(t, n.Password("alice", 0, "mark"))
		for i, want := range []tablet.Word{"give-password", tablet.Match} {
			if w := n.login(t, "alice", lit(stage.Seen(stage.At(stage.Carol, 0), 20),
				.9)); w != want {
				t.Fatalf("login %d: %q, want %q", i, w, want)
			}
			fixture.Check(t, n.Password("alice", 0, "mark"))
		}
	}))
	t.Run("is not asked without its faces", bubble(func(t *testing.T) {
		n := night{ready(t, tablet.Options{}), new(stage.Camera)}
		n.o.Infrared = n.film.Open
		n.store.Close()
		n.open(t)
		if w := n.login(t, "alice", nil); w != tablet.Match {
			t.Error(w)
		}
		if events, err := n.History("alice"); err != nil || events[len(events)-1].Infrared {
			t.Errorf("the history: %+v, %v", events, err)
		}
		n.desk.film.Play(stage.Show{Frames: stage.Enrolling(stage.Alice)})
		if r, err := n.Enroll(t.Context(), "alice", "", true, func(tablet.Result) {}); err != nil ||
			r.Word != tablet.Enrolled {
			t.Errorf("another look: %+v, %v", r, err)
		}
	}))
	t.Run("enrolment", bubble(func(t *testing.T) {
		n := newNight(t)
		if w := n.enrol(t, "alice", stage.Alice, stage.Carol, .5); w == tablet.Enrolled {
			t.Error("an unlit face was enrolled")
		}
		if _, err := n.Status("alice"); err == nil {
			t.Error("the faces in colour were kept without those in infrared")
		}
		if w := n.enrol(t, "alice", stage.Alice, stage.Carol, .9); w != tablet.Enrolled {
			t.Fatal(w)
		}
		if w := n.enrol(t, "bob", stage.Bob, stage.Carol, .9); w != "already-another-user" {
			t.Errorf("bob with alice's face in infrared: %q", w)
		}
		n.desk.film.Play(stage.Show{Frames: stage.Enrolling(stage.Alice)})
		n.film.Play(stage.Show{Frames: lit(stage.Enrolling(stage.Bob), .9)})
		if r, err := n.Enroll(t.Context(), "alice", "", true, func(tablet.Result) {}); err != nil ||
			r.Word == tablet.Enrolled {
			t.Errorf("another look with another's face in infrared: %+v, %v", r, err)
		}
	}))
}
