// SPDX-License-Identifier: Apache-2.0

package sighting_test

import (
	"fmt"
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
	return face.Sample{Box: image.Rect(x, 0, x+100, 100), Vector: looks, Quality: face.Quality{Turn: 1}}
}

const frame = 40 * time.Millisecond

func add(i *sighting.Identities, id, n int, person online.Person) {
	for range n {
		i.Add(id, 0, sighting.Look{}, online.Verdict{Person: person})
	}
}

func TestWho(t *testing.T) {
	i := sighting.NewIdentities(face.Space{}, sighting.Rules{})
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

func ExampleIdentities() {
	tr := sighting.NewTracker(plane, sighting.Settings{})
	who := sighting.NewIdentities(face.Space{}, sighting.Rules{})
	for i, verdict := range []online.Person{alice, 0, alice, alice} {
		ids := tr.Update(time.Duration(i)*frame, []face.Sample{at(10*i, 0, 0)})
		who.Add(ids[0], 0, sighting.Look{}, online.Verdict{Person: verdict})
		fmt.Printf("%d %d\n", ids[0], who.Who(0, ids)[0].Person)
	}
	// Output:
	// 1 0
	// 1 0
	// 1 1
	// 1 1
}

func TestBoxTracker(t *testing.T) {
	k := sighting.NewBoxTracker(1)
	at := func(x int) image.Rectangle { return image.Rect(x, 0, x+40, 40) }
	for _, c := range []struct {
		frame int
		boxes []image.Rectangle
		want  []int
	}{
		{0, nil, []int{}},
		{1, []image.Rectangle{at(0), at(100)}, []int{1, 2}},
		{2, []image.Rectangle{at(105), at(5)}, []int{2, 1}},             // the order of boxes means nothing
		{3, []image.Rectangle{at(10), at(16)}, []int{1, 3}},             // one person keeps the track, the nearer box
		{4, []image.Rectangle{at(10), at(16), at(105)}, []int{1, 3, 2}}, // gone for a frame
		{14, []image.Rectangle{at(105)}, []int{2}},                      // gone for ten
		{25, []image.Rectangle{at(105)}, []int{4}},                      // and for eleven
	} {
		got := k.Update(c.frame, c.boxes)
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

// If the source knows who is who, places and distances join and part nobody; a face unlike those before causes doubt.
func TestGiven(t *testing.T) {
	k := sighting.NewTracker(face.Space{Scale: 1, ImpostorRadius: .9}, sighting.Settings{Given: true, Same: .5})
	at := time.Duration(0)
	update := func(faces ...face.Sample) []int {
		at += time.Second
		return k.Update(at, faces)
	}
	one := func(track, x int, look float32) face.Sample {
		return face.Sample{Track: track, Box: image.Rect(x, 0, x+10, 10), Vector: []float32{look, 0}}
	}
	if got := update(one(1, 0, 0)); !slices.Equal(got, []int{1}) {
		t.Errorf("%v", got)
	}
	if got := update(one(2, 0, 0), one(1, 500, .4)); !slices.Equal(got, []int{2, 1}) || k.InDoubt(1) {
		t.Errorf("%v, doubt %t", got, k.InDoubt(1))
	}
	held := face.Sample{Track: 2, Held: true}
	if got := update(held, one(1, 0, 9)); !slices.Equal(got, []int{2, 1}) || !k.InDoubt(1) || k.InDoubt(2) {
		t.Errorf("%v, doubt %t %t", got, k.InDoubt(1), k.InDoubt(2))
	}
	if update(held, one(1, 0, 0)); k.InDoubt(1) {
		t.Error("the doubt does not end")
	}
}
