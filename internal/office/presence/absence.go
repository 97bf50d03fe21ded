// SPDX-License-Identifier: Apache-2.0

package presence

import (
	"maps"
	"time"
)

// watched is a camera after Watch.
type watched struct {
	since  moment    // start of its work without a gap; zero while it does not work
	last   time.Time // time of its last frame
	looks  int       // number of its frames
	failed bool
	doubts map[uint64]*doubt // by sighting
}

// moment is a time, and the number of looks of a camera until then.
type moment struct {
	at   time.Time
	look int
}

// doubt is a face of which a camera could not tell whose it is, until it could.
type doubt struct {
	first time.Time
	last  moment
}

// leastLooks is the number of looks without somebody after which they can have left: as many as a
// name needs ([sighting.Belief]). With fewer, a slow camera could not have told who is there.
const leastLooks = 3

// missed reports whether a camera could tell for longer than away that somebody who was seen at a
// moment is not in view: it has looked without a gap, and each face that came into view since then
// turned out to be another person's, or went away before. If they may be those of a sighting, the
// other faces in view are not theirs.
func (c *watched) missed(seen moment, away time.Duration, of uint64) bool {
	if c.since.at.IsZero() {
		return false
	}
	from := later(seen, c.since)
	for id, d := range c.doubts {
		beside := of != 0 && id != of && d.last.look == c.looks
		if d.first.After(seen.at) && !beside { // a face beside them is not theirs
			from = later(from, d.last)
		}
	}
	return c.looks-from.look >= leastLooks && c.last.Sub(from.at) > away
}

// later returns the later of two moments.
func later(a, b moment) moment {
	if b.at.After(a.at) {
		return b
	}
	return a
}

// absence is when somebody was seen last, and by which camera.
type absence struct {
	camera string
	seen   moment
}

// see records that somebody is in view of a camera.
func (r *Room) see(a *absence, camera string, at time.Time) {
	*a = absence{camera: camera, seen: moment{at: at}}
	c := r.cameras[camera]
	if c != nil {
		a.seen.look = c.looks
	}
}

// gone reports whether somebody is no longer in view. Without a camera that was watched, time alone
// tells. Of is as for missed, or 0.
func (r *Room) gone(a *absence, now time.Time, of uint64) bool {
	unseen := now.Sub(a.seen.at)
	if unseen <= r.s.Away {
		return false
	}
	c := r.cameras[a.camera]
	return c == nil || unseen > r.s.Hold || c.missed(a.seen, r.s.Away, of)
}

// look records a frame of a camera.
func (r *Room) look(camera string, at time.Time, open map[uint64]bool) {
	c := r.cameras[camera]
	if c == nil {
		return
	}
	c.looks++
	c.failed = false
	if c.since.at.IsZero() || at.Sub(c.last) > r.s.Away {
		c.since = moment{at, c.looks}
	}
	if at.After(c.last) {
		c.last = at
	}
	for sighting, undecided := range open {
		if !undecided {
			continue
		}
		if c.doubts[sighting] == nil {
			c.doubts[sighting] = &doubt{first: at}
		}
		c.doubts[sighting].last = moment{at, c.looks}
	}
	maps.DeleteFunc(c.doubts, func(_ uint64, d *doubt) bool {
		return c.last.Sub(d.last.at) > r.s.Hold
	})
}

// settle ends the doubts about faces in view of which it can be told whose they are. It comes after
// these people are seen: until then they may be those who were in doubt.
func (r *Room) settle(camera string, open map[uint64]bool) {
	c := r.cameras[camera]
	if c == nil {
		return
	}
	for sighting, undecided := range open {
		if !undecided {
			delete(c.doubts, sighting)
		}
	}
}
