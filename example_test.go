// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package faceauth_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/faceauth/faceauth"
	"github.com/faceauth/faceauth/internal/demo"
)

// file returns the bytes of a photograph.
func file(name string) []byte {
	stills, err := demo.Find()
	if err != nil {
		log.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(stills, name))
	if err != nil {
		log.Fatal(err)
	}
	return b
}

// A web handler has photographs as bytes.
func ExampleRecogniser_WhoImage() {
	ctx := context.Background()
	r, err := faceauth.New(faceauth.Options{})
	if err != nil {
		log.Fatal(err)
	}
	alice, err := faceauth.Decode(file("s2/1.pgm"))
	if err == nil {
		_, err = r.EnrollImage(ctx, "alice", alice)
	}
	for _, name := range []string{"s2/5.pgm", "s1/1.pgm"} {
		m, broken := faceauth.Decode(file(name))
		if broken != nil {
			log.Fatal(broken)
		}
		faces, broken := r.WhoImage(ctx, m)
		if broken != nil {
			log.Fatal(broken)
		}
		for _, f := range faces {
			fmt.Printf("%q, nearest %s: %s\n", f.Name, f.Nearest, f.Rarity)
		}
	}
	if err := r.Close(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// "alice", nearest alice: a stranger comes as near less often than once in 1,000,000
	// "", nearest alice: a stranger comes as near more often than once in 100
}

// Is it the same person in both pictures?
func ExampleRecogniser_Compare() {
	ctx := context.Background()
	r, err := faceauth.New(faceauth.Options{})
	if err != nil {
		log.Fatal(err)
	}
	var faces []faceauth.Face
	for _, name := range []string{"s2/1.pgm", "s2/5.pgm"} {
		m, err := faceauth.Decode(file(name))
		if err != nil {
			log.Fatal(err)
		}
		found, err := r.Faces(ctx, m)
		if err != nil {
			log.Fatal(err)
		}
		faces = append(faces, found[0])
	}
	like, err := r.Compare(faces[0], faces[1])
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(like.Rate < 1e-3, like.Rarity)
	if err := r.Close(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// true a stranger comes as near less often than once in 1,000,000
}
