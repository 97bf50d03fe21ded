// SPDX-License-Identifier: Apache-2.0

// Package dataset finds labelled recordings in folders and reads them.
//
// A data set is a folder with one entry for each identity: a video, a folder of images, or a folder
// of several such recordings of one person, which are taken in natural order. Of several faces in a
// frame the largest counts. A recording whose name begins with [AttackPrefix] is an attack: a
// picture or a video of the person is held before the camera.
//
// [Reader.Identities] reads all faces of a data set for package evaluate, [Reader.Each] calls a
// function with each recording.
package dataset

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/footage"
	"github.com/maruel/natural"
)

// AttackPrefix begins the names of recordings that show a picture or a video of the person before
// the camera.
const AttackPrefix = "fake"

// IsAttack reports whether the name of a recording says that it is an attack.
func IsAttack(path string) bool { return strings.HasPrefix(filepath.Base(path), AttackPrefix) }

// NameOf returns the name of the identity with recordings at path.
func NameOf(path string) string {
	name := filepath.Base(path)
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		name = strings.TrimSuffix(name, filepath.Ext(name))
	}
	return name
}

// entries returns the visible entries of a folder, in natural order.
func entries(dir string) ([]string, error) {
	all, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", dir, err)
	}
	var paths []string
	for _, e := range all {
		if !strings.HasPrefix(e.Name(), ".") {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("%s is empty", dir)
	}
	slices.SortFunc(paths, natural.Compare)
	return paths, nil
}

// Names returns the names of possible identities in dir, in the order of [Reader.Identities]. It
// opens nothing, so some may have no recording.
func Names(dir string) (names []string, err error) {
	paths, err := entries(dir)
	for _, path := range paths {
		names = append(names, NameOf(path))
	}
	return names, err
}

// sessions returns the recordings of the identity at path. Warn is called with what is left out.
func sessions(path string, warn func(string)) ([]string, error) {
	found, err := footage.Find([]string{path})
	if err != nil {
		return []string{path}, nil // the error of facedet says what was expected
	}
	if left := found.String(); left != "" {
		warn(path + ": " + left)
	}
	return found.Paths(), nil
}

// notRecording reports whether err says that the file at path is not a recording, and its name does
// not look like one.
func notRecording(path string, err error) bool {
	return errors.Is(err, face.ErrNotVideo) && !footage.IsFilm(path)
}
