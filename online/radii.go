// SPDX-License-Identifier: Apache-2.0

package online

import (
	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/quantized"
)

// Radii are the distances by which a learner decides, in units of the space's distance.
type Radii struct {
	Anchor   float64 `json:"anchor"`   // within that of an enrolled face, a face is anchored: learned faces have no part in it
	Enrolled float64 `json:"enrolled"` // how far from an enrolled face somebody is recognised
	Learned  float64 `json:"learned"`  // how far from a learned face somebody is recognised
	Learn    float64 `json:"learn"`    // how far from a stored face one is learned
	Link     float64 `json:"link"`     // how far from the face before it on the same track one is learned
}

// FacesOfSighting is how many faces that differ a sighting is taken to show: as many chances of a stranger.
const FacesOfSighting = 10

// Radii returns the distances by which l decides now. They follow from false match rates that were measured of the
// space, and shrink with the number of enrolled faces and people, so that a stranger's chance does not grow with them:
//
// Of n enrolled faces a stranger's is near some one with at most n times the rate for one (Boole's inequality). So
// Anchor and Enrolled are the distances at AnchorRate/n and NameRate/n between stills. Learned is the distance at
// NameRate/(10 p) between faces of streams, for p people: turned faces come nearer to each other, a sighting of a
// stranger shows some ten faces that differ, and the faces learned of one person are near each other, so that a
// stranger who is near one is near many. Learn is Learned, where that is less than Reach.
//
// In a space of which nothing was measured, all are the length of the longest edge, whatever the number of people.
func (l *Learner) Radii() Radii {
	// Settings and people reset them where they change; faces come and go in many places.
	if n := l.graph.Labelled(); n != l.measured || l.radii == (Radii{}) {
		l.radii, l.measured = l.measure(), n
	}
	return l.radii
}

// SetImpostors has l go by what was measured of its space since it was made; see [face.Space]. Faces stay, and what is
// recognised and learned from now on follows the new distances.
func (l *Learner) SetImpostors(stills, streams face.Impostors) {
	l.space.Stills, l.space.Streams, l.radii = stills, streams, Radii{}
}

// measure returns the radii for the labels and settings that there are.
func (l *Learner) measure() Radii {
	s, edge := l.settings, l.graph.Config().EdgeRadius()
	r := Radii{Anchor: edge, Enrolled: edge, Learned: edge, Learn: edge, Link: max(edge, s.Link)}
	people := 0
	for _, c := range l.classes {
		if !c.negative {
			people++
		}
	}
	if l.space.Stills.Measured() {
		n := float64(max(l.graph.Labelled(), 1))
		r.Anchor, r.Enrolled = l.space.Stills.Within(s.AnchorRate/n), l.space.Stills.Within(s.NameRate/n)
		streams := l.space.Streams
		if !streams.Measured() {
			streams = l.space.Stills
		}
		r.Learned = streams.Within(s.NameRate / (FacesOfSighting * float64(max(people, 1))))
		r.Learn = min(r.Learned, edge)
	}
	return r
}

// sight is how far a face is judged.
func (r Radii) sight() quantized.Sight {
	return quantized.Sight{Labelled: r.Enrolled, Learned: r.Learned}
}

// recognises reports whether a face is near enough to an enrolled face, or to a learned one, to be given a name, or
// follows somebody.
func (r Radii) recognises(t quantized.Trial) bool {
	labelled, learned, linked := t.Closest()
	return linked || labelled <= r.Enrolled || learned <= r.Learned
}

// teaches reports whether a face is near enough to some stored one, or follows somebody, to be learned.
func (r Radii) teaches(t quantized.Trial) bool {
	labelled, learned, linked := t.Closest()
	return linked || min(labelled, learned) <= r.Learn
}
