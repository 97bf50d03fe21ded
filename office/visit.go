// SPDX-License-Identifier: Apache-2.0

package office

import (
	"cmp"
	"slices"
	"time"

	"github.com/faceauth/faceauth/office/unknown"
	"github.com/faceauth/faceauth/sighting"
)

// visit is a sighting that can be corrected: somebody who is in view of a camera, or was
type visit struct {
	id          uint64
	camera      string
	track       int
	first, last time.Time
	known       string         // who it was taken for last
	trust       sighting.Trust // the best on which that rested
	wrong       bool           // it was corrected, and nobody has said who it is
	album       unknown.Album
	learned     ranges
	group       uint64
	began       bool   // the group was made for it
	grouped     uint64 // number of its last face that is in the group
	reason      string // what was wrong with the last picture
}

// sighting returns that of a track, which is in view now.
func (w *Office) sighting(v *view, track int, at time.Time) *visit {
	s := v.sightings[track]
	if s == nil {
		w.last++
		s = &visit{id: w.last, camera: v.camera.Name, track: track, first: at}
		v.sightings[track] = s
	}
	s.last = at
	return s
}

// ungroup says that a sighting is in no group.
func (s *visit) ungroup() { s.group, s.began = 0, false }

// end keeps the sightings of a camera that have come to their end, which those of the live tracks have not, with those
// of the past.
func (w *Office) end(v *view, live []int) {
	var ended []*visit
	for track, s := range v.sightings {
		if slices.Contains(live, track) {
			continue
		}
		delete(v.sightings, track)
		if len(s.album.Faces) > 0 {
			ended = append(ended, s)
		}
	}
	slices.SortFunc(ended, func(a, b *visit) int { return cmp.Compare(a.id, b.id) })
	w.past = append(w.past, ended...)
	if over := len(w.past) - w.o.Sightings; over > 0 {
		w.past = slices.Delete(w.past, 0, over)
	}
}

// all calls do with each sighting; the view is nil for one of the past.
func (w *Office) all(do func(*visit, *view)) {
	for _, v := range w.views {
		for _, s := range v.sightings {
			do(s, v)
		}
	}
	for _, s := range w.past {
		do(s, nil)
	}
}

// find returns a sighting, or nil.
func (w *Office) find(id uint64) (found *visit, in *view) {
	w.all(func(s *visit, v *view) {
		if s.id == id {
			found, in = s, v
		}
	})
	return found, in
}

// ranges are numbers of observations, ascending.
type ranges [][2]int64

// mostRanges bounds what a sighting remembers. One range is a stretch in which nobody else was seen.
const mostRanges = 4096

func (r *ranges) add(n int64) {
	if last := len(*r) - 1; last >= 0 && (*r)[last][1] == n-1 {
		(*r)[last][1] = n
		return
	}
	if *r = append(*r, [2]int64{n, n}); len(*r) > mostRanges {
		*r = slices.Delete(*r, 0, 1)
	}
}
