// SPDX-License-Identifier: Apache-2.0

// Package settings reads and writes the file of settings that faceauth-lab tune makes and all commands read.
package settings

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
	"github.com/faceauth/faceauth/online"
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

// Choice is a set of settings that was chosen on recordings.
type Choice struct {
	Sigma  float64 `json:"sigma"`
	Gamma  float64 `json:"gamma"`
	Accept float64 `json:"accept"`
	Learn  float64 `json:"learn"`
}

// Apply returns s with the chosen settings.
func (c Choice) Apply(s online.Settings) online.Settings {
	s.Sigma, s.Gamma, s.Accept, s.Learn = c.Sigma, c.Gamma, c.Accept, c.Learn
	s.Epsilon = 0 // follows gamma
	return s
}

// File is a JSON file of settings. Beside the choice, its calibration holds how the choice was made; a File that is
// read has the choice alone.
type File struct {
	Version     int    `json:"version"`
	Space       string `json:"space"` // face.Space.ID
	Calibration struct {
		Choice Choice `json:"choice"`
	} `json:"calibration"`
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

// Write writes a file with the calibration for a space to path, and makes the folder if it does not exist. The JSON of
// calibration has the [Choice] as "choice". On error the old file stays.
func Write(path string, space face.Space, calibration any) error {
	b, err := json.MarshalIndent(struct {
		Version     int    `json:"version"`
		Space       string `json:"space"`
		Calibration any    `json:"calibration"`
	}{version, space.ID, calibration}, "", "  ")
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o700)
	}
	if err == nil {
		err = safefile.Write(path, append(b, '\n'))
	}
	if err != nil {
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
	c := f.Calibration.Choice
	share := func(x float64) bool { return x >= 0 && x <= 1 }
	positive := func(x float64) bool { return x > 0 && !math.IsInf(x, 1) }
	switch {
	case f.Version != version:
		return fmt.Errorf("it has version %d, and this program reads %d%s", f.Version, version,
			safefile.Advice(f.Version, version))
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
