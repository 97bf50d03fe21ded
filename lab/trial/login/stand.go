// SPDX-License-Identifier: Apache-2.0

package login

import (
	"context"
	"io"
	"math"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/faceauth/faceauth/eye"
	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/tablet"
	"github.com/faceauth/faceauth/tablet/profile"
)

// stand is an authenticator whose camera plays recordings.
type stand struct {
	*tablet.Authenticator
	store *profile.Store
	o     Options

	mu     sync.Mutex
	clock  time.Time
	frames []face.Frame
	ends   bool        // the camera ends after the frames, instead of showing nobody
	side   tablet.Word // side of the next challenge
	// how the user turns to the left and to the right when asked; nil: nobody hears
	turn [2][]face.Frame
	said tablet.Word // the last request
}

func newStand(dir string, space face.Space, o Options) (*stand, error) {
	store, err := profile.Open(filepath.Join(dir, "profiles"), profile.NewKey([32]byte{}), space)
	if err != nil {
		return nil, err
	}
	s := &stand{store: store, o: o, clock: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		side: tablet.TurnLeft}
	opt := o.Tablet
	opt.Now = s.now
	opt.Draw = func() tablet.Word { return s.side }
	if s.Authenticator, err = tablet.New(store, space, s.camera, opt); err != nil {
		store.Close()
		return nil, err
	}
	return s, nil
}

func (s *stand) Close() {
	s.store.Close()
}

func (s *stand) now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.clock
}

func (s *stand) pass(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clock = s.clock.Add(d)
}

func (s *stand) play(frames []face.Frame, ends bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frames, s.ends = frames, ends
}

func (s *stand) camera(_ context.Context, p eye.Gate) (tablet.Stream, error) {
	gate := s.o.Gate(p)
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &reel{s: s, frames: s.frames, ends: s.ends, gate: gate, begun: s.clock}
	s.said = ""
	if len(s.frames) > 0 {
		r.offset = s.frames[0].Time
	}
	return r, nil
}

// reel plays frames, and moves the clock with them.
type reel struct {
	s      *stand
	frames []face.Frame
	ends   bool
	gate   func(face.Quality) face.Reason
	begun  time.Time
	offset time.Duration

	heard tablet.Word  // the last request that was taken in
	done  []face.Frame // of the turn, as it was played
}

// reaction is how long a user who hears a request goes on as before.
const reaction = 400 * time.Millisecond

// hear plays what a user does who hears the requests: the turn of the recording to that side, and
// then the same frames backwards when the user is told to look straight. Between requests the last
// frame stays.
func (r *reel) hear() {
	const pace = 40 * time.Millisecond
	switch said := r.s.said; {
	case r.s.turn[0] == nil || said == r.heard:
	case said == tablet.TurnLeft || said == tablet.TurnRight:
		side := 0
		if said == tablet.TurnRight {
			side = 1
		}
		hold := slices.Repeat(r.done[len(r.done)-1:], int(reaction/pace))
		r.frames, r.heard, r.done = append(hold, r.s.turn[side]...), said, nil
	case said == tablet.Straight:
		back := slices.Clone(r.done)
		slices.Reverse(back)
		hold := slices.Repeat(back[:1], int(reaction/pace))
		r.frames, r.heard, r.done = append(hold, back...), said, nil
	}
	if r.s.turn[0] != nil && len(r.frames) == 0 && len(r.done) > 0 {
		r.frames = r.done[len(r.done)-1:]
	}
}

func (r *reel) Next(ctx context.Context) (face.Frame, error) {
	if err := ctx.Err(); err != nil {
		return face.Frame{}, err
	}
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	r.hear()
	if len(r.frames) == 0 {
		r.s.clock = r.s.clock.Add(40 * time.Millisecond)
		if r.ends {
			return face.Frame{}, io.EOF
		}
		return face.Frame{}, nil
	}
	f := r.frames[0]
	r.frames = r.frames[1:]
	if r.s.turn[0] != nil {
		r.done = append(r.done, f)
		r.s.clock = r.s.clock.Add(40 * time.Millisecond)
	} else if at := r.begun.Add(f.Time - r.offset); at.After(r.s.clock) {
		r.s.clock = at
	}
	f.Samples = slices.Clone(f.Samples)
	for i, x := range f.Samples {
		if f.Samples[i].Reason = r.gate(x.Quality); x.Vector == nil {
			f.Samples[i].Reason = face.NoVector
		}
		// Copy the samples, so that the authenticator cannot change the recording.
		f.Samples[i].Vector = slices.Clone(x.Vector)
	}
	return f, nil
}

func (r *reel) Close() error { return nil }

// poses returns the first four usable faces, changed to look like the requested poses.
func (s *stand) poses(frames []face.Frame) (posed []face.Frame) {
	gate := s.o.Gate(eye.Enrol)
	asked := [][2]float64{{0, .5}, {.4, .5}, {-.4, .5}, {0, .3}}
	for _, f := range frames {
		if len(asked) == 0 {
			break
		}
		if len(f.Samples) != 1 || f.Samples[0].Vector == nil || gate(f.Samples[0].Quality) != "" {
			continue
		}
		x := f.Samples[0]
		x.Landmarks = landmarks(asked[0][0], asked[0][1])
		asked = asked[1:]
		f.Samples = []face.Sample{x}
		posed = append(posed, f, f) // held for two frames
	}
	return posed
}

// landmarks returns landmarks of a head with a given turn and tilt.
func landmarks(turn, nod float64) []face.Point {
	l := make([]face.Point, 68)
	for i := range 6 {
		l[36+i].X, l[42+i].X = -1, 1
	}
	l[30] = face.Point{X: float32(turn), Y: float32(nod)}
	l[48].Y, l[54].Y = 1, 1
	return l
}

// tell keeps the last request for a user who hears.
func (s *stand) tell(r tablet.Result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Word == tablet.TurnLeft || r.Word == tablet.TurnRight || r.Word == tablet.Straight {
		s.said = r.Word
	}
}

// straightOn reports whether one head looks straight on.
func straightOn(f face.Frame) bool {
	p, ok := pose(f)
	return ok && math.Abs(p.Turn) < .25
}

// hearing returns the frames of a recording in which the head turns from straight on to the left
// and to the right, as far as somebody turns who is asked to. Both are nil if the recording does
// not show both.
func hearing(frames []face.Frame) (turn [2][]face.Frame) {
	const most, least = .8, .55 // the challenge asks for .5
	for from := range frames {
		if !straightOn(frames[from]) {
			continue
		}
		to, far, side := from, 0., 0
		for i := from + 1; i < len(frames) && far < most; i++ {
			p, ok := pose(frames[i])
			if !ok || math.Abs(p.Turn) < .25 { // it does not turn yet, or it is back
				break
			}
			if math.Abs(p.Turn) > far {
				to, far, side = i, math.Abs(p.Turn), 0
				if p.Turn < 0 {
					side = 1
				}
			}
		}
		if far >= least && turn[side] == nil {
			turn[side] = frames[from : to+1]
		}
	}
	if turn[0] == nil || turn[1] == nil {
		return [2][]face.Frame{}
	}
	return turn
}

// pose returns the pose of the one head in a frame.
func pose(f face.Frame) (p face.Pose, ok bool) {
	if len(f.Samples) != 1 {
		return p, false
	}
	return face.PoseOf(f.Samples[0].Landmarks)
}

// turns returns the side of the next turn of a straight head, and whether the turn comes before a
// login ends. The person in a recording cannot hear a request. So the challenge asks for this side,
// and before the turn.
func (s *stand) turns(frames []face.Frame) (side tablet.Word, ok bool) {
	faced := time.Duration(0)
	for _, f := range frames {
		if f.Time-frames[0].Time > s.Policy().Deadline-2*time.Second {
			break
		}
		if len(f.Samples) != 1 {
			continue
		}
		p, ok := face.PoseOf(f.Samples[0].Landmarks)
		switch turn := math.Abs(p.Turn); {
		case !ok:
		case turn < .25:
			faced = f.Time
		case turn > .5:
			if side = tablet.TurnLeft; p.Turn < 0 {
				side = tablet.TurnRight
			}
			return side, faced-frames[0].Time > 400*time.Millisecond
		}
	}
	return "", false
}
