// SPDX-License-Identifier: Apache-2.0

package gallery_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/online"
)

// space is a small space: faces of a person are at most .3 apart, and people are 1.4 apart.
var space = face.Space{ID: "test", Dim: 8, Scale: 1, Unit: true, Sigma: .2, Gamma: 1e-3, ImpostorRadius: .93,
	GenuineRadius: 1.3}

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// person returns n faces of person i.
func person(i, n int) [][]float32 {
	r := rand.New(rand.NewPCG(uint64(i), 9))
	faces := make([][]float32, n)
	for q := range faces {
		x := make([]float32, space.Dim)
		var sum float64
		for j := range x {
			x[j] = float32(.04 * r.NormFloat64())
			if j == i {
				x[j]++
			}
			sum += float64(x[j]) * float64(x[j])
		}
		for j := range x {
			x[j] /= float32(math.Sqrt(sum))
		}
		faces[q] = x
	}
	return faces
}

func newGallery(t testing.TB, people ...string) *gallery.Gallery {
	t.Helper()
	return newGalleryAt(t, filepath.Join(t.TempDir(), "new", "gallery"), people...)
}

func newGalleryAt(t testing.TB, path string, people ...string) *gallery.Gallery {
	t.Helper()
	g := fixture.Must(gallery.Create(path, space, online.Settings{K: 50}))(t)
	t.Cleanup(func() { g.Close() })
	for i, name := range people {
		fixture.Must(g.Enroll(name, person(i, 4), noon, gallery.Enrolment{}))(t)
	}
	return g
}

func save(t testing.TB, g *gallery.Gallery) string {
	t.Helper()
	fixture.Check(t, g.Save())
	return g.Path()
}

func TestSaveOpen(t *testing.T) {
	g := newGallery(t, "alice", "bob")
	for _, x := range person(0, 30) {
		fixture.Must(g.Learner().Observe(x))(t)
	}
	path := save(t, g)
	for _, p := range []string{path, path + "-wal", path + "-shm"} {
		if info, err := os.Stat(p); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v, %v", p, info.Mode(), err)
		}
	}
	if info, err := os.Stat(filepath.Dir(path)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode of the directory %v, %v", info.Mode(), err)
	}
	back := fixture.Must(gallery.Open(path, space))(t)
	want := []gallery.Person{{Name: "alice", Faces: 4, Enrolled: noon}, {Name: "bob", Faces: 4, Enrolled: noon}}
	for i, p := range back.People() {
		if p.Name != want[i].Name || p.Faces != 4 || !p.Enrolled.Equal(noon) {
			t.Errorf("person %d is %+v", i, p)
		}
	}
	for i, name := range []string{"alice", "bob", ""} {
		a := fixture.Must(g.Learner().Judge(person(i, 9)[8]))(t)
		b, err := back.Learner().Judge(person(i, 9)[8])
		if err != nil || a != b || back.Name(b.Person) != name {
			t.Errorf("person %d is %+v before and %+v after, want %q; %v", i, a, b, name, err)
		}
	}
	if !strings.Contains(fmt.Sprint(back.Learner().Counts()), "30") {
		t.Errorf("counts %+v", back.Learner().Counts())
	}
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	b := fixture.Must(os.ReadFile(path))(t)
	return b
}

func TestAnotherSpace(t *testing.T) {
	path := save(t, newGallery(t, "alice"))
	other := space
	other.ID = "other"
	if _, err := gallery.Open(path, other); !errors.Is(err, gallery.ErrSpace) ||
		!strings.Contains(err.Error(), "it holds test, and this is other") {
		t.Errorf("error %v", err)
	}
}

func TestLink(t *testing.T) {
	path := save(t, newGallery(t, "alice"))
	link := filepath.Join(t.TempDir(), "link")
	fixture.Check(t, os.Symlink(path, link))
	g := fixture.Must(gallery.Open(link, space))(t)
	fixture.Must(g.Enroll("bob", person(1, 4), noon, gallery.Enrolment{}))(t)
	fixture.Check(t, g.Save())
	if back, err := gallery.Open(path, space); err != nil || len(back.People()) != 2 {
		t.Errorf("the file that the link leads to was not saved: %v", err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link is none any more: %v", err)
	}
}

func TestEnrollErrors(t *testing.T) {
	g := newGallery(t, "alice", "bob")
	before, err := g.Learner().MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	mixed := append(person(2, 3), person(3, 1)...)
	bad := person(2, 2)
	bad[1] = bad[1][:5]
	for _, c := range []struct {
		name, person string
		faces        [][]float32
		how          gallery.Enrolment
		err          error
	}{
		{"twice", "alice", person(0, 2), gallery.Enrolment{}, gallery.ErrExists},
		{"no faces", "carol", nil, gallery.Enrolment{}, gallery.ErrNoFaces},
		{"no name", "", person(2, 2), gallery.Enrolment{}, face.ErrName},
		{"two people", "carol", mixed, gallery.Enrolment{}, gallery.ErrMixed},
		{"somebody else", "alice", person(1, 2), gallery.Enrolment{Add: true}, gallery.ErrMismatch},
		{"a short vector", "carol", bad, gallery.Enrolment{}, face.ErrDimension},
	} {
		if _, err := g.Enroll(c.person, c.faces, noon, c.how); !errors.Is(err, c.err) {
			t.Errorf("%s: error %v, want %v", c.name, err, c.err)
		}
		after, err := g.Learner().MarshalBinary()
		if err != nil || !bytes.Equal(before, after) || len(g.People()) != 2 {
			t.Fatalf("%s: the gallery has changed, %v", c.name, err)
		}
	}
}

func TestDefault(t *testing.T) {
	t.Setenv("HOME", "/home/me")
	for xdg, want := range map[string]string{
		"/x": "/x/faceauth/faceauth.db", "relative": "/home/me/.local/share/faceauth/faceauth.db",
		"": "/home/me/.local/share/faceauth/faceauth.db",
	} {
		t.Setenv("XDG_DATA_HOME", xdg)
		if got, err := gallery.Default(); err != nil || got != want {
			t.Errorf("XDG_DATA_HOME=%q: %s, %v", xdg, got, err)
		}
	}
}

// An operation that fails half way leaves the people and their faces unchanged.
func TestAttempt(t *testing.T) {
	g := newGallery(t, "alice")
	before, broken := g.People(), errors.New("broken")
	err := g.Change(func(*gallery.Tx) error {
		if err := g.Forget("alice"); err != nil {
			return err
		}
		if _, err := g.Enroll("bob", person(1, 4), noon.Add(time.Hour), gallery.Enrolment{}); err != nil {
			return err
		}
		return broken
	})
	if !errors.Is(err, broken) || !slices.Equal(g.People(), before) {
		t.Errorf("%v, %v", err, g.People())
	}
}

// An opened gallery uses the present values of its space, and not the values from when it was made.
func TestOpenMeasured(t *testing.T) {
	old := face.Space{ID: "plane", Dim: 2, Scale: 1, Sigma: .2, Gamma: 1e-3, Reach: .6}
	path := filepath.Join(t.TempDir(), "gallery")
	g := fixture.Must(gallery.Create(path, old, online.Settings{}))(t)
	fixture.Must(g.Enroll("alice", [][]float32{{0, 0}}, time.Unix(0, 0), gallery.Enrolment{}))(t)
	now := old
	now.Stills = face.Impostors{People: 100, Pairs: 10000, Distances: [5]float64{1.2, 1.1, 1}}
	for _, c := range []struct {
		space face.Space
		want  float64
	}{{old, .6}, {now, 1}} {
		g := fixture.Must(gallery.Open(path, c.space))(t)
		if r := g.Learner().Radii(); math.Abs(r.Anchor-c.want) > 1e-9 {
			t.Errorf("anchor %g, want %g", r.Anchor, c.want)
		}
	}
}
