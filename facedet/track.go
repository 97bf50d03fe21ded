package facedet

import (
	"cmp"
	"image"
	"slices"

	"github.com/faceauth/faceauth/face"
)

// Tracker ties the faces of one frame to those of the frames before, so that a person who stays in
// view keeps one number. It goes by the overlap of boxes alone. The zero value is ready for use.
type Tracker struct {
	last   int // number given last
	tracks []track
}

type track struct {
	id   int
	box  image.Rectangle
	seen int // frame
}

const (
	sameOverlap = .3 // least overlap of the boxes of one face in two frames
	patience    = 10 // frames without the face after which a track ends
)

// Update returns the number of the track of each box in a frame. Frames count upwards; numbers start
// at 1 and are never used again.
func (t *Tracker) Update(frame int, boxes []image.Rectangle) []int {
	t.tracks = slices.DeleteFunc(t.tracks, func(k track) bool { return frame-k.seen > patience })
	type pair struct {
		overlap    float64
		track, box int
	}
	var pairs []pair
	for i, k := range t.tracks {
		for j, b := range boxes {
			if o := face.Overlap(k.box, b); o >= sameOverlap {
				pairs = append(pairs, pair{o, i, j})
			}
		}
	}
	slices.SortStableFunc(pairs, func(a, b pair) int { return cmp.Compare(b.overlap, a.overlap) })
	ids := make([]int, len(boxes))
	taken := make([]bool, len(t.tracks))
	for _, p := range pairs {
		if ids[p.box] == 0 && !taken[p.track] {
			taken[p.track] = true
			t.tracks[p.track].box, t.tracks[p.track].seen = boxes[p.box], frame
			ids[p.box] = t.tracks[p.track].id
		}
	}
	for j, b := range boxes {
		if ids[j] == 0 {
			t.last++
			ids[j] = t.last
			t.tracks = append(t.tracks, track{t.last, b, frame})
		}
	}
	return ids
}
