// SPDX-License-Identifier: Apache-2.0

package office

import (
	"errors"
	"slices"

	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/sighting"
)

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
	w.noteFault(w.caughtUp(n))
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
func (w *Office) follow(from, to string, pure bool) error {
	q := w.newDraft(statement{Kind: Renamed, Name: to, Was: from, Pure: pure, Foreign: true})
	w.renamed(q)
	return w.put(q)
}

// caughtUp brings everything except the gallery in line with a change of the gallery by another program, in memory. It
// renames people, lets people leave whom the gallery no longer knows, and removes all records of forgotten people.
func (w *Office) caughtUp(n gallery.News) (err error) {
	for _, r := range n.Renamed {
		err = errors.Join(err, w.follow(r[0], r[1], !slices.Contains(n.Before, r[1])))
	}
	for _, name := range n.Forgotten {
		w.forgotten(statement{Kind: Forgot, Name: name, Foreign: true})
	}
	for _, name := range n.Before {
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
