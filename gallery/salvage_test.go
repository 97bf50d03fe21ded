// SPDX-License-Identifier: Apache-2.0

package gallery_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/online"
)

// A database with a flipped bit in any page, a zeroed page, or a lost end gives all that is on its other pages, and
// nothing else. It stays as it is.
func TestSalvage(t *testing.T) {
	wide := face.Space{ID: "wide", Dim: 512, Scale: 1, Sigma: .2, Gamma: 1e-3, Reach: 1, ImpostorRadius: .1,
		GenuineRadius: .1}
	const people, page = 12, 8192
	for _, key := range [][]byte{nil, testKey} {
		path := filepath.Join(t.TempDir(), "gallery")
		if err := gallery.SetKey(path, key); err != nil {
			t.Fatal(err)
		}
		g, err := gallery.New(wide, online.Settings{K: 77})
		if err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(1, 2))
		owner := make(map[string]string) // of a vector
		for i := range people {
			var four [][]float32
			for range 4 {
				x := make([]float32, wide.Dim)
				for j := range x {
					x[j] = r.Float32()
				}
				four = append(four, x)
				owner[fmt.Sprint(x)] = fmt.Sprint("person ", i)
			}
			if err := g.Label(fmt.Sprint("person ", i), four, noon); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(g.Save(path), g.Close()); err != nil {
			t.Fatal(err)
		}
		whole := read(t, path)
		to := filepath.Join(t.TempDir(), "new")
		if err := gallery.SetKey(to, key); err != nil {
			t.Fatal(err)
		}
		most, none := 0, 0
		check := func(what string, data []byte, damaged int) {
			t.Helper()
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
			s, err := gallery.Salvage(path, to, wide)
			if !bytes.Equal(read(t, path), data) {
				t.Errorf("%s: the damaged file has changed", what)
			}
			if err != nil {
				if _, is := os.Lstat(to); !errors.Is(is, fs.ErrNotExist) {
					t.Errorf("%s: there is a file after %v", what, err)
				}
				if damaged == 1 {
					none++
				}
				return
			}
			defer os.Remove(to)
			g, err := gallery.Open(to, wide)
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			defer g.Close()
			n := 0
			for _, l := range g.Learner().Labels() {
				n++
				if name := owner[fmt.Sprint(g.Learner().Vector(l.ID))]; name != l.Name {
					t.Errorf("%s: a face of %q is called %q", what, name, l.Name)
				}
			}
			if n != s.Faces || len(g.People()) != s.People || damaged >= 0 && s.Damaged != damaged {
				t.Errorf("%s: %+v, and %d people have %d faces", what, s, len(g.People()), n)
			}
			if s.Learned && g.Learner().Settings().K != 77 {
				t.Errorf("%s: the settings are lost", what)
			}
			if damaged == 1 {
				most = max(most, 4*people-n)
			}
			if damaged == 0 && (n != 4*people || !s.Learned || !g.People()[0].Enrolled.Equal(noon)) {
				t.Errorf("%s: %+v", what, s)
			}
		}
		check("whole", whole, 0)
		step := page
		if testing.Short() {
			step = 4 * page
		}
		for i := 0; i < len(whole); i += step {
			b := bytes.Clone(whole)
			b[i+r.IntN(page)] ^= 1 << r.IntN(8)
			check(fmt.Sprintf("a bit of page %d", i/page), b, 1)
			clear(b[i : i+page])
			check(fmt.Sprintf("zeroed page %d", i/page), b, 1)
			check(fmt.Sprintf("%d pages", i/page), whole[:i], -1)
			check(fmt.Sprintf("%d pages and a half", i/page), whole[:i+page/2], -1)
		}
		// A page holds three or four faces, and one page has all names.
		if most > 4 || none != 2 && !testing.Short() {
			t.Errorf("a page has cost %d faces, and %d files have given nothing", most, none)
		}
		if err := os.WriteFile(to, []byte("mine"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := gallery.Salvage(path, to, wide); !errors.Is(err, fs.ErrExist) || string(read(t, to)) != "mine" {
			t.Errorf("error %v", err)
		}
	}
}
