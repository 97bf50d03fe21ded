// SPDX-License-Identifier: Apache-2.0

package install

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/npm"
	"github.com/faceauth/faceauth/models"
)

func quiet(string) {}

func describe(name, content string) models.Description {
	sum := sha256.Sum256([]byte(content))
	return models.Description{Name: name, File: name + ".onnx", SHA256: hex.EncodeToString(sum[:])}
}

// pack makes an npm package of the files.
func pack(t *testing.T, files ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	gz := gzip.NewWriter(&b)
	w := tar.NewWriter(gz)
	for i := 0; i < len(files); i += 2 {
		fixture.Check(t, w.WriteHeader(&tar.Header{Name: files[i], Typeflag: tar.TypeReg,
			Mode: 0o600,
			Size: int64(len(files[i+1]))}))
		fixture.Must(w.Write([]byte(files[i+1])))(t)
	}
	w.Close()
	gz.Close()
	return b.Bytes()
}

// serve serves a tarball, and counts the requests.
func serve(t *testing.T, tarball []byte) (npm.Package, *int) {
	t.Helper()
	asked := new(int)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*asked++
		w.Write(tarball)
	}))
	t.Cleanup(s.Close)
	return npm.Package{URL: s.URL, Limit: 1 << 20}, asked
}

func TestInstall(t *testing.T) {
	a, b := describe("a", "network a"), describe("b", "network b")
	from, asked := serve(t, pack(t,
		"package/README.md", "words",
		"package/model/a.onnx", "network a",
		"package/model/../../../escape.onnx", "never written",
		"package/model/b.onnx", "network b"))
	dir := filepath.Join(t.TempDir(), "new", "models")
	for _, c := range []struct {
		damaged   string
		installed int
		asked     int
	}{
		{"", 2, 1},
		{"", 0, 1}, // if all networks are there, no registry is asked
		{"b.onnx", 1, 2},
	} {
		if c.damaged != "" {
			fixture.Check(t, os.WriteFile(filepath.Join(dir, c.damaged), []byte("altered"),
				0o600))
			if _, err := b.Path(dir); !errors.Is(err, models.ErrHash) {
				t.Errorf("an altered file: error %v", err)
			}
		}
		installed := 0
		err := install(t.Context(), from, []models.Description{a, b}, dir, func(s string) {
			installed += strings.Count(s, "installed model ")
		})
		if err != nil || installed != c.installed || *asked != c.asked {
			t.Errorf("%+v: %d installed, %d requests, error %v", c, installed, *asked, err)
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
			t.Errorf("files %v, error %v", entries, err)
		}
	}
}

func TestInstallErrors(t *testing.T) {
	a := describe("a", "network a")
	for _, c := range []struct {
		name  string
		files []string
		err   error
	}{
		{"a network with another hash", []string{"package/model/a.onnx", "network x"},
			models.ErrHash},
		{"a package without the network", []string{"package/other", "x"}, models.ErrMissing},
	} {
		dir := t.TempDir()
		from, _ := serve(t, pack(t, c.files...))
		err := install(t.Context(), from, []models.Description{a}, dir, quiet)
		if !errors.Is(err, c.err) {
			t.Errorf("%s: error %v", c.name, err)
		}
		if left, _ := os.ReadDir(dir); len(left) != 0 {
			t.Errorf("%s: left %v behind", c.name, left)
		}
	}
}

func TestFrom(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "package.tgz")
	for _, c := range []struct {
		name    string
		content []byte
		want    string
	}{
		{"another package", pack(t, "package/model/a.onnx", "network a"),
			"package.tgz: no network is in it; it must be"},
		{"another network", pack(t, "package/model/fr_detect.onnx", "x"),
			"package.tgz: fr_detect: the model file does not"},
		{"no package", []byte("words"), "package.tgz: "},
	} {
		fixture.Check(t, os.WriteFile(path, c.content, 0o600))
		if err := From(path, filepath.Join(dir, "models"), quiet); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v", c.name, err)
		}
	}
	if err := From(filepath.Join(dir, "no"), dir, quiet); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing package: error %v", err)
	}
}

// A network is installed only from the file with its hash, and then preferred.
func TestNamed(t *testing.T) {
	dir := t.TempDir()
	if d := models.Best(dir); d.Name != models.Default(models.Detector).Name {
		t.Errorf("nothing is installed, and %s is used", d.Name)
	}
	wrong := filepath.Join(dir, "wrong.onnx")
	fixture.Check(t, os.WriteFile(wrong, []byte("another file"), 0o600))
	for name, c := range map[string]struct {
		from string
		want error
	}{"yunet": {wrong, models.ErrHash}, "sface": {filepath.Join(dir, "none"), fs.ErrNotExist}} {
		if err := Named(t.Context(), name, c.from, dir, quiet); !errors.Is(err, c.want) {
			t.Errorf("%s from %s: %v", name, c.from, err)
		}
	}
	if err := Named(t.Context(), "resnet", "", dir, quiet); err == nil ||
		!strings.Contains(err.Error(), "models list") {
		t.Errorf("an unknown network: %v", err)
	}
	if d := models.Best(dir); d.Name != models.Default(models.Detector).Name {
		t.Errorf("after failures %s is used", d.Name)
	}
	yunet, _ := models.Of(models.Detector, "yunet")
	file := fixture.Recordings(t, "models/"+yunet.File)
	fixture.Check(t, Named(t.Context(), "yunet", file, dir, quiet))
	if d := models.Best(dir); d.Name != "yunet" {
		t.Errorf("yunet is installed, and %s is used", d.Name)
	}
	if all := models.Present(dir); len(all) != len(models.Builtin())+1 ||
		all[len(all)-1].Name != "yunet" {
		t.Errorf("present: %v", all)
	}
}
