// SPDX-License-Identifier: Apache-2.0

// Package axe provides axe-core, which finds barriers for people with disabilities on a page. Only tests use it; no
// program contains it.
//
// [Fetch] puts its npm package into the user's cache, and [Script] returns the script in it.
package axe

import (
	"archive/tar"
	"bytes"
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
	"github.com/faceauth/faceauth/models"
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
		return "", fmt.Errorf("axe-core is not there: %w; run: go run ./internal/fetch", err)
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

// Fetch fetches the package from a registry, unless it is in the cache.
func Fetch(ctx context.Context, registry models.Registry) error {
	if _, err := read(); err == nil {
		return nil
	}
	u, err := url.Parse(registry.URL)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.JoinPath("axe-core", "-", tarball).String(), nil)
	if err != nil {
		return err
	}
	if registry.Authorization != "" {
		r.Header.Set("Authorization", registry.Authorization)
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
