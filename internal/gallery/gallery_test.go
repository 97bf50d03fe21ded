// SPDX-License-Identifier: Apache-2.0

package gallery_test

import (
	"bytes"
	"errors"
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
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/gallery"
	"github.com/faceauth/faceauth/online"
)

// space is a small space: faces of a person are at most .3 apart, and people are 1.4 apart.
var space = face.Space{ID: "test", Dim: 8, Scale: 1, Unit: true, Sigma: .2, Gamma: 1e-3,
	ImpostorRadius: .93, GenuineRadius: 1.3}

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

// Only its owner can read a gallery, and who opens it finds the people. What was learned is
// compared by random programs.
func TestSaveOpen(t *testing.T) {
	path := save(t, newGallery(t, "alice", "bob"))
	for _, p := range []string{path, path + "-wal", path + "-shm"} {
		if info, err := os.Stat(p); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v, %v", p, info.Mode(), err)
		}
	}
	if info, err := os.Stat(filepath.Dir(path)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode of the directory %v, %v", info.Mode(), err)
	}
	back := open(t, path)
	want := []gallery.Person{{ID: 1, Name: "alice", Faces: 4, Enrolled: noon},
		{ID: 2, Name: "bob", Faces: 4, Enrolled: noon}}
	if !slices.Equal(back.People(), want) {
		t.Errorf("%+v", back.People())
	}
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	return fixture.Must(os.ReadFile(path))(t)
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
	enrol(t, open(t, link), "bob", 1)
	want(t, open(t, path), "alice 4", "bob 4")
	if info, err := os.Lstat(link); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link is none any more: %v", err)
	}
}

func TestEnrollErrors(t *testing.T) {
	g := newGallery(t, "alice", "bob")
	before, err := g.Learner().MarshalBinary()
	fixture.Check(t, err)
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
		{"a short vector", "carol", bad, gallery.Enrolment{}, face.ErrVector},
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

// An operation that fails half way leaves the people and their faces unchanged.
func TestAttempt(t *testing.T) {
	g := newGallery(t, "alice")
	before, broken := g.People(), errors.New("broken")
	err := g.Change(func() error {
		if err := g.Forget("alice"); err != nil {
			return err
		}
		if _, err := g.Enroll("bob", person(1, 4), noon.Add(time.Hour),
			gallery.Enrolment{}); err != nil {
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

// A picture of an enrolled face stays as long as the face, and not if the gallery is to keep none.
func TestPortraits(t *testing.T) {
	g := fixture.Must(gallery.New(space, online.Settings{}))(t)
	defer g.Close()
	kept := func(when string, want int64) {
		t.Helper()
		err := g.Rows().Look(func(tx *gallery.Tx) error {
			n, err := tx.Int("select count(*) from portrait where jpeg = x'ff' and number in " +
				"(select number from label)")
			all, _ := tx.Int("select count(*) from portrait")
			if n != want || all != want {
				t.Errorf("%s: %d pictures, and %d in all, want %d", when, n, all, want)
			}
			return err
		})
		fixture.Check(t, err)
	}
	enrol := func(name string, i int, pictures ...[]byte) {
		t.Helper()
		how := gallery.Enrolment{Pictures: pictures}
		fixture.Must(g.Enroll(name, person(i, 2), noon, how))(t)
	}
	enrol("alice", 0, []byte{255}, nil)
	enrol("bob", 1, []byte{255}, []byte{255})
	kept("enrolled", 3)
	fixture.Check(t, g.Forget("bob"))
	kept("forgotten", 1)
	s := g.Learner().Settings()
	s.NoPictures = true
	fixture.Check(t, g.Learner().Configure(s))
	enrol("carl", 2, []byte{255}, []byte{255})
	kept("no pictures", 0)
}
