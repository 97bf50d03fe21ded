// SPDX-License-Identifier: Apache-2.0

package office

import (
	"errors"
	"slices"
	"time"

	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/office/presence"
	"github.com/faceauth/faceauth/sighting"
)

// Site is another office, and who is there.
type Site struct {
	Name   string            `json:"name"`
	At     time.Time         `json:"at"`     // of its latest word
	Silent bool              `json:"silent"` // nothing was heard from it lately: nobody knows who is there
	People []presence.Person `json:"people"`
	// Unknown is how many more are there, whom nobody has named.
	Unknown int `json:"unknown"`
}

// Twice is a person who is seen in two places at once. One of the sightings is somebody else.
type Twice struct {
	Name   string   `json:"name"`
	Places []string `json:"places"` // "" for this office, otherwise names of sites, in order
}

// Elsewhere says who is at other sites, in place of all that was said of that before.
func (w *Office) Elsewhere(sites []Site) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sites = slices.Clone(sites)
	for i := range w.sites {
		if w.sites[i].People == nil {
			w.sites[i].People = []presence.Person{}
		}
	}
}

// twice returns the people who are in two places at once. Both must be sure: somebody who has just gone from one site to
// the next is still there until that site has looked for [presence.Settings].Away.
func (w *Office) twice(here []presence.Person) []Twice {
	places := make(map[string][]string)
	var names []string
	seen := func(place string, at time.Time, all []presence.Person) {
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

// seenNow is how long ago somebody was seen at most who counts as in view.
const seenNow = 2 * time.Second

// Exchanged says what was changed of the people of an office from outside.
type Exchanged struct {
	Changed bool     // anything at all; the gallery is then saved
	Renamed []Rename // in the order in which it was done
	// Forgotten are names that are to be removed from all that is kept of the past. The gallery stays as do left it: it may
	// know somebody else by one of them.
	Forgotten []string
	// Unmerged reports whether somebody said elsewhere that two people are not one after all, by the name that the
	// merge has. May be nil.
	Unmerged func(merge string) bool
	// Saved is called when the gallery was saved. May be nil.
	Saved func() error
}

// Rename is another name for a person.
type Rename struct {
	From, To string
	Merge    string // the name of the merge, where From and To are one person now
}

// Said is what somebody changed of the people whom an office knows, so that other devices can be told.
type Said struct {
	Renamed *Rename // another name for a person
	// Merged are two people who are one with the name of the second. Added and Removed say the same in labels, for
	// those who cannot take it.
	Merged         *Rename
	Unmerged       string // the name of a merge that does not hold any more
	Forgotten      string // somebody who was forgotten
	Added, Removed []Label
}

// Label is a labelled face, or one that is known not to be a person's.
type Label struct {
	Name     string
	Negative bool
	Vector   []float32
}

func labelled(all []label) (some []Label) {
	for _, x := range all {
		some = append(some, Label{x.Name, x.Negative, x.Vector})
	}
	return some
}

// said tells of a statement. It returns the name of a merge.
func (w *Office) said(s statement, p proof) (merge string) {
	x := Said{Added: labelled(p.Added), Removed: labelled(p.Removed)}
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

// Exchange has do change the people from outside, by what other devices know. No camera is judged while it runs. Do
// calls forgetting with the name of somebody who was forgotten, before it removes them: strangers who look like them
// are forgotten, too. Sightings, presence and events then follow: people are renamed, those whom the gallery knows no
// longer leave, and of those who were forgotten nothing is kept. Other names, and who is one person, are in the
// journal, and can be undone here; all else is undone where it was said. The error is that of do, or one of saving.
func (w *Office) Exchange(do func(g *gallery.Gallery, forgetting func(name string)) (Exchanged, error)) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.gallery.Learner().Names()
	had := make(map[string]bool)
	for _, name := range before {
		had[name] = true
	}
	// Where do fails, the gallery may not have the person any more: the groups are forgotten when it works.
	x, err := do(w.gallery, func(name string) { w.doomed = append(w.doomed, w.resembling(name)...) })
	if x.Unmerged != nil {
		err = errors.Join(err, w.unmergedElsewhere(x.Unmerged))
	}
	if !x.Changed {
		return err
	}
	for _, r := range x.Renamed {
		err = errors.Join(err, w.follow(r, r.Merge == "" && !had[r.To]))
	}
	if len(x.Forgotten) == 0 && len(w.doomed) > 0 { // an old gallery had them again
		x.Forgotten = []string{""}
	}
	for _, name := range x.Forgotten {
		err = errors.Join(err, w.forget(statement{Kind: Forgot, Name: name, Alike: w.doomed, Foreign: true}))
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
	if e := w.save(); e != nil {
		return errors.Join(err, e)
	}
	if x.Saved != nil {
		err = errors.Join(err, x.Saved())
	}
	return err
}

// follow gives a person another name in all that is known of them, but for the gallery, which has it already. It is in
// the journal, as what was said before of the old name is meant of the new one. Pure says that nobody had the new name.
func (w *Office) follow(r Rename, pure bool) error {
	q := w.say(statement{Kind: Renamed, Name: r.To, Was: r.From, Pure: pure, Merge: r.Merge, Foreign: true})
	w.renamed(q)
	return w.done(q)
}
