// SPDX-License-Identifier: Apache-2.0

package calibrate

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/safefile"
	"github.com/faceauth/faceauth/internal/xdg"
)

// Errors of [Read] and [File.Check].
var (
	ErrNotSettings = errors.New("not a faceauth settings file")
	ErrSpace       = errors.New("settings for another feature space")
)

// version is the version of the format of a [File].
const version = 1

// largest is the largest size of a settings file.
const largest = 1 << 20

// File is a JSON file of settings: the chosen settings and their calibration.
type File struct {
	Version int     `json:"version"`
	Space   string  `json:"space"` // face.Space.ID
	Outcome Outcome `json:"calibration"`
}

// DefaultPath returns the default path of the settings file: faceauth/settings.json below $XDG_CONFIG_HOME or
// ~/.config.
func DefaultPath() (string, error) {
	dir, err := xdg.Config()
	if err != nil {
		return "", fmt.Errorf("finding the default settings: %w; name a file", err)
	}
	return filepath.Join(dir, "faceauth", "settings.json"), nil
}

// NewFile returns the file of a calibration for a space.
func NewFile(space face.Space, o Outcome) File { return File{version, space.ID, o} }

// Write writes the file to path, and makes the folder if it does not exist. On error the old file stays.
func (f File) Write(path string) error {
	b, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return fmt.Errorf("writing settings: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("writing settings: %w", err)
	}
	if err := safefile.Write(path, append(b, '\n')); err != nil {
		return fmt.Errorf("writing settings: %w", err)
	}
	return nil
}

// Read reads the file at path. The error wraps [os.ErrNotExist] or [ErrNotSettings].
func Read(path string) (File, error) {
	var f File
	r, err := safefile.Open(path)
	if errors.Is(err, safefile.ErrNotRegular) {
		return f, fmt.Errorf("reading settings %s: %w", path, ErrNotSettings)
	}
	if err != nil {
		return f, fmt.Errorf("reading settings: %w", err)
	}
	defer r.Close()
	b, err := io.ReadAll(io.LimitReader(r, largest+1))
	if err != nil {
		return f, fmt.Errorf("reading settings: %w", err)
	}
	if err := f.parse(b); err != nil {
		return f, fmt.Errorf("reading settings %s: %w: %w", path, ErrNotSettings, err)
	}
	return f, nil
}

func (f *File) parse(b []byte) error {
	if len(b) > largest {
		return fmt.Errorf("it is longer than %d bytes", largest)
	}
	if err := json.Unmarshal(b, f); err != nil {
		return err
	}
	c := f.Outcome.Choice
	share := func(x float64) bool { return x >= 0 && x <= 1 }
	positive := func(x float64) bool { return x > 0 && !math.IsInf(x, 1) }
	switch {
	case f.Version != version:
		return fmt.Errorf("it has version %d, and this program reads %d", f.Version, version)
	case f.Space == "":
		return errors.New("it names no feature space")
	case !positive(c.Sigma) || !positive(c.Gamma):
		return fmt.Errorf("sigma is %g and gamma %g, and both must be positive", c.Sigma, c.Gamma)
	case !share(c.Accept) || !share(c.Learn):
		return fmt.Errorf("accept is %g and learn %g, and both must lie between 0 and 1", c.Accept, c.Learn)
	}
	return nil
}

// Check returns nil if the settings are for this space. Otherwise the error wraps [ErrSpace].
func (f File) Check(space face.Space) error {
	if f.Space != space.ID {
		return fmt.Errorf("%w: the settings are for %s, and the faces are of %s", ErrSpace, f.Space, space.ID)
	}
	return nil
}
