// SPDX-License-Identifier: Apache-2.0

package office

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/faceauth/faceauth/internal/gallery"
	"github.com/faceauth/faceauth/internal/office/presence"
	"github.com/faceauth/faceauth/sighting"
)

// Visit is somebody's time in view: sightings of one person, or of one group of unknown faces,
// between which they were away for at most [presence.Settings].Away.
type Visit struct {
	Sighting           // the last one, except that First, Live, Face and Trust are those of all
	Cameras   []string `json:"cameras"`   // in the order of the sightings
	Sightings []uint64 `json:"sightings"` // their numbers, the first first
}

// Wanted says which visits [Office.Visits] returns. A zero field means all.
type Wanted struct {
	Person int64
	From   time.Time // visits that have not ended before
	To     time.Time // visits that have begun before
	N      int       // at most so many, the latest
	// By reports of which cameras they may be.
	By func(camera string) bool
}

// Visits returns visits, the latest first, as far back as sightings are kept. All other lists of
// who was there when are made of them.
func (w *Office) Visits(q Wanted) []Visit {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.visits(q)
}

// PastVisits returns the same of the office with a name, which may run at present: those in view
// are as it has written them last. Without a name it is the only office of the gallery. A visit
// ends when nobody was seen for away. The error wraps [fs.ErrNotExist], or comes from the database.
func PastVisits(g *gallery.Gallery, name string, away time.Duration,
	q Wanted) (all []Visit, err error) {
	w := &Office{mu: new(sync.Mutex), gallery: g, past: &Past{g: g},
		unknown: newGroups(g.Space(), 0)}
	w.o.Presence.Away = away
	err = g.Rows().Look(func(t *gallery.Tx) error {
		offices := []string{}
		for r := range t.Rows(
			"select id, name from office where (name = ?1 or ?1 = '') and not temporary", name) {
			w.past.id = r.ColumnInt64(0)
			offices = append(offices, r.ColumnText(1))
		}
		switch {
		case t.Err() != nil:
			return t.Err()
		case len(offices) == 0:
			return fmt.Errorf("there is no such office in gallery %s: %w", g.Path(), fs.ErrNotExist)
		case len(offices) > 1:
			return fmt.Errorf("gallery %s has the offices %s; name one", g.Path(),
				strings.Join(offices, ", "))
		}
		w.unknown.read(t, w.past.id, g.Name)
		return t.Err()
	})
	if err != nil {
		return nil, err
	}
	all = w.visits(q)
	return all, w.fault
}

func (w *Office) visits(q Wanted) []Visit {
	wanted := func(x Sighting) bool {
		return (q.Person == 0 || x.Person == q.Person) && !x.Last.Before(q.From) &&
			(q.By == nil || q.By(x.Camera)) && (q.To.IsZero() || x.First.Before(q.To))
	}
	statement, args := visits, []any{nanoseconds(q.From), nanoseconds(q.To)}
	if q.Person != 0 {
		statement, args = visitsOfPerson, append(args, q.Person)
	}
	var seen []Sighting
	w.look(func(t *gallery.Tx) {
		seen = w.list(t, wanted, statement, args...)
	})
	slices.SortStableFunc(seen, func(a, b Sighting) int { return b.Last.Compare(a.Last) })
	all := []Visit{}
	// the earliest visit of each person and group until now, by its place
	open := make(map[[2]int64]int)
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
		v.First, v.Live = presence.Earlier(v.First, x.First), v.Live || x.Live
		if x.Face != 0 && (v.Face == 0 || x.sharp > v.sharp) {
			v.Face, v.sharp = x.Face, x.sharp
		}
		if x.Trust == sighting.Confirmed {
			v.Trust = x.Trust
		}
	}
	if q.N > 0 {
		all = all[:min(q.N, len(all))]
	}
	return all
}

// CSV returns visits, of which the latest comes first, as a table, the first one first. A name that
// a spreadsheet would take for a formula has an apostrophe before it.
func CSV(visits []Visit) []byte {
	var b bytes.Buffer
	t := csv.NewWriter(&b) // a buffer takes all
	t.Write([]string{"name", "person", "stranger", "first", "last", "seconds", "cameras"})
	for i := len(visits) - 1; i >= 0; i-- {
		v := visits[i]
		name := v.Name
		if name != "" && strings.ContainsRune("=+-@\t\r", rune(name[0])) {
			name = "'" + name
		}
		t.Write([]string{name, number(v.Person), number(int64(v.Group)),
			v.First.Format(time.RFC3339),
			v.Last.Format(time.RFC3339), fmt.Sprint(int(v.Last.Sub(v.First).Seconds())),
			strings.Join(v.Cameras, " ")})
	}
	t.Flush()
	return b.Bytes()
}

// number returns a number as text, or "" for none.
func number(n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}
