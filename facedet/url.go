// SPDX-License-Identifier: Apache-2.0

package facedet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/cv"
	"github.com/faceauth/faceauth/internal/input"
)

func openURL(ctx context.Context, name, scheme string, o Options) (Source, error) {
	u, err := url.Parse(name)
	shown := input.Shown(name)
	if !slices.Contains(input.Schemes, strings.ToLower(scheme)) {
		return nil, fmt.Errorf("opening source %s: %w; use http, https, rtsp or rtsps", shown, ErrScheme)
	}
	if err != nil {
		var parse *url.Error // it holds the URL, perhaps with a password
		if errors.As(err, &parse) {
			err = parse.Err
		}
		return nil, fmt.Errorf("opening source: not a valid URL: %w", err)
	}
	host, served := u.Host, u.Hostname()
	if o.Address != "" {
		if u.Host = o.Address; strings.Contains(o.Address, ":") {
			u.Host = "[" + o.Address + "]"
		}
		if _, port, ok := strings.Cut(host, ":"); ok {
			u.Host += ":" + port
		}
		name = u.String()
	}
	if strings.HasPrefix(strings.ToLower(scheme), "http") {
		o.hasLength = func() bool { return hasLength(ctx, *u, host, min(o.Timeout, 5*time.Second)) }
	}
	o.diagnose = func(ctx context.Context) error {
		return diagnose(ctx, *u, host, min(o.Timeout, 5*time.Second))
	}
	s, err := openCapture(ctx, o, true, func() (grabber, error) {
		if o.Address != "" && strings.HasPrefix(strings.ToLower(scheme), "http") {
			defer named(host, served)()
		}
		return cv.OpenVideo(name, o.Timeout)
	})
	if err == nil {
		return s, nil
	}
	if ctx.Err() == nil {
		if why := o.diagnose(ctx); why != nil {
			err = why
		}
	}
	return nil, fmt.Errorf("opening source %s: %w", shown, err)
}

// captureOptions is the environment variable from which OpenCV reads options for FFmpeg.
const captureOptions = "OPENCV_FFMPEG_CAPTURE_OPTIONS"

// named makes FFmpeg send the name of the host to the server, if the URL has its IP address. Call done when the video
// is open.
func named(host, served string) (done func()) {
	before, was := os.LookupEnv(captureOptions)
	options := "headers;Host: " + host + "|verifyhost;" + served
	if was && before != "" {
		options = before + "|" + options
	}
	os.Setenv(captureOptions, options)
	return func() {
		if os.Unsetenv(captureOptions); was {
			os.Setenv(captureOptions, before)
		}
	}
}

// ErrServer is wrapped by errors of [Open] if a server was reached but gives no video.
var ErrServer = face.ErrServer

// hasLength reports whether a server says how long a film is. MPEG transport streams have no length of their own.
func hasLength(ctx context.Context, u url.URL, host string, timeout time.Duration) bool {
	ctx, stop := context.WithTimeout(ctx, timeout)
	defer stop()
	answer, err := get(ctx, &u, host)
	if err != nil {
		return false
	}
	answer.Body.Close()
	kind := answer.Header.Get("Content-Type")
	return answer.StatusCode == http.StatusOK && answer.ContentLength > 0 && !strings.HasPrefix(kind, "image/")
}

// get asks a server for a URL whose host may be an address. The body may be without end.
func get(ctx context.Context, u *url.URL, host string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	request.Host = host
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, Proxy: http.ProxyFromEnvironment}}
	return client.Do(request)
}

// diagnose finds out why a URL gives no video, because OpenCV does not say. It returns nil if it finds no reason.
func diagnose(ctx context.Context, u url.URL, host string, timeout time.Duration) error {
	ctx, stop := context.WithTimeout(ctx, timeout)
	defer stop()
	if u.Scheme = strings.ToLower(u.Scheme); strings.HasPrefix(u.Scheme, "rtsp") {
		return diagnoseRTSP(ctx, &u)
	}
	answer, err := get(ctx, &u, host)
	if err != nil {
		return unreachable(err)
	}
	defer answer.Body.Close() // the body is the video, perhaps without end
	kind, _, _ := strings.Cut(answer.Header.Get("Content-Type"), ";")
	switch {
	case answer.StatusCode == http.StatusUnauthorized || answer.StatusCode == http.StatusForbidden:
		return fmt.Errorf("%w: it answers %s; are the user name and the password in the URL right?", ErrServer,
			answer.Status)
	case answer.StatusCode == http.StatusNotFound:
		return fmt.Errorf("%w: it answers %s; is the path of the URL right?", ErrServer, answer.Status)
	case answer.StatusCode >= 400:
		return fmt.Errorf("%w: it answers %s", ErrServer, answer.Status)
	case strings.HasPrefix(kind, "text/") || kind == "application/json":
		return fmt.Errorf("%w but %s; the URL of the video itself is needed", ErrServer, kind)
	}
	// The index of an MP4 may stand at its end, and FFmpeg must go there and back.
	var head [8]byte
	_, err = io.ReadFull(answer.Body, head[:])
	if err == nil && string(head[4:]) == "ftyp" && answer.Header.Get("Accept-Ranges") != "bytes" {
		return fmt.Errorf("%w that can be read from there: it sends files only as a whole, and the index of this "+
			"one is at its end; download the file first", ErrServer)
	}
	return nil
}

// unreachable says why no connection was possible. The text has no URL, because a URL may hold a password.
func unreachable(err error) error {
	var request *url.Error
	if errors.As(err, &request) {
		err = request.Err
	}
	var name *net.DNSError
	var dial *net.OpError
	switch {
	case err == nil || errors.Is(err, context.DeadlineExceeded):
		return nil // the timeout of the source says so
	case errors.As(err, &name):
		return fmt.Errorf("the name %s cannot be found: %s", name.Name, name.Err)
	case errors.As(err, &dial):
		return fmt.Errorf("the server cannot be reached: %w", dial)
	}
	return fmt.Errorf("the server cannot be used: %w", err)
}
