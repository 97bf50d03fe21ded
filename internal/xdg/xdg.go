// Package xdg finds the folders of the XDG Base Directory Specification.
package xdg

import (
	"os"
	"path/filepath"
)

// Data returns $XDG_DATA_HOME, or ~/.local/share. The error is that of [os.UserHomeDir].
func Data() (string, error) { return home("XDG_DATA_HOME", ".local", "share") }

// Config returns $XDG_CONFIG_HOME, or ~/.config. The error is that of [os.UserHomeDir].
func Config() (string, error) { return home("XDG_CONFIG_HOME", ".config") }

// home returns the folder that a variable names, or the one below the home directory. A relative one is ignored,
// as the specification says.
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
