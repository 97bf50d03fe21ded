// SPDX-License-Identifier: Apache-2.0

package office

import (
	"errors"
	"slices"
	"time"

	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/sighting"
)

// Site is another office, with the people there.
type Site struct {
	Name   string     `json:"name"`
	At     time.Time  `json:"at"`     // time of its latest message
	Silent bool       `json:"silent"` // no recent message: the people there are unknown
	People []Presence `json:"people"`
	// Unknown is the number of further people without a name.
	Unknown int `json:"unknown"`
}

// Twice is a person who is seen in two places at once. One of the sightings must show another person.
type Twice struct {
	Name   string   `json:"name"`
	Places []string `json:"places"` // "" for this office, otherwise names of sites, in order
}

// Elsewhere replaces the list of other offices and their people.
func (w *Office) Elsewhere(sites []Site) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sites = slices.Clone(sites)
	for i := range w.sites {
		if w.sites[i].People == nil {
			w.sites[i].People = []Presence{}
		}
	}
}

// twice returns the people who are in two places at once. Both sightings must be certain and new: a person who has just
// moved to another site counts as present at the first site for [PresenceSettings].Away.
func (w *Office) twice(here []Presence) []Twice {
	places := make(map[string][]string)
	var names []string
	seen := func(place string, at time.Time, all []Presence) {
		for _, p := range all {
			if p.Unsure || p.Trust == sighting.Learned || at.Sub(p.Last) > seenNow {
				continue
			}
			if places[p.Name] == nil {
				names = append(names, p.Name)
			}
			places[p.Name] = append(places[p.Name], place)
		}
	}
	seen("", w.o.Now(), here)
	for _, s := range w.sites {
		if !s.Silent {
			seen(s.Name, s.At, s.People)
		}
	}
	all := []Twice{}
	for _, name := range names {
		if len(places[name]) > 1 {
			all = append(all, Twice{name, places[name]})
		}
	}
	return all
}

// seenNow is the greatest age of a sighting that counts as in view.
const seenNow = 2 * time.Second

// Exchanged lists the changes that [Office.Exchange] made from outside.
type Exchanged struct {
	Changed bool     // something has changed, and the gallery must be saved
	Renamed []Rename // in the order of the changes
	// Forgotten lists names to remove from all records of the past. The gallery is not changed for them: it may know
	// another person with such a name.
	Forgotten []string
	// Unmerged reports whether another office has undone a merge, by the name of the merge. May be nil.
	Unmerged func(merge string) bool
	// Saved is called after the gallery is saved. May be nil.
	Saved func() error
}

// Rename is a new name for a person.
type Rename struct {
	From, To string
	Merge    string // the name of the merge, if From and To are one person now
}

// Said is a change that a user made to the people of an office, for other devices.
type Said struct {
	Renamed *Rename // a new name for a person
	// Merged are two people who are now one, with the name To. Added and Removed describe the same change with labels,
	// for receivers that do not know merges.
	Merged         *Rename
	Unmerged       string // the name of a merge that was undone
	Forgotten      string // name of a forgotten person
	Added, Removed []gallery.Label
}

// said reports a statement to the option Said. It returns the name of a merge, or "".
func (w *Office) said(s statement, p proof) (merge string) {
	x := Said{Added: p.Added, Removed: p.Removed}
	if r := (&Rename{From: s.Was, To: s.Name}); s.Kind == Renamed && s.Pure {
		x.Renamed = r
	} else if s.Kind == Renamed {
		x.Merged = r
	}
	if x.Renamed != nil || x.Merged != nil || len(x.Added) > 0 || len(x.Removed) > 0 {
		return w.o.Said(x)
	}
	return ""
}

// Exchange calls do, which changes the gallery as other devices say. Cameras wait meanwhile. Before do removes a
// forgotten person, it must call forgetting with the name: then strangers who look like this person are forgotten, too.
// Afterwards Exchange updates sightings, presence and events: it renames people, lets people leave whom the gallery no
// longer knows, and removes all records of forgotten people. New names and merges are in the journal and can be undone
// here; all other changes must be undone at their own office. The error comes from do, or of saving.
func (w *Office) Exchange(do func(g *gallery.Gallery, forgetting func(name string)) (Exchanged, error)) error {
	defer w.correcting()()
	before := w.gallery.Learner().Names()
	// If do fails, the gallery may lack the person already: then the groups are forgotten in the next call.
	x, err := do(w.gallery, func(name string) { w.doomed = append(w.doomed, w.resembling(name)...) })
	if x.Unmerged != nil {
		err = errors.Join(err, w.unmergedElsewhere(x.Unmerged))
	}
	if !x.Changed {
		return err
	}
	if e := errors.Join(w.caughtUp(before, x), w.save()); e != nil {
		return errors.Join(err, e)
	}
	if x.Saved != nil {
		err = errors.Join(err, x.Saved())
	}
	return err
}

// caughtUp brings everything except the gallery in line with a change of the gallery from outside, in memory. Before
// has the names before the change.
func (w *Office) caughtUp(before []string, x Exchanged) (err error) {
	for _, r := range x.Renamed {
		err = errors.Join(err, w.follow(r, r.Merge == "" && !slices.Contains(before, r.To)))
	}
	if len(x.Forgotten) == 0 && len(w.doomed) > 0 { // an old copy of the gallery had the people again
		x.Forgotten = []string{""}
	}
	for _, name := range x.Forgotten {
		w.forgotten(statement{Kind: Forgot, Name: name, Alike: w.doomed, Foreign: true})
		w.doomed = nil
	}
	for _, name := range before {
		if !w.gallery.Learner().Knows(name) {
			w.tell(w.room.Leave(name))
		}
	}
	w.live(func(s *visit, v *view) {
		if s.Known != "" && !w.gallery.Learner().Knows(s.Known) {
			s.Known, s.Trust = "", sighting.Nobody
			w.rejudge(s, v)
		}
	})
	return err
}

// correcting locks w for a correction, and keeps the database for it, so that no other program changes people
// meanwhile. The correction saves everything at its end, in one transaction. Done ends it. If the database cannot be
// kept, because the disk is full, the correction is made in memory, and saving gives the error.
func (w *Office) correcting() (done func()) {
	w.mu.Lock()
	w.heed()
	w.saving.later = true
	w.noteFault(w.gallery.Begin())
	w.takeIn()
	return func() {
		w.gallery.End()
		w.saving.later = false
		w.takeIn()
		w.keep(false)
		w.mu.Unlock()
	}
}

// heed takes in what other programs have changed in the gallery. The lock must be held.
func (w *Office) heed() {
	w.noteFault(w.gallery.Update())
	w.takeIn()
}

// takeIn takes in what the gallery has heard of other programs.
func (w *Office) takeIn() {
	n := w.gallery.News()
	if !n.Changed {
		return
	}
	was := w.saving.later
	w.saving.later = true // the gallery may be in a transaction
	w.renumber(n.Observed)
	x := Exchanged{Forgotten: n.Forgotten}
	for _, r := range n.Renamed {
		x.Renamed = append(x.Renamed, Rename{From: r[0], To: r[1]})
	}
	w.noteFault(w.caughtUp(n.Before, x))
	w.saving.later = was
}

// renumber gives observations the numbers that they have since the gallery learned them again, on top of what another
// program had learned.
func (w *Office) renumber(all []gallery.Renumbered) {
	if len(all) == 0 {
		return
	}
	now := make(map[int64]int64)
	for _, o := range all {
		now[o.Was] = o.Is
	}
	heads, said := make(map[uint64]stay), make(map[uint64]statement)
	w.live(func(s *visit, _ *view) { s.Learned, _ = s.Learned.renumbered(now) })
	for _, id := range w.o.Past.seen.Before(0) {
		r, _ := w.o.Past.seen.Get(id)
		if is, changed := r.Head.Learned.renumbered(now); changed {
			r.Head.Learned = is
			heads[id] = r.Head
		}
	}
	for _, id := range w.o.Past.said.Before(0) {
		r, _ := w.o.Past.said.Get(id)
		if is, changed := r.Head.Learned.renumbered(now); changed {
			r.Head.Learned = is
			said[id] = r.Head
		}
	}
	w.o.Past.seen.Change(heads)
	w.o.Past.said.Change(said)
}

// follow gives a person a new name everywhere except in the gallery, which has it already. The journal records it,
// because earlier statements with the old name are about the new name now. Pure means that nobody had the new name.
func (w *Office) follow(r Rename, pure bool) error {
	q := w.newDraft(statement{Kind: Renamed, Name: r.To, Was: r.From, Pure: pure, Merge: r.Merge, Foreign: true})
	w.renamed(q)
	return w.put(q)
}
