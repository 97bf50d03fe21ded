// SPDX-License-Identifier: Apache-2.0

package models_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/models"
)

const example = `{
  "name": "my-embedding", "kind": "embedding", "file": "my.onnx",
  "sha256": "87aacdfe57510db2af90c0251df680e8eec88f122ee94712121d09bcaaaf3581",
  "licence": "MIT", "source": "where it came from",
  "input": {"width": 112, "height": 112, "scale": 0.0078125, "mean": [127, 127, 127],
    "colour": "bgr"},
  "dim": 512, "sigma": 0.2, "gamma": 0.001, "reach": 0.86, "impostor_radius": 0.93,
  "genuine_radius": 1.3
}`

func describe(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "d.json")
	fixture.Check(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestParseDescription(t *testing.T) {
	path := describe(t, example)
	d := fixture.Must(models.ParseDescription(path))(t)
	want := models.Default(models.Embedding)
	if d.Input != want.Input || d.Dim != want.Dim || d.Sigma != want.Sigma ||
		d.Gamma != want.Gamma {
		t.Errorf("description %+v", d)
	}
	if d.File != filepath.Join(filepath.Dir(path), "my.onnx") {
		t.Errorf("file %s, want it beside the description", d.File)
	}
	// The package's documentation shows the same description.
	source := fixture.Must(os.ReadFile("models.go"))(t)
	for _, line := range strings.Split(example, "\n") {
		if !strings.Contains(string(source), "//\t"+line+"\n") {
			t.Errorf("the documentation has no line %q", line)
		}
	}
}

// The builtin networks pass the checks for other networks.
func TestBuiltin(t *testing.T) {
	seen := map[models.Kind]bool{}
	for _, d := range models.Builtin() {
		b := fixture.Must(json.Marshal(d))(t)
		if _, err := models.ParseDescription(describe(t, string(b))); err != nil {
			t.Error(err)
		}
		if d.Licence == "" || d.Source == "" || seen[d.Kind] {
			t.Errorf("%s has no licence, no source, or the kind of another network", d.Name)
		}
		seen[d.Kind] = true
	}
}

func TestParseDescriptionErrors(t *testing.T) {
	for _, c := range []struct{ name, old, new, want string }{
		{"no JSON", example, "no JSON", "invalid character"},
		{"empty", example, "", "EOF"},
		{"two descriptions", example, example + example, "something follows"},
		{"unknown field", `"name"`, `"nmae"`, "nmae"},
		{"no name", "my-embedding", "", "no name"},
		{"no file", "my.onnx", "", "names no file"},
		{"short hash", "87aa", "", "64 hexadecimal"},
		{"hash not hexadecimal", "87aacd", "xxxxxx", "64 hexadecimal"},
		{"no width", `"width": 112`, `"width": 0`, "0x112"},
		{"enormous height", `"height": 112`, `"height": 100000`, "112x100000"},
		{"negative scale", "0.0078125", "-1", "scale"},
		{"unknown colour", `"bgr"`, `"red"`, `"red"`},
		{"unknown kind", `"embedding"`, `"oracle"`, `"oracle"`},
		{"no dim", `"dim": 512`, `"dim": 0`, "dim"},
		{"gamma without sigma", `"sigma": 0.2`, `"sigma": 0`, "or neither"},
		{"negative radius", "0.93", "-1", "needs a dim"},
		{"detector without outputs", `"embedding"`, `"detector"`, "2 outputs"},
		{"unknown layout", `"embedding"`, `"detector", "layout": "yolo"`,
			`"yolo"; use yunet, scrfd`},
		{"YuNet with two outputs", `"embedding"`,
			`"detector", "layout": "yunet", "outputs": ["a", "b"]`, "9 outputs"},
		{"SCRFD of another size", `"embedding"`,
			`"detector", "layout": "scrfd", "threshold": 0.5, "nms": 0.4,
			"outputs": ["1", "2", "3", "4", "5", "6"]`, "multiples of 32"},
		{"liveness without crop", `"kind": "embedding"`, `"kind": "liveness"`,
			`the crop of a liveness network is ""; use square or box`},
		{"liveness with another crop", `"kind": "embedding"`, `"kind": "liveness", "crop": "round"`,
			`"round"`},
		{"liveness without scale", `"kind": "embedding"`, `"kind": "liveness", "crop": "square"`,
			"a box_scale of 0.5 to 10, got 0"},
		{"small crop", `"kind": "embedding"`, `"kind": "liveness", "crop": "box", "box_scale": 0.4`,
			"got 0.4"},
		{"large crop", `"kind": "embedding"`,
			`"kind": "liveness", "crop": "box", "box_scale": 1e300`, "got 1e+300"},
		{"liveness without threshold", `"kind": "embedding"`,
			`"kind": "liveness", "crop": "box", "box_scale": 2.7`,
			"threshold between 0 and 1, got 0"},
		{"liveness with a threshold that no face reaches", `"kind": "embedding"`,
			`"kind": "liveness", "crop": "box", "box_scale": 2.7, "threshold": 1`, "got 1"},
	} {
		text := strings.Replace(example, c.old, c.new, 1)
		_, err := models.ParseDescription(describe(t, text))
		if err == nil || !strings.Contains(err.Error(), c.want) ||
			!errors.Is(err, models.ErrDescription) {
			t.Errorf("%s: error %v, want it to say %s", c.name, err, c.want)
		}
	}
	if _, err := models.ParseDescription(filepath.Join(t.TempDir(), "no")); !errors.Is(err,
		os.ErrNotExist) {
		t.Errorf("a missing description: %v", err)
	}
}

func TestDir(t *testing.T) {
	t.Setenv("HOME", "/home/me")
	dirs := t.TempDir()
	t.Setenv("XDG_DATA_DIRS", dirs+":relative:"+filepath.Join(dirs, "shared"))
	for _, c := range []struct{ own, xdg, want string }{
		{"/m", "/x", "/m"},
		{"", "/x", "/x/faceauth/models"},
		{"", "relative", "/home/me/.local/share/faceauth/models"},
		{"", "", "/home/me/.local/share/faceauth/models"},
	} {
		t.Setenv("FACEAUTH_MODELS", c.own)
		t.Setenv("XDG_DATA_HOME", c.xdg)
		if got := models.Dir(); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
	for _, name := range []string{"shared", "own"} { // the user's own folder comes first
		t.Setenv("XDG_DATA_HOME", filepath.Join(dirs, "own"))
		want := filepath.Join(dirs, name, "faceauth", "models")
		fixture.Check(t, os.MkdirAll(want, 0o700))
		if got := models.Dir(); got != want {
			t.Errorf("folder %s, want %s", got, want)
		}
	}
}

// Missing checks whether a file exists, and does not read it.
func TestMissing(t *testing.T) {
	dir := t.TempDir()
	d := models.Default(models.Embedding)
	if err := d.Missing(dir); !errors.Is(err, models.ErrMissing) {
		t.Error(err)
	}
	fixture.Check(t, os.WriteFile(filepath.Join(dir, d.File), []byte("no network"), 0o600))
	if err := d.Missing(dir); err != nil {
		t.Error(err)
	}
	if _, err := d.Path(dir); !errors.Is(err, models.ErrHash) {
		t.Error(err)
	}
	if s := d.Space(); s.Dim != 512 || !strings.HasPrefix(s.ID, "embedding:87aacdfe5751:") ||
		!s.Stills.Measured() ||
		!s.Streams.Measured() || !s.Unit {
		t.Errorf("space %+v", s)
	}
}
