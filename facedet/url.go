// SPDX-License-Identifier: Apache-2.0

package facedet

import (
	"bufio"
	"context"
	"crypto/md5" // by RFC 2617, as RTSP has it
	"crypto/tls"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
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

// rtspServer is a connection to an RTSP server (RFC 2326) that is asked why it gives no video.
type rtspServer struct {
	conn net.Conn
	r    *bufio.Reader
	url  *url.URL // without user and password
	sent int      // number of the last request
}

// diagnoseRTSP asks the server of a URL to describe the stream. It returns nil if it finds no reason why there is no
// video.
func diagnoseRTSP(ctx context.Context, u *url.URL) error {
	port := u.Port()
	if port == "" {
		port = map[string]string{"rtsp": "554", "rtsps": "322"}[u.Scheme]
	}
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
	if err != nil {
		return unreachable(err)
	}
	defer conn.Close()
	if end, ok := ctx.Deadline(); ok {
		conn.SetDeadline(end)
	}
	if u.Scheme == "rtsps" { // FFmpeg checks no certificates either
		conn = tls.Client(conn, &tls.Config{ServerName: u.Hostname(), InsecureSkipVerify: true})
	}
	plain := *u
	plain.User = nil
	s := &rtspServer{conn: conn, r: bufio.NewReader(conn), url: &plain}
	status, header, body, err := s.describe("")
	if status == 401 && u.User != nil {
		if answer := authorization(header, u.User, plain.String()); answer != "" {
			status, _, body, err = s.describe(answer)
		}
	}
	var timeout net.Error
	switch {
	case errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Errorf("%w: it takes the connection, but does not answer in time", ErrServer)
	case err != nil:
		return fmt.Errorf("%w: it does not answer as an RTSP server; is the port right?", ErrServer)
	case status == 401 && u.User == nil:
		return fmt.Errorf("%w: it asks for a user name and a password (401)", ErrServer)
	case status == 401 || status == 403:
		return fmt.Errorf("%w: it refuses the user name or the password (%d)", ErrServer, status)
	case status == 404:
		return fmt.Errorf("%w: it has no stream at this path (404); is the path of the URL right?", ErrServer)
	case status >= 400:
		return fmt.Errorf("%w: it answers with the error %d", ErrServer, status)
	}
	return undecodable(body)
}

// mostDescribed is the greatest size of the description of a stream.
const mostDescribed = 1 << 16

// describe asks for the description of the stream (SDP).
func (s *rtspServer) describe(auth string) (status int, h textproto.MIMEHeader, body string, err error) {
	s.sent++
	request := fmt.Sprintf("DESCRIBE %s RTSP/1.0\r\nCSeq: %d\r\nUser-Agent: faceauth\r\nAccept: application/sdp\r\n",
		s.url, s.sent)
	if auth != "" {
		request += "Authorization: " + auth + "\r\n"
	}
	if _, err = io.WriteString(s.conn, request+"\r\n"); err != nil {
		return 0, nil, "", err
	}
	t := textproto.NewReader(bufio.NewReader(io.LimitReader(s.r, mostDescribed)))
	line, err := t.ReadLine()
	if err != nil {
		return 0, nil, "", err
	}
	words := strings.SplitN(line, " ", 3)
	if len(words) < 2 || !strings.HasPrefix(words[0], "RTSP/") {
		return 0, nil, "", errors.New("no RTSP")
	}
	if status, err = strconv.Atoi(words[1]); err == nil {
		h, err = t.ReadMIMEHeader()
	}
	if err != nil {
		return 0, nil, "", err
	}
	n, _ := strconv.Atoi(h.Get("Content-Length")) // none without the header
	b := make([]byte, min(max(n, 0), mostDescribed))
	_, err = io.ReadFull(t.R, b)
	return status, h, string(b), err
}

var (
	quoted = regexp.MustCompile(`(\w+)="([^"]*)"`)
	rtpmap = regexp.MustCompile(`(?m)^a=rtpmap:\d+ ([^/\s]+)/`)
)

// authorization answers a challenge of a server, or is "".
func authorization(h textproto.MIMEHeader, who *url.Userinfo, uri string) string {
	password, _ := who.Password()
	for _, challenge := range h.Values("Www-Authenticate") {
		if strings.HasPrefix(strings.ToLower(challenge), "digest ") {
			of := make(map[string]string)
			for _, m := range quoted.FindAllStringSubmatch(challenge, -1) {
				of[strings.ToLower(m[1])] = m[2]
			}
			sum := func(parts ...string) string {
				s := md5.Sum([]byte(strings.Join(parts, ":")))
				return hex.EncodeToString(s[:])
			}
			return fmt.Sprintf(`Digest username="%s", realm="%s", nonce="%s", uri="%s", response="%s"`, who.Username(),
				of["realm"], of["nonce"], uri, sum(sum(who.Username(), of["realm"], password), of["nonce"],
					sum("DESCRIBE", uri)))
		}
	}
	if len(h.Values("Www-Authenticate")) == 0 {
		return ""
	}
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(who.Username()+":"+password))
}

// codecs are the names of video codecs that FFmpeg decodes, as RTP has them.
var codecs = []string{"H264", "H265", "JPEG", "MP4V-ES", "MPV", "H263", "H263-1998", "H263-2000", "H261", "VP8", "VP9",
	"AV1", "THEORA", "MP2T"}

// undecodable returns an error for the description of a stream without a video that can be decoded. Codecs of the
// payload types below 96 are fixed, and need no name.
func undecodable(sdp string) error {
	_, video, found := strings.Cut("\n"+strings.ReplaceAll(sdp, "\r", ""), "\nm=video ")
	if !found {
		return fmt.Errorf("%w: the stream at this path has none", ErrServer)
	}
	video, _, _ = strings.Cut(video, "\nm=")
	m := rtpmap.FindStringSubmatch(video)
	if m != nil && !slices.Contains(codecs, strings.ToUpper(m[1])) {
		return fmt.Errorf("%w: it has the codec %q, which cannot be decoded; choose H.264 in the camera",
			ErrServer, m[1])
	}
	return nil
}
