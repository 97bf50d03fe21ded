// SPDX-License-Identifier: Apache-2.0

package online

import (
	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/quantized"
)

// Radii are the distances by which a learner decides, in units of the space's distance.
type Radii struct {
	// Anchor: a face nearer to an enrolled face than this is anchored. Learned faces do not count.
	Anchor   float64 `json:"anchor"`
	Enrolled float64 `json:"enrolled"` // how far from an enrolled face somebody is recognised
	Learned  float64 `json:"learned"`  // how far from a learned face somebody is recognised
	Learn    float64 `json:"learn"`    // how far from a stored face one is learned
	Link     float64 `json:"link"`     // how far from the face before it on the same track one is learned
	// Limit is how far from the nearest enrolled face of a person a face may be learned as this person, and get the name
	// unless it follows a face of its track: the space's genuine radius, or Enrolled if that is larger. 0 in a space
	// without a genuine radius: no limit.
	Limit float64 `json:"limit"`
}

// Strays reports whether a face at this distance from the nearest enrolled face of a person is beyond the limit.
// Otherwise a film that changes one face into another leads from person to person, with the highest confidence: each
// face is near the one before it.
func (r Radii) Strays(distance float64) bool { return r.Limit > 0 && distance > r.Limit }

// facesOfSighting is the assumed number of different faces in a sighting. Each is one more chance of a false match.
const facesOfSighting = 10

// Radii returns the distances by which l decides now. They follow from the measured false match rates of the space.
// They shrink with the number of enrolled faces and people, so that the chance of a stranger does not grow with these
// numbers.
//
// The chance that a stranger's face is near any of n enrolled faces is at most n times the rate for one face (Boole's
// inequality). So Anchor and Enrolled are the distances at 1e-4/n and 1e-3/n between stills. Learned is the
// distance at 1e-3/(10 p) between faces of streams, for p people, for three reasons: turned faces come nearer to
// each other; a sighting of a stranger shows some ten different faces; and the learned faces of one person are near
// each other, so a stranger who is near one of them is near many. Learn is the smaller of Learned and Reach.
//
// In a space that was not measured, all are the length of the longest edge for any number of people.
func (l *Learner) Radii() Radii {
	// New settings or people reset the radii. Labelled faces change in many places, so their number is checked here.
	if n := l.graph.Labelled(); n != l.measured || l.radii == (Radii{}) {
		l.radii, l.measured = l.measure(), n
	}
	return l.radii
}

// SetMeasured replaces the measurements of the space of l by those of s: Stills, Streams, Look and GenuineRadius, see
// [face.Space]. Faces stay. From now on faces are recognised and learned by the new distances.
func (l *Learner) SetMeasured(s face.Space) {
	l.space.Stills, l.space.Streams, l.space.Look, l.radii = s.Stills, s.Streams, s.Look, Radii{}
	l.space.GenuineRadius = s.GenuineRadius
}

// measure computes the radii for the present labels and settings.
func (l *Learner) measure() Radii {
	s, edge := l.settings, l.graph.Config().EdgeRadius()
	r := Radii{Anchor: edge, Enrolled: edge, Learned: edge, Learn: edge, Link: max(edge, s.Link)}
	if l.space.Stills.Measured() {
		n := float64(max(l.graph.Labelled(), 1))
		r.Anchor, r.Enrolled = l.space.Stills.Within(anchorRate/n), l.space.Stills.Within(nameRate/n)
		streams := l.space.Streams
		if !streams.Measured() {
			streams = l.space.Stills
		}
		r.Learned = streams.Within(nameRate / (facesOfSighting * float64(max(len(l.People()), 1))))
		r.Learn = min(r.Learned, edge)
	}
	if l.space.GenuineRadius > 0 {
		r.Limit = max(l.space.GenuineRadius, r.Enrolled)
	}
	return r
}

// recognises reports whether a face may get a name: it is near enough to an enrolled or learned face, or follows one.
func (r Radii) recognises(t quantized.Trial) bool {
	labelled, learned, linked := t.Closest()
	return linked || labelled <= r.Enrolled || learned <= r.Learned
}

// teaches reports whether a face may be learned: it is near enough to a stored face, or follows one.
func (r Radii) teaches(t quantized.Trial) bool {
	labelled, learned, linked := t.Closest()
	return linked || min(labelled, learned) <= r.Learn
}
