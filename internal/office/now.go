// SPDX-License-Identifier: Apache-2.0

package office

import (
	"cmp"
	"slices"
	"time"

	"github.com/faceauth/faceauth/internal/album"
	"github.com/faceauth/faceauth/internal/gallery"
	"github.com/faceauth/faceauth/internal/office/presence"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/sighting"
)

// Now is the state of an office at one moment.
type Now struct {
	At      time.Time           `json:"at"`
	Cameras []View              `json:"cameras"`
	People  []presence.Presence `json:"people"`  // the people who are present
	Unknown int                 `json:"unknown"` // number of further people without a name
	Known   []KnownPerson       `json:"known"`
	Keeps   bool                `json:"keeps"`  // keeps faces of strangers
	Learns  bool                `json:"learns"` // learns from the faces that it sees
	Room    online.Room         `json:"room"`
	Disk    Disk                `json:"disk"`
}

// Now returns the present state.
func (w *Office) Now() Now {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := Now{
		At: w.o.Now(), Cameras: []View{}, People: w.room.People(), Unknown: w.room.Strangers(),
		Known: w.everybody(), Keeps: !w.past.off, Learns: !w.o.Freeze,
		Room: w.gallery.Learner().Room(), Disk: w.disk,
	}
	slices.SortFunc(n.People, func(a, b presence.Presence) int {
		return cmp.Compare(a.Name, b.Name)
	})
	for _, v := range w.views {
		now := v.View
		if v.Last != nil { // they may have another name now, or none
			last := *v.Last
			last.Name = w.gallery.Name(last.Person)
			now.Last = &last
		}
		now.Seen, now.Far = append([]presence.Seen{}, v.Seen...), v.farOn(n.At)
		n.Cameras = append(n.Cameras, now)
	}
	return n
}

// Sightings returns the last n sightings that can be corrected, before the sighting with the given
// number (0: before none), the latest first.
func (w *Office) Sightings(id uint64, n int) []Sighting {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := []Sighting{}
	w.look(func(t *gallery.Tx) {
		wanted := func(x Sighting) bool { return x.Face != 0 && int64(x.ID) < before(id) }
		// Some of the rows may be of sightings that are known better, and are no more in the list.
		all = w.list(t, wanted, lastSightings, before(id), int64(n+len(w.fresh())))
	})
	slices.SortFunc(all, func(a, b Sighting) int { return cmp.Compare(b.ID, a.ID) })
	return all[:min(n, len(all))]
}

// Strangers returns the groups of unknown faces, the last seen group first. Do not change the
// vectors and pictures.
func (w *Office) Strangers() []Stranger {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, g := range w.unknown.groups {
		w.suppose(g)
		g.Visits = w.count(g)
		g.Best = numbersOf(album.Best(w.gallery.Space(), g.Faces, bestFaces))
	}
	return w.unknown.All()
}

// count returns the number of visits of a stranger.
func (w *Office) count(g *Stranger) int {
	current, others := w.current()
	if !g.counted {
		g.counted, g.visits, g.latest = true, 0, time.Time{}
		w.look(func(t *gallery.Tx) {
			before := time.Time{}
			for r := range t.Rows(`select id, first, last, coalesce(person, 0) from sighting
				where stranger = ? and office = ? order by last desc`, int64(g.ID), w.past.id) {
				if others[uint64(r.ColumnInt64(0))] || w.gallery.Name(r.ColumnInt64(3)) != "" {
					continue
				}
				first, last := moment(r.ColumnInt64(1)), moment(r.ColumnInt64(2))
				if g.visits == 0 {
					g.latest = last
				}
				if g.visits == 0 || before.Sub(last) > w.o.Presence.Away {
					g.visits++
					before = first
				}
				before = presence.Earlier(before, first)
			}
		})
	}
	n, begun := 0, time.Time{}
	slices.SortFunc(current, func(a, b Sighting) int { return b.Last.Compare(a.Last) })
	for _, x := range current {
		if x.Group != g.ID {
			continue
		}
		if n == 0 || begun.Sub(x.Last) > w.o.Presence.Away {
			n++
			begun = x.First
		}
		begun = presence.Earlier(begun, x.First)
	}
	if n > 0 && g.visits > 0 && begun.Sub(g.latest) <= w.o.Presence.Away {
		n-- // the latest visit goes on
	}
	return max(1, n+g.visits)
}

// mostAsked is the number of faces of a stranger that are compared, and farthest the distance up to
// which somebody is named, in units of the impostor radius.
const (
	mostAsked = 2
	farthest  = 1.25
)

// suppose finds the known person who comes nearest to a stranger, as long as nobody changes.
func (w *Office) suppose(g *Stranger) {
	asked := g.Faces[:min(mostAsked, len(g.Faces))]
	if g.asked == len(asked) {
		return
	}
	person, distance := int64(0), farthest*w.gallery.Space().ImpostorRadius
	for _, f := range asked {
		if p, d := w.gallery.Learner().Closest(f.Vector, distance); p != 0 {
			person, distance = p, d
		}
	}
	g.asked, g.Probably = len(asked), nil
	if name := w.gallery.Name(person); name != "" {
		g.Probably = &sighting.Who{Name: name, Person: person,
			Near: sighting.NearAt(w.gallery.Space(), distance)}
	}
}

// Events returns the last n events that are wanted before the event with the given number (0:
// before none), the newest first. Nil wants all.
func (w *Office) Events(id uint64, n int, wanted func(presence.Event) bool) []presence.Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	p, all := w.past, []presence.Event{}
	oldest := max(0, int64(p.state.Last)-int64(p.s.Events))
	w.look(func(t *gallery.Tx) {
		for e := range p.events(t, lastEvents, before(id), oldest) {
			if len(all) == n {
				break
			}
			if wanted == nil || wanted(e) {
				all = append(all, e)
			}
		}
	})
	return all
}
