// SPDX-License-Identifier: Apache-2.0

package models

import (
	"archive/tar"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"

	"github.com/faceauth/faceauth/internal/safefile"
)

// The npm package that carries the builtin networks, and the Subresource Integrity of its tarball.
const (
	packageName    = "faceplugin-face-recognition-js"
	packageVersion = "0.0.1"
	integrity      = "sha512-shriXjd4zJHEwhK1jHK+bWo8Vv6Vu9B/w6RRsd4AFtNM/jaI2vhuOamOSMl9qQmLd8WlQ7dgqN+3C2iOi5pXWw=="
)

// ErrIntegrity is returned if the fetched file is not the expected package.
var ErrIntegrity = errors.New("the package differs from the pinned package")

// Install installs the builtin networks that are missing or wrong in dir. It fetches their package from r, through the
// proxy in $HTTPS_PROXY. It checks the integrity of the package before it opens it. If nothing is missing, it fetches
// nothing. Report, if it is not nil, gets a line for each step. The error wraps [ErrFetch], [ErrIntegrity], or an error
// of package fs.
func Install(ctx context.Context, r Registry, dir string, report func(string)) error {
	return newFetcher(r).install(ctx, integrity, Builtin(), dir, report)
}

func (f *fetcher) install(ctx context.Context, integrity string, all []Description, dir string,
	report func(string)) (err error) {
	defer room(&err)
	wanting := func(d Description) bool { _, err := d.Path(dir); return err != nil }
	if !slices.ContainsFunc(all, wanting) {
		return nil
	}
	tmp, err := os.MkdirTemp("", "faceauth-models-")
	if err != nil {
		return fmt.Errorf("installing models: %w", err)
	}
	defer os.RemoveAll(tmp)
	tarball, err := f.fetch(ctx, tmp, report)
	if err != nil {
		return fmt.Errorf("installing models: %w", err)
	}
	return installFrom(tarball, integrity, all, dir, report)
}

// InstallFrom is Install, or InstallRuntime, from a tarball of the package that was fetched already.
func InstallFrom(tarball, dir string, report func(string)) error {
	err := installFrom(tarball, integrity, Builtin(), dir, report)
	if d, none := library(runtime.GOOS, runtime.GOARCH); none == nil && errors.Is(err, ErrIntegrity) {
		if other := installFrom(tarball, runtimeIntegrity, []Description{d}, dir, report); !errors.Is(other, ErrIntegrity) {
			err = other
		}
	}
	room(&err)
	return err
}

// room says what to do about a full disk.
func room(err *error) {
	if errors.Is(*err, syscall.ENOSPC) {
		*err = fmt.Errorf("%w: make room there, then run it again", *err)
	}
}

func installFrom(tarball, integrity string, all []Description, dir string, report func(string)) error {
	f, err := safefile.Open(tarball)
	if err != nil {
		return fmt.Errorf("installing models: %w", err)
	}
	defer f.Close()
	h := sha512.New()
	size, err := io.Copy(h, f)
	if err != nil {
		return fmt.Errorf("installing models: %w", err)
	}
	if "sha512-"+base64.StdEncoding.EncodeToString(h.Sum(nil)) != integrity {
		return fmt.Errorf("installing models: %w: %s of %d bytes has another SHA-512 than %s",
			ErrIntegrity, filepath.Base(tarball), size, all[0].Source)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("installing models: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("installing models: %w", err)
	}
	files := map[string]Description{}
	for _, d := range all {
		files["package/"+cmp.Or(d.inside, "model/"+d.File)] = d
	}
	gz, err := gzip.NewReader(f)
	if err != nil {
		return fmt.Errorf("installing models: %w", err)
	}
	for r := tar.NewReader(gz); ; {
		head, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return fmt.Errorf("installing models: %w", err)
		}
		d, ok := files[head.Name]
		if !ok || head.Typeflag != tar.TypeReg {
			continue
		}
		if _, err := d.Path(dir); err == nil {
			continue
		}
		if err := d.write(io.LimitReader(r, 1<<30), dir); err != nil {
			return fmt.Errorf("installing model %s: %w", d.Name, err)
		}
		if report != nil {
			report(fmt.Sprintf("installed model %s (%s, %s) in %s", d.Name, d.Kind, d.Licence, dir))
		}
	}
	for _, d := range all {
		if _, err := d.Path(dir); err != nil {
			return fmt.Errorf("installing models: %w", err)
		}
	}
	return nil
}

// write writes the file to dir, if its hash is the expected one.
func (d Description) write(r io.Reader, dir string) error {
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
		return ErrHash
	}
	if err := f.Chmod(0o644); err != nil {
		return err
	}
	return f.Commit()
}

// RuntimeVersion is the version of ONNX Runtime that is installed.
const RuntimeVersion = "1.30.0"

// The npm package that carries ONNX Runtime, and the Subresource Integrity of its tarball.
const (
	runtimeName      = "onnxruntime-node"
	runtimeIntegrity = "sha512-twhs1C2C/BFkz1yc5OY0KIU2GUq6DURO7hD4bx5Q2Qy3nAMJwRXW8xU3NVczE29VA9lolLOYepoD8fjTGOfIqw=="
)

// ErrNoRuntime is returned if there is no ONNX Runtime for this system and processor, or none in the folder.
var ErrNoRuntime = errors.New("there is no ONNX Runtime")

// library describes the shared library of ONNX Runtime for a system and processor.
func library(system, processor string) (Description, error) {
	d := Description{
		Name: "onnxruntime", Kind: "library", File: "libonnxruntime.so", Licence: "MIT",
		Source: "npm package " + runtimeName + "@" + RuntimeVersion,
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

// Runtime checks the library of ONNX Runtime in dir, and returns its path. The error wraps [ErrNoRuntime]
// or [ErrHash].
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

// InstallRuntime is [Install] for the library of ONNX Runtime. Without it OpenCV runs the networks.
func InstallRuntime(ctx context.Context, r Registry, dir string, report func(string)) error {
	d, err := library(runtime.GOOS, runtime.GOARCH)
	if err != nil {
		return err
	}
	f := newFetcher(r)
	f.name, f.version, f.limit = runtimeName, RuntimeVersion, 128<<20 // the package has 114 million bytes
	return f.install(ctx, runtimeIntegrity, []Description{d}, dir, report)
}
