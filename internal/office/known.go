// SPDX-License-Identifier: Apache-2.0

package office

import (
	"cmp"
	"slices"
	"time"

	"github.com/faceauth/faceauth/internal/gallery"
	"github.com/faceauth/faceauth/sighting"
)

// KnownPerson is a person whom an office knows, with the last sighting as far back as sightings are
// kept.
type KnownPerson struct {
	gallery.Person
	Here  bool      `json:"here"`
	Since time.Time `json:"since,omitzero"`  // when they arrived here, or at Place
	Place string    `json:"place,omitempty"` // the device of the fleet that sees an absent person
	// Last is the time of the last sighting: of who is here, to the minute; zero if unknown.
	Last   time.Time      `json:"last,omitzero"`
	Camera string         `json:"camera,omitempty"` // camera of the last sighting
	Trust  sighting.Trust `json:"trust,omitempty"`  // how the last sighting is known to be theirs
	// number of a picture, the chosen one if there is one; 0 for none
	Face   uint64 `json:"face,omitempty"`
	Chosen uint64 `json:"picture,omitempty"` // number of the picture that a user chose; 0 for none

	enrolled uint64 // number of the first picture that was enrolled
}

// unseen returns a person without a sighting.
func (p KnownPerson) unseen() KnownPerson {
	return KnownPerson{Person: p.Person, Chosen: p.Chosen, enrolled: p.enrolled,
		Face: cmp.Or(p.Chosen, p.enrolled)}
}

// saw takes in a sighting, if it is theirs. One that is not written has no picture yet: then the
// picture before stays.
func (p *KnownPerson) saw(x Sighting) {
	if x.Person == p.ID && !x.Last.Before(p.Last) {
		p.Last, p.Camera, p.Trust = x.Last.Round(0), x.Camera, x.Trust
		p.Face = cmp.Or(p.Chosen, x.Face, p.Face)
	}
}

// register has the known people as the rows have them. It is read once, and follows what is
// written.
type register struct {
	all  []KnownPerson
	at   map[int64]int    // by number of the person
	last map[int64]uint64 // the last sighting of a person
	lost []int64          // people whose last sighting is gone: another one is their last now
}

// saw takes in a sighting that was written.
func (r *register) saw(x Sighting) {
	if r == nil || x.Person == 0 {
		return
	}
	i, there := r.at[x.Person]
	if there && !x.Last.Before(r.all[i].Last) {
		r.all[i].saw(x)
		r.last[x.Person] = x.ID
	}
}

// lose takes in that a sighting of a person is gone.
func (r *register) lose(person int64, id uint64) {
	if r != nil && r.last[person] == id && id != 0 {
		delete(r.last, person)
		r.lost = append(r.lost, person)
	}
}

// everybody returns the known people in the order in which they were enrolled: as the rows have
// them, and with what is not written yet.
func (w *Office) everybody() []KnownPerson {
	if w.known == nil {
		w.known = w.register()
	}
	k := w.known
	if len(k.lost) > 0 {
		for _, person := range k.lost {
			i, there := k.at[person]
			if there {
				p := &k.all[i]
				*p = p.unseen()
			}
		}
		w.lastOf(k, k.lost)
		k.lost = nil
	}
	all := slices.Clone(k.all)
	current, _ := w.current()
	for _, x := range current {
		i, there := k.at[x.Person]
		if there {
			all[i].saw(x)
		}
	}
	away, err := w.gallery.Rows().Elsewhere(w.o.Now())
	w.note(err)
	for id, a := range away {
		i, there := k.at[id]
		if there {
			all[i].Place, all[i].Since = a.Place, a.Since
		}
	}
	for _, here := range w.room.People() {
		i, there := k.at[here.Person]
		if there {
			p := &all[i]
			p.Here, p.Place, p.Since, p.Last = true, "", here.Since, p.Last.Truncate(time.Minute)
		}
	}
	return all
}

// pictured finds the enrolled faces with a picture: one that a camera or a visitor of the page has
// made, or one that was enrolled by command.
const pictured = `select person, number from label where not rejected and valid and
	(exists (select 1 from portrait where number = label.number) or
	exists (select 1 from face where number = label.number and jpeg is not null))`

// register reads the known people from the rows.
func (w *Office) register() *register {
	k := &register{all: []KnownPerson{}, at: make(map[int64]int), last: make(map[int64]uint64)}
	chosen, first := make(map[int64]uint64), make(map[int64]uint64)
	w.look(func(t *gallery.Tx) {
		for r := range t.Rows(
			`select person, number from (select person, face as number, max(id) from statement
			where kind = 'pictured' and not undone group by person)
			join (` + pictured + `) using(number, person)`) {
			chosen[r.ColumnInt64(0)] = uint64(r.ColumnInt64(1))
		}
		for r := range t.Rows("select person, min(number) from (" + pictured +
			") group by person") {
			first[r.ColumnInt64(0)] = uint64(r.ColumnInt64(1))
		}
	})
	var people []int64
	for i, p := range w.gallery.People() {
		who := KnownPerson{Person: p, Chosen: chosen[p.ID], enrolled: first[p.ID]}
		k.all = append(k.all, who.unseen())
		k.at[p.ID] = i
		people = append(people, p.ID)
	}
	w.lastOf(k, people)
	return k
}

// lastOf reads the last sightings of people.
func (w *Office) lastOf(k *register, people []int64) {
	w.look(func(t *gallery.Tx) {
		last, _ := t.Ints(
			`select (select id from sighting where person = value and office = ? order by last desc
				limit 1) from json_each(?)`, w.past.id, ids(people))
		for _, x := range w.sightings(t, sightingsByNumber, ids(last)) {
			k.saw(x)
		}
	})
}
