// SPDX-License-Identifier: Apache-2.0

// Package input tells cameras, URLs and files apart, without opening them. facedet.Open opens them.
package input

import (
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Schemes are the schemes of URLs that can be opened.
var Schemes = []string{"http", "https", "rtsp", "rtsps"}

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

// Camera returns the number in "0" or "/dev/video0". A file or folder of such a name is no camera.
func Camera(name string) (int, bool) {
	info, err := os.Stat(name)
	if err == nil && (info.Mode().IsRegular() || info.IsDir()) {
		return 0, false
	}
	i, err := strconv.Atoi(strings.TrimPrefix(name, "/dev/video"))
	return i, err == nil && i >= 0
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
