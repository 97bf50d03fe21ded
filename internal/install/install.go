// SPDX-License-Identifier: Apache-2.0

// Package install fetches the networks that package models describes, and ONNX Runtime, which runs
// them.
package install

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
	"github.com/faceauth/faceauth/models"
)

// Version is the version of ONNX Runtime that is installed.
const Version = "1.30.0"

const elsewhere = "run here: faceauth models install --from FILE"

// The npm packages that carry the builtin networks, 41 million bytes, and ONNX Runtime, 114
// million.
var (
	networks = npm.Package{
		URL:   "https://registry.npmjs.org/faceplugin-face-recognition-js/-/faceplugin-face-recognition-js-0.0.1.tgz",
		Limit: 64 << 20, Elsewhere: elsewhere}
	onnxruntime = npm.Package{
		URL: "https://registry.npmjs.org/onnxruntime-node/-/onnxruntime-node-" + Version +
			".tgz",
		Limit: 128 << 20, Elsewhere: elsewhere}
)

// inside is the path of a file in its package, by processor and name, if it is not model/File.
var inside = map[string]string{
	"amd64onnxruntime": "bin/napi-v6/linux/x64/libonnxruntime.so.1",
	"arm64onnxruntime": "bin/napi-v6/linux/arm64/libonnxruntime.so.1",
}

// addresses are those of networks of the catalogue that are in no package, by name.
var addresses = map[string]string{
	"yunet": zoo + "face_detection_yunet/face_detection_yunet_2026may.onnx",
	"sface": zoo + "face_recognition_sface/face_recognition_sface_2021dec.onnx",
	"auraface": "https://huggingface.co/fal/AuraFace-v1/resolve/" +
		"af6d057c9b0ec4071d4c49c80e3539258798b609/glintr100.onnx",
}

const zoo = "https://github.com/opencv/opencv_zoo/raw/47534e27c9851bb1128ccc0102f1145e27f23f98" +
	"/models/"

func sourceOf(p npm.Package) string {
	return "npm package " + strings.TrimSuffix(path.Base(p.URL), ".tgz")
}

// Builtin installs the builtin networks that are missing or wrong in dir. It fetches their package
// from npm's registry, through the proxy in $HTTPS_PROXY, and keeps a file only if its hash is the
// expected one. If nothing is missing, it fetches nothing. Report gets a line for each step.
func Builtin(ctx context.Context, dir string, report func(string)) error {
	return install(ctx, networks, models.Builtin(), dir, report)
}

// Runtime is [Builtin] for the library of ONNX Runtime. Without it OpenCV runs the networks.
// The error wraps [ErrNoRuntime] if there is none for this system.
func Runtime(ctx context.Context, dir string, report func(string)) error {
	d, err := library(runtime.GOOS, runtime.GOARCH)
	if err != nil {
		return err
	}
	return install(ctx, onnxruntime, []models.Description{d}, dir, report)
}

// From is [Builtin], or [Runtime], from a tarball of the package that was fetched already.
func From(tarball, dir string, report func(string)) error {
	f, err := safefile.Open(tarball)
	if err != nil {
		return fmt.Errorf("installing models: %w", err)
	}
	defer f.Close()
	all := models.Builtin()
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

func install(ctx context.Context, from npm.Package, all []models.Description, dir string,
	report func(string)) error {
	wanting := func(d models.Description) bool { _, err := d.Path(dir); return err != nil }
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
func unpack(tarball io.Reader, all []models.Description, dir string,
	report func(string)) (found int, err error) {
	files := map[string]models.Description{}
	for _, d := range all {
		files["package/"+cmp.Or(inside[runtime.GOARCH+d.Name], "model/"+d.File)] = d
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
		return keep(d, io.LimitReader(content, 1<<30), dir, report)
	})
	return found, err
}

// keep writes the file of a network to dir, and reports it.
func keep(d models.Description, r io.Reader, dir string, report func(string)) error {
	err := write(d, r, dir)
	if err != nil {
		return fmt.Errorf("%s: %w", d.Name, err)
	}
	report(fmt.Sprintf("installed model %s (%s, %s) in %s", d.Name, d.Kind, d.Licence, dir))
	return nil
}

// write writes the file to dir, if its hash is the expected one.
func write(d models.Description, r io.Reader, dir string) error {
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
		return fmt.Errorf("%w: the package is not the %s", models.ErrHash, d.Source)
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
func library(system, processor string) (models.Description, error) {
	d := models.Description{
		Name: "onnxruntime", Kind: "library", File: "libonnxruntime.so", Licence: "MIT",
		Source: sourceOf(onnxruntime),
		SHA256: map[string]string{
			"amd64": "ffb75a925ba05e47b235bb66e3e3911714a80b328a9c9425539feb204aa32a23",
			"arm64": "1f549d46250b005580b597f4164984aaf75b3bcb9f3aeb07c7f8a8fe60b23c76",
		}[processor],
	}
	if system != "linux" || d.SHA256 == "" {
		return d, fmt.Errorf("%w for %s on %s", ErrNoRuntime, system, processor)
	}
	return d, nil
}

// Library checks the library of ONNX Runtime in dir, and returns its path. The error wraps
// [ErrNoRuntime] or [models.ErrHash].
func Library(dir string) (string, error) {
	d, err := library(runtime.GOOS, runtime.GOARCH)
	if err != nil {
		return "", err
	}
	path, err := d.Path(dir)
	if errors.Is(err, models.ErrMissing) {
		return "", fmt.Errorf("%w in %s; run: faceauth models install", ErrNoRuntime, dir)
	}
	return path, err
}

// mostFetched is the most bytes that a network of the catalogue has.
const mostFetched = 512 << 20

// Named installs a network of [models.Catalogue], if it is missing or wrong in dir: from the
// address at which it is published, or from a file that was fetched already. Report gets a line for
// each step.
func Named(ctx context.Context, name, from, dir string, report func(string)) error {
	all := models.Catalogue()
	i := slices.IndexFunc(all, func(d models.Description) bool { return d.Name == name })
	if i < 0 {
		return fmt.Errorf("there is no network %.100q; run: faceauth models list", name)
	}
	d, address := all[i], addresses[name]
	_, err := d.Path(dir)
	switch {
	case err == nil:
		report(fmt.Sprintf("model %s is installed in %s", d.Name, dir))
		return nil
	case address == "" && from != "":
		return From(from, dir, report)
	case address == "":
		return Builtin(ctx, dir, report)
	}
	var file io.ReadCloser
	if from != "" {
		file, err = safefile.Open(from)
	} else {
		file, err = npm.Fetch(ctx, npm.Package{URL: address, Limit: mostFetched,
			Elsewhere: "run here: faceauth models install " + name + " --from FILE"}, report)
	}
	if err != nil {
		return failed(err)
	}
	defer file.Close()
	return failed(keep(d, file, dir, report))
}

// Missing returns [models.Description.Missing] of the first builtin network that is missing.
func Missing(dir string) error {
	for _, d := range models.Builtin() {
		if err := d.Missing(dir); err != nil {
			return err
		}
	}
	return nil
}
