// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/regions"
	"github.com/faceauth/faceauth/internal/tape"
)

// Whom another program has named in photographs can be enrolled, with the checks of an enrolment,
// and whom a search has found can be named there.
func TestPlainNamedFaces(t *testing.T) {
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	size := image.Pt(320, 240) // of made-up pictures
	put := func(folder string, i int, names ...string) string {
		fixture.Check(t, os.MkdirAll(file(folder), 0o700))
		path := file(fmt.Sprintf("%s/%d.jpg", folder, i))
		alice, bob := tape.Moving("alice", .3, 2*i), tape.Moving("bob", .8, 2*i)
		fixture.Check(t, os.WriteFile(path, tape.JPEG(alice, bob), 0o600))
		for k, name := range names {
			box := []image.Rectangle{alice.Box, bob.Box, image.Rect(0, 0, 40, 40)}[k]
			fixture.Must(regions.Add(path, name, box, size, 0))(t)
		}
		return path
	}
	for i := range 5 {
		put("album", i, "Alice", "Bob", "Carol")
	}
	put("album", 5)
	faceauth := func(code int, args ...string) string {
		t.Helper()
		var out bytes.Buffer
		args = append(args, "--gallery", file("gallery"), "--models", fixture.Models(t))
		got := run(context.Background(), args, &out, &out)
		if got != code {
			t.Errorf("%v: exit code %d, want %d: %s", args, got, code, &out)
		}
		return out.String()
	}
	says := func(out string, all ...string) {
		t.Helper()
		for _, want := range all {
			if !strings.Contains(out, want) {
				t.Errorf("%q is not in %s", want, out)
			}
		}
	}
	says(faceauth(0, "enroll", "--regions", file("album"), "--dry-run"),
		"to be enrolled", "clearer ones are enough", "no face is there")
	if _, err := os.Stat(file("gallery")); err == nil {
		t.Error("a dry run makes a gallery")
	}
	says(faceauth(9, "enroll", "--regions", file("album")), "Alice: 4 faces labelled, from 5",
		"Bob: 4 faces labelled", "Carol: no usable face (not used: no face is there: 5)",
		"1 of 3 people were not enrolled: Carol")
	says(faceauth(4, "enroll", "--regions", file("album")), "give --add")
	says(faceauth(0, "who", file("album/5.jpg")), "Alice", "Bob")

	new, other := put("new", 7), put("new", 8, "Zoe")
	for _, want := range []string{"1 region written", "0 regions written"} {
		says(faceauth(0, "search", file("new"), "--name", "Alice", "--no-index",
			"--write-regions", "--sheet", file("sheet.html")), want,
			"the face has another name: Zoe")
	}
	// The sheet shows each photograph, and where the face is in it.
	sheet := string(fixture.Must(os.ReadFile(file("sheet.html")))(t))
	shown := regexp.MustCompile(`<a class="whole" href="\./new/[78].jpg"><img src="data:` +
		`image/jpeg;base64,[^"]+" alt="[78].jpg"><i style="left:(\d+\.\d)%;top:[^"]+"></i></a>`)
	for i, m := range shown.FindAllStringSubmatch(sheet, 3) {
		box := tape.Moving("alice", .3, 2*(7+i)).Box
		if want := fmt.Sprintf("%.1f", 100*float64(box.Min.X)/float64(size.X)); m[1] != want {
			t.Errorf("the face is marked at %s %%, and is at %s", m[1], want)
		}
	}
	if n := len(shown.FindAllString(sheet, 3)); n != 2 {
		t.Errorf("%d photographs are shown", n)
	}
	for path, want := range map[string]string{new: "Alice", other: "Zoe"} {
		n := fixture.Must(regions.Read(path))(t)
		if len(n.Regions) != 1 || n.Regions[0].Name != want {
			t.Errorf("%s: %v", path, n.Regions)
		}
	}
	for _, args := range [][]string{{"enroll", "--dry-run", "a.jpg", "--name", "a"},
		{"enroll", "--regions", "a", "--name", "a"},
		{"search", "a", "--like", "b", "--write-regions"}} {
		faceauth(2, args...)
	}
	says(faceauth(4, "enroll", "--regions", filepath.Dir(put("none", 1))), "no face is named")
	fixture.Check(t, os.WriteFile(new+".xmp", []byte("no XMP"), 0o600))
	says(faceauth(9, "enroll", "--regions", file("new"), "--frames", "1"), "its XMP cannot be used")
}
