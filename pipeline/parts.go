// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"cmp"
	"image"
	"slices"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/internal/still"
	"github.com/faceauth/faceauth/models"
)

// wholeEvery is the number of looks at a further part of which one is at the whole of a large
// frame.
const wholeEvery = 16

// parts returns the parts of a frame in which faces are looked for, each in one run of the
// detector: those with known faces, and at most one further part. That is the frame, unless it is
// too large for a face of face.LeastSide to be found in it, and has several windows: those of
// facedet.Windows. In a large frame every look is at the known faces around which something moved,
// or at all of them if nothing moved. Every look without such faces, every second one if something
// else moved, and every fourth one otherwise is at one further part: by turns those where something
// moved, and windows within them.
func (s *spare) parts(windows []image.Rectangle, size image.Point,
	moved bool) (known, further []image.Rectangle) {
	d, frame := s.steps.Looks(), image.Rectangle{Max: size}
	if len(windows) == 1 {
		return windows, nil
	}
	s.looks++
	var groups []group
	for _, f := range s.found {
		if around := still.Around(f.Box); !moved || s.scene.MovedIn(around, size) {
			groups = add(d, groups, group{around.Intersect(frame), f.Box.Dy()}, size)
		}
	}
	for _, g := range groups {
		known = append(known, fit(g.box, size))
	}
	if len(known) > 0 && s.looks%2 == 0 {
		return known, nil
	}
	coarse, fine := windows[:1], windows[1:]
	if moved && s.further%wholeEvery != 0 {
		coarse, fine = s.moving(size, known)
	}
	if len(known) > 0 && len(coarse) == 0 && s.looks%4 != 1 { // only behind and beside known faces
		return known, nil
	}
	s.further++
	switch {
	case len(coarse) == 0 && len(fine) == 0: // everything that moved is looked at already
		return known, nil
	case len(fine) == 0 || len(coarse) > 0 && s.further%2 == 1:
		s.coarse++
		return known, coarse[s.coarse%len(coarse) : s.coarse%len(coarse)+1]
	}
	s.fine++
	return known, fine[s.fine%len(fine) : s.fine%len(fine)+1]
}

// moving returns the parts of a frame in which something moved, and the windows in those in which a
// small face would not be found, without those that lie in parts that are looked at anyway.
func (s *spare) moving(size image.Point, parts []image.Rectangle) (coarse, fine []image.Rectangle) {
	var groups []group
	d := s.steps.Looks()
	for _, box := range s.scene.Parts(size) {
		around := box.Inset(-face.LeastSide).Intersect(image.Rectangle{Max: size})
		groups = add(d, groups, group{around, face.LeastSide}, size)
	}
	in := func(w image.Rectangle) bool {
		return slices.ContainsFunc(parts, func(p image.Rectangle) bool {
			return w.In(p) && shown(d, face.LeastSide, p)
		})
	}
	known := func(w image.Rectangle) bool { // the movement of a known face and its body
		return slices.ContainsFunc(s.found, func(f facedet.Face) bool {
			return still.Around(f.Box).Overlaps(w)
		})
	}
	for _, g := range groups {
		windows := facedet.Windows(d, fit(g.box, size))
		switch {
		case in(g.box):
		case len(parts) > 0 && known(g.box):
			fine = append(fine, windows[0])
		default:
			coarse = append(coarse, windows[0])
		}
		for _, w := range windows[1:] {
			if s.scene.MovedIn(w, size) && !in(w) {
				fine = append(fine, w)
			}
		}
	}
	return coarse, fine
}

// group is a box in which faces are looked for together, and the height of the smallest of them.
type group struct {
	box   image.Rectangle
	least int
}

// add adds a group to another one, if the faces of both are large enough to be found in one part,
// or else to all.
func add(d models.Description, groups []group, g group, size image.Point) []group {
	for i, o := range groups {
		both := group{o.box.Union(g.box), min(o.least, g.least)}
		if shown(d, both.least, fit(both.box, size)) {
			groups[i] = both
			return groups
		}
	}
	return append(groups, g)
}

// join adds to what was found the known faces at which nobody looked: those outside the parts, and
// those too small to be found in the part in which they are. Without parts these are all that were
// not found.
func (s *spare) join(found []facedet.Face, parts []image.Rectangle,
	size image.Point) []facedet.Face {
	d := s.steps.Looks()
	if len(parts) == 1 && parts[0].Size() == size && len(facedet.Windows(d, parts[0])) == 1 {
		return found
	}
	for _, f := range s.found {
		looked := slices.ContainsFunc(parts, func(p image.Rectangle) bool {
			return f.Box.In(p) && shown(d, f.Box.Dy(), p)
		})
		again := slices.ContainsFunc(found, func(g facedet.Face) bool {
			return face.Overlap(f.Box, g.Box) > joined
		})
		if !looked && !again {
			found = append(found, f)
		}
	}
	slices.SortStableFunc(found, func(a, b facedet.Face) int {
		return cmp.Compare(b.Box.Dx()*b.Box.Dy(), a.Box.Dx()*a.Box.Dy())
	})
	return found
}

// joined is the least overlap of the box of a face with its box in an earlier look.
const joined = .3

// near is the least part of a picture that is looked at for a box.
var near = image.Pt(640, 480)

// fit returns the part of a picture of this size that is looked at for a box: at least 640x480
// pixels, of shape 4:3 where the picture lets it.
func fit(box image.Rectangle, size image.Point) image.Rectangle {
	w := max(near.X, box.Dx(), (box.Dy()*near.X+near.Y-1)/near.Y)
	w, h := min(w, size.X), min(w*near.Y/near.X, size.Y)
	at := box.Min.Add(box.Max).Sub(image.Pt(w, h)).Div(2)
	at = image.Pt(min(max(at.X, 0), size.X-w), min(max(at.Y, 0), size.Y-h))
	return image.Rectangle{at, at.Add(image.Pt(w, h))}
}

// shown reports whether a face of this height is large enough to be found in a part of a picture,
// or as large as it can be.
func shown(d models.Description, height int, part image.Rectangle) bool {
	fed := d.Feed(part.Size(), d.Input.Width).X
	return height*fed >= d.LeastFound()*part.Dx() || part.Dx() <= max(fed, near.X)
}
