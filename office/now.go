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
	n := Now{
		At: w.o.Now(), Cameras: []View{}, People: w.room.People(), Unknown: w.room.Strangers(),
		Known: w.everybody(), Keeps: !w.past.off, Learns: !w.o.Freeze, Room: w.gallery.Learner().Room(),
		Disk: w.disk,
	}
	for i, p := range n.People {
		n.People[i].Name = w.gallery.Name(p.ID)
	}
	slices.SortFunc(n.People, func(a, b presence.Presence) int { return cmp.Compare(a.Name, b.Name) })
	for _, v := range w.views {
		n.Cameras = append(n.Cameras, View{Health: v.health, Door: v.camera.Door, Seen: append([]presence.Seen{}, v.seen...),
			Far: v.farOn(n.At)})
	}
	return n
}

// listed is the number of sightings that [Office.Sightings] returns.
const listed = 64

// Sightings returns the latest sightings that can be corrected, the latest first.
func (w *Office) Sightings() []Sighting { return w.SightingsBefore(0, listed) }

// SightingsBefore returns the last n sightings that can be corrected, before the sighting with the given number (0:
// before none), the latest first.
func (w *Office) SightingsBefore(id uint64, n int) []Sighting {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := []Sighting{}
	w.look(func(t *gallery.Tx) error {
		return w.sightings(t, `id < ?2 and exists (select 1 from face where sighting = sighting.id) order by id desc
			limit ?3`, func(x Sighting) error { all = append(all, x); return nil }, before(id), int64(n))
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

// Face returns the picture of a face of a stranger, a sighting or a label, or nil.
func (w *book) Face(id uint64) (jpeg []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note(w.gallery.Look(func(t *gallery.Tx) (err error) {
		jpeg, err = t.Blob("select jpeg from face where number = ?", int64(id))
		return err
	}))
	return jpeg
}

// Picture returns the latest picture of a camera, or nil while there is none, and whether there is such a camera.
// Pictures are made only for some seconds after a call.
func (w *book) Picture(camera string) (jpeg []byte, known bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, v := range w.views {
		if v.camera.Name == camera {
			v.wanted = w.o.Now()
			return v.picture, true
		}
	}
	return nil, false
}

// Visit is somebody's time in view: sightings of one person, or of one group of unknown faces, between which they were
// away for at most [presence.Settings].Away.
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
		v.First, v.Face, v.Live = presence.Earlier(v.First, x.First), cmp.Or(v.Face, x.Face), v.Live || x.Live
		if x.Trust == sighting.Confirmed {
			v.Trust = x.Trust
		}
		return nil
	}
	condition := "last >= ?2 and (?3 = 0 or first < ?3) and ?4 = ?4 and ?5 = ?5" // the last two may not be asked for
	if q.Person != 0 {
		condition += " and person = ?4"
	}
	if q.Group != 0 {
		condition += " and stranger = ?5"
	}
	w.look(func(t *gallery.Tx) error {
		return w.sightings(t, condition+" order by last desc", take, nanoseconds(q.From), nanoseconds(q.To), q.Person,
			int64(q.Group))
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
func (w *keeper) known() *rows {
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
	for _, p := range w.room.People() {
		if i, there := r.at[p.ID]; there {
			x := &all[i]
			x.Here, x.Place, x.Since, x.Last = true, "", p.Since, x.Last.Truncate(time.Minute)
		}
	}
	return all
}
