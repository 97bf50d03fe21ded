// SPDX-License-Identifier: Apache-2.0

package sighting_test

import (
	"image"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/sighting"
)

var plane = face.Space{ID: "plane", Dim: 2, Scale: 1, ImpostorRadius: 1}

// at returns a face of a turned head at x, 100 wide, that looks like a point of the plane.
func at(x int, looks ...float32) face.Sample {
	return face.Sample{Box: image.Rect(x, 0, x+100, 100), Vector: looks,
		Quality: face.Quality{Turn: 1}}
}

const frame = 40 * time.Millisecond

func add(i *sighting.Identities, id, n int, person online.Person) {
	for range n {
		i.Add(id, 0, sighting.Look{}, online.Verdict{Person: person})
	}
}

func TestWho(t *testing.T) {
	i := sighting.NewIdentities(face.Space{})
	names := func(tracks ...int) []online.Person {
		var all []online.Person
		for _, b := range i.Who(0, tracks) {
			all = append(all, b.Person)
			if b.Share < 0 || b.Share > 1+1e-9 || math.IsNaN(b.Share) {
				t.Errorf("share %g", b.Share)
			}
		}
		return all
	}
	check := func(what string, got []online.Person, want ...online.Person) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%s: %d, want %d", what, got, want)
		}
	}
	check("nothing seen", names(1), 0)
	add(i, 1, 2, alice)
	check("two frames", names(1), 0)
	add(i, 1, 1, alice)
	check("three", names(1), alice)
	add(i, 1, 1, 0)
	check("three of four", names(1), alice)
	add(i, 1, 2, 0)
	check("three of six", names(1), 0)
	add(i, 1, 6, alice)
	add(i, 2, 4, alice)
	check("nobody is two people", names(2, 1), 0, alice)
	check("one of them alone", names(2), alice)
	add(i, 1, 200, bob)
	check("a mistake is outgrown", names(1, 2), bob, alice)
	i.Keep([]int{2})
	check("forgotten", names(1, 2), 0, alice)
}

func TestBoxTracker(t *testing.T) {
	k := sighting.NewBoxTracker()
	at := func(x int) image.Rectangle { return image.Rect(x, 0, x+40, 40) }
	for _, c := range []struct {
		frame int
		boxes []image.Rectangle
		want  []int
	}{
		{0, nil, []int{}},
		{1, []image.Rectangle{at(0), at(100)}, []int{1, 2}},
		// the order of boxes means nothing
		{2, []image.Rectangle{at(105), at(5)}, []int{2, 1}},
		// one person keeps the track, the nearer box
		{3, []image.Rectangle{at(10), at(16)}, []int{1, 3}},
		{4, []image.Rectangle{at(10), at(16), at(105)}, []int{1, 3, 2}}, // gone for a frame
		{14, []image.Rectangle{at(105)}, []int{2}},                      // gone for ten
		{25, []image.Rectangle{at(105)}, []int{4}},                      // and for eleven
	} {
		faces := make([]face.Sample, len(c.boxes))
		for i, box := range c.boxes {
			faces[i].Box = box
		}
		got := k.Update(time.Duration(c.frame), faces)
		if len(got) != len(c.want) {
			t.Fatalf("frame %d: %v, want %v", c.frame, got, c.want)
		}
		for i := range got {
			if got[i] != c.want[i] {
				t.Fatalf("frame %d: tracks %v, want %v", c.frame, got, c.want)
			}
		}
	}
}

// If the source knows who is who, places and distances join and part nobody; a face unlike those
// before causes doubt.
func TestGiven(t *testing.T) {
	k := sighting.StillsTracker(face.Space{Scale: 1, ImpostorRadius: .9,
		// .5 at 1e-7
		Stills: face.Impostors{People: 9, Pairs: 1e4, Distances: [5]float64{1, .9, .8, .7, .6}}})
	at := time.Duration(0)
	update := func(faces ...face.Sample) []int {
		at += time.Second
		return k.Update(at, faces)
	}
	one := func(track, x int, look float32) face.Sample {
		return face.Sample{Track: track, Box: image.Rect(x, 0, x+10, 10),
			Vector: []float32{look, 0}}
	}
	if got := update(one(1, 0, 0)); !slices.Equal(got, []int{1}) {
		t.Errorf("%v", got)
	}
	if got := update(one(2, 0, 0), one(1, 500, .4)); !slices.Equal(got, []int{2, 1}) ||
		k.InDoubt(1) {
		t.Errorf("%v, doubt %t", got, k.InDoubt(1))
	}
	held := face.Sample{Track: 2, Held: true}
	if got := update(held, one(1, 0, 9)); !slices.Equal(got, []int{2, 1}) || !k.InDoubt(1) ||
		k.InDoubt(2) {
		t.Errorf("%v, doubt %t %t", got, k.InDoubt(1), k.InDoubt(2))
	}
	if update(held, one(1, 0, 0)); k.InDoubt(1) {
		t.Error("the doubt does not end")
	}
}

// If the clock of the source stands, or goes back, a track ends after fifty frames, and the clock
// may go on. A coarse clock does not shorten the gap.
func TestClockStands(t *testing.T) {
	stands := func(int) time.Duration { return time.Hour }
	for _, c := range []struct {
		name   string
		clock  func(frame int) time.Duration
		absent int
		want   int
	}{
		{"stands, fifty frames", stands, 49, 1},
		{"stands, one more", stands, 50, 2},
		{"goes back once", func(i int) time.Duration {
			return time.Duration(min(1, 10/(i+1))) * time.Hour
		}, 60, 2},
		{"goes back always", func(i int) time.Duration { return -time.Duration(i) * time.Hour }, 50,
			2},
		{"whole seconds", func(i int) time.Duration { return time.Duration(i/25) * time.Second },
			49, 1},
		{"whole seconds, too late", func(i int) time.Duration {
			return time.Duration(i/25) * time.Second
		}, 75, 2},
		{"stands for long, goes on", func(i int) time.Duration {
			return time.Duration(max(i, 1000)) * frame
		}, 1060, 2},
	} {
		tr := sighting.NewTracker(plane)
		for i := range 10 {
			tr.Update(c.clock(i), []face.Sample{at(0, 0, 0)})
		}
		for i := range c.absent {
			tr.Update(c.clock(10+i), nil)
		}
		if got := tr.Update(c.clock(10+c.absent), []face.Sample{at(0, 0, 0)}); got[0] != c.want {
			t.Errorf("%s: track %d, want %d", c.name, got[0], c.want)
		}
	}
}

// A face continues a track by its place and its vector: each limit, on both sides.
func TestContinues(t *testing.T) {
	space := face.Space{ID: "plane", Dim: 2, Scale: 1, ImpostorRadius: .8, // .6 elsewhere
		// .7 at 1e-7
		Stills: face.Impostors{People: 9, Pairs: 1e7, Distances: [5]float64{1.2, 1.1, 1, .9, .8}}}
	here := func(looks ...float32) []face.Sample {
		var all []face.Sample
		for i, x := range looks {
			all = append(all, at(500*i, x, 0))
		}
		return all
	}
	there := func(x int, look float32) []face.Sample { return []face.Sample{at(x, look, 0)} }
	back := func(n int) [][]face.Sample { // a face like the one before n others
		frames := append([][]face.Sample{here(0)}, slices.Repeat([][]face.Sample{here(.5)}, n)...)
		return append(frames, there(300, -.5))
	}
	poor, source, held := there(0, .5), there(0, 0), there(900, 0)
	poor[0].Reason, source[0].Track = face.Blurred, 7
	held[0].Vector, held[0].Held, held[0].Track = nil, true, 7
	pair := []face.Sample{at(0, 0, 0), at(60, .5, 0)}
	for name, c := range map[string]struct {
		frames [][]face.Sample
		want   []int
	}{
		"in its place":                  {[][]face.Sample{here(0), here(1.05)}, []int{1}},
		"in its place, unlike":          {[][]face.Sample{here(0), here(1.15)}, []int{2}},
		"after a frame without":         {[][]face.Sample{here(0), nil, here(.95)}, []int{1}},
		"after a frame without, unlike": {[][]face.Sample{here(0), nil, here(1.05)}, []int{2}},
		"elsewhere":                     {[][]face.Sample{here(0), there(300, .55)}, []int{1}},
		"elsewhere, unlike":             {[][]face.Sample{here(0), there(300, .65)}, []int{2}},
		"a little further":              {[][]face.Sample{here(0), there(90, .65)}, []int{1}},
		"a little further, unlike":      {[][]face.Sample{here(0), there(90, .75)}, []int{2}},
		"like the fifth before":         {back(4), []int{1}},
		"like the sixth before":         {back(5), []int{2}},
		"like a poor picture":           {[][]face.Sample{here(0), poor, there(300, 1)}, []int{2}},
		"held":                          {[][]face.Sample{source, held}, []int{1}},
		"between two, like one":         {[][]face.Sample{pair, there(30, .4)}, []int{2}},
	} {
		tr := sighting.NewTracker(space)
		var got []int
		for i, faces := range c.frames {
			got = tr.Update(time.Duration(i+1)*frame, faces)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: tracks %v, want %v", name, got, c.want)
		}
	}
	// as far as somebody else is after a frame without, and not before
	for _, missing := range []bool{false, true} {
		tr := sighting.NewTracker(space)
		tr.Update(frame, here(0))
		if missing {
			tr.Update(2*frame, nil)
		}
		if tr.Update(3*frame, here(.8)); tr.InDoubt(1) != missing {
			t.Errorf("missing %t: doubt %t", missing, tr.InDoubt(1))
		}
	}
}
