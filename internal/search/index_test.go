// SPDX-License-Identifier: Apache-2.0

package search_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/faceauth/faceauth/internal/search"
)

// opened opens an index for the test.
func opened(t *testing.T, path string, x search.Index) *search.Index {
	t.Helper()
	if err := x.Open(path); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Close() })
	return &x
}

// A recording is read once, and again if the file, the rate or the index has changed.
func TestIndex(t *testing.T) {
	dir := t.TempDir()
	video, path := filepath.Join(dir, "day.avi"), filepath.Join(dir, "cache", "index.db")
	if err := os.WriteFile(video, []byte("film"), 0o600); err != nil {
		t.Fatal(err)
	}
	scans := 0
	find := func(x *search.Index) search.Recording {
		t.Helper()
		r, err := x.Recording(video, func(search.Part, func(search.Part) error) ([]search.Sighting, error) {
			scans++
			return scan(t, n(5, "a"), 0).Sightings, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if r.Path != video || len(r.Sightings) != 1 {
			t.Fatalf("%s with %d sightings", r.Path, len(r.Sightings))
		}
		return r
	}
	plain := search.Index{Space: space, FPS: 5, Detector: "network"}
	expect := func(what string, want int) {
		t.Helper()
		if scans != want {
			t.Errorf("%s: %d scans, want %d", what, scans, want)
		}
	}
	x := opened(t, path, plain)
	find(x)
	find(x)
	find(opened(t, path, plain))
	expect("twice", 1)
	other := plain
	other.FPS = 10
	find(opened(t, path, other))
	other = plain
	other.Detector = "haar"
	find(opened(t, path, other))
	other = plain
	other.Spare = true
	find(opened(t, path, other))
	find(opened(t, path, other))
	expect("other settings", 4)
	if err := os.WriteFile(video, []byte("another film"), 0o600); err != nil {
		t.Fatal(err)
	}
	find(x)
	find(x)
	expect("another file", 5)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	find(&search.Index{Space: space})
	find(&search.Index{Space: space})
	expect("without a file", 7)

	broken := errors.New("broken")
	none := func(search.Part, func(search.Part) error) ([]search.Sighting, error) { return nil, broken }
	if _, err := new(search.Index).Recording(video, none); !errors.Is(err, broken) {
		t.Errorf("a scan that fails: %v", err)
	}
	if _, err := x.Recording(filepath.Join(dir, "none"), none); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing recording: %v", err)
	}
	if err := new(search.Index).Open(video); !errors.Is(err, search.ErrIndex) {
		t.Errorf("another file: %v", err)
	}
}

// An interrupted scan continues, also in another program.
func TestPart(t *testing.T) {
	video, path := filepath.Join(t.TempDir(), "day.avi"), filepath.Join(t.TempDir(), "index.db")
	if err := os.WriteFile(video, []byte("film"), 0o600); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	whole := scan(t, n(5, "a"), 0).Sightings
	for i, want := range []int{0, 7, 7, -1} {
		x := opened(t, path, search.Index{Space: space})
		r, err := x.Recording(video, func(from search.Part, keep func(search.Part) error) ([]search.Sighting, error) {
			if from.Frame != want {
				t.Errorf("%d: it begins after frame %d, want %d", i, from.Frame, want)
			}
			if i == 2 {
				return whole, nil
			}
			return nil, errors.Join(keep(search.Part{Frame: 7, Sightings: whole}), broken)
		})
		if (i < 2) != errors.Is(err, broken) || i >= 2 && len(r.Sightings) != len(whole) {
			t.Errorf("%d: %v, %d sightings", i, err, len(r.Sightings))
		}
	}
}

// What was found of a person who is forgotten goes, without a trace; that of others stays.
func TestForget(t *testing.T) {
	path := filepath.Join(t.TempDir(), "index.db")
	x := opened(t, path, search.Index{Space: space})
	for _, who := range "ab" {
		video := filepath.Join(t.TempDir(), "film of "+string(who))
		if err := os.WriteFile(video, []byte("film"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := x.Recording(video, func(search.Part, func(search.Part) error) ([]search.Sighting, error) {
			return scan(t, n(5, string(who)), 0).Sightings, nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []int{1, 0} {
		if n, err := x.Forget([][]float32{{0, 0}}); err != nil || n != want {
			t.Errorf("%d recordings, %v", n, err)
		}
	}
	for _, end := range []string{"", "-wal"} {
		b, err := os.ReadFile(path + end)
		if err != nil || bytes.Contains(b, []byte("film of a")) {
			t.Errorf("%s: a trace is left, %v", end, err)
		}
		if end == "" && !bytes.Contains(b, []byte("film of b")) {
			t.Error("the other recording is gone")
		}
	}
}
