// SPDX-License-Identifier: Apache-2.0

package settings_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/settings"
	"github.com/faceauth/faceauth/online"
)

func TestGoldenFile(t *testing.T) {
	space := face.Space{ID: "plane"}
	choice := settings.Choice{Sigma: .2, Gamma: 1e-3, Accept: .25, Learn: .5}
	write := func(path string) error {
		return settings.Write(path, space, struct {
			Choice settings.Choice `json:"choice"`
			People int             `json:"people"`
		}{choice, 9})
	}
	path := filepath.Join(t.TempDir(), "new", "settings.json")
	if err := write(path); err != nil {
		t.Fatal(err)
	}
	frozen, err := os.ReadFile(fixture.Golden(t, "settings.json", write))
	if is, e := os.ReadFile(path); err != nil || e != nil || !bytes.Equal(is, frozen) {
		t.Errorf("not the format of the golden file: %s, %v, %v", is, err, e)
	}
	got, err := settings.Read(path)
	if err != nil || got.Version != 1 || got.Space != "plane" || got.Calibration.Choice != choice {
		t.Errorf("read %+v, %v", got, err)
	}
	s := got.Calibration.Choice.Apply(online.Settings{K: 7, Epsilon: .3, Sigma: 9})
	if s != (online.Settings{K: 7, Sigma: .2, Gamma: 1e-3, Accept: .25, Learn: .5}) {
		t.Errorf("settings %+v", s)
	}
	if err := got.Check(space); err != nil {
		t.Error(err)
	}
	if err := got.Check(face.Space{ID: "other"}); !errors.Is(err, settings.ErrSpace) {
		t.Errorf("another space: %v", err)
	}
}

func TestReadErrors(t *testing.T) {
	dir := t.TempDir()
	good := `{"version":1,"space":"plane","calibration":{"choice":{"sigma":0.2,"gamma":0.001,"accept":0,"learn":0}}}`
	path := filepath.Join(dir, "settings.json")
	write := func(s string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(good)
	if _, err := settings.Read(path); err != nil {
		t.Errorf("a good file: error %v", err)
	}
	for _, c := range []struct{ text, want string }{
		{"", "end of JSON input"},
		{good[:40], "end of JSON input"},
		{"null", "version 0"},
		{strings.Replace(good, `"version":1`, `"version":2`, 1),
			"it has version 2, and this program reads 1; update this program"},
		{strings.Replace(good, `"plane"`, `""`, 1), "names no feature space"},
		{strings.Replace(good, `0.2`, `-1`, 1), "both must be positive"},
		{strings.Replace(good, `0.2`, `1e999`, 1), "cannot unmarshal"},
		{strings.Replace(good, `"accept":0`, `"accept":1.5`, 1), "both must lie between 0 and 1"},
		{strings.Replace(good, `"learn":0`, `"learn":-1`, 1), "both must lie between 0 and 1"},
		{good + strings.Repeat(" ", 1<<20), "longer than"},
		{good + "x", "after top-level value"},
	} {
		write(c.text)
		if _, err := settings.Read(path); !errors.Is(err, settings.ErrNotSettings) ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%.60s: %v, want %q", c.text, err, c.want)
		}
	}
	if _, err := settings.Read(dir); !errors.Is(err, settings.ErrNotSettings) {
		t.Errorf("a folder: %v", err)
	}
	if _, err := settings.Read(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if err := settings.Write(filepath.Join(path, "below-a-file"), face.Space{}, nil); err == nil {
		t.Error("writing below a file gave no error")
	}
}
