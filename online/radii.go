// SPDX-License-Identifier: Apache-2.0

package online

import (
	"fmt"
	"slices"

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
	// how far from the face before it on the same track one is learned
	Link float64 `json:"link"`
	// Limit is how far from the nearest enrolled face of a person a face may be learned as this
	// person, and get the name unless it follows a face of its track: the space's genuine radius,
	// or Enrolled if that is larger. 0 in a space without a genuine radius: no limit.
	Limit float64 `json:"limit"`
	// Looks is the number of enrolled looks from which the others follow; 0 in a space that was not
	// measured.
	Looks int `json:"-"`
}

// strays reports whether a face at this distance from the nearest enrolled face of a person is
// beyond the limit. Otherwise a film that changes one face into another leads from person to
// person, with the highest confidence: each face is near the one before it.
func (r Radii) strays(distance float64) bool { return r.Limit > 0 && distance > r.Limit }

// facesOfSighting is the assumed number of different faces in a sighting. Each is one more chance
// of a false match.
const facesOfSighting = 10

// Radii returns the distances by which l decides now. They follow from [Settings].Strangers, the
// rate a, and from the measured false match rates of the space. They shrink with the number of
// enrolled looks and people, so that the chance of a stranger does not grow with these numbers.
//
// The chance that a stranger's face is near any of n enrolled faces is at most n times the rate for
// one face (Boole's inequality). Labelled faces of a person that are less than 0.43 of the distance
// at 1e-3 apart are one look: four consecutive frames are one chance for a stranger. Rejected faces
// name nobody, and do not count. So Enrolled is the distance at a/m between stills, for m looks.
// Anchor is that at 1e-4/n, for n labelled faces: more cautious, as somebody alike has many chances
// to come near a face twice. Learned is the distance at 1e-3/(10 p) between faces of streams, for p
// people, for three reasons: turned faces come nearer to each other; a sighting of a stranger shows
// some ten different faces; and the learned faces of one person are near each other, so a stranger
// who is near one of them is near many. Learn is the smaller of Learned and Reach. A rate a below
// 1e-3 or 1e-4 takes the place of these rates; a larger one confirms and teaches nothing more.
//
// In a space that was not measured, all are the length of the longest edge for any number of
// people.
func (l *Learner) Radii() Radii {
	if l.radii == (Radii{}) { // settings, labels or people have changed
		l.radii = l.measure()
	}
	return l.radii
}

// SetMeasured replaces the measurements of the space of l by those of s: Stills, Streams, Look and
// GenuineRadius, see [face.Space], and Settings.Link if it has its default. Faces stay. From now on
// faces are recognised and learned by the new distances. The error wraps [ErrSettings] if edges of
// the new length would be too many. On error l is unchanged.
func (l *Learner) SetMeasured(s face.Space) error {
	space, set := l.space, l.settings
	space.Stills, space.Streams, space.Look, space.GenuineRadius = s.Stills, s.Streams, s.Look,
		s.GenuineRadius
	if set.Link == (Settings{}).defaults(l.space).Link {
		set.Link = Settings{}.defaults(space).Link
	}
	if set.Link != l.settings.Link {
		err := l.graph.Configure(set.graph(space))
		if err != nil {
			return fmt.Errorf("new measurements of the space %s: %w", space.ID, err)
		}
	}
	l.space, l.settings, l.radii = space, set, Radii{}
	for c := range l.looks {
		l.looks[c] = notCounted
	}
	return nil
}

// notCounted is in place of a number of looks.
const notCounted = -1

// sameLook is the distance within which labelled faces of a person are one look, as a share of the
// distance at a false match rate of 1e-3: .5 of 1.153 in the space of the built-in network.
const sameLook = .5 / 1.153

// countLooks returns the numbers of labelled faces, without rejected ones, and of looks among them;
// see [Learner.Radii]. It compares only labels of people whose labels have changed since.
func (l *Learner) countLooks() (labels, looks int) {
	apart := sameLook * l.space.Stills.Within(1e-3)
	counted := make([][]int, len(l.looks)) // vertices, by class
	for i := range l.graph.Len() {
		c, ok := l.graph.Class(i)
		if !ok || l.classes[c].Negative {
			continue
		}
		labels++
		if l.looks[c] != notCounted {
			continue
		}
		near := func(j int) bool {
			return quantized.Distance(l.graph.Point(i), l.graph.Point(j), l.space.Scale) < apart
		}
		if !slices.ContainsFunc(counted[c], near) {
			counted[c] = append(counted[c], i)
		}
	}
	for c := range l.looks {
		if l.looks[c] == notCounted {
			l.looks[c] = len(counted[c])
		}
		looks += l.looks[c]
	}
	return labels, looks
}

// measure computes the radii for the present labels and settings.
func (l *Learner) measure() Radii {
	s, edge := l.settings, l.graph.Config().EdgeRadius()
	r := Radii{Anchor: edge, Enrolled: edge, Learned: edge, Learn: edge, Link: max(edge, s.Link)}
	if l.space.Stills.Measured() {
		labels, looks := l.countLooks()
		r.Looks = looks
		rate := s.Strangers
		r.Anchor = l.space.Stills.Within(min(rate, anchorRate) / float64(max(labels, 1)))
		r.Enrolled = l.space.Stills.Within(rate / float64(max(looks, 1)))
		streams := l.space.Streams
		if !streams.Measured() {
			streams = l.space.Stills
		}
		r.Learned = streams.Within(min(rate,
			nameRate) / (facesOfSighting * float64(max(len(l.People()), 1))))
		r.Learn = min(r.Learned, edge)
	}
	if l.space.GenuineRadius > 0 {
		r.Limit = max(l.space.GenuineRadius, r.Enrolled)
	}
	return r
}

// recognises reports whether a face may get a name: it is near enough to an enrolled or learned
// face, or follows one.
func (r Radii) recognises(t quantized.Trial) bool {
	labelled, learned, linked := t.Closest()
	return linked || labelled <= r.Enrolled || learned <= r.Learned
}

// teaches reports whether a face may be learned: it is near enough to a stored face, or follows
// one.
func (r Radii) teaches(t quantized.Trial) bool {
	labelled, learned, linked := t.Closest()
	return linked || min(labelled, learned) <= r.Learn
}
