// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"image"
	"maps"
	"slices"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/facedet"
)

// again is the height, in heights of a face, of the part of a picture in which it must be found
// again. lab/NOTES.md says on which pictures it was chosen.
const again = 5

// invented reports whether the detector has found a face where there is none. A face that is hard
// to recognise, on a track of which none was clear or found twice, must be found again in a part of
// the picture around it. Without a vector nobody becomes a stranger, and a login asks for clear
// faces: there it is not asked.
func (p *Pipeline) invented(img exposed, s face.Sample) (bool, error) {
	d, ok := p.detector.(steps)
	if !ok || !p.brightens() || s.Vector == nil || p.sure[s.Track] {
		return false, nil
	}
	if s.Quality.Norm < p.extractor.Space().ClearNorm {
		found, err := d.Boxes(img.Picture, wider(s.Box).Intersect(img.Bounds()))
		if err != nil || !slices.ContainsFunc(found, func(f facedet.Face) bool {
			return face.Overlap(f.Box, s.Box) > joined
		}) {
			return true, err
		}
	}
	live := p.tracker.Live()
	maps.DeleteFunc(p.sure, func(track int, _ bool) bool { return !slices.Contains(live, track) })
	p.sure[s.Track] = true
	return false, nil
}

// wider returns the part of a picture, of shape 4:3, with a face in its middle.
func wider(box image.Rectangle) image.Rectangle {
	high := again * max(box.Dx(), box.Dy())
	size := image.Pt(high*4/3, high)
	at := box.Min.Add(box.Max).Sub(size).Div(2)
	return image.Rectangle{at, at.Add(size)}
}
