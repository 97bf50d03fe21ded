// SPDX-License-Identifier: Apache-2.0

package facedet_test

import (
	"context"
	"errors"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/input"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/faceauth/faceauth/facedet"
)

// The error of a URL without video gives the reason, and never shows a password.
func TestURLErrors(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/page":
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			w.Write([]byte("<!doctype html>"))
		case "/secret":
			w.WriteHeader(http.StatusUnauthorized)
		case "/broken":
			w.WriteHeader(http.StatusInternalServerError)
		case "/garbage":
			w.Header().Set("Content-Type", "video/mp4")
			w.Write([]byte("no video"))
		case "/index-at-end":
			w.Header().Set("Content-Type", "video/mp4")
			w.Write([]byte("\x00\x00\x00\x10ftypisom\x00\x00\x02\x00\x00\x00\x10\x00mdat"))
		default:
			http.NotFound(w, r)
		}
	}))
	defer s.Close()
	closed := fixture.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	nobody := closed.Addr().String()
	closed.Close()
	host := strings.TrimPrefix(s.URL, "http://")
	for _, c := range []struct {
		url, want string
		server    bool
	}{
		{"http://me:hidden@" + host + "/none", "404 Not Found; is the path of the URL right?", true},
		{"http://me:hidden@" + host + "/secret", "401 Unauthorized; are the user name and the password", true},
		{"http://" + host + "/broken", "500 Internal Server Error", true},
		{"http://me:hidden@" + host + "/page", "gives no video but text/html", true},
		{"http://" + host + "/garbage", "opening source http://" + host, false},
		{"http://" + host + "/index-at-end", "gives no video that can be read from there", true},
		{"http://me:hidden@" + nobody + "/", "cannot be reached: dial tcp " + nobody + ": connect: connection refused",
			false},
		{"rtsp://me:hidden@" + nobody + "/", "cannot be reached: dial tcp " + nobody + ": connect: connection refused",
			false},
		{"http://me:hidden@[::1", "not a valid URL: missing ']' in host", false},
	} {
		src, err := facedet.Open(context.Background(), c.url, facedet.Options{Timeout: 3 * time.Second})
		if err == nil {
			src.Close()
			t.Errorf("%s opened", c.url)
			continue
		}
		if !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hidden") ||
			errors.Is(err, facedet.ErrServer) != c.server {
			t.Errorf("%s: error %v, want %q", c.url, err, c.want)
		}
	}
}

// The secret parts of a URL are never shown.
func TestShown(t *testing.T) {
	for name, want := range map[string]string{
		"0": "0", "day.mp4": "day.mp4", "/dev/video0": "/dev/video0",
		"rtsp://camera.local/stream":                                        "rtsp://camera.local/stream",
		"rtsp://me:hush@camera.local:554/a%2Fb?token=hush&channel=1#hush":   "rtsp://camera.local:554/a%2Fb?...",
		"rtsp://10.0.0.7:554/user=admin&password=hush&channel=1&stream=0.x": "rtsp://10.0.0.7:554/...",
		"rtsp://me:hush@cam\x00era/":                                        "URL",
		"rtsp://":                                                           "URL",
	} {
		if got := input.Shown(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
