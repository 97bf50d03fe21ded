// SPDX-License-Identifier: Apache-2.0

package office

import (
	"cmp"
	"slices"
	"time"

	"github.com/faceauth/faceauth/face"
)

// visit is a sighting that can be corrected: a person in view of a camera, at present or in the past.
type visit struct {
	stay
	id      uint64
	track   int    // 0 for a sighting of an earlier run
	album   Album  // empty for a past sighting until recall
	began   bool   // the group was made for this sighting
	grouped uint64 // number of its last face in the group
	reason  string // why the last picture was not used
	film    film   // its clip
	stills  bool   // its camera gives stills
	good    int    // number of clear faces
	small   int    // number of faces that are too small
	others  int    // number of faces that are not
	spoilt  int    // number of faces that a movement, an edge or a cover has spoilt
	judged  bool   // enough faces were seen to decide whether the person is known
	double  bool   // it shows somebody in view a second time: a mirror image
}

// sighting returns the sighting of a track in view.
func (w *Office) sighting(v *view, track int, at time.Time) *visit {
	s := v.sightings[track]
	if s == nil {
		w.last++
		s = &visit{id: w.last, track: track, stay: stay{Camera: v.camera.Name, First: at}, stills: v.camera.Stills}
		v.sightings[track] = s
	}
	s.Last = at
	return s
}

// leastClear is the number of clear faces from which somebody unknown is told. Of the faces of somebody who runs past,
// or who is half behind a bar, some pass the checks of a picture; so the spoilt ones may be mostSpoilt times as many.
// TestSpoiltFaces chose both, on p3 and p5 of vidtimit_rot.
const (
	leastClear = 3
	mostSpoilt = 2
)

// count counts a face of the sighting.
func (s *visit) count(clear bool, why face.Reason) {
	if why == face.TooSmall {
		s.small++
	} else {
		s.others++
	}
	switch {
	case clear:
		s.good++
	case why == face.Blurred, why == face.Moved, why == face.CutOff, why == face.Covered:
		s.spoilt++
	}
}

// clear reports whether the sighting has clear faces enough. Each still was chosen by another program.
func (s *visit) clear() bool {
	return s.stills && s.good > 0 || s.good >= leastClear && s.spoilt <= mostSpoilt*s.good
}

// ungroup removes a sighting from its group.
func (s *visit) ungroup() { s.Group, s.began = 0, false }

// end stores the sightings of a camera that have ended. Sightings of live tracks have not ended.
func (w *Office) end(v *view, live []int) {
	var ended []*visit
	for track, s := range v.sightings {
		if slices.Contains(live, track) {
			continue
		}
		delete(v.sightings, track)
		if !s.judged {
			w.poor++
			if s.small >= leastClear && s.others == 0 {
				v.far, v.farDay = v.farOn(s.Last)+1, s.Last.Format(time.DateOnly)
			}
		}
		ended = append(ended, s)
	}
	slices.SortFunc(ended, func(a, b *visit) int { return cmp.Compare(a.id, b.id) })
	for _, s := range ended {
		w.store(s)
	}
	if len(ended) > 0 {
		w.unclip()
	}
}

// live calls do with each sighting that has not ended.
func (w *Office) live(do func(*visit, *view)) {
	for _, v := range w.views {
		for _, s := range v.sightings {
			do(s, v)
		}
	}
}

// past returns the past sighting with a number, without its faces, or nil.
func (w *Office) past(id uint64) *visit {
	if r, ok := w.o.Past.seen.Get(id); ok {
		return &visit{stay: r.Head, id: id, track: w.tracks[id]}
	}
	return nil
}

// all calls do with each sighting; do reports whether it has changed the sighting. The view is nil for a past sighting,
// which comes without faces. all returns the changed past sightings, which are not written yet.
func (w *Office) all(do func(*visit, *view) (changed bool)) map[uint64]stay {
	w.live(func(s *visit, v *view) { do(s, v) })
	heads := make(map[uint64]stay)
	for _, id := range w.o.Past.seen.Before(0) {
		if s := w.past(id); do(s, nil) {
			heads[id] = s.stay
		}
	}
	return heads
}

// find returns a sighting with its faces, or nil. The view is nil for a past sighting.
func (w *Office) find(id uint64) (found *visit, in *view) {
	w.live(func(s *visit, v *view) {
		if s.id == id {
			found, in = s, v
		}
	})
	if found == nil {
		if found = w.past(id); found != nil {
			w.recall(found)
		}
	}
	return found, in
}

// ranges are ranges of observation numbers, ascending.
type ranges [][2]int64

// mostRanges limits the memory of a sighting. One range is a time in which no other person was seen.
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

// renumbered returns the ranges with new numbers for some of them; 0 for none. It reports whether any has changed.
func (r ranges) renumbered(now map[int64]int64) (is ranges, changed bool) {
	var all []int64
	for _, x := range r {
		for n := x[0]; n <= x[1]; n++ {
			other, there := now[n]
			if changed = changed || there; !there {
				other = n
			}
			if other > 0 {
				all = append(all, other)
			}
		}
	}
	if !changed {
		return r, false
	}
	slices.Sort(all)
	for _, n := range all {
		is.add(n)
	}
	return is, true
}

// upTo returns the ranges without numbers above last, and whether there were any.
func (r ranges) upTo(last int64) (kept ranges, cut bool) {
	for _, x := range r {
		if x[1] > last {
			cut = true
			x[1] = last
		}
		if x[0] <= x[1] {
			kept = append(kept, x)
		}
	}
	return kept, cut
}
