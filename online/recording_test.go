// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package online_test

import (
	"context"
	"fmt"
	"image"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/models"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/pipeline"
	"github.com/faceauth/faceauth/preprocess"
	"github.com/faceauth/faceauth/sighting"
)

// reader returns a function that reads the faces of a person from every nth picture of a recording, and the space of
// their vectors. It skips the test if there are no recordings.
func reader(tb testing.TB) (face.Space, func(name string, n int) []face.Sample) {
	tb.Helper()
	dir := fixture.Models(tb)
	fixture.Recordings(tb, "faces")
	d, err := facedet.NewNetwork(models.Default(models.Detector), models.Default(models.Landmarks), dir)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { d.Close() })
	e, err := preprocess.NewEmbedding(models.Default(models.Embedding), dir)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { e.Close() })
	return e.Space(), func(name string, n int) []face.Sample {
		src, err := facedet.Open(context.Background(), fixture.Sparse(tb, name, n), facedet.Options{})
		if err != nil {
			tb.Fatal(err)
		}
		defer src.Close()
		return fixture.Faces(tb, pipeline.New(src, d, e, pipeline.Options{}))
	}
}

// The same recordings come three times. No pass recognises fewer faces than the enrolled faces do, and at most .01
// fewer than the first pass. Further people have the vectors of the six with other orders of their coordinates.
func TestSystemPassesOnRecordings(t *testing.T) {
	if testing.Short() {
		t.Skip("the recordings take a while")
	}
	const apart = 3
	space, read := reader(t)
	type person struct {
		name  online.Person
		faces [][]float32
	}
	var six []person
	for i := range 6 {
		name := fmt.Sprint("p", i)
		p := person{name: personOf(i)}
		for _, f := range read("faces/vidtimit_rot/"+name, apart) {
			if f.Vector != nil {
				p.faces = append(p.faces, f.Vector)
			}
		}
		six = append(six, p)
	}
	for _, c := range []struct {
		people, k int
		least     float64
	}{{6, 60, .98}, {16, 300, .98}, {16, 45, .9}} {
		var all []person
		for i := range c.people {
			p := person{name: personOf(i)}
			order := rand.New(rand.NewPCG(uint64(i/6), 7)).Perm(space.Dim)
			for _, x := range six[i%6].faces {
				y := make([]float32, len(x))
				for q := range x {
					y[q] = x[order[q]]
				}
				p.faces = append(p.faces, y)
			}
			all = append(all, p)
		}
		l, err := online.New(space, online.Settings{K: c.k})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range all {
			if err := l.LabelAll(p.faces[:4], p.name); err != nil {
				t.Fatal(err)
			}
		}
		alone, first, faces := enrolledAlone(t, l), 0, 0
		for pass := range 3 {
			right, before := 0, 0
			faces = 0
			for _, p := range all {
				w := sighting.NewWatcher(l, sighting.Settings{}, sighting.Rules{})
				for i, x := range p.faces[4:] {
					sample := face.Sample{Box: image.Rect(0, 0, 99, 99), Vector: x}
					seen, err := w.See(time.Duration(i*apart)*40*time.Millisecond, []face.Sample{sample}, nil)
					if err != nil {
						t.Fatal(err)
					}
					want, err := alone.Judge(x)
					if err != nil {
						t.Fatal(err)
					}
					v := seen[0].Verdict
					if v.Person != 0 && v.Person != p.name || want.Person != 0 && v.Person == 0 {
						t.Fatalf("%d people, k = %d, pass %d: %d is %+v, by the enrolled faces alone %+v", c.people,
							c.k, pass+1, p.name, v, want)
					}
					faces++
					if v.Person == p.name {
						right++
					}
					if want.Person == p.name {
						before++
					}
				}
			}
			if pass == 0 {
				first = right
			}
			t.Logf("%d people, k = %d, pass %d: %.3f, by the enrolled faces alone %.3f", c.people, c.k, pass+1,
				float64(right)/float64(faces), float64(before)/float64(faces))
			if share := float64(right) / float64(faces); right < before || share < c.least ||
				share < float64(first)/float64(faces)-.01 && !l.Room().Full {
				t.Errorf("%d people, k = %d, pass %d: %.3f", c.people, c.k, pass+1, share)
			}
		}
	}
}
