// SPDX-License-Identifier: Apache-2.0

package session

import (
	"math"
	"slices"
	"time"

	"github.com/faceauth/faceauth/face"
)

// Challenge is what a person who matches is asked to do, so that a flat picture of them fails.
type Challenge string

// Challenges.
const (
	Turn  Challenge = "turn"  // the head, to the side that was drawn
	Blink Challenge = "blink" // once
)

// Side is one of a head, as its owner calls it.
type Side bool

// Sides.
const (
	Left  Side = false
	Right Side = true
)

// Bounds of a turn: the tip of the nose is half way from the middle to below an eye, or less than a quarter, and the
// eyes are still nearly as far apart as they were. The nose of a head goes to the side long before the eyes come
// together. Landmarks of a flat picture, when they show a turn at all, do so where it is foreshortened so much that its
// eyes have come together first. Chosen on vidtimit_rot, spoof and pictures of their people: while the eyes are that
// far apart those show turns of up to .40, and all heads that turn one of .76 or more.
const (
	straight = .25 // Pose.Turn below which a head looks straight on
	turned   = .5  // beyond which it is turned
	apart    = .75 // of Pose.Width while it looked straight on
	widest   = .62 // Pose.Width, whatever it was before: heads that look straight on have .82 and more
)

// A blink is a fall of [face.Pose].Eyes below shut times its median of the last second, and a rise above open times
// that, within half a second of the fall, while the head is held still: the landmarks of a picture that is waved fall
// and rise as well.
const (
	shut      = .65
	open      = .85
	blinkSpan = 500 * time.Millisecond
	eyeSpan   = time.Second
	eyeCount  = 5  // frames of open eyes that a median takes, at the least
	stirring  = .1 // change of Pose.Turn, Nod, or of Width as a share, beyond which a head is not still
)

// progress says how far it is done.
type progress int

// Progress of a gesture.
const (
	going progress = iota
	done
	wrong
)

// gesture watches for what a challenge asks. Nil is that of no challenge.
type gesture struct {
	kind  Challenge
	word  Word
	side  float64 // sign of Pose.Turn on the side asked for
	phase phase

	width float64 // the largest of a head that has looked straight on since it was asked; 0 where none has
	eyes  []eyes
	fall  time.Time // since when the eyes are shut; zero while they are open
	held  face.Pose // before they were
}

type phase int

// Phases of a gesture. It is asked for once the face was recognised.
const (
	waiting phase = iota
	asking
	finished
)

// eyes are how far they were open at a moment.
type eyes struct {
	at      time.Time
	opening float64
}

func newGesture(c Challenge, side Side) *gesture {
	switch {
	case c == Turn && side == Left: // the owner's left is at the right of the picture
		return &gesture{kind: c, word: TurnLeft, side: 1}
	case c == Turn:
		return &gesture{kind: c, word: TurnRight, side: -1}
	case c == Blink:
		return &gesture{kind: c, word: BlinkNow}
	}
	return nil
}

func (g *gesture) waiting() bool  { return g != nil && g.phase == waiting }
func (g *gesture) asked() bool    { return g != nil && g.phase == asking }
func (g *gesture) finished() bool { return g != nil && g.phase == finished }

func (g *gesture) ask() { g.phase = asking }

// forget begins anew: somebody else may be there.
func (g *gesture) forget() {
	if g != nil {
		g.phase, g.width, g.eyes, g.fall = waiting, 0, nil, time.Time{}
	}
}

// see takes in a frame: the pose of the face, and whether it is the user's. Somebody else who does what a picture of
// the user cannot do is found out here.
func (g *gesture) see(now time.Time, p face.Pose, match bool) (how progress) {
	switch {
	case !match && p.Turn < straight && p.Turn > -straight:
		g.width, g.eyes, g.fall = 0, nil, time.Time{}
	case g.kind == Turn:
		how = g.turn(p, match)
	default:
		how = g.blink(now, p)
	}
	if how == done {
		g.phase = finished
	}
	return how
}

// turn asks for a head that looks straight on and then to the side that was drawn. One that goes to the other side
// first has not heard what was asked, as a recording has not.
func (g *gesture) turn(p face.Pose, match bool) progress {
	switch toward := p.Turn * g.side; {
	case toward < straight && toward > -straight:
		g.width = max(g.width, p.Width)
	case g.width > 0 && toward >= turned && p.Width >= max(apart*g.width, widest) && match:
		return done
	case g.width > 0 && toward <= -turned:
		return wrong
	}
	return going
}

// blink asks for eyes that shut and open again. Those of a head that is turned cannot be told from shut ones.
func (g *gesture) blink(now time.Time, p face.Pose) progress {
	if p.Turn > straight || p.Turn < -straight {
		g.eyes, g.fall = nil, time.Time{}
		return going
	}
	if !g.fall.IsZero() && (math.Abs(p.Turn-g.held.Turn) > stirring || math.Abs(p.Nod-g.held.Nod) > stirring || math.Abs(p.Width-g.held.Width) > stirring*g.held.Width) {
		g.eyes, g.fall = nil, time.Time{}
	}
	g.eyes = slices.DeleteFunc(g.eyes, func(e eyes) bool { return now.Sub(e.at) > eyeSpan })
	if len(g.eyes) < eyeCount {
		g.eyes, g.held = append(g.eyes, eyes{now, p.Eyes}), p
		return going
	}
	all := make([]float64, len(g.eyes))
	for i, e := range g.eyes {
		all[i] = e.opening
	}
	slices.Sort(all)
	usual := all[len(all)/2]
	switch {
	case p.Eyes <= shut*usual:
		if g.fall.IsZero() {
			g.fall = now
		}
	case p.Eyes >= open*usual:
		if !g.fall.IsZero() && now.Sub(g.fall) <= blinkSpan {
			return done
		}
		g.fall, g.held = time.Time{}, p
		g.eyes = append(g.eyes, eyes{now, p.Eyes})
	}
	return going
}
