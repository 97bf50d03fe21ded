// SPDX-License-Identifier: Apache-2.0

// Package login measures logins on recordings: how often users get in, and how often other people
// do.
//
// [Run] enrols the people of some recordings, each with an authenticator like the daemon's. Then
// everybody tries to log in as everybody, with a clock that follows the recordings.
package login

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/faceauth/faceauth/eye"
	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/lab/evaluate"
	"github.com/faceauth/faceauth/tablet"
)

// ErrNobody is returned by [Run] if nobody can be enrolled.
var ErrNobody = errors.New("nobody could be enrolled from these recordings")

// Recording is a recording of one person.
type Recording struct {
	Person, Name string
	Attack       string // species of the attack; "" for the live person
	Frames       []face.Frame
}

// Options of a trial.
type Options struct {
	// Options of the authenticators; the trial sets clock and challenge.
	Tablet tablet.Options
	Gate   func(eye.Gate) func(face.Quality) face.Reason // quality gate
	// time between the starts of attempts. Default 1 s
	Every time.Duration
	// Hear has users do what a challenge asks: they turn as their recording shows it, at the
	// request, and turn back when they are told. Without it a person in a recording hears nothing,
	// and the request is for the side of the next turn.
	Hear bool
	// Enrol the first four usable faces, without asking for poses.
	First bool
	// Blends between labelled faces of two people; nil: no such attack.
	Bridge func(user, attacker string, n int) ([][]float32, error)
	Steps  []int                 // numbers of blends
	Step   func(progress string) // called with the progress; may be nil
}

// Attempts counts logins of one kind.
type Attempts struct {
	All     int `json:"attempts"`
	Matches int `json:"matches"`
	// 95 % interval of the share of matches, for independent attempts
	Interval evaluate.Interval `json:"interval"`
	Pairs    int               `json:"pairs"`    // pairs of a user and a recording
	PairsIn  int               `json:"pairs_in"` // pairs with a match
	Ends     map[string]int    `json:"ends"`     // by the last word
	// Not attempted: the recording does not show the action of the challenge.
	Idle int `json:"idle"`
}

func newAttempts() Attempts {
	return Attempts{Interval: evaluate.ClopperPearson(0, 0), Ends: make(map[string]int)}
}

func (a *Attempts) add(r tablet.Result) {
	a.All++
	a.Ends[string(r.Word)]++
	if r.Word == tablet.Match {
		a.Matches++
	}
	a.Interval = evaluate.ClopperPearson(a.Matches, a.All)
}

// Report is the result of a trial.
type Report struct {
	People    int                 `json:"people"`
	Enrolled  []string            `json:"enrolled"`
	Failed    []string            `json:"failed_to_enrol"`
	Same      Attempts            `json:"genuine_same_recording"`
	Other     Attempts            `json:"genuine_other_recordings"`
	Impostor  Attempts            `json:"impostor"`
	Attacks   map[string]Attempts `json:"attacks"` // by species of the attack
	Bridges   int                 `json:"bridges"` // ordered pairs of people
	BridgesIn int                 `json:"bridges_in"`
	// Seconds until a match, for genuine attempts, by the recording's clock, ascending.
	Times   []float64 `json:"times"`
	Learned float64   `json:"learned"`
}

// Quantile returns the time within which a share of the genuine matches came.
func Quantile(times []float64, share float64) float64 {
	if len(times) == 0 {
		return 0
	}
	return times[min(len(times)-1, int(share*float64(len(times))))]
}

// Run runs a trial. The error wraps [ErrNobody], or is that of ctx or of the authenticator.
func Run(ctx context.Context, space face.Space, all []Recording, o Options) (Report, error) {
	o.Every = cmp.Or(o.Every, time.Second)
	if o.Step == nil {
		o.Step = func(string) {}
	}
	r := Report{
		Enrolled: []string{}, Failed: []string{}, Times: []float64{},
		Attacks: make(map[string]Attempts),
		Same:    newAttempts(), Other: newAttempts(), Impostor: newAttempts(),
	}
	dir, err := os.MkdirTemp("", "faceauth-trial-")
	if err != nil {
		return r, err
	}
	defer os.RemoveAll(dir)
	people := make(map[string][]Recording)
	var names []string
	for _, rec := range all {
		if people[rec.Person] == nil {
			names = append(names, rec.Person)
		}
		people[rec.Person] = append(people[rec.Person], rec)
	}
	r.People = len(names)
	for i, user := range names {
		s, err := newStand(filepath.Join(dir, fmt.Sprint(i)), space, o)
		if err != nil {
			return r, err
		}
		err = s.measure(ctx, user, all, names, o, &r)
		s.Close()
		if err != nil {
			return r, err
		}
	}
	slices.Sort(r.Times)
	if len(r.Enrolled) == 0 {
		return r, ErrNobody
	}
	return r, nil
}

// measure enrols a user and lets everybody try to log in as this user.
func (s *stand) measure(ctx context.Context, user string, all []Recording, names []string,
	o Options, r *Report) error {
	var own []Recording
	for _, rec := range all {
		if rec.Person == user && rec.Attack == "" {
			own = append(own, rec)
		}
	}
	home := slices.IndexFunc(own, func(rec Recording) bool { return s.enrolled(ctx, user, rec) })
	if err := ctx.Err(); err != nil {
		return err
	}
	if home < 0 {
		r.Failed = append(r.Failed, user)
		return nil
	}
	r.Enrolled = append(r.Enrolled, user)
	if err := s.Password(user, 0, ""); err != nil {
		return err
	}
	for i, rec := range own {
		kind := &r.Other
		if i == home {
			kind = &r.Same
		}
		if err := s.attempts(ctx, user, rec, true, kind, r); err != nil {
			return err
		}
	}
	for _, rec := range all {
		var err error
		switch {
		case rec.Attack != "" && rec.Person == user:
			a, ok := r.Attacks[rec.Attack]
			if !ok {
				a = newAttempts()
			}
			err = s.attempts(ctx, user, rec, false, &a, r)
			r.Attacks[rec.Attack] = a
		case rec.Attack == "" && rec.Person != user:
			err = s.attempts(ctx, user, rec, false, &r.Impostor, r)
		}
		if err != nil {
			return err
		}
	}
	st, err := s.Status(user)
	if err != nil {
		return err
	}
	r.Learned += float64(st.Learned)
	if o.Bridge == nil {
		return nil
	}
	for _, attacker := range names {
		if attacker != user {
			in, err := s.bridge(ctx, user, attacker, all)
			if err != nil {
				return err
			}
			r.Bridges++
			if in {
				r.BridgesIn++
			}
		}
	}
	return nil
}

// enrolled enrols a user from a recording, and reports whether this succeeded.
func (s *stand) enrolled(ctx context.Context, user string, rec Recording) bool {
	s.play(rec.Frames, true)
	if s.o.First {
		s.play(s.poses(rec.Frames), true)
	}
	res, err := s.Enroll(ctx, user, "", false, func(tablet.Result) {})
	s.pass(time.Minute)
	return err == nil && res.Word == tablet.Enrolled
}

// attempts lets a person try to log in as a user throughout a recording. The user gives the
// password at once after an own failure, and later after failures of other people.
func (s *stand) attempts(
	ctx context.Context,
	user string,
	rec Recording,
	genuine bool,
	kind *Attempts,
	r *Report,
) error {
	other := map[tablet.Word]tablet.Word{tablet.TurnLeft: tablet.TurnRight,
		tablet.TurnRight: tablet.TurnLeft}
	in := false
	n := 0
	for start := time.Duration(0); ; start += s.o.Every {
		from := slices.IndexFunc(rec.Frames, func(f face.Frame) bool { return f.Time >= start })
		if from < 0 || rec.Frames[len(rec.Frames)-1].Time-rec.Frames[from].Time < time.Second {
			break
		}
		s.play(rec.Frames[from:], false)
		s.side = other[s.side]
		s.turn = [2][]face.Frame{}
		switch {
		case s.o.Hear && genuine:
			s.turn = hearing(rec.Frames)
			if s.turn[0] == nil || !straightOn(rec.Frames[from]) {
				kind.Idle++
				continue
			}
		case s.Policy().Challenge == tablet.Turn && genuine:
			side, turns := s.turns(rec.Frames[from:])
			if !turns {
				kind.Idle++
				continue
			}
			s.side = side
		}
		begun := s.now()
		res, err := s.Verify(ctx, tablet.Attempt{User: user}, s.tell)
		if err != nil {
			return fmt.Errorf("%s as %s: %w", rec.Name, user, err)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		n++
		kind.add(res)
		in = in || res.Word == tablet.Match
		if genuine && res.Word == tablet.Match {
			r.Times = append(r.Times, s.now().Sub(begun).Seconds())
		}
		if !genuine {
			s.pass(time.Hour)
		}
		if err := s.Password(user, 0, ""); err != nil {
			return err
		}
		s.pass(time.Hour)
	}
	if n > 0 {
		kind.Pairs++
		if in {
			kind.PairsIn++
		}
	}
	s.o.Step(user)
	return nil
}

// bridge tries to lead an authenticator from a user to an attacker with blends, shown one after the
// other until each succeeds or fails. It reports whether the attacker's own face then succeeds, for
// any number of blends.
func (s *stand) bridge(ctx context.Context, user, attacker string, all []Recording) (bool, error) {
	for _, n := range s.o.Steps {
		blends, err := s.o.Bridge(user, attacker, n)
		if err != nil || len(blends) == 0 {
			return false, err
		}
		// Remove everything that an earlier path has taught.
		if _, err := s.Undo(user, s.now()); err != nil {
			return false, err
		}
		s.pass(time.Second)
		begun := s.now()
		var last tablet.Result
		for _, x := range blends { // the last one is the attacker's face
			s.play(still(x), false)
			if last, err = s.Verify(ctx, tablet.Attempt{User: user},
				func(tablet.Result) {}); err != nil {
				return false, err
			}
			s.pass(time.Hour)
			if err := s.Password(user, 0, ""); err != nil {
				return false, err
			}
			s.pass(time.Hour)
		}
		if _, err := s.Undo(user, begun.Add(-time.Second)); err != nil {
			return false, err
		}
		if last.Word == tablet.Match {
			return true, nil
		}
	}
	s.o.Step(user)
	return false, ctx.Err()
}

// still returns five seconds of a straight face. The attack is assumed to pass the liveness network
// with its blends, because the defence after that is measured.
func still(x []float32) []face.Frame {
	alive := float32(1)
	frames := make([]face.Frame, 125)
	for i := range frames {
		frames[i] = face.Frame{Index: i, Time: time.Duration(i) * 40 * time.Millisecond,
			Samples: []face.Sample{{
				Track: 1, Vector: x, Landmarks: landmarks(0, .5), Liveness: &alive,
				Quality: face.Quality{Size: 112, Sharpness: 100, Brightness: 128, Contrast: 50},
			}}}
	}
	return frames
}
