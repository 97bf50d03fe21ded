// SPDX-License-Identifier: Apache-2.0

package online_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/online"
)

// The distances follow from rates, and shrink with the number of enrolled faces and people.
func TestRadii(t *testing.T) {
	space := plane
	space.Reach = .8
	l, err := online.New(space, online.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	if r := l.Radii(); r.Anchor != .8 || r.Enrolled != .8 || r.Learned != .8 || r.Learn != .8 || r.Link != .8 {
		t.Errorf("nothing was measured: %+v", r)
	}
	space.Stills = face.Impostors{People: 10, Pairs: 1e7, Distances: [5]float64{1.2, 1.1, 1, .9, .8}}
	space.Streams = face.Impostors{People: 10, Pairs: 1e4, Distances: [5]float64{1, .9, .8}}
	if l, err = online.New(space, online.Settings{NameRate: 1e-2, AnchorRate: 1e-3}); err != nil {
		t.Fatal(err)
	}
	for people := 1; people <= 100; people++ {
		if err := l.Label([]float32{float32(10 * people), 0}, fmt.Sprint(people)); err != nil {
			t.Fatal(err)
		}
		tens := math.Log10(float64(people))
		want := online.Radii{Anchor: 1.1 - .1*tens, Enrolled: 1.2 - .1*tens, Learned: .9 - .1*tens,
			Learn: min(.8, .9-.1*tens), Link: 1.2}
		got := l.Radii()
		for _, d := range []float64{
			got.Anchor - want.Anchor, got.Enrolled - want.Enrolled, got.Learned - want.Learned, got.Learn - want.Learn,
			got.Link - want.Link,
		} {
			if math.Abs(d) > 1e-9 {
				t.Fatalf("%d people: %+v, want %+v", people, got, want)
			}
		}
	}
	// A rejected face is of no known person. If a new person takes its place, the numbers of labels and classes do not
	// change.
	if err := l.Reject([]float32{0, 5}, "7"); err != nil {
		t.Fatal(err)
	}
	rejected := l.Radii()
	for _, label := range l.Labels() {
		if label.Negative {
			if _, err := l.Unlabel(label.ID); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := l.Label([]float32{0, 50}, "another"); err != nil {
		t.Fatal(err)
	}
	if r := l.Radii(); r.Anchor != rejected.Anchor || !(r.Learned < rejected.Learned) {
		t.Errorf("one more person: %+v, and before %+v", r, rejected)
	}
	// When a person is removed, the distances grow again.
	before := l.Radii()
	if err := l.Forget("7"); err != nil {
		t.Fatal(err)
	}
	if l.Radii().Anchor <= before.Anchor {
		t.Errorf("%+v, and before %+v", l.Radii(), before)
	}
}

// A face is recognised at a larger distance than it is learned, and the verdict names the near enrolled face.
func TestRecognisedFurther(t *testing.T) {
	space := plane
	space.Reach = .5
	space.Stills = face.Impostors{People: 10, Pairs: 1e7, Distances: [5]float64{1.2, 1.1, 1, .9, .8}}
	l, err := online.New(space, online.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Label([]float32{0, 0}, "alice"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		x                        float32
		named, learned, anchored bool
	}{{1.3, false, false, false}, {1.05, true, false, false}, {.4, true, true, true}, {1.3, true, false, false}} {
		v, err := l.Observe([]float32{c.x, 0})
		if err != nil {
			t.Fatal(err)
		}
		if (v.Label == "alice") != c.named || v.Learned != c.learned || v.Anchored != c.anchored || c.named &&
			math.Abs(v.Distance-float64(c.x)) > 1e-6 {
			t.Errorf("at %g: %+v; %+v", c.x, v, l.Radii())
		}
	}
	// A face in a row is joined over a larger distance, and passes its name on.
	v, err := l.ObserveFrame([]online.Observation{{Vector: []float32{.4, 0}}})
	if err != nil || v[0].Stored == 0 {
		t.Fatal(v, err)
	}
	far := online.Observation{Vector: []float32{1.5, 0}, Follows: []int64{v[0].Stored}}
	if v, err = l.ObserveFrame([]online.Observation{far}); err != nil || v[0].Label != "alice" || !v[0].Learned ||
		v[0].Anchored {
		t.Errorf("%+v, %v", v, err)
	}
	// The face is learned as nobody else.
	far = online.Observation{Vector: []float32{0, 1.1}, Follows: []int64{v[0].Stored}, As: "bob"}
	if v, err = l.ObserveFrame([]online.Observation{far}); err != nil || v[0].Learned {
		t.Errorf("%+v, %v", v, err)
	}
}
