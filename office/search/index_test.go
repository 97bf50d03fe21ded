// SPDX-License-Identifier: Apache-2.0

package search_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/faceauth/faceauth/office/search"
)

// A recording is read once, and again if the file, the rate or the index has changed.
func TestIndex(t *testing.T) {
	dir := t.TempDir()
	video := filepath.Join(dir, "day.avi")
	if err := os.WriteFile(video, []byte("film"), 0o600); err != nil {
		t.Fatal(err)
	}
	scans, damaged := 0, 0
	find := func(x search.Index) search.Recording {
		t.Helper()
		r, err := x.Recording(
			video,
			func(error) { damaged++ },
			func(search.Part, func(search.Part) error) ([]search.Sighting, error) {
				scans++
				return scan(t, n(5, "a"), 0).Sightings, nil
			},
		)
		if err != nil {
			t.Fatal(err)
		}
		if r.Path != video || len(r.Sightings) != 1 {
			t.Fatalf("%s with %d sightings", r.Path, len(r.Sightings))
		}
		return r
	}
	x := search.Index{Dir: filepath.Join(dir, "index"), Space: space, FPS: 5, Detector: "network"}
	if err := os.Mkdir(x.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	expect := func(what string, wantScans, wantDamaged int) {
		t.Helper()
		if scans != wantScans || damaged != wantDamaged {
			t.Errorf("%s: %d scans and %d damaged, want %d and %d", what, scans, damaged, wantScans, wantDamaged)
		}
	}
	find(x)
	find(x)
	expect("twice", 1, 0)
	other := x
	other.FPS = 10
	find(other)
	other = x
	other.Detector = "haar"
	find(other)
	other = x
	other.Spare = true
	find(other)
	find(other)
	expect("other settings", 4, 0)
	if err := os.WriteFile(video, []byte("another film"), 0o600); err != nil {
		t.Fatal(err)
	}
	find(x)
	find(x)
	expect("another file", 5, 0)
	kept, err := filepath.Glob(filepath.Join(x.Dir, "*"))
	if err != nil || len(kept) != 4 {
		t.Fatalf("%q, %v", kept, err)
	}
	for _, path := range kept {
		if err := os.WriteFile(path, []byte("damaged"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	find(x)
	find(x)
	expect("damaged", 6, 1)
	find(search.Index{Space: space})
	find(search.Index{Space: space})
	expect("without a folder", 8, 1)

	broken := errors.New("broken")
	if _, err := (search.Index{Space: space}).Recording(video, nil,
		func(search.Part, func(search.Part) error) ([]search.Sighting, error) {
			return nil, broken
		}); !errors.Is(err, broken) {
		t.Errorf("a scan that fails: %v", err)
	}
	none := func(search.Part, func(search.Part) error) ([]search.Sighting, error) { return nil, nil }
	if _, err := x.Recording(filepath.Join(dir, "none"), nil, none); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing recording: %v", err)
	}
	x.Dir = filepath.Join(dir, "no", "folder")
	if _, err := x.Recording(video, nil, none); !errors.Is(err, search.ErrIndex) {
		t.Errorf("a missing folder: %v", err)
	}
}

// What was found of a person who is forgotten goes; that of others stays.
func TestForget(t *testing.T) {
	x := search.Index{Dir: t.TempDir(), Space: space}
	for _, who := range "ab" {
		video := filepath.Join(t.TempDir(), string(who))
		if err := os.WriteFile(video, []byte("film"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := x.Recording(video, nil, func(search.Part, func(search.Part) error) ([]search.Sighting, error) {
			return scan(t, n(5, string(who)), 0).Sightings, nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(x.Dir, "cut"), []byte("faceauth search"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, want := range []int{2, 0} { // and the damaged one
		if n, err := x.Forget([][]float32{{0, 0}}); err != nil || n != want {
			t.Errorf("%d recordings, %v", n, err)
		}
	}
	if files, err := os.ReadDir(x.Dir); err != nil || len(files) != 1 {
		t.Errorf("%v, %v", files, err)
	}
	x.Dir = filepath.Join(x.Dir, "none")
	if n, err := x.Forget([][]float32{{0, 0}}); err != nil || n != 0 {
		t.Errorf("%d recordings, %v", n, err)
	}
}
