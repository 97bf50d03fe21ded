// SPDX-License-Identifier: Apache-2.0

package gallery_test

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/online"
)

func Example() {
	dir, err := os.MkdirTemp("", "gallery")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "gallery")
	space := face.Space{ID: "points", Dim: 2, Scale: 1, Sigma: .2, Gamma: 1e-3,
		ImpostorRadius: .9, GenuineRadius: 1.3}

	g, err := gallery.Create(path, space, online.Settings{})
	if err != nil {
		panic(err)
	}
	for name, x := range map[string]float32{"alice": 0, "bob": 2} {
		faces := [][]float32{{x, 0}, {x, .1}, {x, .2}}
		if _, err := g.Enroll(name, faces, time.Now(), gallery.Enrolment{}); err != nil {
			panic(err)
		}
	}
	if err := g.Close(); err != nil {
		panic(err)
	}

	g, err = gallery.Open(path, space)
	if err != nil {
		panic(err)
	}
	defer g.Close()
	v, err := g.Learner().Observe([]float32{.1, .1})
	if err != nil {
		panic(err)
	}
	fmt.Println(g.Name(v.Person))

	if err := g.Rename("bob", "carol"); err != nil {
		panic(err)
	}
	unusual, err := g.Audit(false)
	if err != nil {
		panic(err)
	}
	if _, err := g.Remove(unusual[0].ID); err != nil {
		panic(err)
	}
	if err := g.Forget("alice"); err != nil {
		panic(err)
	}
	for _, p := range g.People() {
		fmt.Println(p.Name, p.Faces >= 2, g.Number("alice"))
	}
	// Output:
	// alice
	// carol true 0
}
