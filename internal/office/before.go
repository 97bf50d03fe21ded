// SPDX-License-Identifier: Apache-2.0

package office

import (
	"cmp"
	"slices"

	"github.com/faceauth/faceauth/internal/album"
	"github.com/faceauth/faceauth/internal/gallery"
	"github.com/faceauth/faceauth/quantized"
	"github.com/faceauth/faceauth/sighting"
)

const (
	mostBefore = 20   // sightings that [Office.Before] returns
	aLot       = 1000 // faces that are compared while cameras wait
)

// Before returns the sightings in which a face comes as near to x as faces of two people rarely do,
// the nearest first, with this face, its distance and its rarity. It looks as far back as faces are
// kept: of a stranger whose sightings are gone, it returns the faces, as sightings without a
// number.
func (w *Office) Before(x []float32) []Sighting {
	space := w.gallery.Space()
	near := make(map[[2]uint64]Sighting) // by sighting, or else by group and face
	compare := func(f album.Face, of, group uint64) {
		d := quantized.Distance(f.Vector, x, space.Scale)
		key := [2]uint64{of}
		if of == 0 {
			key = [2]uint64{group, f.ID}
		}
		was, there := near[key]
		if d > space.ImpostorRadius || there && was.Distance <= d {
			return
		}
		near[key] = Sighting{ID: of, Group: group, Camera: f.Camera, First: f.At, Last: f.At,
			Face: f.ID, Who: sighting.Who{Near: sighting.NearAt(space, d)}}
	}
	for last, n := int64(0), aLot; n == aLot; {
		w.mu.Lock()
		n = 0
		w.look(func(t *gallery.Tx) {
			for r := range t.Rows(`select number, camera, at, sharp, vector, null,
				coalesce(sighting, 0), stranger from face where office = ? and number > ? and
				(sighting is not null or stranger > 0) order by number limit ?`, w.past.id, last,
				int64(aLot)) {
				n++
				last = r.ColumnInt64(0)
				compare(faceOf(r, 0), uint64(r.ColumnInt64(6)), uint64(r.ColumnInt64(7)))
			}
		})
		w.mu.Unlock()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.fresh() { // they may not be written yet
		for _, f := range s.album.Faces {
			compare(f, s.ID, s.Group)
		}
	}
	all, numbers := []Sighting{}, []uint64{}
	for _, s := range near {
		if s.ID != 0 {
			numbers = append(numbers, s.ID)
		} else if w.unknown.Get(s.Group) != nil {
			all = append(all, s)
		}
	}
	w.look(func(t *gallery.Tx) {
		is := func(s Sighting) bool { return slices.Contains(numbers, s.ID) }
		for _, s := range w.list(t, is, sightingsByNumber, ids(numbers)) {
			found := near[[2]uint64{s.ID}]
			s.Face, s.Near = found.Face, found.Near
			all = append(all, s)
		}
	})
	slices.SortFunc(all, func(a, b Sighting) int {
		return cmp.Or(cmp.Compare(a.Distance, b.Distance), cmp.Compare(b.Face, a.Face))
	})
	return all[:min(mostBefore, len(all))]
}
