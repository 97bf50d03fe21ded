// SPDX-License-Identifier: Apache-2.0

// Package axe provides axe-core, which finds barriers for people with disabilities on a page. Only tests use it; no
// program contains it.
//
// [Fetch] puts its npm package into the user's cache, and [Script] returns the script in it.
package axe

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/faceauth/faceauth/internal/safefile"
	"github.com/faceauth/faceauth/internal/xdg"
)

// The npm package (MPL-2.0), and the Subresource Integrity of its tarball.
const (
	tarball   = "axe-core-4.14.1.tgz"
	integrity = "sha512-FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ=="
)

// ErrIntegrity is wrapped if the package is not the pinned package.
var ErrIntegrity = errors.New("package is not the one that was pinned")

// most bounds the size of the package, which has 5 million bytes, and of its script.
const most = 16 << 20

func path() (string, error) {
	dir, err := xdg.Cache()
	return filepath.Join(dir, "faceauth", tarball), err
}

func check(b []byte) error {
	sum := sha512.Sum512(b)
	if "sha512-"+base64.StdEncoding.EncodeToString(sum[:]) != integrity {
		return fmt.Errorf("%s: %w", tarball, ErrIntegrity)
	}
	return nil
}

// Script returns axe-core. The error says how to fetch it.
func Script() (string, error) {
	script, err := read()
	if err != nil {
		return "", fmt.Errorf("axe-core is not there: %w; run: go run ./internal/fetch axe", err)
	}
	return script, nil
}

func read() (string, error) {
	name, err := path()
	if err != nil {
		return "", err
	}
	packed, err := os.ReadFile(name)
	if err != nil {
		return "", err
	}
	if err := check(packed); err != nil {
		return "", err
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return "", err
	}
	for r := tar.NewReader(z); ; {
		head, err := r.Next()
		if err != nil {
			return "", err
		}
		if head.Name == "package/axe.min.js" {
			script, err := io.ReadAll(io.LimitReader(r, most))
			return string(script), err
		}
	}
}

// Fetch fetches the package from the npm registry, or from the registry in $NPM_CONFIG_REGISTRY, unless it is in the
// cache.
func Fetch(ctx context.Context) error {
	if _, err := read(); err == nil {
		return nil
	}
	registry := cmp.Or(os.Getenv("NPM_CONFIG_REGISTRY"), os.Getenv("npm_config_registry"),
		"https://registry.npmjs.org/")
	u, err := url.Parse(registry)
	if err != nil {
		return errors.New("the registry that NPM_CONFIG_REGISTRY names is no URL")
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.JoinPath("axe-core", "-", tarball).String(), nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return fmt.Errorf("fetching %s: %w", tarball, err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("fetching %s: the registry answers %s", tarball, answer.Status)
	}
	b, err := io.ReadAll(io.LimitReader(answer.Body, most))
	if err != nil {
		return fmt.Errorf("fetching %s: %w", tarball, err)
	}
	if err := check(b); err != nil {
		return err
	}
	name, err := path()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	f, err := safefile.Create(name)
	if err != nil {
		return err
	}
	defer f.Abort()
	if _, err := f.Write(b); err != nil {
		return err
	}
	return f.Commit()
}
