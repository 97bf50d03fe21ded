// SPDX-License-Identifier: Apache-2.0

// Package page shows an office in a browser, and takes in what somebody says there.
//
// [New] returns a [Page], which is an http.Handler; [Page.Serve] serves it with deadlines. The page is embedded in the
// program and asks for nothing elsewhere.
//
// # Who may see it
//
// Without a token the page answers requests to a loopback address, under a name of that address, so that no other site
// can have a browser ask for it under a name of its own. With a token it asks every visitor for that. Requests that
// change something are refused where another site makes them.
package page

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/faceauth/faceauth/internal/pagestyle"
	"github.com/faceauth/faceauth/office"
)

// ErrToken is wrapped by the errors of [New] and [Page.Listen] for a page that anybody could read.
var ErrToken = errors.New("a token is needed")

// leastToken is how many characters a token has at least.
const leastToken = 16

// mostBody is how many bytes a request may have.
const mostBody = 1 << 16

//go:embed index.html.tmpl page.js page.css login.html.tmpl
var files embed.FS

var templates = template.Must(template.ParseFS(files, "*.tmpl"))

// Sink says how one of those is who are told of events.
type Sink struct {
	Name    string `json:"name"`
	Waiting int    `json:"waiting"` // events that it has not got yet
	Lost    int    `json:"lost"`    // for which there was no room
	Error   string `json:"error"`   // of the last try, "" where it succeeded
}

// Options of a [Page].
type Options struct {
	Token string        // asked of every visitor; at least 16 characters. Without one the page is for this machine alone
	Sinks func() []Sink // nil for none
}

// Page shows an office. Make one with [New].
type Page struct {
	o       Options
	office  *office.Office
	handler http.Handler
	cookie  string // what a visitor has who knows the token

	mu     sync.Mutex
	misses int // tokens that were wrong of late
	since  time.Time
}

// New returns the page of an office. The error wraps [ErrToken] for a token that is too short.
func New(w *office.Office, o Options) (*Page, error) {
	if n := len(o.Token); n > 0 && n < leastToken {
		return nil, fmt.Errorf("%w of at least %d characters, got %d", ErrToken, leastToken, n)
	}
	mac := hmac.New(sha256.New, []byte(o.Token))
	io.WriteString(mac, "faceauth page")
	p := &Page{o: o, office: w, cookie: hex.EncodeToString(mac.Sum(nil))}
	if p.o.Sinks == nil {
		p.o.Sinks = func() []Sink { return []Sink{} }
	}
	same := http.NewCrossOriginProtection()
	p.handler = same.Handler(p.mux())
	return p, nil
}

func (p *Page) mux() http.Handler {
	inside := http.NewServeMux()
	inside.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { p.show(w, "index.html.tmpl", nil) })
	p.read(inside)
	p.change(inside)
	m := http.NewServeMux()
	m.HandleFunc("GET /page.css", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/css; charset=utf-8")
		io.WriteString(w, string(pagestyle.CSS))
		w.Write(file("page.css"))
	})
	m.HandleFunc("GET /page.js", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/javascript; charset=utf-8")
		w.Write(file("page.js"))
	})
	m.HandleFunc("GET /login", func(w http.ResponseWriter, _ *http.Request) { p.show(w, "login.html.tmpl", "") })
	m.HandleFunc("POST /login", p.login)
	m.Handle("/", p.guard(inside))
	return m
}

// file returns an embedded file.
func file(name string) []byte {
	b, err := files.ReadFile(name)
	if err != nil {
		panic("page: " + name + " is not embedded")
	}
	return b
}

func (p *Page) show(w http.ResponseWriter, name string, what any) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	templates.ExecuteTemplate(w, name, what) // what fails is the connection
}

// ServeHTTP implements [http.Handler].
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; img-src 'self'; script-src 'self'; style-src 'self'; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	if p.o.Token == "" && !ours(r.Host) {
		http.Error(w, "This page is for this machine alone; ask for it under localhost.", http.StatusForbidden)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, mostBody)
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

// guard lets those in who know the token.
func (p *Page) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.o.Token == "" || p.knows(r) {
			next.ServeHTTP(w, r)
			return
		}
		if r.Method == http.MethodGet && r.URL.Path == "/" {
			http.Redirect(w, r, "/login", http.StatusSeeOther)
			return
		}
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, "log in first", http.StatusUnauthorized)
	})
}

const cookieName = "faceauth"

func (p *Page) knows(r *http.Request) bool {
	if c, err := r.Cookie(cookieName); err == nil && equal(c.Value, p.cookie) {
		return true
	}
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return ok && !p.tired() && p.right(token)
}

func equal(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// right reports whether a token is the right one, and counts it where it is not.
func (p *Page) right(token string) bool {
	if equal(token, p.o.Token) {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := time.Now(); now.Sub(p.since) > time.Minute {
		p.since, p.misses = now, 0
	}
	p.misses++
	return false
}

// mostMisses is how many wrong tokens a minute are looked at.
const mostMisses = 20

// tired reports whether too many tokens were wrong of late.
func (p *Page) tired() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.misses >= mostMisses && time.Since(p.since) <= time.Minute
}

func (p *Page) login(w http.ResponseWriter, r *http.Request) {
	if p.tired() {
		w.WriteHeader(http.StatusTooManyRequests)
		p.show(w, "login.html.tmpl", "Too many tokens were wrong. Wait a minute.")
		return
	}
	if err := r.ParseForm(); err != nil || !p.right(r.PostForm.Get("token")) {
		w.WriteHeader(http.StatusUnauthorized)
		p.show(w, "login.html.tmpl", "That is not the token.")
		return
	}
	http.SetCookie(w, &http.Cookie{
		Name: cookieName, Value: p.cookie, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil, MaxAge: 30 * 24 * 3600,
	})
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// Listen listens at an address. The error wraps [ErrToken] where others than this machine could reach a page without a
// token.
func (p *Page) Listen(address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("the page: %w", err)
	}
	if tcp, ok := l.Addr().(*net.TCPAddr); p.o.Token == "" && !(ok && tcp.IP.IsLoopback()) {
		l.Close()
		return nil, fmt.Errorf("%w for the page at %s, which other machines can reach; give one, or use 127.0.0.1", ErrToken, address)
	}
	return l, nil
}

// Serve serves the page until ctx ends, over TLS where there are certificates.
func (p *Page) Serve(ctx context.Context, l net.Listener, certificates []tls.Certificate) error {
	s := &http.Server{
		Handler: p, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 20 * time.Second, WriteTimeout: 30 * time.Second,
		IdleTimeout: time.Minute, MaxHeaderBytes: 1 << 14,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog:    log.New(io.Discard, "", 0), // what a client does wrong is its own affair
	}
	if len(certificates) > 0 {
		l = tls.NewListener(l, &tls.Config{Certificates: certificates, MinVersion: tls.VersionTLS12})
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	s.Close()
	<-done
	return nil
}

// answer writes a value.
func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(v) // what fails is the connection
}

// image writes a picture, which there may not be.
func image(w http.ResponseWriter, jpeg []byte) {
	if jpeg == nil {
		http.Error(w, "there is no picture", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "image/jpeg")
	w.Write(jpeg)
}

// number returns a number of the path or the query, or 0.
func number(text string) uint64 {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// mostEvents is how many events are shown at a time.
const mostEvents = 200

func (p *Page) read(m *http.ServeMux) {
	get := func(path string, do func(r *http.Request) (any, error)) {
		m.HandleFunc("GET /api/"+path, func(w http.ResponseWriter, r *http.Request) {
			v, err := do(r)
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			answer(w, v)
		})
	}
	get("now", func(*http.Request) (any, error) { return p.office.Now(), nil })
	get("sinks", func(*http.Request) (any, error) { return p.o.Sinks(), nil })
	get("sightings", func(*http.Request) (any, error) { return p.office.Sightings(), nil })
	get("strangers", func(*http.Request) (any, error) { return strangers(p.office), nil })
	get("conflicts", func(*http.Request) (any, error) { return p.office.Conflicts(), nil })
	get("events", func(r *http.Request) (any, error) {
		n := min(mostEvents, int(cmp.Or(number(r.FormValue("n")), 50)&0xffff))
		return p.office.Events(number(r.FormValue("before")), n), nil
	})
	m.HandleFunc("GET /face/{id}", func(w http.ResponseWriter, r *http.Request) { image(w, p.office.Face(number(r.PathValue("id")))) })
	m.HandleFunc("GET /camera/{name}", func(w http.ResponseWriter, r *http.Request) { image(w, p.office.Picture(r.PathValue("name"))) })
}

// stranger is a group of unknown faces without the faces themselves.
type stranger struct {
	ID      uint64      `json:"id"`
	First   time.Time   `json:"first"`
	Last    time.Time   `json:"last"`
	Visits  int         `json:"visits"`
	Ignored bool        `json:"ignored"`
	Faces   []faceShown `json:"faces"`
}

type faceShown struct {
	ID     uint64    `json:"id"`
	At     time.Time `json:"at"`
	Camera string    `json:"camera"`
}

func strangers(w *office.Office) []stranger {
	all := []stranger{}
	for _, g := range w.Strangers() {
		s := stranger{ID: g.ID, First: g.First, Last: g.Last, Visits: g.Visits, Ignored: g.Ignored}
		for _, f := range g.Album.Faces {
			s.Faces = append(s.Faces, faceShown{f.ID, f.At, f.Camera})
		}
		all = append(all, s)
	}
	return all
}

// change takes in what somebody says.
func (p *Page) change(m *http.ServeMux) {
	w := p.office
	post(m, "name", func(q struct {
		Group uint64
		Name  string
		Force bool
	}) error {
		return w.Name(q.Group, q.Name, q.Force)
	})
	post(m, "correct", func(q struct {
		Sighting uint64
		Is       string
	}) error {
		return w.Correct(q.Sighting, q.Is)
	})
	post(m, "confirm", func(q struct{ Sighting uint64 }) error { return w.Confirm(q.Sighting) })
	post(m, "merge", func(q struct{ Into, From uint64 }) error { return w.Merge(q.Into, q.From) })
	post(m, "split", func(q struct {
		Group uint64
		Faces []uint64
	}) error {
		return w.Split(q.Group, q.Faces)
	})
	post(m, "ignore", func(q struct {
		Group   uint64
		Ignored bool
	}) error {
		return w.Ignore(q.Group, q.Ignored)
	})
	post(m, "forget-stranger", func(q struct{ Group uint64 }) error { return w.ForgetGroup(q.Group) })
	post(m, "keep", func(q struct{ On bool }) error { return w.KeepUnknown(q.On) })
	post(m, "forget", func(q struct{ Name string }) error { return w.Forget(q.Name) })
	post(m, "unlabel", func(q struct{ Face int64 }) error { return w.Unlabel(q.Face) })
}

// post has do take in a request in JSON, which has all that it should and nothing else.
func post[Q any](m *http.ServeMux, path string, do func(Q) error) {
	m.HandleFunc("POST /api/"+path, func(w http.ResponseWriter, r *http.Request) {
		if kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); kind != "application/json" {
			http.Error(w, "send JSON", http.StatusUnsupportedMediaType)
			return
		}
		var q Q
		d := json.NewDecoder(r.Body)
		d.DisallowUnknownFields()
		err := d.Decode(&q)
		var large *http.MaxBytesError
		switch {
		case errors.As(err, &large):
			http.Error(w, "that is too much", http.StatusRequestEntityTooLarge)
			return
		case err != nil:
			http.Error(w, "that cannot be read: "+err.Error(), http.StatusBadRequest)
			return
		}
		if err := do(q); err != nil {
			http.Error(w, err.Error(), http.StatusConflict)
			return
		}
		answer(w, struct{}{})
	})
}
