// SPDX-License-Identifier: Apache-2.0

// Package xdg finds the folders of the XDG Base Directory Specification.
package xdg

import (
	"os"
	"path/filepath"
)

// Data returns $XDG_DATA_HOME, or ~/.local/share. The error comes from [os.UserHomeDir].
func Data() (string, error) { return home("XDG_DATA_HOME", ".local", "share") }

// Shared returns the folders of $XDG_DATA_DIRS, or /usr/local/share and /usr/share, which are for
// all users.
func Shared() []string {
	var dirs []string
	for _, dir := range filepath.SplitList(os.Getenv("XDG_DATA_DIRS")) {
		if filepath.IsAbs(dir) {
			dirs = append(dirs, dir)
		}
	}
	if len(dirs) == 0 {
		return []string{"/usr/local/share", "/usr/share"}
	}
	return dirs
}

// Cache returns $XDG_CACHE_HOME, or ~/.cache. The error comes from [os.UserHomeDir].
func Cache() (string, error) { return home("XDG_CACHE_HOME", ".cache") }

// home returns the folder that a variable names, or the one below the home directory. A relative
// one is ignored, as the specification says.
func home(variable string, below ...string) (string, error) {
	if dir := os.Getenv(variable); filepath.IsAbs(dir) {
		return dir, nil
	}
	dir, err := os.UserHomeDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(append([]string{dir}, below...)...), nil
}
