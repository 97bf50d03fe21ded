// SPDX-License-Identifier: Apache-2.0

package face_test

import (
	"math"
	"testing"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/fixture"
)

func TestPose(t *testing.T) {
	for _, c := range []struct {
		name string
		l    []face.Point
		want face.Pose
	}{
		{"frontal", fixture.Landmarks(0, .5, .3), face.Pose{Turn: 0, Nod: .5}},
		{"nose under the eye at the right", fixture.Landmarks(1, .5, .3),
			face.Pose{Turn: 1, Nod: .5}},
		{"to the left", fixture.Landmarks(-.5, .5, .3), face.Pose{Turn: -.5, Nod: .5}},
		{"chin up", fixture.Landmarks(0, .2, .3), face.Pose{Turn: 0, Nod: .2}},
		{"far off", fixture.Landmarks(45, 22.5, .3), face.Pose{Turn: 2, Nod: 2}},
	} {
		p, ok := face.PoseOf(c.l)
		if !ok || math.Abs(p.Turn-c.want.Turn)+math.Abs(p.Nod-c.want.Nod) > 1e-5 {
			t.Errorf("%s: %+v, %t; want %+v", c.name, p, ok, c.want)
		}
		// The same face on a flat picture that is turned in the plane, smaller, and foreshortened
		// to six tenths.
		for i, q := range c.l {
			x, y := .5*.6*float64(q.X), .5*float64(q.Y)
			sin, cos := math.Sincos(.3)
			c.l[i] = face.Point{X: float32(x*cos - y*sin), Y: float32(x*sin + y*cos)}
		}
		flat, _ := face.PoseOf(c.l)
		if math.Abs(flat.Turn-p.Turn)+math.Abs(flat.Nod-p.Nod) > 1e-4 {
			t.Errorf("%s: %+v, and on a flat picture %+v", c.name, p, flat)
		}
		if math.Abs(flat.Width-.6*p.Width) > 1e-4 || math.Abs(p.Width-1) > 1e-5 {
			t.Errorf("%s: width %g, and on a flat picture %g", c.name, p.Width, flat.Width)
		}
	}
	for name, l := range map[string][]face.Point{"none": nil, "too few": make([]face.Point, 5),
		"in one place": make([]face.Point, 68)} {
		if p, ok := face.PoseOf(l); ok {
			t.Errorf("landmarks %s: got the pose %+v, want none", name, p)
		}
	}
	nan := fixture.Landmarks(0, .5, .3)
	nan[30].X = float32(math.NaN())
	if p, ok := face.PoseOf(nan); ok || math.IsNaN(p.Turn+p.Nod) {
		t.Errorf("a landmark that is not a number: got the pose %+v", p)
	}
}
