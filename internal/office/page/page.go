// SPDX-License-Identifier: Apache-2.0

// Package page shows an office in a browser, and takes the user's corrections.
//
// [New] returns a [Page], which is an http.Handler; [Page.Serve] serves it with deadlines. All
// files of the page are embedded in the program. api/openapi.json describes the API for programs
// with OpenAPI. It is a file of its own: tests compare each request and answer with it.
//
// # Who may see it
//
// Without a token the page only answers requests to a loopback address under a name of that
// address, so no other site can make a browser read it under its own name. With a token every
// visitor must give the token. Changes that another site requests are refused.
//
// # Behind another server
//
// [Options].Base is the path of the page if a proxy passes the path on. A proxy that removes its
// path, such as the ingress of Home Assistant, needs no setting: links and redirects are relative,
// and the cookie holds for the folder of the login.
package page

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/rand"
	"crypto/tls"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"net/netip"
	"path"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/office"
	"github.com/faceauth/faceauth/internal/office/sink"
	"github.com/faceauth/faceauth/internal/pagestyle"
	"golang.org/x/sync/semaphore"
)

// Errors of [New] and [Page.Listen].
var (
	ErrToken = errors.New("a token is needed") // other machines can reach the page
	ErrBase  = errors.New("unusable path for the page")
	ErrFrame = errors.New("unusable address of a site that may embed the page")
)

// leastToken is the least length of a token in characters.
const leastToken = 16

// mostBody is the greatest size of a request in bytes, but for a picture.
const mostBody = 1 << 16

//go:embed static *.tmpl openapi.json
var files embed.FS

var templates = template.Must(template.ParseFS(files, "*.tmpl"))

// Options of a [Page].
type Options struct {
	// every visitor must give it; at least 16 characters. Empty: only this machine can use the page
	Token string
	Look  Look
	// Sinks returns the state of the delivery of events to each receiver; nil for none.
	Sinks func() []sink.Status
	Base  string // path of the page, such as "/faceauth"; "" for the root
	// Proxies are the addresses of proxies whose headers X-Forwarded-For and X-Forwarded-Proto the
	// page believes.
	Proxies []netip.Prefix
	// See finds the faces of a picture that a visitor has sent, in a process without secrets. End
	// is the end of the name of its file, such as ".jpg". With enrol the faces need a JPEG, and a
	// Reason if they are not good enough to be enrolled. Errors about the picture wrap
	// [viewer.ErrPicture]. Nil: no pictures are taken.
	See func(ctx context.Context, picture []byte, end string, enrol bool) (face.Frame, error)
	// Frames are the sites that may embed the page in a frame: "self", or origins such as
	// "https://home.example:8123".
	Frames []string
}

// Page shows an office in a browser. [New] makes one.
type Page struct {
	o       Options
	office  *office.Office
	handler http.Handler
	policy  string   // value of the header Content-Security-Policy
	framed  bool     // other sites may embed the page
	keys    []key    // who gives the first one may do everything
	misses  misses   // wrong tokens
	sent    misses   // pictures
	routes  []string // of the API

	run    string // of this run: numbers of pictures may begin anew with the next
	glance glance

	dooms   *dooms
	memory  *semaphore.Weighted
	seeing  chan struct{} // holds a value while a picture is looked at
	streams chan struct{} // holds a value for each stream of changes

	// proxy is the address of one that is not declared, by which somebody was let in.
	proxy atomic.Pointer[string]
}

// New returns the page of an office. The error wraps [ErrToken] for a short token, [ErrBase] or
// [ErrFrame].
func New(w *office.Office, o Options) (*Page, error) {
	for _, token := range []string{o.Token, o.Look.Token} {
		if n := len(token); n > 0 && n < leastToken {
			return nil, fmt.Errorf("%w of at least %d characters, got %d", ErrToken, leastToken, n)
		}
	}
	if o.Look.Token != "" && (o.Token == "" || o.Token == o.Look.Token) {
		return nil, fmt.Errorf("%w for those who change something, another one than for those "+
			"who look", ErrToken)
	}
	if o.Base != "" && !isPath(o.Base) {
		return nil, fmt.Errorf(
			"%w: %q; use a path such as /faceauth, with letters, digits, '-', '_', '.' and '/', "+
				"and without a '/' at the end",
			ErrBase, o.Base)
	}
	p := &Page{o: o, office: w, keys: []key{{o.Token, cookieOf(o.Token), visitor{}}},
		run:    rand.Text()[:8],
		dooms:  &dooms{office: w},
		memory: semaphore.NewWeighted(mostHeld), seeing: make(chan struct{}, 1),
		streams: make(chan struct{}, mostStreams),
		misses:  misses{most: mostMisses}, sent: misses{most: mostSent}}
	if o.Look.Token != "" {
		p.keys = append(p.keys, key{o.Look.Token, cookieOf(o.Look.Token),
			visitor{looks: true, cameras: o.Look.Cameras}})
	}
	frames, err := p.frames()
	if err != nil {
		return nil, err
	}
	p.policy = "default-src 'none'; img-src 'self' blob:; script-src 'self'; style-src 'self'; " +
		"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors " + frames
	if p.o.Sinks == nil {
		p.o.Sinks = func() []sink.Status { return []sink.Status{} }
	}
	p.handler = http.NewCrossOriginProtection().Handler(p.mux())
	if o.Base != "" {
		p.handler = below(o.Base, p.handler)
	}
	return p, nil
}

var pathPattern = regexp.MustCompile(`^(/[A-Za-z0-9_.-]+)+$`)

// isPath reports whether a text is a plain absolute path: it cannot end a header or name another
// server.
func isPath(text string) bool {
	return len(text) <= 200 && pathPattern.MatchString(text) && path.Clean(text) == text
}

var originPattern = regexp.MustCompile(
	`^https?://([A-Za-z0-9.-]+|\[[0-9A-Fa-f:]+\])(:[0-9]{1,5})?$`)

// frames returns the sites that may embed the page, for the Content-Security-Policy.
func (p *Page) frames() (string, error) {
	if len(p.o.Frames) == 0 {
		return "'none'", nil
	}
	var all []string
	for _, site := range p.o.Frames {
		switch {
		case site == "self":
			site = "'self'"
		case originPattern.MatchString(site):
			p.framed = true
		default:
			return "", fmt.Errorf(
				"%w: %q; give self, or an origin such as https://home.example:8123", ErrFrame, site)
		}
		all = append(all, site)
	}
	return strings.Join(all, " "), nil
}

// below serves a page below a path.
func below(base string, inside http.Handler) http.Handler {
	m := http.NewServeMux()
	m.Handle(base+"/", http.StripPrefix(base, inside))
	home := http.RedirectHandler(base+"/", http.StatusSeeOther)
	m.Handle("GET /{$}", home)
	m.Handle("GET "+base, home)
	return m
}

func (p *Page) mux() http.Handler {
	inside := http.NewServeMux()
	var modules []string
	inside.HandleFunc("GET /{$}",
		func(w http.ResponseWriter, r *http.Request) {
			p.show(w, http.StatusOK, "index.html.tmpl", struct {
				Modules []string
				Run     string
				Looks   bool
				Partly  bool
			}{modules, p.run, who(r).looks, who(r).cameras != nil})
		})
	p.read(inside)
	p.attendance(inside)
	p.change(inside)
	p.pictures(inside)
	m := http.NewServeMux()
	static, err := fs.Sub(files, "static")
	if err == nil {
		err = fs.WalkDir(static, ".", func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			if path.Ext(name) == ".js" {
				modules = append(modules, name)
			}
			m.HandleFunc("GET /"+name, serve(name))
			return nil
		})
	}
	if err != nil {
		panic("page: nothing is embedded")
	}
	m.HandleFunc("GET /login",
		func(w http.ResponseWriter, _ *http.Request) {
			p.show(w, http.StatusOK, "login.html.tmpl",
				"")
		})
	m.HandleFunc("POST /login", p.login)
	m.Handle("/", p.guard(inside))
	return m
}

var kinds = map[string]string{
	".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8",
	".svg": "image/svg+xml",
}

// serve returns the handler of an embedded file.
func serve(name string) http.HandlerFunc {
	text := file("static/" + name)
	if name == "page.css" {
		text = append([]byte(pagestyle.CSS), text...)
	}
	kind, small := cmp.Or(kinds[path.Ext(name)], "text/plain; charset=utf-8"),
		zipped(text, gzip.BestCompression)
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.Header().Set("Vary", "Accept-Encoding")
		b := text
		if zips(r) {
			w.Header().Set("Content-Encoding", "gzip")
			b = small
		}
		give(w, r, b, false)
	}
}

// zipped returns a text as most browsers take it, a quarter of its size.
func zipped(text []byte, level int) []byte {
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, level)
	z.Write(text) // a buffer takes all
	z.Close()
	return b.Bytes()
}

// file returns an embedded file.
func file(name string) []byte {
	b, err := files.ReadFile(name)
	if err != nil {
		panic("page: " + name + " is not embedded")
	}
	return b
}

func (p *Page) show(w http.ResponseWriter, status int, name string, data any) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	templates.ExecuteTemplate(w, name, data) // an error means a lost connection
}

// ServeHTTP implements [http.Handler].
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", p.policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	if p.o.Token == "" && !ours(r.Host) {
		http.Error(w, "Only this machine can use this page; open it as localhost.",
			http.StatusForbidden)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, mostBytes(r))
	p.handler.ServeHTTP(w, r)
}

// ours reports whether a Host header is a name of the loopback interface.
func ours(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	name = strings.Trim(name, "[]")
	return name == "localhost" || net.ParseIP(name).IsLoopback()
}

// Listen listens at an address. The error wraps [ErrToken] if other machines could reach a page
// without a token.
func (p *Page) Listen(address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("the page: %w", err)
	}
	if tcp, ok := l.Addr().(*net.TCPAddr); p.o.Token == "" && !(ok && tcp.IP.IsLoopback()) {
		l.Close()
		return nil, fmt.Errorf(
			"%w for the page at %s, because other machines can reach it; give a token, or use "+
				"127.0.0.1", ErrToken,
			address)
	}
	return l, nil
}

// Serve serves the page until ctx ends. It uses TLS if certificates are given.
func (p *Page) Serve(ctx context.Context, l net.Listener, certificates []tls.Certificate) error {
	s := &http.Server{
		Handler: p, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 20 * time.Second,
		WriteTimeout: 30 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 1 << 14,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog:    log.New(io.Discard, "", 0), // mistakes of clients are not logged
	}
	if len(certificates) > 0 {
		l = tls.NewListener(l, &tls.Config{Certificates: certificates,
			MinVersion: tls.VersionTLS12})
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	select {
	case err := <-done:
		return errors.Join(err, p.dooms.finish())
	case <-ctx.Done():
	}
	s.Close()
	<-done
	return p.dooms.finish()
}

// send writes JSON.
func send(w http.ResponseWriter, r *http.Request, b []byte) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Vary", "Accept-Encoding")
	if zips(r) && len(b) > 1000 {
		h.Set("Content-Encoding", "gzip")
		b = zipped(b, gzip.BestSpeed)
	}
	w.Write(b) // an error means a lost connection
}
