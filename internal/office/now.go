// SPDX-License-Identifier: Apache-2.0

package office

import (
	"cmp"
	"slices"
	"time"

	"github.com/faceauth/faceauth/gallery"
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
		Known: w.everybody(), Keeps: !w.past.off, Learns: !w.o.Freeze, Room: w.gallery.Learner().Room(),
		Disk: w.disk,
	}
	slices.SortFunc(n.People, func(a, b presence.Presence) int { return cmp.Compare(a.Name, b.Name) })
	for _, v := range w.views {
		now := v.View
		now.Seen, now.Far = append([]presence.Seen{}, v.Seen...), v.farOn(n.At)
		n.Cameras = append(n.Cameras, now)
	}
	return n
}

// Sightings returns the last n sightings that can be corrected, before the sighting with the given number (0:
// before none), the latest first.
func (w *Office) Sightings(id uint64, n int) []Sighting {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := []Sighting{}
	w.look(func(t *gallery.Tx) {
		all = append(all, w.sightings(t, `id < ?2 and exists (select 1 from face
			where sighting = sighting.id) order by id desc limit ?3`, before(id), int64(n))...)
	})
	return all
}

// Strangers returns the groups of unknown faces, the last seen group first. Do not change the vectors and pictures.
func (w *Office) Strangers() []Stranger {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, g := range w.unknown.groups {
		w.suppose(g)
		g.Visits = max(1, len(w.visits(Wanted{Group: g.ID})))
		g.Best = numbersOf(sighting.Best(w.gallery.Space(), g.Faces, bestFaces))
	}
	return w.unknown.All()
}

// mostAsked is the number of faces of a stranger that are compared, and farthest the distance up to which somebody is
// named, in units of the impostor radius.
const (
	mostAsked = 2
	farthest  = 1.25
)

// suppose finds the known person who comes nearest to a stranger, as long as nobody changes.
func (w *book) suppose(g *Stranger) {
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
		g.Probably = &Probably{name, person, sighting.NearAt(w.gallery.Space(), distance)}
	}
}

// Events returns the last n events that are wanted before the event with the given number (0: before none), the newest
// first. Nil wants all.
func (w *Office) Events(id uint64, n int, wanted func(presence.Event) bool) []presence.Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	p, all := w.past, []presence.Event{}
	oldest := max(0, int64(p.state.Last)-int64(p.s.Events))
	w.look(func(t *gallery.Tx) {
		for e := range p.events(t, "number < ? and number > ? order by number desc", before(id), oldest) {
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

// everybody returns the known people in the order in which they were enrolled: as the rows have them, and
// with what is not written yet.
func (w *keeper) everybody() []KnownPerson {
	if w.rows == nil {
		w.rows = w.known()
	}
	all, of := slices.Clone(w.rows), make(map[int64]*KnownPerson)
	for i := range all {
		of[all[i].ID] = &all[i]
	}
	for _, s := range w.fresh() {
		if p := of[s.Person]; p != nil && w.keeps(s) {
			p.saw(w.show(s.Sighting))
		}
	}
	away, err := w.gallery.Elsewhere(w.o.Now())
	w.note(err)
	for id, a := range away {
		if p := of[id]; p != nil {
			p.Place, p.Since = a.Place, a.Since
		}
	}
	for _, here := range w.room.People() {
		if p := of[here.ID]; p != nil {
			p.Here, p.Place, p.Since, p.Last = true, "", here.Since, p.Last.Truncate(time.Minute)
		}
	}
	return all
}

// known returns the known people as the rows have them. Their sightings are many, so they are read once.
func (w *keeper) known() []KnownPerson {
	all := []KnownPerson{}
	chosen, last := make(map[int64]uint64), make(map[int64]Sighting)
	w.note(w.gallery.Look(func(t *gallery.Tx) error {
		for r := range t.Rows(`select person, number from (select person, face, max(id) from statement
			where kind = 'pictured' and not undone group by person)
			join face on number = face where jpeg is not null`) {
			chosen[r.ColumnInt64(0)] = uint64(r.ColumnInt64(1))
		}
		for _, x := range w.sightings(t, `id in (select id from (select id, max(last) from sighting
			where office = ?1 and person is not null group by person))`) {
			last[x.Person] = x
		}
		return t.Err()
	}))
	for _, p := range w.gallery.People() {
		k := KnownPerson{Person: p, Chosen: chosen[p.ID], Face: chosen[p.ID]}
		k.saw(last[p.ID])
		all = append(all, k)
	}
	return all
}
