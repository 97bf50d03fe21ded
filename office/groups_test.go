// SPDX-License-Identifier: Apache-2.0

package office_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/office"
)

var (
	plane = face.Space{ID: "plane", Dim: 2, Scale: 1, ImpostorRadius: 1} // Near is .75, Apart .25
)

var faceNumbers uint64

// faceAt returns a face at a point, seen so many minutes after noon.
func faceAt(minute int, x, y float32) office.Face {
	faceNumbers++
	return office.Face{ID: faceNumbers, Vector: []float32{x, y}, At: noon.Add(time.Duration(minute) * time.Minute)}
}

// begin makes a group of faces near a point.
func beginGroup(g *office.Groups, minute int, x, y float32) uint64 {
	faceNumbers++
	id := faceNumbers
	g.Begin(id, noon.Add(time.Duration(minute)*time.Minute))
	for i := range 4 {
		g.Add(g.Get(id), faceAt(minute, x+.01*float32(i), y))
	}
	return id
}

func TestFind(t *testing.T) {
	g := office.NewGroups(plane, time.Hour)
	a, b := beginGroup(g, 0, 0, 0), beginGroup(g, 0, 3, 0)
	for _, c := range []struct {
		x    []float32
		want uint64
	}{{[]float32{.5}, a}, {[]float32{2.5}, b}, {[]float32{1.5}, 0}, {[]float32{.5, .4, 2.9}, a},
		{[]float32{.5, 2.9}, 0}, {nil, 0}} {
		var faces []office.Face
		for _, x := range c.x {
			faces = append(faces, faceAt(1, x, 0))
		}
		if got := g.Find(faces); got != c.want {
			t.Errorf("%v: group %d, want %d", c.x, got, c.want)
		}
	}
	blind := office.NewGroups(face.Space{ID: "blind", Dim: 2, Scale: 1}, time.Hour)
	beginGroup(blind, 0, 0, 0)
	if got := blind.Find([]office.Face{faceAt(0, 0, 0)}); got != 0 {
		t.Errorf("a space that tells nobody apart: group %d", got)
	}
}

// For any number of strangers the file and the memory stay below their limits.
func TestGroupBounds(t *testing.T) {
	g := office.NewGroups(plane, time.Hour)
	rnd := rand.New(rand.NewPCG(1, 2))
	poster := beginGroup(g, 0, -9, -9)
	g.SetIgnored(poster)
	for i := range 200 {
		id := beginGroup(g, i, float32(9*i), 0)
		for range 60 {
			g.Add(g.Get(id), faceAt(i, float32(9*i)+2*rnd.Float32(), 2*rnd.Float32()))
		}
		p := g.Get(id)
		if len(p.Faces) > 24 {
			t.Fatalf("%d faces", len(p.Faces))
		}
		for k, f := range p.Faces[:4] { // the first four stay
			if f.Vector[0] != float32(9*i)+.01*float32(k) {
				t.Fatalf("face %d is at %g", k, f.Vector[0])
			}
		}
	}
	all := g.All()
	if len(all) != 51 || all[0].Last.Before(all[1].Last) {
		t.Fatalf("%d groups", len(all))
	}
	if g.Get(poster) == nil {
		t.Error("a poster is no longer ignored")
	}
	for i := range 60 {
		id := beginGroup(g, 300+i, -9, float32(9*i))
		g.SetIgnored(id)
	}
	ignored := 0
	for _, p := range g.All() {
		if g.Ignored(p.ID) {
			ignored++
		}
	}
	if ignored != 50 {
		t.Errorf("%d are ignored", ignored)
	}
}

// A full album keeps the faces that differ from each other.
func TestAlbum(t *testing.T) {
	var a office.Album
	for i := range 4 {
		a.Add(plane, faceAt(0, 0, float32(i)/100), 6, .25)
	}
	if added, _ := a.Add(plane, faceAt(0, .1, 0), 6, .25); added {
		t.Error("a face that says nothing new was kept")
	}
	for _, x := range []float32{1, 2, 2.3} {
		a.Add(plane, faceAt(0, x, 0), 6, .25)
	}
	if n := len(a.Faces); n != 6 || a.Faces[4].Vector[0] != 1 || a.Faces[5].Vector[0] != 2 {
		t.Errorf("%+v", a.Faces)
	}
	first, rest := a.First()
	if len(first) != 4 || len(rest) != 2 {
		t.Errorf("%d and %d", len(first), len(rest))
	}
}

func TestRetention(t *testing.T) {
	g := office.NewGroups(plane, time.Hour)
	a, b := beginGroup(g, 0, 0, 0), beginGroup(g, 0, 9, 9)
	g.SetIgnored(b)
	g.Expire(noon.Add(time.Hour))
	if g.Get(a) == nil {
		t.Error("a group went too early")
	}
	g.Expire(noon.Add(time.Hour + time.Second))
	if all := g.All(); len(all) != 1 || all[0].ID != b {
		t.Errorf("%+v", all)
	}
}
