// SPDX-License-Identifier: Apache-2.0

package models

import (
	"context"
	"errors"
	"fmt"
	"runtime"
)

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

// InstallRuntimeFrom is InstallRuntime from a tarball of the package that was fetched already.
func InstallRuntimeFrom(tarball, dir string, report func(string)) error {
	d, err := library(runtime.GOOS, runtime.GOARCH)
	if err != nil {
		return err
	}
	return installFrom(tarball, runtimeIntegrity, []Description{d}, dir, report)
}
