// SPDX-License-Identifier: Apache-2.0

package facedet_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
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
		{"http://me:hidden@" + host + "/none",
			"nothing at this path (404); is the path of the URL right?", true},
		{"http://me:hidden@" + host + "/secret", "refuses the user name or the password", true},
		{"http://" + host + "/broken", "5XX", true},
		{"http://me:hidden@" + host + "/page", "the URL of the video itself is needed", true},
		{"http://" + host + "/garbage", "the URL of the video itself is needed", true},
		{"http://" + host + "/index-at-end",
			"an MP4 with its index at the end must be downloaded first", true},
		{"http://me:hidden@" + nobody + "/", "cannot be reached: connection refused", false},
		{"rtsp://me:hidden@" + nobody + "/", "cannot be reached: connection refused", false},
		{"http://me:hidden@[::1", "not a valid URL: missing ']' in host", false},
	} {
		src, err := facedet.Open(context.Background(), c.url, facedet.Options{Timeout: time.Minute})
		if err == nil {
			src.Close()
			t.Errorf("%s opened", c.url)
			continue
		}
		if !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hidden") ||
			(errors.Is(err, face.ErrServer) || errors.Is(err, face.ErrRefused)) != c.server {
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

// rtspAnswers is a camera that answers each path in its own way.
func rtspAnswers(t *testing.T) string {
	l := fixture.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { l.Close() })
	serve := func(c net.Conn) {
		defer c.Close()
		r := textproto.NewReader(bufio.NewReader(c))
		for {
			line, err := r.ReadLine()
			if err != nil {
				return
			}
			header, err := r.ReadMIMEHeader()
			if err != nil {
				return
			}
			say := func(status, more string) {
				fmt.Fprintf(c, "RTSP/1.0 %s\r\nCSeq: %s\r\n%s", status, header.Get("CSeq"), more)
			}
			describe := func(sdp string) {
				say("200 OK",
					fmt.Sprintf("Content-Type: application/sdp\r\nContent-Length: %d\r\n\r\n%s",
						len(sdp), sdp))
			}
			u, err := url.Parse(strings.Fields(line)[1])
			switch {
			case err != nil:
				t.Error(err)
			case strings.HasPrefix(line, "SETUP"):
				say("200 OK",
					"Transport: RTP/AVP/TCP;unicast;interleaved=0-1\r\nSession: 1\r\n\r\n")
			case u.Path == "/silent":
			case u.Path == "/web":
				fmt.Fprint(c, "HTTP/1.1 400 Bad Request\r\n\r\n")
				return
			case u.Path == "/none":
				say("404 Not Found", "\r\n")
			case u.Path == "/full":
				say("453 Not Enough Bandwidth", "\r\n")
			case u.Path == "/secret":
				say("401 Unauthorized", "WWW-Authenticate: Basic realm=\"cam\"\r\n\r\n")
			case !strings.HasPrefix(line, "DESCRIBE"):
				say("200 OK", "\r\n")
			case u.Path == "/sound":
				describe("v=0\r\nm=audio 0 RTP/AVP 0\r\n")
			default: // a codec that nobody has
				describe("v=0\r\nm=audio 0 RTP/AVP 0\r\nm=video 0 RTP/AVP 96\r\n" +
					"a=rtpmap:96 SVAC/90000\r\n")
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
	return l.Addr().String()
}

// Each reason why an RTSP camera gives no video has a sentence of its own, without the password.
func TestRTSPErrors(t *testing.T) {
	host := rtspAnswers(t)
	for name, want := range map[string]string{
		"rtsp://me:wrong@" + host + "/secret":  "refuses the user name or the password",
		"rtsp://" + host + "/secret":           "refuses the user name or the password",
		"rtsp://me:wrong@" + host + "/codec":   "its codec cannot be decoded",
		"rtsp://me:wrong@" + host + "/none":    "it has nothing at this path (404); is the path of the URL right?",
		"rtsp://me:wrong@" + host + "/full":    "4XX",
		"rtsp://me:wrong@" + host + "/sound":   "the stream at this path has none",
		"rtsp://me:wrong@" + host + "/web":     "the server",
		"rtsp://me:wrong@" + host + "/silent":  "did not open within 2s",
		"rtsps://me:wrong@" + host + "/secret": "the server",
	} {
		timeout := time.Minute
		if strings.HasSuffix(name, "/silent") {
			timeout = 2 * time.Second
		}
		src, err := facedet.Open(context.Background(), name, facedet.Options{Timeout: timeout})
		if err == nil {
			src.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "wrong") {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}
