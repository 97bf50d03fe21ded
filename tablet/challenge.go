// SPDX-License-Identifier: Apache-2.0

package tablet

import "github.com/faceauth/faceauth/face"

// Challenge is the action that a matching person is asked for, so that a flat picture fails.
type Challenge string

// Challenges: a turn of the head to a random side, or to both sides in a random order.
const (
	Turn     Challenge = "turn"
	TurnBoth Challenge = "turn-both"
)

// Limits of a turn. "Turned" means: the tip of the nose is half way from the middle to below an
// eye; "straight": less than a quarter. The distance of the eyes must have changed little. When a
// head turns, the nose moves to the side long before the eyes come together. A flat picture shows a
// turn only after strong foreshortening, when its eyes have come together. The values were chosen
// on vidtimit_rot, spoof and pictures of their people: with eyes that far apart, pictures show
// turns of at most .40, and all turning heads reach .76 or more.
const (
	straight = .25 // Pose.Turn below which a head looks straight on
	turned   = .5  // Pose.Turn above which a head is turned
	apart    = .75 // least Pose.Width, as a share of its value while the head looked straight
	widest   = .62 // least Pose.Width in any case: straight heads have .82 or more
)

// gesture recognises the turns of a challenge. A nil gesture has no challenge.
type gesture struct {
	sides []Word // to which the head must turn, one after the other
	done  int    // turns so far
	phase phase
	// largest width of the straight head since the request or the last turn; 0 for none
	width float64
}

type phase int

// Phases of a gesture. It is requested after the face was recognised. After a turn to the wrong
// side it has failed.
const (
	waiting phase = iota
	asking
	finished
	wrong
)

// newGesture returns the gesture of a challenge; toward is its first side, TurnLeft or TurnRight.
func newGesture(c Challenge, toward Word) *gesture {
	switch {
	case c == "":
		return nil
	case c == Turn:
		return &gesture{sides: []Word{toward}}
	case toward == TurnLeft:
		return &gesture{sides: []Word{TurnLeft, TurnRight}}
	}
	return &gesture{sides: []Word{TurnRight, TurnLeft}}
}

// word is the request for the next turn.
func (g *gesture) word() Word { return g.sides[g.done] }

func (g *gesture) in(p phase) bool { return g != nil && g.phase == p }

// forget starts again, because another person may be in view.
func (g *gesture) forget() {
	if g != nil {
		g.phase, g.width, g.done = waiting, 0, 0
	}
}

// see processes a frame: the pose of the face, and whether the face is the user's. It waits for a
// straight head and then a turn to the requested side, and so on for each side. A turn to the wrong
// side first fails: a recording does not know the side. Who turns is proven by the faces before,
// and by the track, which goes on: turned faces need not match. If another person turns, which a
// picture of the user cannot do, the straight face of that person shows it.
func (g *gesture) see(p face.Pose, match bool) phase {
	toward := p.Turn // the user's left is at the right of the picture
	if g.word() == TurnRight {
		toward = -p.Turn
	}
	switch {
	case toward < straight && toward > -straight && !match:
		g.width = 0
	case toward < straight && toward > -straight:
		g.width = max(g.width, p.Width)
	case g.width > 0 && toward >= turned && p.Width >= max(apart*g.width, widest):
		g.width = 0
		if g.done++; g.done == len(g.sides) {
			g.phase = finished
		}
	case g.width > 0 && toward <= -turned:
		g.phase = wrong
	}
	return g.phase
}
