// SPDX-License-Identifier: Apache-2.0

package evaluate_test

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/faceauth/faceauth/lab/evaluate"
	"github.com/faceauth/faceauth/online"
)

// Alice at 0 and eve at 2 on a line; self-training accepts steps of up to .5.
var (
	alice = evaluate.Identity{Name: "alice", Faces: at(0, .1, -.1)}
	eve   = evaluate.Identity{Name: "eve", Faces: at(2, 1.5, 2.2)}
)

func selfTraining(radius float64) evaluate.Guarded {
	return evaluate.Guarded{Entry: evaluate.SelfTraining(line, radius), Guards: "radius"}
}

// The bridge goes from alice's labelled face to eve's. Eve is let in when a step lies within .5 of
// her.
func TestBridge(t *testing.T) {
	blends := func(user string, i int, attacker string, j, n int) (steps [][]float32, err error) {
		if i != 0 || j != 0 {
			t.Errorf("blends of face %d of %s and face %d of %s", i, user, j, attacker)
		}
		from, to := float32(0), float32(2)
		if user == "eve" {
			from, to = to, from
		}
		for step := 1; step <= n; step++ {
			steps = append(steps, []float32{from + (to-from)*float32(step)/float32(n)})
		}
		return steps, nil
	}
	attacks, err := evaluate.Bridges([]evaluate.Identity{alice, eve}, 1, []int{5}, blends)
	if err != nil || len(attacks) != 2 {
		t.Fatalf("%d attacks, %v", len(attacks), err)
	}
	done := 0
	o, err := evaluate.Withstand(context.Background(), attacks, selfTraining(.5), func() { done++ })
	if err != nil {
		t.Fatal(err)
	}
	// The steps are .4, .8, 1.2 and 1.6: after the fourth step alice's graph is .4 from eve. From
	// eve's side, after her own 1.5 is learned, the steps are 1.6, 1.2, .8 and .4, and alice is
	// also at .4 after four steps.
	if o.Attacks != 2 || o.Fallen != 2 || o.Least != 4 || o.Median != 4 || o.Presented != 0 ||
		done != 2 {
		t.Errorf("%+v", o)
	}
	// Alice's .1 and -.1 and eve's 1.5 and 2.2 are accepted as theirs.
	if o.Honest != 1 {
		t.Errorf("honest recall %g", float64(o.Honest))
	}
	// Steps shorter than the bridge's stop it, and eve's own 1.5 is too far.
	o, err = evaluate.Withstand(context.Background(), attacks, selfTraining(.3), nil)
	if err != nil || o.Fallen != 0 || o.Least != 0 || o.Honest != .75 {
		t.Errorf("%+v, %v", o, err)
	}
	// If ten steps may be chosen, the attacker is let in with ten: at 1.8, after nine, alice's
	// graph is .2 away.
	both, err := evaluate.Bridges([]evaluate.Identity{alice, eve}, 1, []int{5, 10, 2}, blends)
	if err != nil {
		t.Fatal(err)
	}
	if o, err := evaluate.Withstand(context.Background(), both[:1], selfTraining(.3),
		nil); err != nil ||
		o.Fallen != 1 || o.Least != 9 {
		t.Errorf("%+v, %v", o, err)
	}
	// With wider steps the fewest are chosen: .4 and .8 are too far from her 1.5 or 2, 1.2 is not.
	if o, err := evaluate.Withstand(context.Background(), both[:1], selfTraining(1.05),
		nil); err != nil ||
		o.Fallen != 1 || o.Least != 1 {
		t.Errorf("%+v, %v", o, err)
	}
	if i := o.Interval; i.Low != 0 || math.Abs(i.High-(1-math.Sqrt(.025))) > 1e-9 {
		t.Errorf("interval %+v", i)
	}
}

// Eve's faces come nearest first: 1.5, 2, 2.2.
func TestSlowDrift(t *testing.T) {
	attacks, err := evaluate.SlowDrifts([]evaluate.Identity{alice, eve}, 1)
	if err != nil {
		t.Fatal(err)
	}
	a := attacks[0]
	for i, want := range []float32{1.5, 2, 2.2} {
		if a.User != "alice" || a.Attacker != "eve" || a.Ways[0][i].Vector[0] != want {
			t.Errorf("step %d is %v, want %g", i, a.Ways[0][i].Vector, want)
		}
	}
	for _, c := range []struct {
		radius        float64
		fallen, least int
		accepted      int
	}{{1.6, 1, 0, 3}, {1.3, 0, 0, 0}} {
		o, err := evaluate.Withstand(context.Background(), attacks[:1], selfTraining(c.radius), nil)
		if err != nil || o.Fallen != c.fallen || o.Least != c.least || o.Presented != 3 ||
			o.Accepted != c.accepted {
			t.Errorf("radius %g: %+v, %v", c.radius, o, err)
		}
	}
}

// A replay with too little liveness is neither accepted nor learned. It costs the user the faces
// that look no more alive.
func TestReplay(t *testing.T) {
	dead, alive := float32(.1), float32(.9)
	user := evaluate.Identity{Name: "alice", Faces: at(0, .1, .2)}
	user.Faces[1].Liveness, user.Faces[2].Liveness = &alive, &dead
	fakes := at(.05, .1)
	fakes[0].Liveness = &dead // the other fake has no score
	a, err := evaluate.Replay(user, 1, fakes)
	if err != nil {
		t.Fatal(err)
	}
	g := evaluate.Guarded{Entry: evaluate.Learner(line, online.Settings{})}
	o, err := evaluate.Withstand(context.Background(), []evaluate.Attack{a}, g, nil)
	if err != nil || o.Fallen != 1 || o.Accepted != 2 || o.Honest != 1 {
		t.Errorf("without liveness: %+v, %v", o, err)
	}
	g.Liveness = .5
	o, err = evaluate.Withstand(context.Background(), []evaluate.Attack{a}, g, nil)
	if err != nil || o.Fallen != 0 || o.Accepted != 0 || o.Presented != 2 || o.Honest != .5 {
		t.Errorf("with liveness: %+v, %v", o, err)
	}
}

// The learner raises the alarm for drift before the attacker is let in.
func TestAlarmBeforeAttacker(t *testing.T) {
	a := evaluate.Attack{User: "alice", Attacker: "eve", Labelled: [][]float32{{0}},
		Probes: [][]float32{{9}}}
	var steps []evaluate.Face
	for x := float32(.1); x < 4; x += .1 {
		steps = append(steps, evaluate.Face{Vector: []float32{x}})
	}
	a.Ways = [][]evaluate.Face{steps}
	g := evaluate.Guarded{Entry: evaluate.Learner(line, online.Settings{DriftDistance: 1})}
	o, err := evaluate.Withstand(context.Background(), []evaluate.Attack{a}, g, nil)
	if err != nil || o.Alarmed != 1 || o.Fallen != 0 || o.FalseAlarms != 0 {
		t.Errorf("%+v, %v", o, err)
	}
	a.Honest = steps // the user's own movements look the same
	o, err = evaluate.Withstand(context.Background(), []evaluate.Attack{a}, g, nil)
	if err != nil || o.Alarmed != 0 || o.FalseAlarms != 1 {
		t.Errorf("%+v, %v", o, err)
	}
}

func TestAttackErrors(t *testing.T) {
	if _, err := evaluate.SlowDrifts([]evaluate.Identity{alice}, 1); !errors.Is(err,
		evaluate.ErrTooFew) {
		t.Errorf("one person: %v", err)
	}
	if _, err := evaluate.SlowDrifts([]evaluate.Identity{alice, eve}, 4); !errors.Is(err,
		evaluate.ErrTooFew) {
		t.Errorf("too few faces: %v", err)
	}
	broken := errors.New("broken")
	if _, err := evaluate.Bridges([]evaluate.Identity{alice, eve}, 1, []int{1},
		func(string, int, string, int, int) ([][]float32,
			error) {
			return nil, broken
		}); !errors.Is(err, broken) {
		t.Errorf("no blends: %v", err)
	}
	attacks, err := evaluate.SlowDrifts([]evaluate.Identity{alice, eve}, 1)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := evaluate.Withstand(ctx, attacks, selfTraining(.5), nil); !errors.Is(err,
		context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := evaluate.Withstand(context.Background(), attacks, selfTraining(0),
		nil); !errors.Is(err,
		evaluate.ErrMethod) {
		t.Errorf("a method that cannot be made: %v", err)
	}
}
