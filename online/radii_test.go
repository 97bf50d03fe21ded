// SPDX-License-Identifier: Apache-2.0

package online_test

import (
	"math"
	"testing"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/fixture"
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
	space.Streams = face.Impostors{People: 10, Pairs: 1e4, Distances: [5]float64{1.1, 1, .9, .8, .7}}
	if l, err = online.New(space, online.Settings{}); err != nil {
		t.Fatal(err)
	}
	for people := 1; people <= 100; people++ {
		fixture.Check(t, l.Label([]float32{float32(10 * people), 0}, online.Person(people)))
		tens := math.Log10(float64(people))
		want := online.Radii{Anchor: 1 - .1*tens, Enrolled: 1.1 - .1*tens, Learned: .9 - .1*tens,
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
	fixture.Check(t, l.Reject([]float32{0, 5}, 7))
	rejected := l.Radii()
	for _, label := range l.Labels() {
		if label.Negative {
			if _, err := l.Remove(label.ID); err != nil {
				t.Fatal(err)
			}
		}
	}
	fixture.Check(t, l.Label([]float32{0, 50}, 1000))
	if r := l.Radii(); r.Anchor != rejected.Anchor || !(r.Learned < rejected.Learned) {
		t.Errorf("one more person: %+v, and before %+v", r, rejected)
	}
	// When a person is removed, the distances grow again.
	before := l.Radii()
	fixture.Check(t, l.Forget(7))
	if l.Radii().Anchor <= before.Anchor {
		t.Errorf("%+v, and before %+v", l.Radii(), before)
	}
}
