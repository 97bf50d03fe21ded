// SPDX-License-Identifier: Apache-2.0

package online_test

import (
	"errors"
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
	fixture.Check(t, err)
	if r := l.Radii(); r.Anchor != .8 || r.Enrolled != .8 || r.Learned != .8 || r.Learn != .8 ||
		r.Link != .8 {
		t.Errorf("nothing was measured: %+v", r)
	}
	space.Stills = face.Impostors{People: 10, Pairs: 1e7,
		Distances: [5]float64{1.2, 1.1, 1, .9, .8}}
	space.Streams = face.Impostors{People: 10, Pairs: 1e4,
		Distances: [5]float64{1.1, 1, .9, .8, .7}}
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
			got.Anchor - want.Anchor, got.Enrolled - want.Enrolled, got.Learned - want.Learned,
			got.Learn - want.Learn,
			got.Link - want.Link,
		} {
			if math.Abs(d) > 1e-9 {
				t.Fatalf("%d people: %+v, want %+v", people, got, want)
			}
		}
	}
	// A rejected face names nobody, and is no chance for a stranger.
	before := l.Radii()
	for i := range 100 {
		fixture.Check(t, l.Reject([]float32{float32(i), 5}, 7))
	}
	if r := l.Radii(); r != before {
		t.Errorf("after 100 denials: %+v, and before %+v", r, before)
	}
	// If a new person takes the place of another, the numbers of labels do not change.
	fixture.Check(t, l.Forget(8))
	fixture.Check(t, l.Label([]float32{0, 50}, 1000))
	if r := l.Radii(); r != before {
		t.Errorf("another person: %+v, and before %+v", r, before)
	}
	// When a person is removed, the distances grow again.
	fixture.Check(t, l.Forget(7))
	if l.Radii().Anchor <= before.Anchor {
		t.Errorf("%+v, and before %+v", l.Radii(), before)
	}
}

// decades has distances that fall by .1 for each tenth of the false match rate.
var decades = face.Impostors{People: 10, Pairs: 1e7, Distances: [5]float64{1.2, 1.1, 1, .9, .8}}

// looksOf returns the number of looks from which the radii follow.
func looksOf(l *online.Learner) float64 { return math.Pow(10, (1.1-l.Radii().Enrolled)/.1) }

// The radii count looks and not labels: faces of a person that are near each other are one chance
// for a stranger.
func TestLooks(t *testing.T) {
	space := plane
	space.Stills = decades
	l := fixture.Must(online.New(space, online.Settings{}))(t)
	check := func(what string, want float64) {
		t.Helper()
		if n := looksOf(l); math.Abs(n-want) > 1e-6 {
			t.Errorf("%s: %.2f looks, want %.0f", what, n, want)
		}
	}
	for i := range 4 { // consecutive frames
		fixture.Check(t, l.Label([]float32{.01 * float32(i), 0}, alice))
	}
	check("four frames", 1)
	fixture.Check(t, l.Label([]float32{0, .47}, alice)) // .43 of 1.1
	check("no other look yet", 1)
	fixture.Check(t, l.Label([]float32{0, .49}, alice))
	check("another look", 2)
	fixture.Check(t, l.Label([]float32{0, .9}, alice))
	check("another look than the second is none", 2)
	fixture.Check(t, l.Label([]float32{.01, 0}, bob))
	check("somebody else", 3)
	labels := l.Labels()
	if n := l.Retract(labels[5].ID); n != 0 {
		t.Errorf("%d learned faces", n)
	}
	check("without the second, the last is a look", 3)
	fixture.Must(l.Remove(labels[6].ID))(t)
	check("without both", 2)
	var back online.Learner
	fixture.Check(t, back.UnmarshalBinary(snapshot(t, l)))
	if looksOf(&back) != looksOf(l) {
		t.Errorf("restored: %.2f looks", looksOf(&back))
	}
	for i := range space.Stills.Distances {
		space.Stills.Distances[i] *= .01
	}
	fixture.Check(t, l.SetMeasured(space))
	if r := l.Radii(); math.Abs(r.Enrolled-.01*(1.1-.1*math.Log10(6))) > 1e-9 {
		t.Errorf("in a narrow space all six labels are looks: %+v", r)
	}
}

// The rate that a user asks for changes how far somebody is recognised. A larger one confirms and
// teaches nothing more.
func TestStrangers(t *testing.T) {
	space := plane
	space.Stills = decades
	for _, c := range []struct{ rate, anchor, enrolled, learned float64 }{
		{0, 1, 1.1, 1}, {1e-3, 1, 1.1, 1}, {1e-2, 1, 1.2, 1}, {1e-4, 1, 1, .9}, {1e-5, .9, .9, .8},
	} {
		l := fixture.Must(online.New(space, online.Settings{Strangers: c.rate}))(t)
		fixture.Check(t, l.Label([]float32{0, 0}, alice))
		r := l.Radii()
		if math.Abs(r.Anchor-c.anchor)+math.Abs(r.Enrolled-c.enrolled)+
			math.Abs(r.Learned-c.learned) > 1e-9 {
			t.Errorf("at a rate of %g: %+v", c.rate, r)
		}
		if v := fixture.Must(l.Judge([]float32{1.15,
			0}))(t); (v.Person == alice) != (c.rate == 1e-2) {
			t.Errorf("at a rate of %g, a face at 1.15: %+v", c.rate, v)
		}
	}
	space.Stills.Missed = [5]float64{.01, .02, .04, .08, .16}
	l := fixture.Must(online.New(space, online.Settings{}))(t)
	for p := range 10 {
		fixture.Check(t, l.Label([]float32{float32(10 * p), 0}, personOf(p)))
	}
	for _, bad := range []float64{-1, .2, math.NaN()} {
		if _, err := online.New(space, online.Settings{Strangers: bad}); !errors.Is(err,
			online.ErrSettings) {
			t.Errorf("strangers %g: %v", bad, err)
		}
	}
}

// With other measurements the length of a link follows, unless somebody has chosen it.
func TestLinkIsMeasured(t *testing.T) {
	wide, narrow := plane, plane
	wide.Stills, narrow.Stills = decades, decades
	narrow.Stills.Distances = [5]float64{1, .9, .8, .7, .6}
	for chosen, want := range map[float64]float64{0: 1, 1.15: 1.15} {
		l := fixture.Must(online.New(wide, online.Settings{Link: chosen}))(t)
		fixture.Check(t, l.Label([]float32{0, 0}, alice))
		fixture.Check(t, l.SetMeasured(narrow))
		if got := l.Settings().Link; got != want || l.Radii().Link != want ||
			l.Graph().Config().Link != want {
			t.Errorf("link %g: %g, %+v", chosen, got, l.Radii())
		}
		same := fixture.Must(online.New(narrow, l.Settings()))(t)
		if chosen == 0 && same.Settings() != fixture.Must(online.New(narrow,
			online.Settings{}))(t).Settings() {
			t.Errorf("%+v", l.Settings())
		}
	}
}
