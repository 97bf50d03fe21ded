// SPDX-License-Identifier: Apache-2.0

package tablet

import (
	"math"
	"slices"
	"time"

	"github.com/faceauth/faceauth/face"
)

// Challenge is the action that a matching person is asked for, so that a flat picture fails.
type Challenge string

// Challenges.
const (
	Turn  Challenge = "turn"  // turn the head to a random side
	Blink Challenge = "blink" // blink once
)

// Side is a side of a head, seen by its owner.
type Side bool

// Sides.
const (
	Left  Side = false
	Right Side = true
)

// Limits of a turn. "Turned" means: the tip of the nose is half way from the middle to below an eye; "straight": less
// than a quarter. The distance of the eyes must have changed little. When a head turns, the nose moves to the side long
// before the eyes come together. A flat picture shows a turn only after strong foreshortening, when its eyes have come
// together. The values were chosen on vidtimit_rot, spoof and pictures of their people: with eyes that far apart,
// pictures show turns of at most .40, and all turning heads reach .76 or more.
const (
	straight = .25 // Pose.Turn below which a head looks straight on
	turned   = .5  // Pose.Turn above which a head is turned
	apart    = .75 // least Pose.Width, as a share of its value while the head looked straight
	widest   = .62 // least Pose.Width in any case: straight heads have .82 or more
)

// A blink is a fall of [face.Pose].Eyes below shut times its median of the last second, and a rise above open times the
// median within half a second, while the head is still. The head must be still because the landmarks of a waved picture
// fall and rise, too.
const (
	shut      = .65
	open      = .85
	blinkSpan = 500 * time.Millisecond
	eyeSpan   = time.Second
	eyeCount  = 5  // least number of frames with open eyes for a median
	stirring  = .1 // greatest change of Pose.Turn, Nod or (as a share) Width of a still head
)

// progress is the progress of a gesture.
type progress int

// Progress of a gesture.
const (
	going progress = iota
	done
	wrong
)

// gesture recognises the action of a challenge. A nil gesture has no challenge.
type gesture struct {
	kind  Challenge
	word  Word
	side  float64 // sign of Pose.Turn on the requested side
	phase phase

	width float64 // largest width of the straight head since the request; 0 for none
	eyes  []eyes
	fall  time.Time // time when the eyes shut; zero while they are open
	held  face.Pose // pose before the eyes shut
}

type phase int

// Phases of a gesture. It is requested after the face was recognised.
const (
	waiting phase = iota
	asking
	finished
)

// eyes is the opening of the eyes at a moment.
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

// forget starts again, because another person may be in view.
func (g *gesture) forget() {
	if g != nil {
		g.phase, g.width, g.eyes, g.fall = waiting, 0, nil, time.Time{}
	}
}

// see processes a frame: the pose of the face, and whether the face is the user's. If another person does the action,
// which a picture of the user cannot do, this shows it.
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

// turn waits for a straight head and then a turn to the requested side. A turn to the wrong side first fails: a
// recording does not know the side.
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

// blink waits for eyes that shut and open again. The eyes of a turned head cannot be distinguished from shut eyes.
func (g *gesture) blink(now time.Time, p face.Pose) progress {
	if p.Turn > straight || p.Turn < -straight {
		g.eyes, g.fall = nil, time.Time{}
		return going
	}
	if !g.fall.IsZero() &&
		(math.Abs(p.Turn-g.held.Turn) > stirring || math.Abs(p.Nod-g.held.Nod) > stirring ||
			math.Abs(p.Width-g.held.Width) > stirring*g.held.Width) {
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
