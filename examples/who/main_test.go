// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/faceauth/faceauth"
	"github.com/faceauth/faceauth/internal/demo"
	"github.com/faceauth/faceauth/internal/demo/film"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/models"
)

// The program of docs/library.md is this one.
func TestDocument(t *testing.T) {
	document, err := os.ReadFile("../../docs/library.md")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(program), "package main\n")
	if !strings.Contains(string(document), "```go\npackage main\n"+text+"```\n") {
		t.Error("docs/library.md shows another program than main.go")
	}
}

// A recogniser keeps the people whom it was shown, knows them in a photograph and in a recording,
// and no stranger.
func TestRecogniser(t *testing.T) {
	ctx := context.Background()
	if _, err := faceauth.New(faceauth.Options{Models: t.TempDir()}); !errors.Is(err,
		models.ErrMissing) {
		t.Fatalf("without networks: %v", err)
	}
	stills, err := demo.Find()
	if err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	script, err := film.Write(ctx, stills, dir)
	if err != nil {
		t.Fatal(err)
	}
	o := faceauth.Options{Models: fixture.Models(t), Gallery: filepath.Join(dir, "gallery")}
	r, err := faceauth.New(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range script.Enrolment {
		if err := r.Enroll(ctx, e.Name, e.Path); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Enroll(ctx, "nobody", filepath.Join(dir, "missing.jpg")); !errors.Is(err,
		fs.ErrNotExist) {
		t.Errorf("a missing picture: %v", err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}

	if r, err = faceauth.New(o); err != nil { // the people are still there
		t.Fatal(err)
	}
	defer r.Close()
	for picture, want := range map[string]string{"s2/1.pgm": "alice", "s3/1.pgm": "bob",
		"s1/1.pgm": ""} {
		faces, err := r.Who(ctx, filepath.Join(stills, picture))
		if err != nil || len(faces) != 1 || faces[0].Name != want || faces[0].Confirmed ||
			faces[0].Box.Empty() {
			t.Errorf("%s: %+v, %v; want %q", picture, faces, err, want)
		}
	}
	confirmed := map[string]int{}
	for f, err := range r.Watch(ctx, script.Recording) {
		if err != nil {
			t.Fatal(err)
		}
		if f.Confirmed {
			confirmed[f.Name]++
		}
		if len(confirmed) == 2 {
			break
		}
	}
	if confirmed["alice"] == 0 || confirmed["bob"] == 0 {
		t.Errorf("confirmed: %v", confirmed)
	}
	for _, err := range r.Watch(ctx, filepath.Join(dir, "missing.avi")) {
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a missing recording: %v", err)
		}
	}
}
