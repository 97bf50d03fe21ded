// SPDX-License-Identifier: Apache-2.0

package office

import (
	"cmp"
	"slices"
	"time"

	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/internal/office/presence"
	"github.com/faceauth/faceauth/sighting"
)

// Visit is somebody's time in view: sightings of one person, or of one group of unknown faces, between which they were
// away for at most [presence.Settings].Away.
type Visit struct {
	Sighting           // the last one, except that First, Live, Face and Trust are those of all
	Cameras   []string `json:"cameras"`   // in the order of the sightings
	Sightings []uint64 `json:"sightings"` // their numbers, the first first
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
func (w *Office) Visits(q Wanted) []Visit {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.visits(q)
}

func (w *Office) visits(q Wanted) []Visit {
	wanted := func(x Sighting) bool {
		return (q.Person == 0 || x.Person == q.Person) && (q.Group == 0 || x.Group == q.Group) &&
			!x.Last.Before(q.From) && (q.To.IsZero() || x.First.Before(q.To))
	}
	statement, args := visits, []any{nanoseconds(q.From), nanoseconds(q.To)}
	switch {
	case q.Group != 0:
		statement, args = visitsOfGroup, append(args, int64(q.Group))
	case q.Person != 0:
		statement, args = visitsOfPerson, append(args, q.Person)
	}
	var seen []Sighting
	w.look(func(t *gallery.Tx) {
		seen = w.list(t, wanted, statement, args...)
	})
	slices.SortStableFunc(seen, func(a, b Sighting) int { return b.Last.Compare(a.Last) })
	all := []Visit{}
	open := make(map[[2]int64]int) // the earliest visit of each person and group until now, by its place
	for _, x := range seen {
		if !wanted(x) { // the person of the row may be nobody any more
			continue
		}
		who := [2]int64{x.Person, int64(x.Group)}
		i, there := open[who]
		if who == [2]int64{} || !there || all[i].First.Sub(x.Last) > w.o.Presence.Away {
			open[who] = len(all)
			all = append(all, Visit{x, []string{x.Camera}, []uint64{x.ID}})
			continue
		}
		v := &all[i]
		v.Sightings = slices.Insert(v.Sightings, 0, x.ID)
		v.Cameras = slices.DeleteFunc(v.Cameras, func(c string) bool { return c == x.Camera })
		v.Cameras = slices.Insert(v.Cameras, 0, x.Camera)
		v.First, v.Face, v.Live = presence.Earlier(v.First, x.First), cmp.Or(v.Face, x.Face), v.Live || x.Live
		if x.Trust == sighting.Confirmed {
			v.Trust = x.Trust
		}
	}
	if q.N > 0 {
		all = all[:min(q.N, len(all))]
	}
	return all
}
