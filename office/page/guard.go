// SPDX-License-Identifier: Apache-2.0

package page

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"
)

const cookieName = "faceauth"

// cookieOf returns the cookie for visitors who gave the token. The token cannot be computed from it.
func cookieOf(token string) string {
	mac := hmac.New(sha256.New, []byte(token))
	io.WriteString(mac, "faceauth page")
	return hex.EncodeToString(mac.Sum(nil))
}

func equal(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// guard lets visitors in who have the token.
func (p *Page) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.o.Token == "" || p.hasCookie(r) {
			next.ServeHTTP(w, r)
			return
		}
		token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		switch {
		case ok && p.misses.many(source(r)):
			tooMany(w)
			http.Error(w, tired, http.StatusTooManyRequests)
		case ok && p.right(r, token):
			next.ServeHTTP(w, r)
		case r.Method == http.MethodGet && r.URL.Path == "/":
			http.Redirect(w, r, p.home(r)+"/login", http.StatusSeeOther)
		default:
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "log in first", http.StatusUnauthorized)
		}
	})
}

func (p *Page) hasCookie(r *http.Request) bool {
	c, err := r.Cookie(cookieName)
	return err == nil && equal(c.Value, p.cookie)
}

// right reports whether a token is right, and counts wrong ones.
func (p *Page) right(r *http.Request, token string) bool {
	if equal(token, p.o.Token) {
		return true
	}
	p.misses.add(source(r))
	return false
}

const tired = "Too many tokens from your address were wrong. Wait a minute."

func tooMany(w http.ResponseWriter) { w.Header().Set("Retry-After", "60") }

func (p *Page) login(w http.ResponseWriter, r *http.Request) {
	if p.misses.many(source(r)) {
		tooMany(w)
		p.show(w, http.StatusTooManyRequests, "login.html.tmpl", tired)
		return
	}
	if err := r.ParseForm(); err != nil || !p.right(r, r.PostForm.Get("token")) {
		p.show(w, http.StatusUnauthorized, "login.html.tmpl", "That is not the token.")
		return
	}
	c := &http.Cookie{
		Name: cookieName, Value: p.cookie, Path: p.home(r) + "/", HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: r.TLS != nil, MaxAge: 30 * 24 * 3600,
	}
	// A browser gives a strict cookie to no frame inside another site. Other sites' requests are refused without it,
	// too.
	if p.framed && r.TLS != nil {
		c.SameSite, c.Partitioned = http.SameSiteNoneMode, true
	}
	http.SetCookie(w, c)
	http.Redirect(w, r, p.home(r)+"/", http.StatusSeeOther)
}

// source returns from where a request comes: an address, or the network that one subscriber of IPv6 has to himself.
func source(r *http.Request) netip.Prefix {
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	a, err := netip.ParseAddr(host)
	if err != nil {
		return netip.Prefix{} // of no network: a test, or a socket
	}
	a = a.Unmap().WithZone("")
	bits := 32
	if a.Is6() {
		bits = 64
	}
	n, _ := a.Prefix(bits) // there are so many bits
	return n
}

const (
	mostMisses  = 20   // wrong tokens of one source that are looked at in a minute
	mostSources = 4096 // that are known
)

// misses counts wrong tokens by their source, so that nobody locks out others.
type misses struct {
	mu sync.Mutex
	of map[netip.Prefix]*miss
}

// miss counts the wrong tokens of one source since a time.
type miss struct {
	n     int
	since time.Time
}

func (m *miss) old(now time.Time) bool { return now.Sub(m.since) > time.Minute }

// many reports whether too many tokens of a source were wrong of late.
func (m *misses) many(from netip.Prefix) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.of[from]
	return s != nil && s.n >= mostMisses && !s.old(time.Now())
}

// add counts a wrong token.
func (m *misses) add(from netip.Prefix) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	if m.of == nil {
		m.of = make(map[netip.Prefix]*miss)
	}
	s := m.of[from]
	if s == nil {
		if len(m.of) >= mostSources {
			m.shed(now)
		}
		s = &miss{since: now}
		m.of[from] = s
	}
	if s.old(now) {
		*s = miss{since: now}
	}
	s.n++
}

// shed makes room: it forgets the sources of more than a minute ago, or else the one with the fewest misses.
func (m *misses) shed(now time.Time) {
	var least netip.Prefix
	few := -1
	for from, s := range m.of {
		if s.old(now) {
			delete(m.of, from)
		} else if few < 0 || s.n < few {
			least, few = from, s.n
		}
	}
	if len(m.of) >= mostSources {
		delete(m.of, least)
	}
}
