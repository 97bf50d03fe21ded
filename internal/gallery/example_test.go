// SPDX-License-Identifier: Apache-2.0

package gallery_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/faceauth/faceauth/internal/gallery"
	"github.com/faceauth/faceauth/online"
)

func Example() {
	dir, err := os.MkdirTemp("", "gallery")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "gallery")

	g, err := gallery.Create(path, space, online.Settings{})
	if err != nil {
		panic(err)
	}
	if _, err := g.Enroll("alice", person(0, 4), noon, gallery.Enrolment{}); err != nil {
		panic(err)
	}
	if err := g.Close(); err != nil {
		panic(err)
	}

	g, err = gallery.Open(path, space)
	if err != nil {
		panic(err)
	}
	v, err := g.Learner().Observe(person(0, 5)[4])
	if err != nil {
		panic(err)
	}
	fmt.Println(g.Name(v.Person))
	// Output: alice
}
