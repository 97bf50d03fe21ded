// SPDX-License-Identifier: Apache-2.0

// Package input tells by the names of sources what they are, without opening them. facedet.Open opens them.
package input

import (
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Schemes are the schemes of URLs that can be opened.
var Schemes = []string{"http", "https", "rtsp", "rtsps"}

// ImageExtensions are the endings of image files.
var ImageExtensions = []string{".jpg", ".jpeg", ".png", ".pgm", ".ppm", ".pnm", ".bmp", ".tif", ".tiff", ".webp"}

// IsURL reports whether a name is a URL of one of the [Schemes].
func IsURL(name string) bool {
	scheme, _, found := strings.Cut(name, "://")
	return found && slices.Contains(Schemes, strings.ToLower(scheme))
}

// IsRecording reports whether name is that of a file or folder, and not of a camera or a URL.
func IsRecording(name string) bool {
	_, camera := Camera(name)
	return !camera && !strings.Contains(name, "://")
}

// Camera returns the number in "0" or "/dev/video0".
func Camera(name string) (int, bool) {
	i, err := strconv.Atoi(strings.TrimPrefix(name, "/dev/video"))
	return i, err == nil && i >= 0
}

// IsImage reports whether a file is an image by its name.
func IsImage(path string) bool {
	return slices.Contains(ImageExtensions, strings.ToLower(filepath.Ext(path)))
}

// HasImages reports whether the folder dir holds an image file.
func HasImages(dir string) bool {
	names, err := Images(dir)
	return err == nil && len(names) > 0
}

// Images returns the names of the image files in dir itself.
func Images(dir string) (names []string, err error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if !e.IsDir() && IsImage(e.Name()) && !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// Shown returns the name of a source for messages, reports and logs. For a URL this is its scheme, its host and its
// path. User, password and query are left out, because cameras have tokens there. A path with "=" in it is left out,
// too, because some cameras have their password there.
func Shown(name string) string {
	if !strings.Contains(name, "://") {
		return name
	}
	u, err := url.Parse(name)
	if err != nil || u.Host == "" {
		return "URL"
	}
	shown := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}
	if strings.Contains(u.Path, "=") {
		shown.Path, shown.RawPath = "/...", ""
	}
	text := shown.String()
	if u.RawQuery != "" {
		text += "?..."
	}
	return text
}
