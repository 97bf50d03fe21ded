// SPDX-License-Identifier: Apache-2.0

package eye

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/faceauth/faceauth/internal/fixture"
)

// The answers are those of RFC 7616, section 3.9.1.
func TestChallenge(t *testing.T) {
	const nonce, own = "7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v",
		"f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ"
	user := url.UserPassword("Mufasa", "Circle of Life")
	for algorithm, want := range map[string]string{
		"MD5":     "8ca523f5e9506fed4657c9700eebdbec",
		"SHA-256": "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1",
	} {
		c := parseChallenge(
			`Digest realm="http-auth@example.org", qop="auth, auth-int", algorithm=` + algorithm +
				`, nonce="` + nonce + `", opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS"`)
		got := parseChallenge(c.answer(user, "GET", "/dir/index.html", 1, own)).values
		if got["response"] != want || got["opaque"] != c.values["opaque"] ||
			got["nc"] != "00000001" {
			t.Errorf("%s: %v", algorithm, got)
		}
	}
}

// What FFmpeg can answer was tried with 5.1 and 7.1: it keeps the last Digest, and knows MD5 alone.
func TestOffers(t *testing.T) {
	const md5, sha, basic = `Digest realm="a", nonce="b"`,
		`Digest realm="a", nonce="b", algorithm=SHA-256`,
		`Basic realm="a"`
	for _, c := range []struct {
		offers []string
		ffmpeg bool
		best   string
	}{
		{[]string{md5}, true, "Digest MD5"},
		{[]string{basic}, true, "Basic"},
		{[]string{sha, md5}, true, "Digest SHA-256"},
		{[]string{md5, sha}, false, "Digest SHA-256"},
		{[]string{basic, sha}, false, "Digest SHA-256"},
		{[]string{sha, basic}, false, "Digest SHA-256"},
		{[]string{sha}, false, "Digest SHA-256"},
		{[]string{"Negotiate"}, false, "another way to log in"},
		{[]string{strings.Replace(sha, "256", "512-256", 1), basic}, false, "Basic"},
	} {
		refusal := packet{first: "RTSP/1.0 401 Unauthorized"}
		for _, o := range c.offers {
			refusal.header = append(refusal.header, "WWW-Authenticate: "+o)
		}
		var s signer
		asked := s.asked(refusal)
		if byFFmpeg(refusal.challenges()) != c.ffmpeg || s.with.String() != c.best ||
			asked != (s.with.scheme != "") {
			t.Errorf("%q: FFmpeg answers: %t; best %q, %t", c.offers, !c.ffmpeg, s.with, asked)
		}
	}
}

// guarded is a camera that gives nothing without an answer to one of its offers.
type guarded struct {
	t      *testing.T
	offers []string
	kept   chan string // requests during the stream
}

// serve answers one connection.
func (g *guarded) serve(c net.Conn) {
	defer c.Close()
	r := bufio.NewReader(c)
	streams := false
	for {
		p, err := readPacket(r)
		if err != nil {
			return
		}
		if p.first == "" {
			continue
		}
		method, rest, _ := strings.Cut(p.first, " ")
		uri, protocol, _ := strings.Cut(rest, " ")
		right := false
		for _, a := range p.values("Authorization") {
			got := parseChallenge(a)
			for _, o := range g.offers {
				offer := parseChallenge(o)
				if offer.scheme != got.scheme ||
					offer.values["algorithm"] != got.values["algorithm"] && got.scheme == "digest" {
					continue
				}
				want := offer.answer(url.UserPassword("me", "hush"), method, uri, 0, "")
				right = want == a || got.values["response"] != "" &&
					parseChallenge(want).values["response"] == got.values["response"]
			}
		}
		switch {
		case !right && protocol == "RTSP/1.0":
			fmt.Fprintf(c, "RTSP/1.0 401 Unauthorized\r\nCSeq: 1\r\n")
		case !right:
			fmt.Fprintf(c, "HTTP/1.1 401 Unauthorized\r\nContent-Length: 4\r\n")
		case streams:
			g.kept <- method
			fmt.Fprint(c, "$\x00\x00\x01k")
			continue
		case protocol != "RTSP/1.0":
			fmt.Fprint(c, "HTTP/1.1 200 OK\r\n\r\nframes")
			return
		case method == "PLAY":
			streams = true
			fmt.Fprint(c, "$\x00\x00\x02beRTSP/1.0 200 OK\r\nCSeq: 3\r\n\r\n$\x00\x00\x02af")
			continue
		default:
			fmt.Fprint(c, "RTSP/1.0 200 OK\r\nCSeq: 2\r\nContent-Length: 3\r\n\r\nsdp")
			continue
		}
		for _, o := range g.offers {
			fmt.Fprintf(c, "WWW-Authenticate: %s\r\n", o)
		}
		fmt.Fprint(c, "\r\n")
		if protocol != "RTSP/1.0" {
			fmt.Fprint(c, "none")
			return
		}
	}
}

func (g *guarded) listen() string {
	l := fixture.Must(net.Listen("tcp", "127.0.0.1:0"))(g.t)
	g.t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go g.serve(c)
		}
	}()
	return l.Addr().String()
}

// talk is an eye that sends requests without a login, and returns all that comes.
func talk(t *testing.T, address, password string, requests ...string) string {
	t.Helper()
	ours, theirs := net.Pipe()
	camera := fixture.Must(net.Dial("tcp", address))(t)
	c := &conversation{signer: signer{user: url.UserPassword("me", password)}, within: time.Minute,
		eye:    ours,
		camera: camera, dial: func() (net.Conn, error) { return net.Dial("tcp", address) }}
	done := make(chan error, 1)
	go func() { done <- c.run(t.Context()) }()
	theirs.SetDeadline(time.Now().Add(time.Minute))
	var got strings.Builder
	go func() {
		for _, r := range requests {
			io.WriteString(theirs, r)
		}
	}()
	b := make([]byte, 1<<10)
	for !strings.HasSuffix(got.String(), "k") {
		n, err := theirs.Read(b)
		got.Write(b[:n])
		if err != nil {
			break
		}
		if strings.Contains(got.String(), "401") {
			break
		}
	}
	theirs.Close()
	<-done
	return got.String()
}

// The program logs in for the eye, whatever a camera offers and in whichever order, by RTSP and by
// HTTP, and signs the requests during a stream, too.
func TestSigns(t *testing.T) {
	const md5, sha, basic = `Digest realm="cam", nonce="abc", algorithm=MD5`,
		`Digest realm="cam", nonce="def", algorithm=SHA-256`, `Basic realm="cam"`
	for _, offers := range [][]string{{md5, sha}, {sha}, {basic, sha}, {sha, basic}, {basic},
		{md5}} {
		g := &guarded{t, offers, make(chan string, 9)}
		address := g.listen()
		asked := func(method string) string {
			return method + " rtsp://cam/1 RTSP/1.0\r\nCSeq: 1\r\n\r\n"
		}
		got := talk(t, address, "hush", asked("DESCRIBE"), asked("PLAY"), "$\x01\x00\x02rr",
			asked("OPTIONS"))
		if want := "RTSP/1.0 200 OK\r\nCSeq: 2\r\nContent-Length: 3\r\n\r\nsdp" +
			"$\x00\x00\x02beRTSP/1.0 200 OK\r\nCSeq: 3\r\n\r\n$\x00\x00\x02af$\x00\x00\x01k"; got != want {
			t.Errorf("%q by RTSP: %q", offers, got)
		}
		if method := <-g.kept; method != "OPTIONS" {
			t.Errorf("%q: %q was asked during the stream", offers, method)
		}
		if got := talk(t, address, "hush",
			"GET /v HTTP/1.1\r\n\r\n"); got != "HTTP/1.1 200 OK\r\n\r\nframes" {
			t.Errorf("%q by HTTP: %q", offers, got)
		}
		for _, request := range []string{asked("DESCRIBE"), "GET /v HTTP/1.1\r\n\r\n"} {
			if got := talk(t, address, "wrong", request); !strings.Contains(got, " 401 ") {
				t.Errorf("%q with a wrong password: %q", offers, got)
			}
		}
		for _, scheme := range []string{"rtsp", "http"} {
			all := fixture.Must(ask(t.Context(), scheme+"://me:wrong@"+address+"/v"))(t)
			var want []string
			for _, o := range offers {
				want = append(want, parseChallenge(o).String())
			}
			if text := offered(all); text != strings.Join(want, " and ") {
				t.Errorf("%q are asked for by %s: %q", offers, scheme, text)
			}
		}
	}
}

// A conversation ends with its context, also while a camera is silent.
func TestSignsUntil(t *testing.T) {
	l := fixture.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	ours, theirs := net.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	c := &conversation{within: time.Hour, eye: ours,
		camera: fixture.Must(net.Dial("tcp", l.Addr().String()))(t)}
	done := make(chan error, 1)
	go func() { done <- c.run(ctx) }()
	fixture.Must(io.WriteString(theirs, "GET / HTTP/1.1\r\n\r\n"))(t)
	cancel()
	if err := <-done; err == nil {
		t.Error("no error")
	}
}

// No bytes of a camera or an eye are an endless packet.
func FuzzPacket(f *testing.F) {
	for _, s := range []string{"$\x00\x00\x02ab", "GET / HTTP/1.1\r\n\r\n",
		"RTSP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nabc",
		"RTSP/1.0 200 OK\r\nContent-Length: -3\r\n\r\n",
		"RTSP/1.0 401 No\r\nWWW-Authenticate: Digest a=\"b\r\n\r\n",
		strings.Repeat("a", 70_000)} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bufio.NewReader(strings.NewReader(string(b)))
		for {
			p, err := readPacket(r)
			if err != nil {
				return
			}
			if len(p.bytes()) == 0 {
				t.Fatalf("an empty packet of %q", b)
			}
			(&signer{}).asked(p)
		}
	})
}
