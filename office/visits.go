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
			all = append(all, Visit{Person: x.Person, Name: x.Name, Group: x.Group, First: x.First, Last: x.Last,
				Live: x.Live, Cameras: []string{x.Camera}, Sightings: []uint64{x.ID}, Face: x.Face, Trust: x.Trust})
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
	w.eachSighting(q, take)
	slices.SortStableFunc(all, func(a, b Visit) int { return b.Last.Compare(a.Last) })
	return all
}

// eachSighting calls each with the sightings of a person or a group, or with all, the one that ended last first, until
// it returns false.
func (w *memory) eachSighting(q Wanted, each func(*sighted) bool) {
	var fresh []*sighted
	written := make(map[uint64]bool)
	w.fresh(func(s *sighted) {
		written[s.ID] = true
		if len(s.album.Faces) > 0 || w.gallery.Name(s.Person) != "" {
			fresh = append(fresh, s)
		}
	})
	slices.SortFunc(fresh, func(a, b *sighted) int { return cmp.Or(b.Last.Compare(a.Last), cmp.Compare(b.ID, a.ID)) })
	for _, s := range fresh {
		if !each(s) {
			return
		}
	}
	condition, about := "?2 = ?2", int64(0)
	switch {
	case q.Person != 0:
		condition, about = "person = ?2", q.Person
	case q.Group != 0:
		condition, about = "stranger = ?2", int64(q.Group)
	}
	before, from := int64(math.MaxInt64), nanoseconds(q.From)
	const some = 500
	for more := true; more; {
		n := 0
		err := w.past.look(func(t *gallery.Tx) error {
			return w.sightings(t, condition+" and last >= ?3 and last < ?4 order by last desc limit ?5", func(s *sighted) {
				n++
				before = nanoseconds(s.Last)
				if more && !written[s.ID] {
					more = each(s)
				}
			}, about, from, before, int64(some))
		})
		more = more && err == nil && n == some
	}
}

// last returns the last visit of each person: when and where, with a picture.
func (w *memory) last() map[int64]Visit {
	all := make(map[int64]Visit)
	take := func(s *sighted) {
		if x := w.show(s); x.Person != 0 && !x.Last.Before(all[x.Person].Last) {
			all[x.Person] = Visit{Person: x.Person, Name: x.Name, First: x.First, Last: x.Last, Live: x.Live,
				Cameras: []string{x.Camera}, Sightings: []uint64{x.ID}, Face: x.Face, Trust: x.Trust}
		}
	}
	err := w.past.look(func(t *gallery.Tx) error {
		return w.sightings(t, `id in (select id from (select id, max(last) from sighting where office = ?1 and
			person is not null group by person))`, take)
	})
	w.note(err)
	w.fresh(take)
	return all
}

// Latest returns the last sighting of each person, by number, as far back as sightings are kept: [Visit].Last is when.
func (w *memory) Latest() map[int64]Visit {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last()
}
