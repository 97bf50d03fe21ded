// SPDX-License-Identifier: Apache-2.0

package eye

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/md5"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/faceauth/faceauth/internal/wire"
)

// FFmpeg 5.1 to 7.1 keeps the last Digest challenge of a camera alone, and answers MD5 only: where
// SHA-256 comes last, or beside Basic, it answers nothing. Such a camera is spoken to by the
// program, which signs the requests of the eye.

// challenge is an offer of a camera, how to log in (RFC 7235, 7616 and 7617).
type challenge struct {
	scheme string // in small letters
	values map[string]string
}

var parameter = regexp.MustCompile(`([A-Za-z-]+)\s*=\s*(?:"([^"]*)"|([^\s,"]+))`)

func parseChallenge(header string) challenge {
	scheme, rest, _ := strings.Cut(strings.TrimSpace(header), " ")
	c := challenge{strings.ToLower(scheme), map[string]string{}}
	for _, m := range parameter.FindAllStringSubmatch(rest, -1) {
		c.values[strings.ToLower(m[1])] = m[2] + m[3]
	}
	return c
}

func (c challenge) algorithm() string {
	return cmp.Or(strings.ToUpper(c.values["algorithm"]),
		"MD5")
}

// String names an offer for a person.
func (c challenge) String() string {
	switch c.scheme {
	case "basic":
		return "Basic"
	case "digest":
		return "Digest " + wire.Printable(c.algorithm())
	}
	return "another way to log in"
}

// strength orders offers; 0 for one that cannot be answered.
func (c challenge) strength() int {
	if c.scheme == "basic" {
		return 1
	}
	return slices.Index([]string{"", "", "DIGEST MD5", "DIGEST SHA-256"},
		strings.ToUpper(c.scheme+" "+c.algorithm()))
}

// answer returns the header that answers an offer, the count-th to its nonce, with a nonce of our
// own.
func (c challenge) answer(user *url.Userinfo, method, uri string, count int, own string) string {
	name := user.Username()
	password, _ := user.Password()
	if c.scheme == "basic" {
		return "Basic " + base64.StdEncoding.EncodeToString([]byte(name+":"+password))
	}
	hash := func(parts ...string) string {
		text := []byte(strings.Join(parts, ":"))
		if c.algorithm() == "MD5" {
			sum := md5.Sum(text)
			return hex.EncodeToString(sum[:])
		}
		sum := sha256.Sum256(text)
		return hex.EncodeToString(sum[:])
	}
	realm, nonce := c.values["realm"], c.values["nonce"]
	secret, asked := hash(name, realm, password), hash(method, uri)
	response, more := hash(secret, nonce, asked), ""
	if slices.Contains(strings.FieldsFunc(c.values["qop"], func(r rune) bool {
		return r == ',' || r == ' '
	}), "auth") {
		number := fmt.Sprintf("%08x", count)
		response = hash(secret, nonce, number, own, "auth", asked)
		more = fmt.Sprintf(`, qop=auth, nc=%s, cnonce="%s"`, number, own)
	}
	if opaque, ok := c.values["opaque"]; ok {
		more += fmt.Sprintf(`, opaque="%s"`, opaque)
	}
	return fmt.Sprintf(
		`Digest username="%s", realm="%s", nonce="%s", uri="%s", response="%s", algorithm=%s%s`,
		name, realm,
		nonce, uri, response, c.algorithm(), more)
}

// byFFmpeg reports whether FFmpeg can answer what a camera offers.
func byFFmpeg(all []challenge) bool {
	last := challenge{}
	for _, c := range all {
		if c.scheme == "digest" || c.scheme == "basic" && last.scheme != "digest" {
			last = c
		}
	}
	return last.scheme == "basic" || last.scheme == "digest" && last.algorithm() == "MD5"
}

// packet is a request or an answer of RTSP or HTTP, or a packet of a stream between them.
type packet struct {
	first  string   // line; "" for a packet of a stream
	header []string // lines
	body   []byte
}

// Greatest sizes of a packet. An answer to DESCRIBE has some kilobytes.
const (
	mostHeader = 64 << 10
	mostBody   = 1 << 20
)

// readPacket reads a packet; the body of an answer of HTTP is left unread.
func readPacket(r *bufio.Reader) (p packet, err error) {
	begin, err := r.Peek(1)
	if err != nil {
		return p, err
	}
	if begin[0] == '$' { // RFC 2326, section 10.12
		head, err := r.Peek(4)
		if err != nil {
			return p, err
		}
		p.body = make([]byte, 4+int(head[2])<<8+int(head[3]))
		_, err = io.ReadFull(r, p.body)
		return p, err
	}
	for size := 0; ; {
		line, err := r.ReadSlice('\n')
		size += len(line)
		if err != nil || size > mostHeader {
			return p, errors.Join(err, errors.New("a request or an answer without an end"))
		}
		text := strings.TrimRight(string(line), "\r\n")
		switch {
		case text != "" && p.first == "":
			p.first = text
		case text != "":
			p.header = append(p.header, text)
		case p.first != "":
			if !p.rtsp() {
				return p, nil
			}
			length, _ := strconv.Atoi(cmp.Or(append(p.values("Content-Length"), "0")...))
			if length < 0 || length > mostBody {
				return p, errors.New("an answer that is too large")
			}
			p.body = make([]byte, length)
			_, err = io.ReadFull(r, p.body)
			return p, err
		}
	}
}

func (p packet) rtsp() bool {
	return strings.HasPrefix(p.first, "RTSP/") || strings.Contains(p.first, " RTSP/")
}

// values returns those of a header.
func (p packet) values(name string) (all []string) {
	for _, line := range p.header {
		n, v, _ := strings.Cut(line, ":")
		if strings.EqualFold(n, name) {
			all = append(all, strings.TrimSpace(v))
		}
	}
	return all
}

func (p packet) refused() bool {
	status := strings.Fields(p.first)
	return len(status) > 1 && status[1] == "401"
}

func (p packet) challenges() (all []challenge) {
	for _, v := range p.values("WWW-Authenticate") {
		all = append(all, parseChallenge(v))
	}
	return all
}

func (p packet) bytes() []byte {
	if p.first == "" {
		return p.body
	}
	var b bytes.Buffer
	for _, line := range append([]string{p.first}, p.header...) {
		b.WriteString(line + "\r\n")
	}
	b.WriteString("\r\n")
	return append(b.Bytes(), p.body...)
}

// signer answers what a camera has asked for last.
type signer struct {
	user  *url.Userinfo
	with  challenge
	count int // answers to its nonce
}

// signed returns a request with an answer.
func (s *signer) signed(p packet) packet {
	words := strings.Fields(p.first)
	if s.with.scheme == "" || len(words) < 2 {
		return p
	}
	p.header = slices.DeleteFunc(slices.Clone(p.header), func(line string) bool {
		name, _, _ := strings.Cut(line, ":")
		return strings.EqualFold(name, "Authorization")
	})
	s.count++
	p.header = append(p.header, "Authorization: "+
		s.with.answer(s.user, words[0], words[1], s.count, rand.Text()))
	return p
}

// asked takes the best offer of a refusal, and reports whether there is one.
func (s *signer) asked(p packet) bool {
	best := challenge{}
	for _, c := range p.challenges() {
		if c.strength() > max(0, best.strength()) {
			best = c
		}
	}
	if !p.refused() || best.scheme == "" {
		return false
	}
	s.with, s.count = best, 0
	return true
}

// conversation is one of an eye with a camera, whose requests the program signs. The refusals that
// ask for a login do not reach the eye, unless the login is wrong.
type conversation struct {
	signer
	dial     func() (net.Conn, error)
	within   time.Duration // the camera's answers come
	eye      net.Conn
	requests *bufio.Reader
	camera   net.Conn // nil after a refusal by HTTP
	answers  *bufio.Reader
}

// run ends when the eye or the camera does, or ctx. It closes the eye's connection.
func (c *conversation) run(ctx context.Context) error {
	defer c.eye.Close()
	defer context.AfterFunc(ctx, func() { c.eye.SetDeadline(time.Unix(1, 0)) })()
	defer func() {
		if c.camera != nil {
			c.camera.Close()
		}
	}()
	c.requests, c.answers = bufio.NewReader(c.eye), bufio.NewReader(c.camera)
	for {
		request, err := readPacket(c.requests)
		if err != nil {
			return err
		}
		answer, err := c.answered(ctx, request)
		if err == nil && answer.refused() && !answer.rtsp() { // its body was not read
			answer = packet{first: "HTTP/1.1 401 Unauthorized",
				header: []string{"Content-Length: 0", "Connection: close"}}
		}
		if err == nil {
			_, err = c.eye.Write(answer.bytes())
		}
		switch {
		case err != nil:
			return err
		case answer.refused() || answer.rtsp() && !strings.HasPrefix(request.first, "PLAY "):
		case answer.first != "":
			return c.stream(ctx)
		}
	}
}

// answered sends a request to the camera, again with an answer to its challenge if it is refused,
// and returns what it says. A packet of a stream gets no answer.
func (c *conversation) answered(ctx context.Context, request packet) (answer packet, err error) {
	for range 2 {
		if c.camera == nil {
			c.camera, err = c.dial()
			if err != nil {
				return answer, err
			}
			c.answers = bufio.NewReader(c.camera)
		}
		camera := c.camera
		camera.SetDeadline(time.Now().Add(c.within))
		defer context.AfterFunc(ctx, func() { camera.SetDeadline(time.Unix(1, 0)) })()
		_, err = camera.Write(c.signed(request).bytes())
		if err != nil || request.first == "" {
			return answer, err
		}
		for answer = (packet{}); answer.first == ""; {
			answer, err = readPacket(c.answers)
			if err == nil && answer.first == "" {
				_, err = c.eye.Write(answer.bytes())
			}
			if err != nil {
				return answer, err
			}
		}
		if !c.asked(answer) {
			return answer, nil
		}
		if !answer.rtsp() {
			c.camera.Close()
			c.camera = nil
		}
	}
	return answer, nil
}

// stream passes on what the camera sends, and signs the requests with which the eye keeps the
// stream alive.
func (c *conversation) stream(ctx context.Context) error {
	c.camera.SetDeadline(time.Time{})
	defer context.AfterFunc(ctx, func() { c.camera.SetDeadline(time.Unix(1, 0)) })()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			request, err := readPacket(c.requests)
			if err == nil {
				_, err = c.camera.Write(c.signed(request).bytes())
			}
			if err != nil {
				c.camera.Close()
				return
			}
		}
	}()
	_, err := io.Copy(c.eye, c.answers)
	c.eye.Close()
	<-ended
	return err
}

// ask asks a camera how to log in, without a login.
func ask(ctx context.Context, name string) ([]challenge, error) {
	u, err := url.Parse(name)
	if err != nil {
		return nil, err
	}
	address, err := hostPort(name)
	if err != nil {
		return nil, err
	}
	u.User, u.Scheme = nil, strings.ToLower(u.Scheme)
	dial := new(net.Dialer).DialContext
	// nothing secret is sent, and FFmpeg does not look at certificates either
	if strings.HasSuffix(u.Scheme, "s") {
		dial = (&tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}).DialContext
	}
	conn, err := dial(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })()
	request := fmt.Sprintf("GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n",
		u.RequestURI(), u.Host)
	if strings.HasPrefix(u.Scheme, "rtsp") {
		request = fmt.Sprintf("DESCRIBE %s RTSP/1.0\r\nCSeq: 1\r\nAccept: application/sdp\r\n\r\n",
			u)
	}
	_, err = io.WriteString(conn, request)
	if err != nil {
		return nil, err
	}
	answer, err := readPacket(bufio.NewReader(conn))
	return answer.challenges(), err
}

// offered says what a camera offers.
func offered(all []challenge) string {
	var names []string
	for _, c := range all {
		names = append(names, c.String())
	}
	return strings.Join(names, " and ")
}
