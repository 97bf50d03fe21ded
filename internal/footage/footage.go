// SPDX-License-Identifier: Apache-2.0

// Package footage finds recordings in folders.
package footage

import (
	"errors"
	"fmt"
	"github.com/faceauth/faceauth/internal/input"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/maruel/natural"
)

// A file with one of these endings must be a recording: if it cannot be read, this is an error. Other files may be
// notes beside the recordings.
var videoExtensions = []string{
	".avi", ".mp4", ".m4v", ".mov", ".mkv", ".webm", ".mpg", ".mpeg", ".wmv", ".flv", ".ts", ".3gp", ".mjpeg", ".mjpg",
}

// IsVideo reports whether a file must be a recording by its name.
func IsVideo(path string) bool {
	return slices.Contains(videoExtensions, strings.ToLower(filepath.Ext(path)))
}

// ErrNone is wrapped if a name is a camera or a URL, or if a folder holds no recording.
var ErrNone = errors.New("no recording")

// Find returns the recordings for names: files, folders of images, and the videos and folders of images below other
// folders, in natural order. The error wraps [ErrNone] or comes from package fs.
func Find(names []string) (paths []string, err error) {
	for _, name := range names {
		if !input.IsRecording(name) {
			return nil, fmt.Errorf("%w: %s is a camera or a URL", ErrNone, name)
		}
		info, err := os.Stat(name)
		if err != nil {
			return nil, fmt.Errorf("opening source: %w", err)
		}
		if !info.IsDir() || input.HasImages(name) {
			paths = append(paths, name)
			continue
		}
		var below []string
		err = filepath.WalkDir(name, func(path string, e fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case path != name && strings.HasPrefix(e.Name(), ".") && e.IsDir():
				return filepath.SkipDir
			case e.IsDir() && input.HasImages(path):
				below = append(below, path)
				return filepath.SkipDir
			case !e.IsDir() && IsVideo(path):
				below = append(below, path)
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("opening %s: %w", name, err)
		}
		if len(below) == 0 {
			return nil, fmt.Errorf("%w: %s holds neither videos nor folders of images", ErrNone, name)
		}
		slices.SortFunc(below, natural.Compare)
		paths = append(paths, below...)
	}
	return paths, nil
}
