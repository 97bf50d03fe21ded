// SPDX-License-Identifier: Apache-2.0

package online

import (
	"fmt"
	"math"
)

// Room tells whether K is large enough for the people and faces that a learner has seen.
type Room struct {
	K int `json:"k"` // greatest number of learned centroids
	// Full: the last search found no room for another centroid. There are more than K centroids,
	// and a merge to K would join faces that have no edge. A face is learned only if a centroid
	// takes it in, or if a person with more centroids gives one up. Undo, Forget and a larger K
	// make room. After a change of settings the next face searches again.
	Full bool `json:"full"`
	// Needed is an estimate of the K that would do, or 0 if K is large enough. It is too small if
	// faces are merged over more than four fifths of the length of an edge: centroids then lie so
	// far apart that faces between them are lost.
	Needed     int   `json:"needed"`
	PassedOver int64 `json:"passed_over"` // faces that were not learned for lack of room
}

const (
	// farthest is the share of the length of an edge over which faces may be merged without loss.
	farthest = .8
	// dimension is how fast the number of centroids grows as R shrinks: a head turns about two
	// axes, and the light changes. Where faces were merged over r, farthest/r to this power more
	// centroids are needed.
	dimension = 2.4
	// forOne is a number of centroids that is enough for one person who turns the head.
	forOne = 12
)

// Room returns whether there is room to learn more. lab/NOTES.md ("Over repeated passes") has the
// recordings that chose the constants of the estimate, and how well it does on others.
func (l *Learner) Room() Room {
	r := Room{K: l.settings.K, Full: l.graph.Full(), PassedOver: l.counts.PassedOver}
	reach := l.graph.Config().EdgeRadius()
	use, far := farthest*reach, l.graph.R()
	if r.Full {
		far = reach
	}
	if far > use {
		r.Needed = tens(float64(r.K) * math.Pow(far/use, dimension))
	}
	if r.Full {
		r.Needed = max(r.Needed, tens(float64(forOne*len(l.People()))))
	}
	return r
}

// tens rounds up to a multiple of ten.
func tens(x float64) int { return 10 * int(math.Ceil(x/10)) }

// Warning returns a sentence for a person if K is too small, or "".
func (r Room) Warning() string {
	switch {
	case r.Full:
		return fmt.Sprintf("k = %d is full: known faces are recognised, and most new ones are "+
			"not learned (%d so far); use a k of about %d, or take back learned faces", r.K,
			r.PassedOver, r.Needed)
	case r.Needed > 0:
		return fmt.Sprintf("k = %d is small for these people: faces that differ are merged, and "+
			"turned heads are lost; use a k of about %d", r.K, r.Needed)
	}
	return ""
}

// Changed reports whether there is a reason to tell a person of a change: room is short now, or no
// longer.
func (r Room) Changed(before Room) bool {
	return r.Full != before.Full || (r.Needed > 0) != (before.Needed > 0)
}
