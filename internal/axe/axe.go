// SPDX-License-Identifier: Apache-2.0

// Package axe provides axe-core, which finds barriers for people with disabilities on a page. Only
// tests use it; no program contains it.
//
// [Fetch] puts its npm package into the user's cache, and [Script] returns the script in it.
package axe

import (
	"bytes"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/faceauth/faceauth/internal/npm"
	"github.com/faceauth/faceauth/internal/safefile"
	"github.com/faceauth/faceauth/internal/xdg"
)

// The npm package (MPL-2.0), and the Subresource Integrity of its tarball.
var axeCore = npm.Package{URL: "https://registry.npmjs.org/axe-core/-/axe-core-4.14.1.tgz",
	Limit: 16 << 20, Elsewhere: "put it into ~/.cache/faceauth"}

const integrity = "sha512-FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ=="

func path() (string, error) {
	dir, err := xdg.Cache()
	return filepath.Join(dir, "faceauth", filepath.Base(axeCore.URL)), err
}

// Script returns axe-core. The error says how to fetch it.
func Script() (string, error) {
	var packed, script []byte
	name, err := path()
	if err == nil {
		packed, err = os.ReadFile(name)
	}
	if err == nil {
		script, err = unpack(packed)
	}
	if err != nil {
		return "", fmt.Errorf("axe-core is not there: %w; run: go run ./internal/fetch", err)
	}
	return string(script), nil
}

// unpack returns the script of the package, which must be the pinned one.
func unpack(packed []byte) (script []byte, err error) {
	sum := sha512.Sum512(packed)
	if "sha512-"+base64.StdEncoding.EncodeToString(sum[:]) != integrity {
		return nil, errors.New("the package is not the one that was pinned")
	}
	err = npm.Unpack(bytes.NewReader(packed), func(name string, content io.Reader) (err error) {
		if name == "package/axe.min.js" {
			script, err = io.ReadAll(content)
		}
		return err
	})
	return script, err
}

// Fetch fetches the package, unless it is in the cache.
func Fetch(ctx context.Context) error {
	if _, err := Script(); err == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	tarball, err := npm.Fetch(ctx, axeCore, func(string) {})
	if err != nil {
		return err
	}
	defer tarball.Close()
	packed, err := io.ReadAll(tarball)
	if err != nil {
		return err
	}
	if _, err := unpack(packed); err != nil {
		return err
	}
	name, err := path()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	return safefile.Write(name, packed)
}
