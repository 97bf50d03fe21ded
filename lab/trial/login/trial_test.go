// SPDX-License-Identifier: Apache-2.0

package login_test

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/faceauth/faceauth/eye"
	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/stage"
	"github.com/faceauth/faceauth/lab/trial/login"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/tablet"
)

// recording returns frames 40 ms apart.
func recording(person, name string, parts ...[]face.Frame) login.Recording {
	r := login.Recording{Person: person, Name: name}
	for _, p := range parts {
		for _, f := range p {
			f.Index = len(r.Frames)
			f.Time = time.Duration(f.Index) * 40 * time.Millisecond
			r.Frames = append(r.Frames, f)
		}
	}
	return r
}

// turning returns frames of a head that looks straight on, turns to a side, and back.
func turning(who []float32, turn float64) []face.Frame {
	f := stage.Seen(who, 90)
	for i := 30; i < 60; i++ {
		f[i].Samples = []face.Sample{
			{Track: 1, Vector: who, Quality: face.Quality{Turn: turn},
				Landmarks: fixture.Landmarks(turn, .5, .3)},
		}
	}
	return f
}

func options() login.Options {
	return login.Options{Gate: func(eye.Gate) func(face.Quality) face.Reason {
		return func(q face.Quality) face.Reason {
			if q.Turn > .6 || q.Turn < -.6 {
				return face.TurnedAway
			}
			return ""
		}
	}}
}

func people() []login.Recording {
	replay := recording("alice", "fake", stage.Seen(stage.Alice, 51)) // 2 s: two attempts
	replay.Attack = "a replay"
	return []login.Recording{
		// nobody can be enrolled from it
		recording("alice", "away", stage.Seen(stage.At(stage.Alice, .5), 51)),
		recording("alice", "home", stage.Enrolling(stage.Alice), stage.Seen(stage.Alice, 68)),
		replay,
		recording("bob", "home", stage.Enrolling(stage.Bob), stage.Seen(stage.Bob, 68)),
		recording("carol", "frontal", stage.Seen(stage.Carol, 76)),
	}
}

func TestRun(t *testing.T) {
	r, err := login.Run(t.Context(), stage.Space, people(), options())
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(r.Enrolled, []string{"alice", "bob"}) ||
		!reflect.DeepEqual(r.Failed, []string{"carol"}) ||
		r.People != 3 {
		t.Errorf("%+v", r)
	}
	// A recording of three seconds gives three attempts, a recording of two seconds gives two.
	type counts struct{ all, matches, pairs, in int }
	for name, c := range map[string]struct {
		got  login.Attempts
		want counts
	}{
		"same":     {r.Same, counts{6, 6, 2, 2}},
		"other":    {r.Other, counts{2, 2, 1, 1}},
		"impostor": {r.Impostor, counts{3 + 3 + 2 + 3 + 3, 0, 5, 0}},
		"replay":   {r.Attacks["a replay"], counts{2, 2, 1, 1}},
	} {
		if got := (counts{c.got.All, c.got.Matches, c.got.Pairs, c.got.PairsIn}); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	if r.Impostor.Ends["no-match"] != r.Impostor.All || r.Impostor.Interval.High < .1 ||
		r.Impostor.Interval.Low != 0 {
		t.Errorf("%+v", r.Impostor)
	}
	if len(r.Times) != 8 || login.Quantile(r.Times, .5) != .08 || login.Quantile(nil, .5) != 0 {
		t.Errorf("times %v", r.Times)
	}
	// On a machine that needs longer for a frame than a login may be silent, all is the same.
	synctest.Test(t, func(t *testing.T) {
		o := options()
		gate := o.Gate
		o.Gate = func(g eye.Gate) func(face.Quality) face.Reason {
			time.Sleep(6 * time.Second)
			return gate(g)
		}
		again, err := login.Run(t.Context(), stage.Space, people(), o)
		if err != nil || !reflect.DeepEqual(r, again) {
			t.Errorf("a slow run differs: %+v, %v", again, err)
		}
	})
}

// If no poses are asked for, the first faces are enough.
func TestFirst(t *testing.T) {
	o := options()
	o.First = true
	r, err := login.Run(t.Context(), stage.Space, people(), o)
	if err != nil || len(r.Enrolled) != 3 || r.Same.Matches != r.Same.All {
		t.Errorf("%+v, %v", r, err)
	}
}

// A replay with a low score ends as a picture. The user's own face, which has a high score, is let
// in.
func TestRunWithLiveness(t *testing.T) {
	alive, dead := float32(.9), float32(.1)
	all := people()
	for _, r := range all {
		for i := range r.Frames {
			for q := range r.Frames[i].Samples {
				if r.Frames[i].Samples[q].Liveness = &alive; r.Attack != "" {
					r.Frames[i].Samples[q].Liveness = &dead
				}
			}
		}
	}
	o := options()
	o.Tablet.Policy.MinLiveness = .5
	r := fixture.Must(login.Run(t.Context(), stage.Space, all, o))(t)
	if a := r.Attacks["a replay"]; a.All != 2 || a.Matches != 0 ||
		a.Ends["taken-for-picture"] != 2 {
		t.Errorf("%+v", a)
	}
	if r.Same.Matches != r.Same.All || r.Same.All != 6 || r.Other.Matches != 2 ||
		r.Impostor.Matches != 0 {
		t.Errorf("%+v", r)
	}
}

// Blended faces are not learned, as they are near no enrolled face. With edges so long that blends
// are learned, the anchor stops them.
func TestBridge(t *testing.T) {
	o := options()
	o.Steps = []int{1, 8}
	o.Bridge = func(user, attacker string, n int) (blends [][]float32, err error) {
		at := map[string][]float32{"alice": stage.Alice, "bob": stage.Bob, "carol": stage.Carol}
		for i := 1; i <= n; i++ {
			x := make([]float32, 4)
			for q := range x {
				x[q] = at[user][q] + (at[attacker][q]-at[user][q])*float32(i)/float32(n)
			}
			blends = append(blends, x)
		}
		return blends, nil
	}
	alive := float32(1)
	all := people()
	for _, r := range all {
		for i := range r.Frames {
			for q := range r.Frames[i].Samples {
				r.Frames[i].Samples[q].Liveness = &alive
			}
		}
	}
	long := online.Settings{Sigma: 1, Reach: 3}
	o.Tablet.Policy.MinLiveness = .5 // does not stop a blend that a live face shows
	for _, c := range []struct {
		anchor float64
		edges  online.Settings
		want   int
	}{{0, online.Settings{}, 0}, {100, online.Settings{}, 0}, {0, long, 0}, {100, long, 4}} {
		o.Tablet.Anchor, o.Tablet.Learner = c.anchor, c.edges
		r, err := login.Run(t.Context(), stage.Space, all, o)
		if err != nil || r.Bridges != 4 || r.BridgesIn != c.want {
			t.Errorf("anchor %g, %+v: %d of %d, want %d; %v", c.anchor, c.edges, r.BridgesIn,
				r.Bridges, c.want, err)
		}
	}
}

// The random side is the side to which the user turns. A recording without a turn does not count.
func TestObedience(t *testing.T) {
	o := options()
	o.Tablet.Policy.Challenge = tablet.Turn
	for _, turn := range []float64{.7, -.7} {
		r, err := login.Run(t.Context(), stage.Space, []login.Recording{
			recording("alice", "home", stage.Enrolling(stage.Alice), stage.Seen(stage.Alice, 68)),
			recording("alice", "turns", turning(stage.Alice, turn)),
		}, o)
		if err != nil || r.Other.All != 1 || r.Other.Matches != 1 || r.Other.Idle == 0 ||
			r.Same.All != 0 {
			t.Errorf("turning by %g: %+v, %v", turn, r, err)
		}
	}
}

func TestRunErrors(t *testing.T) {
	if _, err := login.Run(t.Context(), stage.Space, people()[4:], options()); !errors.Is(err,
		login.ErrNobody) {
		t.Error(err)
	}
	o := options()
	o.Tablet.Policy.Deadline = -1
	if _, err := login.Run(t.Context(), stage.Space, people(), o); !errors.Is(err,
		tablet.ErrPolicy) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := login.Run(ctx, stage.Space, people(), options()); !errors.Is(err,
		context.Canceled) {
		t.Error(err)
	}
}
