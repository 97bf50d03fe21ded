// SPDX-License-Identifier: Apache-2.0

package presence

import (
	"time"

	"github.com/faceauth/faceauth/sighting"
)

// Rename gives a person a new name. If both names are in the room, they become one person, who arrived when the first
// of them did. It causes no event.
func (r *Room) Rename(from, to string) {
	for _, v := range r.tracks {
		if v.name == from {
			v.name = to
		}
	}
	for _, last := range []map[string]time.Time{r.left, r.gone} {
		if at, ok := last[from]; ok {
			if at.After(last[to]) {
				last[to] = at
			}
			delete(last, from)
		}
	}
	if r.restored[from] {
		delete(r.restored, from)
		r.restored[to] = true
	}
	p := r.people[from]
	if p == nil {
		return
	}
	delete(r.people, from)
	q := r.people[to]
	if q == nil {
		p.Name = to
		r.people[to] = p
		return
	}
	if p.Since.Before(q.Since) {
		q.Since = p.Since
	}
	if p.Last.After(q.Last) {
		q.Last, q.Camera = p.Last, p.Camera
	}
	if p.Trust == sighting.Confirmed {
		q.Trust = p.Trust
	}
}
