// SPDX-License-Identifier: Apache-2.0

package pipeline_test

import (
	"image"
	"math"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/sighting"
)

// Two people walk past each other, and one is hidden behind the other for a while. The test takes every pair of
// vidtimit_rot, and moves their faces to the places that they would have. By place alone their tracks are exchanged; by
// place and looks they are not.
func TestCrossing(t *testing.T) {
	if testing.Short() {
		t.Skip("the recordings take a while")
	}
	d, e := network(t)
	var people [][]face.Sample
	for _, p := range vidtimit(t, d, e) {
		var faces []face.Sample
		for i, f := range p.frames {
			if i%2 == 0 && len(f.Samples) == 1 {
				faces = append(faces, f.Samples[0])
			}
		}
		people = append(people, faces)
	}
	far := face.Space{ID: "place alone", Dim: e.Space().Dim, Scale: 1}
	switches := map[string]int{}
	tracks := map[string]int{}
	pairs := 0
	for i, a := range people {
		for _, b := range people[:i] {
			pairs++
			for name, space := range map[string]face.Space{"place": far, "place and looks": e.Space()} {
				tr := sighting.NewTracker(space, sighting.Settings{})
				last := map[int]int{} // the last person of each track
				n := min(len(a), len(b))
				for k := range n {
					x := 600 * k / n
					faces := []face.Sample{a[k], b[k]}
					faces[0].Box, faces[1].Box = image.Rect(x, 0, x+120, 150), image.Rect(600-x, 0, 720-x, 150)
					shown := []int{0, 1}
					if math.Abs(float64(2*x-600)) < 60 { // b is behind a
						faces, shown = faces[:1], shown[:1]
					}
					for j, id := range tr.Update(time.Duration(k)*80*time.Millisecond, faces) {
						if who, seen := last[id]; seen && who != shown[j] {
							switches[name]++
						}
						last[id] = shown[j]
					}
				}
				tracks[name] += len(last)
			}
		}
	}
	t.Logf("%d pairs: %d switches in %d tracks by place alone, %d in %d by place and looks", pairs, switches["place"],
		tracks["place"], switches["place and looks"], tracks["place and looks"])
	if switches["place and looks"] > 0 || switches["place"] < pairs/2 {
		t.Errorf("switches: %v", switches)
	}
}
