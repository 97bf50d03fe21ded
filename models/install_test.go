// SPDX-License-Identifier: Apache-2.0

package models

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func describe(name, content string) Description {
	sum := sha256.Sum256([]byte(content))
	return Description{Name: name, File: name + ".onnx", SHA256: hex.EncodeToString(sum[:])}
}

// pack makes an npm package of the files, and returns its path and integrity.
func pack(t *testing.T, files ...string) (path, integrity string) {
	t.Helper()
	var b bytes.Buffer
	gz := gzip.NewWriter(&b)
	w := tar.NewWriter(gz)
	for i := 0; i < len(files); i += 2 {
		if err := w.WriteHeader(&tar.Header{Name: files[i], Typeflag: tar.TypeReg, Mode: 0o600,
			Size: int64(len(files[i+1]))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(files[i+1])); err != nil {
			t.Fatal(err)
		}
	}
	w.Close()
	gz.Close()
	path = filepath.Join(t.TempDir(), "p.tgz")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	sum := sha512.Sum512(b.Bytes())
	return path, "sha512-" + base64.StdEncoding.EncodeToString(sum[:])
}

func TestInstallFrom(t *testing.T) {
	a, b := describe("a", "network a"), describe("b", "network b")
	tarball, integrity := pack(t,
		"package/README.md", "words",
		"package/model/a.onnx", "network a",
		"package/model/../../../escape.onnx", "never written",
		"package/model/b.onnx", "network b")
	dir := filepath.Join(t.TempDir(), "new", "models")
	var said []string
	report := func(s string) { said = append(said, s) }
	if err := installFrom(tarball, integrity, []Description{a, b}, dir, report); err != nil {
		t.Fatal(err)
	}
	if len(said) != 2 || !strings.Contains(said[0], "installed model a") {
		t.Errorf("said %q", said)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("files %v, error %v", entries, err)
	}
	// A second run has nothing to do. After damage the damaged file is replaced.
	said = nil
	if err := installFrom(tarball, integrity, []Description{a, b}, dir, report); err != nil || len(said) != 0 {
		t.Errorf("second run: reported %q, error %v", said, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "b.onnx"), []byte("altered"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Path(dir); !errors.Is(err, ErrHash) {
		t.Errorf("an altered file: error %v", err)
	}
	if err := installFrom(tarball, integrity, []Description{a, b}, dir, report); err != nil || len(said) != 1 {
		t.Errorf("run after damage: reported %q, error %v", said, err)
	}
	if _, err := b.Path(dir); err != nil {
		t.Error(err)
	}
}

func TestInstallErrors(t *testing.T) {
	a := describe("a", "network a")
	for _, c := range []struct {
		name  string
		files []string
		err   error
	}{
		{"a network with another hash", []string{"package/model/a.onnx", "network x"}, ErrHash},
		{"a package without the network", []string{"package/other", "x"}, ErrMissing},
	} {
		dir := t.TempDir()
		tarball, integrity := pack(t, c.files...)
		if err := installFrom(tarball, integrity, []Description{a}, dir, nil); !errors.Is(err, c.err) {
			t.Errorf("%s: error %v", c.name, err)
		}
		if left, _ := os.ReadDir(dir); len(left) != 0 {
			t.Errorf("%s: left %v behind", c.name, left)
		}
	}
	tarball, _ := pack(t, "package/model/a.onnx", "network a")
	if err := InstallFrom(tarball, t.TempDir(), nil); !errors.Is(err, ErrIntegrity) {
		t.Errorf("another package: error %v", err)
	}
	if err := InstallFrom(filepath.Join(t.TempDir(), "no"), t.TempDir(), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing package: error %v", err)
	}
}
