// SPDX-License-Identifier: Apache-2.0

package office

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/sighting"
)

// Visit is somebody's time in view: sightings of one person, or of one group of unknown faces, between which they were
// away for at most [PresenceSettings].Away.
type Visit struct {
	Person    int64          `json:"person,omitempty"`
	Name      string         `json:"name,omitempty"`
	Group     uint64         `json:"group,omitempty"` // a stranger's
	First     time.Time      `json:"first"`
	Last      time.Time      `json:"last"`
	Live      bool           `json:"live"`      // in view at present
	Cameras   []string       `json:"cameras"`   // in the order of the sightings
	Sightings []uint64       `json:"sightings"` // their numbers, the first first
	Face      uint64         `json:"face"`      // number of a picture of the last sighting; 0 for none
	Trust     sighting.Trust `json:"trust,omitempty"`
}

// Wanted says which visits [Office.Visits] returns. A zero field means all.
type Wanted struct {
	Person int64
	Group  uint64
	From   time.Time // visits that have not ended before
	To     time.Time // visits that have begun before
	N      int       // at most so many, the latest
}

// Visits returns visits, the latest first, as far back as sightings are kept. All other lists of who was there when are
// made of them.
func (w *keeper) Visits(q Wanted) []Visit {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.visits(q)
}

func (w *keeper) visits(q Wanted) []Visit {
	all := []Visit{}
	open := make(map[[2]int64]int) // the earliest visit of each person and group until now, by its place
	take := func(x Sighting) error {
		if q.Person != 0 && x.Person != q.Person || q.Group != 0 && x.Group != q.Group {
			return nil
		}
		who := [2]int64{x.Person, int64(x.Group)}
		i, there := open[who]
		if who == [2]int64{} || !there || all[i].First.Sub(x.Last) > w.o.Presence.Away {
			open[who] = len(all)
			all = append(all, Visit{Person: x.Person, Name: x.Name, Group: x.Group, First: x.First, Last: x.Last, Live: x.Live,
				Cameras: []string{x.Camera}, Sightings: []uint64{x.ID}, Face: x.Face, Trust: x.Trust})
			return nil
		}
		v := &all[i]
		v.Sightings = slices.Insert(v.Sightings, 0, x.ID)
		v.Cameras = slices.DeleteFunc(v.Cameras, func(c string) bool { return c == x.Camera })
		v.Cameras = slices.Insert(v.Cameras, 0, x.Camera)
		v.First, v.Face, v.Live = earlier(v.First, x.First), cmp.Or(v.Face, x.Face), v.Live || x.Live
		if x.Trust == sighting.Confirmed {
			v.Trust = x.Trust
		}
		return nil
	}
	condition, about := "?2 = ?2", int64(0)
	switch {
	case q.Person != 0:
		condition, about = "person = ?2", q.Person
	case q.Group != 0:
		condition, about = "stranger = ?2", int64(q.Group)
	}
	to := int64(math.MaxInt64)
	if !q.To.IsZero() {
		to = nanoseconds(q.To)
	}
	w.look(func(t *gallery.Tx) error {
		return w.sightings(t, condition+" and last >= ?3 and first < ?4 order by last desc", take, about,
			nanoseconds(q.From), to)
	})
	if q.N > 0 {
		all = all[:min(q.N, len(all))]
	}
	return all
}

// KnownPerson is a person whom an office knows, with the last sighting as far back as sightings are kept.
type KnownPerson struct {
	gallery.Person
	Here  bool      `json:"here"`
	Since time.Time `json:"since,omitzero"`  // when they arrived here, or at Place
	Place string    `json:"place,omitempty"` // the device of the fleet that sees an absent person
	// Last is the time of the last sighting: of who is here, to the minute; zero if unknown.
	Last   time.Time      `json:"last,omitzero"`
	Camera string         `json:"camera,omitempty"`  // camera of the last sighting
	Trust  sighting.Trust `json:"trust,omitempty"`   // how the last sighting is known to be theirs
	Face   uint64         `json:"face,omitempty"`    // number of a picture, the chosen one if there is one; 0 for none
	Chosen uint64         `json:"picture,omitempty"` // number of the picture that a user chose; 0 for none
}

// rows are the people whom the rows know, and the place of each by number.
type rows struct {
	people []KnownPerson
	at     map[int64]int
}

// saw takes in a sighting.
func (r *rows) saw(x Sighting) {
	i, there := r.at[x.Person]
	if !there || x.Last.Before(r.people[i].Last) {
		return
	}
	p := &r.people[i]
	p.Last, p.Camera, p.Trust, p.Face = x.Last.Round(0), x.Camera, x.Trust, cmp.Or(p.Chosen, x.Face)
}

// known returns the people whom the rows know. The sightings of a person are many, so they are read once.
func (w *memory) known() *rows {
	if w.rows != nil {
		return w.rows
	}
	r := &rows{at: make(map[int64]int)}
	for i, p := range w.gallery.People() {
		r.people, r.at[p.ID] = append(r.people, KnownPerson{Person: p}), i
	}
	w.note(w.gallery.Look(func(t *gallery.Tx) error {
		t.Query(`select s.person, s.face from statement s join face on face.number = s.face where kind = 'pictured' and
			not undone and jpeg is not null and s.id = (select max(id) from statement x where x.kind = 'pictured' and
			not x.undone and x.person = s.person)`, func(row gallery.Row) error {
			if i, there := r.at[row.ColumnInt64(0)]; there {
				r.people[i].Chosen = uint64(row.ColumnInt64(1))
				r.people[i].Face = r.people[i].Chosen
			}
			return nil
		})
		return w.sightings(t, `id in (select id from (select id, max(last) from sighting where office = ?1 and
			person is not null group by person))`, func(x Sighting) error { r.saw(x); return nil })
	}))
	w.rows = r
	return r
}

// everybody returns the known people in the order in which they were enrolled.
func (w *keeper) everybody() []KnownPerson {
	w.keep(true)
	r := w.known()
	all := append([]KnownPerson{}, r.people...)
	away, err := w.gallery.Elsewhere(w.o.Now())
	w.note(err)
	for id, a := range away {
		if i, there := r.at[id]; there {
			all[i].Place, all[i].Since = a.Place, a.Since
		}
	}
	for id, p := range w.room.people {
		if i, there := r.at[id]; there {
			x := &all[i]
			x.Here, x.Place, x.Since, x.Last = true, "", p.Since, x.Last.Truncate(time.Minute)
		}
	}
	return all
}
