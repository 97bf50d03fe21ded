// SPDX-License-Identifier: Apache-2.0

package office

import (
	"cmp"
	"slices"
	"time"

	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/office/presence"
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

// View is the present view of one camera.
type View struct {
	Health
	Door presence.Door   `json:"door,omitempty"`
	Seen []presence.Seen `json:"seen"`
	// Far is the number of sightings of the day whose faces were all too small to judge.
	Far int `json:"far"`
}

// Now returns the present state.
func (w *Office) Now() Now {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.room.Name(w.gallery.Name)
	n := Now{
		At: w.o.Now(), Cameras: []View{}, People: w.room.People(), Unknown: w.room.Strangers(),
		Known: w.everybody(), Keeps: !w.past.off, Learns: !w.o.Freeze, Room: w.gallery.Learner().Room(),
		Disk: w.disk,
	}
	slices.SortFunc(n.People, func(a, b presence.Presence) int { return cmp.Compare(a.Name, b.Name) })
	for _, v := range w.views {
		n.Cameras = append(n.Cameras, View{Health: v.health, Door: v.camera.Door, Seen: append([]presence.Seen{}, v.seen...),
			Far: v.farOn(n.At)})
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

// known returns the people whom the rows know. The sightings of a person are many, so they are read once.
func (w *keeper) known() *rows {
	if w.rows != nil {
		return w.rows
	}
	r := &rows{at: make(map[int64]int)}
	for i, p := range w.gallery.People() {
		r.people, r.at[p.ID] = append(r.people, KnownPerson{Person: p}), i
	}
	w.note(w.gallery.Look(func(t *gallery.Tx) error {
		for row := range t.Rows(`select s.person, s.face from statement s
			join face on face.number = s.face where kind = 'pictured' and not undone and
			jpeg is not null and s.id = (select max(id) from statement x
			where x.kind = 'pictured' and not x.undone and x.person = s.person)`) {
			if i, there := r.at[row.ColumnInt64(0)]; there {
				r.people[i].Chosen = uint64(row.ColumnInt64(1))
				r.people[i].Face = r.people[i].Chosen
			}
		}
		for _, x := range w.sightings(t, `id in (select id from (select id, max(last) from sighting
			where office = ?1 and person is not null group by person))`) {
			r.saw(x)
		}
		return t.Err()
	}))
	w.rows = r
	return r
}

// everybody returns the known people in the order in which they were enrolled: as the rows have them, and with what is
// not written yet.
func (w *keeper) everybody() []KnownPerson {
	r := w.known()
	all := append([]KnownPerson{}, r.people...)
	now := rows{all, r.at}
	for _, s := range w.fresh() {
		if w.keeps(s) {
			now.saw(w.show(s.Sighting))
		}
	}
	away, err := w.gallery.Elsewhere(w.o.Now())
	w.note(err)
	for id, a := range away {
		if i, there := r.at[id]; there {
			all[i].Place, all[i].Since = a.Place, a.Since
		}
	}
	for _, p := range w.room.People() {
		if i, there := r.at[p.ID]; there {
			x := &all[i]
			x.Here, x.Place, x.Since, x.Last = true, "", p.Since, x.Last.Truncate(time.Minute)
		}
	}
	return all
}
