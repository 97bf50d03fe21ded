// SPDX-License-Identifier: Apache-2.0

package office

import "github.com/faceauth/faceauth/gallery"

// The parts of an office that have tests of their own.
type (
	Room      = room
	RoomState = roomState
	InView    = inView
	Groups    = groups
)

var (
	NewRoom   = newRoom
	NewGroups = newGroups
	Best      = best
)

// Minute does the work that an office does once a minute.
func Minute(w *Office) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.minute()
}

// State returns who is present, as it was last recorded.
func (p *Past) State() RoomState {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.events.state
}

// Folded returns an error if a column is not what the statements say.
func Folded(g *gallery.Gallery) error { return g.Look(func(t *gallery.Tx) error { return t.Folded() }) }

// SetIgnored says that a group is ignored.
func (g *groups) SetIgnored(id uint64) {
	p, err := g.Get(id)
	if err != nil {
		panic(err)
	}
	p.Ignored = true
	g.shed(id)
}
