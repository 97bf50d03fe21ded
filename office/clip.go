// SPDX-License-Identifier: Apache-2.0

package office

import (
	"slices"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/gallery"
	"github.com/fxamacker/cbor/v2"
)

// Size of a clip.
const (
	clipPictures = 16 // greatest number of pictures
	clipRate     = 2  // pictures per second
)

// film collects the clip of a sighting.
type film struct {
	pictures [][]byte // JPEG, of one size
	due      time.Time
	with     []*sighted // who else is in it
	written  int        // number of pictures that are written
}

// filmed reports whether the film of a sighting must be written, which grows while somebody is in view. Everybody else in
// it must be kept, too: when one of them is forgotten, the film goes.
func (w *keeper) filmed(s *sighted) bool {
	n := len(s.film.pictures)
	return n > s.film.written && (s.done || n >= 2*s.film.written) &&
		!slices.ContainsFunc(s.film.with, func(o *sighted) bool { return !w.keeps(o) || len(o.album.Faces) == 0 })
}

// films reports whether the clip of a person in view needs a picture now. The lock must be held.
func (w *keeper) films(v *view) bool {
	if w.past.s.Clips == 0 {
		return false
	}
	for _, s := range v.sightings {
		if len(s.film.pictures) < clipPictures && !s.Last.Before(s.film.due) {
			return true
		}
	}
	return false
}

// roll adds the picture of a frame to the clips of the people in it. The lock must be held.
func (w *cameras) roll(f face.Frame, all []*sighted) {
	if w.past.s.Clips == 0 || f.JPEG == nil {
		return
	}
	for _, s := range all {
		if len(s.film.pictures) == clipPictures || s.Last.Before(s.film.due) {
			continue
		}
		s.film.pictures, s.film.due = append(s.film.pictures, f.JPEG), s.Last.Add(time.Second/clipRate)
		for _, o := range all {
			if o != s && !slices.Contains(s.film.with, o) {
				s.film.with = append(s.film.with, o)
			}
		}
	}
}

// put writes the film of a sighting.
func (f *film) put(t *gallery.Tx, sighting uint64) error {
	body, err := cbor.Marshal(f.pictures)
	if err == nil {
		err = t.Exec("insert or replace into film(sighting, pictures, size, body) values(?, ?, ?, ?)", int64(sighting),
			int64(len(f.pictures)), int64(len(body)), body)
	}
	for _, other := range f.with {
		t.Exec("insert or replace into film_with values(?, ?)", int64(sighting), int64(other.ID))
	}
	return err
}

// ClipPicture returns a picture of the film of the beginning of a sighting, counted from 0, as JPEG, or nil: there are two
// pictures per second. Films are stored only if [PastSettings] says so.
func (w *book) ClipPicture(sighting, n uint64) []byte {
	if pictures := w.film(sighting); n < uint64(len(pictures)) {
		return pictures[n]
	}
	return nil
}

// film returns the pictures of a clip.
func (w *keeper) film(sighting uint64) (pictures [][]byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.look(func(t *gallery.Tx) error {
		body, err := t.Blob("select body from film join sighting on sighting.id = film.sighting where office = ? and id = ?",
			w.past.id, int64(sighting))
		if err != nil || body == nil {
			return err
		}
		return cbor.Unmarshal(body, &pictures)
	})
	return pictures
}
