// SPDX-License-Identifier: Apache-2.0

package facedet_test

import (
	"bufio"
	"context"
	"crypto/md5"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/internal/fixture"
)

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
