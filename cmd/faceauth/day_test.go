// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/faceauth/faceauth/internal/fixture"
)

// TestComposeDays writes the days of BenchmarkStillDay, and an hour of such days of four people by turns, into the folder
// that FACEAUTH_DAYS names, so that they can be given to the program by hand.
func TestComposeDays(t *testing.T) {
	dir := os.Getenv("FACEAUTH_DAYS")
	if dir == "" {
		t.Skip("FACEAUTH_DAYS names no folder for days that are composed of recordings")
	}
	var people []string
	for i := range 4 {
		people = append(people, fixture.Recordings(t, fmt.Sprintf("faces/vidtimit_rot/p%d", i)))
		if path := filepath.Join(dir, fmt.Sprintf("p%d.avi", i)); absent(path) {
			tenth.write(t, path, people[i], uint64(i))
		}
	}
	if path := filepath.Join(dir, "hour.avi"); absent(path) {
		tenth.writeAll(t, path, 9, 5, people...)
	}
}

// absent reports whether there is no file of that name.
func absent(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}
