// SPDX-License-Identifier: Apache-2.0

package models

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"github.com/faceauth/faceauth/internal/npm"
	"github.com/faceauth/faceauth/internal/safefile"
)

// RuntimeVersion is the version of ONNX Runtime that is installed.
const RuntimeVersion = "1.30.0"

const elsewhere = "run here: faceauth models install --from FILE"

// The npm packages that carry the builtin networks, 41 million bytes, and ONNX Runtime, 114
// million.
var (
	networks = npm.Package{
		URL:   "https://registry.npmjs.org/faceplugin-face-recognition-js/-/faceplugin-face-recognition-js-0.0.1.tgz",
		Limit: 64 << 20, Elsewhere: elsewhere}
	onnxruntime = npm.Package{
		URL: "https://registry.npmjs.org/onnxruntime-node/-/onnxruntime-node-" + RuntimeVersion +
			".tgz",
		Limit: 128 << 20, Elsewhere: elsewhere}
)

func sourceOf(p npm.Package) string {
	return "npm package " + strings.TrimSuffix(path.Base(p.URL), ".tgz")
}

// Install installs the builtin networks that are missing or wrong in dir. It fetches their package
// from npm's registry, through the proxy in $HTTPS_PROXY, and keeps a file only if its hash is the
// expected one. If nothing is missing, it fetches nothing. Report gets a line for each step.
func Install(ctx context.Context, dir string, report func(string)) error {
	return install(ctx, networks, Builtin(), dir, report)
}

// InstallRuntime is [Install] for the library of ONNX Runtime. Without it OpenCV runs the networks.
// The error wraps [ErrNoRuntime] if there is none for this system.
func InstallRuntime(ctx context.Context, dir string, report func(string)) error {
	d, err := library(runtime.GOOS, runtime.GOARCH)
	if err != nil {
		return err
	}
	return install(ctx, onnxruntime, []Description{d}, dir, report)
}

// InstallFrom is [Install], or [InstallRuntime], from a tarball of the package that was fetched
// already.
func InstallFrom(tarball, dir string, report func(string)) error {
	f, err := safefile.Open(tarball)
	if err != nil {
		return fmt.Errorf("installing models: %w", err)
	}
	defer f.Close()
	all := Builtin()
	if d, err := library(runtime.GOOS, runtime.GOARCH); err == nil {
		all = append(all, d)
	}
	found, err := unpack(f, all, dir, report)
	if err == nil && found == 0 {
		err = errors.New("no network is in it")
	}
	if err != nil && !errors.Is(err, syscall.ENOSPC) {
		err = fmt.Errorf("%s: %w; it must be the tarball of the %s or the %s",
			filepath.Base(tarball), err, sourceOf(networks), sourceOf(onnxruntime))
	}
	return failed(err)
}

func install(ctx context.Context, from npm.Package, all []Description, dir string,
	report func(string)) error {
	wanting := func(d Description) bool { _, err := d.Path(dir); return err != nil }
	if !slices.ContainsFunc(all, wanting) {
		return nil
	}
	tarball, err := npm.Fetch(ctx, from, report)
	if err != nil {
		return failed(err)
	}
	defer tarball.Close()
	_, err = unpack(tarball, all, dir, report)
	if err != nil {
		return failed(err)
	}
	for _, d := range all {
		if _, err := d.Path(dir); err != nil {
			return failed(err)
		}
	}
	return nil
}

// failed says what was not done, and what to do about a full disk.
func failed(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("installing models: %w: make room there, then run it again", err)
	}
	return fmt.Errorf("installing models: %w", err)
}

// unpack installs those files of a package that are missing or wrong in dir. It returns how many of
// all it holds.
func unpack(tarball io.Reader, all []Description, dir string,
	report func(string)) (found int, err error) {
	files := map[string]Description{}
	for _, d := range all {
		files["package/"+cmp.Or(d.inside, "model/"+d.File)] = d
	}
	err = npm.Unpack(tarball, func(name string, content io.Reader) error {
		d, ok := files[name]
		if !ok {
			return nil
		}
		found++
		if _, err := d.Path(dir); err == nil {
			return nil
		}
		if err := d.write(io.LimitReader(content, 1<<30), dir); err != nil {
			return fmt.Errorf("%s: %w", d.Name, err)
		}
		report(fmt.Sprintf("installed model %s (%s, %s) in %s", d.Name, d.Kind, d.Licence, dir))
		return nil
	})
	return found, err
}

// write writes the file to dir, if its hash is the expected one.
func (d Description) write(r io.Reader, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	f, err := safefile.Create(filepath.Join(dir, d.File))
	if err != nil {
		return err
	}
	defer f.Abort()
	h := sha256.New()
	if _, err := io.Copy(io.MultiWriter(f, h), r); err != nil {
		return err
	}
	if hex.EncodeToString(h.Sum(nil)) != d.SHA256 {
		return fmt.Errorf("%w: the package is not the %s", ErrHash, d.Source)
	}
	if err := f.Chmod(0o644); err != nil {
		return err
	}
	return f.Commit()
}

// ErrNoRuntime is returned if there is no ONNX Runtime for this system and processor, or none in
// the folder.
var ErrNoRuntime = errors.New("there is no ONNX Runtime")

// library describes the shared library of ONNX Runtime for a system and processor.
func library(system, processor string) (Description, error) {
	d := Description{
		Name: "onnxruntime", Kind: "library", File: "libonnxruntime.so", Licence: "MIT",
		Source: sourceOf(onnxruntime),
	}
	switch system + "/" + processor {
	case "linux/amd64":
		d.inside = "bin/napi-v6/linux/x64/libonnxruntime.so.1"
		d.SHA256 = "ffb75a925ba05e47b235bb66e3e3911714a80b328a9c9425539feb204aa32a23"
	case "linux/arm64":
		d.inside = "bin/napi-v6/linux/arm64/libonnxruntime.so.1"
		d.SHA256 = "1f549d46250b005580b597f4164984aaf75b3bcb9f3aeb07c7f8a8fe60b23c76"
	default:
		return d, fmt.Errorf("%w for %s on %s", ErrNoRuntime, system, processor)
	}
	return d, nil
}

// Runtime checks the library of ONNX Runtime in dir, and returns its path. The error wraps
// [ErrNoRuntime] or [ErrHash].
func Runtime(dir string) (string, error) {
	d, err := library(runtime.GOOS, runtime.GOARCH)
	if err != nil {
		return "", err
	}
	path, err := d.Path(dir)
	if errors.Is(err, ErrMissing) {
		return "", fmt.Errorf("%w in %s; run: faceauth models install", ErrNoRuntime, dir)
	}
	return path, err
}
