// SPDX-License-Identifier: Apache-2.0

package facedet_test

import (
	"bufio"
	"context"
	"crypto/md5"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/input"
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

// rtspAnswers is a camera that answers each path in its own way. It asks for the user "me" with the password "right".
func rtspAnswers(t *testing.T) string {
	l := fixture.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { l.Close() })
	sum := func(s string) string { return fmt.Sprintf("%x", md5.Sum([]byte(s))) }
	host := l.Addr().String()
	serve := func(c net.Conn) {
		defer c.Close()
		r := bufio.NewReader(c)
		for {
			q, err := http.ReadRequest(bufio.NewReader(&rtspRequest{r: r}))
			if err != nil {
				return
			}
			say := func(status, headers, body string) {
				fmt.Fprintf(c, "RTSP/1.0 %s\r\nCSeq: %s\r\n%sContent-Length: %d\r\n\r\n%s", status,
					q.Header.Get("CSeq"), headers, len(body), body)
			}
			path, auth := q.URL.Path, q.Header.Get("Authorization")
			digest := sum(sum("me:cam:right") + ":abc:" + sum("DESCRIBE:rtsp://"+host+path))
			switch {
			case path == "/silent":
				time.Sleep(5 * time.Second)
				return
			case path == "/web":
				fmt.Fprint(c, "HTTP/1.1 400 Bad Request\r\n\r\n")
				return
			case path == "/none":
				say("404 Not Found", "", "")
			case path == "/full":
				say("453 Not Enough Bandwidth", "", "")
			case path == "/basic" && auth != "Basic bWU6cmlnaHQ=":
				say("401 Unauthorized", "WWW-Authenticate: Basic realm=\"cam\"\r\n", "")
			case path == "/digest" && !strings.Contains(auth, digest):
				say("401 Unauthorized", "WWW-Authenticate: Digest realm=\"cam\", nonce=\"abc\"\r\n", "")
			case path == "/sound":
				say("200 OK", "", "v=0\r\nm=audio 0 RTP/AVP 0\r\n")
			default: // a codec that nobody has
				say("200 OK", "", "v=0\r\nm=audio 0 RTP/AVP 0\r\nm=video 0 RTP/AVP 96\r\na=rtpmap:96 SVAC/90000\r\n")
			}
		}
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go serve(c)
		}
	}()
	return host
}

// rtspRequest makes a request of RTSP readable for package http.
type rtspRequest struct {
	r    *bufio.Reader
	rest string
}

func (q *rtspRequest) Read(b []byte) (int, error) {
	if q.rest == "" {
		line, err := q.r.ReadString('\n')
		if err != nil {
			return 0, err
		}
		q.rest = strings.Replace(line, " RTSP/1.0", " HTTP/1.0", 1)
	}
	n := copy(b, q.rest)
	q.rest = q.rest[n:]
	return n, nil
}

// Each reason why an RTSP camera gives no video has a sentence of its own, without the password.
func TestRTSPErrors(t *testing.T) {
	host := rtspAnswers(t)
	for url, want := range map[string]string{
		"rtsp://me:wrong@" + host + "/basic":   "it refuses the user name or the password (401)",
		"rtsp://me:wrong@" + host + "/digest":  "it refuses the user name or the password (401)",
		"rtsp://" + host + "/digest":           "it asks for a user name and a password (401)",
		"rtsp://me:right@" + host + "/digest":  `it has the codec "SVAC", which cannot be decoded`,
		"rtsp://me:right@" + host + "/basic":   `it has the codec "SVAC", which cannot be decoded`,
		"rtsp://me:wrong@" + host + "/none":    "it has no stream at this path (404); is the path of the URL right?",
		"rtsp://me:wrong@" + host + "/full":    "it answers with the error 453",
		"rtsp://me:wrong@" + host + "/sound":   "the stream at this path has none",
		"rtsp://me:wrong@" + host + "/web":     "it does not answer as an RTSP server; is the port right?",
		"rtsp://me:wrong@" + host + "/silent":  "it takes the connection, but does not answer in time",
		"rtsps://me:wrong@" + host + "/digest": "it does not answer as an RTSP server",
	} {
		src, err := facedet.Open(context.Background(), url, facedet.Options{Timeout: 2 * time.Second})
		if err == nil {
			src.Close()
		}
		if !errors.Is(err, facedet.ErrServer) || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "wrong") {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// Invalid options are refused before anything is opened, and are not replaced by defaults.
func TestOptions(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "1.png", picture(t, 1, 8, 8))
	for _, c := range []struct {
		options facedet.Options
		want    string // "" if the options are valid
	}{
		{facedet.Options{}, ""},
		{facedet.Options{Timeout: time.Second, FPS: 2}, ""},
		{facedet.Options{Timeout: -time.Second}, "the timeout is -1s, but must not be negative"},
		{facedet.Options{FPS: -2}, "FPS is -2, but must lie between 0, for the default, and 1e+06"},
		{facedet.Options{FPS: math.NaN()}, "FPS is NaN"},
		{facedet.Options{FPS: math.Inf(1)}, "FPS is +Inf"},
	} {
		for _, name := range []string{dir, "http://127.0.0.1:1/"} {
			src, err := facedet.Open(context.Background(), name, c.options)
			if err == nil {
				src.Close()
			}
			switch {
			case c.want == "" && errors.Is(err, facedet.ErrSettings):
				t.Errorf("%+v: %v", c.options, err)
			case c.want != "" && (!errors.Is(err, facedet.ErrSettings) || !strings.Contains(err.Error(), c.want)):
				t.Errorf("%+v, %s: error %v, want %q", c.options, name, err, c.want)
			}
		}
	}
}
