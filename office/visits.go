// SPDX-License-Identifier: Apache-2.0

package office

import (
	"cmp"
	"maps"
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
func (w *memory) Visits(q Wanted) []Visit {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.visits(q)
}

func (w *memory) visits(q Wanted) []Visit {
	all := []Visit{}
	open := make(map[[2]int64]int) // the latest visit of each person and group, by its place
	take := func(s *sighted) bool {
		x := w.show(s)
		if !s.done && x.Face == 0 && x.Person == 0 { // nothing is known of this one yet
			return true
		}
		who := [2]int64{x.Person, int64(x.Group)}
		other := q.Person != 0 && x.Person != q.Person || q.Group != 0 && x.Group != q.Group
		if other || !q.To.IsZero() && !x.First.Before(q.To) || x.Last.Before(q.From) {
			return true
		}
		i, there := open[who]
		if who == [2]int64{} || !there || all[i].First.Sub(x.Last) > w.o.Presence.Away {
			if q.N > 0 && len(all) == q.N { // older sightings may still be the beginning of these
				earliest := slices.MinFunc(all, func(a, b Visit) int { return a.First.Compare(b.First) })
				return earliest.First.Sub(x.Last) <= w.o.Presence.Away
			}
			open[who] = len(all)
			all = append(all, *x.visit())
			return true
		}
		v := &all[i]
		v.Sightings = slices.Insert(v.Sightings, 0, x.ID)
		if at := slices.Index(v.Cameras, x.Camera); at >= 0 {
			v.Cameras = slices.Delete(v.Cameras, at, at+1)
		}
		v.Cameras = slices.Insert(v.Cameras, 0, x.Camera)
		if x.First.Before(v.First) {
			v.First = x.First
		}
		v.Face, v.Live = cmp.Or(v.Face, x.Face), v.Live || x.Live
		if x.Trust == sighting.Confirmed {
			v.Trust = x.Trust
		}
		return true
	}
	condition, about := "?2 = ?2", int64(0)
	switch {
	case q.Person != 0:
		condition, about = "person = ?2", q.Person
	case q.Group != 0:
		condition, about = "stranger = ?2", int64(q.Group)
	}
	w.each(condition+" and last >= ?3 order by last desc", take, about, nanoseconds(q.From))
	slices.SortStableFunc(all, func(a, b Visit) int { return b.Last.Compare(a.Last) })
	return all
}

// visit returns a visit of one sighting.
func (x Sighting) visit() *Visit {
	return &Visit{Person: x.Person, Name: x.Name, Group: x.Group, First: x.First, Last: x.Last, Live: x.Live,
		Cameras: []string{x.Camera}, Sightings: []uint64{x.ID}, Face: x.Face, Trust: x.Trust}
}

// last returns the last visit of each person: when and where, with a picture.
func (w *memory) last() map[int64]*Visit {
	take := func(all map[int64]*Visit, s *sighted) {
		x := w.show(s)
		if was := all[x.Person]; x.Person != 0 && (was == nil || !x.Last.Before(was.Last)) {
			all[x.Person] = x.visit()
		}
	}
	if w.lasts == nil {
		w.lasts = make(map[int64]*Visit)
		w.note(w.past.look(func(t *gallery.Tx) error {
			return w.sightings(t, `id in (select id from (select id, max(last) from sighting where office = ?1 and
				person is not null group by person))`, func(s *sighted) error { take(w.lasts, s); return nil })
		}))
	}
	all := maps.Clone(w.lasts)
	w.fresh(func(s *sighted) { take(all, s) })
	return all
}

// Latest returns the last sighting of each person, by number, as far back as sightings are kept: [Visit].Last is when.
func (w *memory) Latest() map[int64]*Visit {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last()
}
