// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package faceauth_test

import (
	"context"
	"errors"
	"image"
	"image/draw"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/faceauth/faceauth"
	"github.com/faceauth/faceauth/internal/demo"
	"github.com/faceauth/faceauth/internal/demo/film"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/models"
)

// still is a photograph of the demo: alice is s2, bob is s3, s1 is nobody.
func still(t testing.TB, name string) image.Image {
	t.Helper()
	stills, err := demo.Find()
	if err != nil {
		t.Skip(err)
	}
	b := fixture.Must(os.ReadFile(filepath.Join(stills, name)))(t)
	return fixture.Must(faceauth.Decode(b))(t)
}

// A recogniser keeps the people whom it was shown, knows them in a photograph and in a recording,
// and no stranger.
func TestSystemSeesRecogniser(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	if _, err := faceauth.New(faceauth.Options{Models: dir}); !errors.Is(err, models.ErrMissing) {
		t.Fatalf("without networks: %v", err)
	}
	alice, bob, nobody := still(t, "s2/1.pgm"), still(t, "s3/1.pgm"), still(t, "s1/1.pgm")
	stills := fixture.Must(demo.Find())(t)
	script := fixture.Must(film.Write(ctx, stills, dir))(t)
	o := faceauth.Options{Models: fixture.Models(t), Gallery: filepath.Join(dir, "gallery"),
		Strangers: 1e-4}
	r := fixture.Must(faceauth.New(o))(t)

	// The same again changes nothing, and a picture of two is refused, with the reason.
	both := image.NewRGBA(image.Rect(0, 0, 200, 112))
	draw.Draw(both, alice.Bounds(), alice, image.Point{}, draw.Src)
	draw.Draw(both, bob.Bounds().Add(image.Pt(100, 0)), bob, image.Point{}, draw.Src)
	e, err := r.EnrollImage(ctx, "alice", both)
	if want := "several faces"; !errors.Is(err, faceauth.ErrNoFace) ||
		e.Sources[0].Reason != want {
		t.Errorf("two people: %+v, %v", e, err)
	}
	e, err = r.EnrollImage(ctx, "alice", both, alice, alice)
	if err != nil || e.Faces != 1 || e.Sources[0].Reason == "" || e.Sources[1].Faces != 1 ||
		e.Sources[2].Known != 1 {
		t.Errorf("one of three pictures: %+v, %v", e, err)
	}
	for i, want := range []int{4, 0} {
		e, err := r.Enroll(ctx, "bob", script.Enrolment[1].Path)
		if err != nil || e.Faces != want || e.Sources[0].Known != 4-want {
			t.Errorf("enrolment %d: %+v, %v", i, e, err)
		}
	}
	if _, err := r.Enroll(ctx, "nobody",
		filepath.Join(dir, "missing.jpg")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing picture: %v", err)
	}
	fixture.Check(t, r.Close())

	r = fixture.Must(faceauth.New(o))(t) // the people are still there
	defer r.Close()
	for _, c := range []struct {
		picture image.Image
		name    string
	}{{alice, "alice"}, {bob, "bob"}, {nobody, ""}} {
		faces, err := r.WhoImage(ctx, c.picture)
		if err != nil || len(faces) != 1 {
			t.Fatalf("%q: %+v, %v", c.name, faces, err)
		}
		f := faces[0]
		if f.Name != c.name || f.Confirmed || f.Box.Empty() || f.Nearest == "" ||
			f.Rarity == "" || len(f.Picture) == 0 || len(f.Vector) == 0 ||
			(f.Name == "") != (f.Reason != "") {
			t.Errorf("%q: %+v", c.name, f)
		}
		own := fixture.Must(r.Faces(ctx, c.picture))(t)[0]
		like, err := r.Compare(f, own)
		if err != nil || like.Distance > 1e-3 || like.Rate > 1e-6 || own.Nearest != "" {
			t.Errorf("%q and the same picture: %+v, %v", c.name, like, err)
		}
		if c.name != "" {
			continue
		}
		like, err = r.Compare(f, fixture.Must(r.Faces(ctx, alice))(t)[0])
		if err != nil || like.Distance < f.Distance || like.Rate < 1e-4 {
			t.Errorf("a stranger and alice: %+v, %v", like, err)
		}
	}
	if _, err := r.Compare(faceauth.Face{}, faceauth.Face{}); !errors.Is(err, faceauth.ErrNoFace) {
		t.Errorf("no vectors: %v", err)
	}
	if got := r.People(); !slices.Equal(got, []string{"alice", "bob"}) {
		t.Errorf("people %q", got)
	}
	fixture.Check(t, r.Forget("bob"))
	for _, err := range r.Watch(ctx, filepath.Join(dir, "missing.avi")) {
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a missing recording: %v", err)
		}
	}
}

// Everybody who was told of is told to have left, once. Meanwhile other goroutines ask and enrol.
// A loop that ends early leaves nothing behind.
func TestSystemSeesWatch(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	alice := still(t, "s2/1.pgm")
	script := fixture.Must(film.Write(ctx, fixture.Must(demo.Find())(t), dir))(t)
	r := fixture.Must(faceauth.New(faceauth.Options{Models: fixture.Models(t)}))(t)
	defer r.Close()
	for _, e := range script.Enrolment {
		fixture.Must(r.Enroll(ctx, e.Name, e.Path))(t)
	}
	var others sync.WaitGroup
	for range 2 {
		others.Go(func() {
			for range 20 {
				faces, err := r.WhoImage(ctx, alice)
				if err != nil || len(faces) != 1 || faces[0].Name != "alice" {
					t.Errorf("meanwhile: %+v, %v", faces, err)
				}
			}
			_, err := r.EnrollImage(ctx, "alice", alice)
			fixture.Check(t, err)
		})
	}
	here, confirmed := map[int]string{}, map[string]bool{}
	for f, err := range r.Watch(ctx, script.Recording) {
		fixture.Check(t, err)
		_, there := here[f.Track]
		if f.Left {
			if !there {
				t.Errorf("%q left a second time", f.Name)
			}
			confirmed[f.Name] = confirmed[f.Name] || f.Confirmed
			delete(here, f.Track)
			continue
		}
		here[f.Track] = f.Name
		if len(f.Picture) == 0 {
			t.Errorf("no picture of %q", f.Name)
		}
	}
	others.Wait()
	if len(here) > 0 || !confirmed["alice"] || !confirmed["bob"] || confirmed[""] {
		t.Errorf("still there: %v; left confirmed: %v", here, confirmed)
	}
	before := runtime.NumGoroutine()
	for range r.Watch(ctx, script.Recording) {
		break
	}
	for end := time.Now().Add(time.Minute); runtime.NumGoroutine() > before; {
		if time.Now().After(end) {
			t.Fatalf("%d goroutines, before %d", runtime.NumGoroutine(), before)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
