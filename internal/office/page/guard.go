// SPDX-License-Identifier: Apache-2.0

package page

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"io"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"
)

// cookieOf returns the cookie for visitors who gave the token. The token cannot be computed from
// it. Each token has a cookie of its own name, because a browser shares cookies between the ports
// of a host. Without a path the cookie holds for the folder of the login, whatever path a proxy has
// removed.
func cookieOf(token string) http.Cookie {
	sum := func(of string) string {
		mac := hmac.New(sha256.New, []byte(token))
		io.WriteString(mac, of)
		return hex.EncodeToString(mac.Sum(nil))
	}
	return http.Cookie{
		Name:  "faceauth_" + sum("faceauth page, name of the cookie")[:8],
		Value: sum("faceauth page"), HttpOnly: true,
		SameSite: http.SameSiteStrictMode, MaxAge: 30 * 24 * 3600,
	}
}

// redirect sends a browser to an address relative to the address that it knows, which a proxy may
// have changed.
func redirect(w http.ResponseWriter, to string) {
	w.Header().Set("Location", to)
	w.WriteHeader(http.StatusSeeOther)
}

func equal(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// guard lets visitors in who have a token, to what they may do.
func (p *Page) guard(next http.Handler) http.Handler {
	enter := func(w http.ResponseWriter, r *http.Request, v visitor) {
		if no := p.refusal(v, r); no != nil {
			refuse(w, no, http.StatusForbidden)
			return
		}
		if a := peer(r); r.Header.Get("X-Forwarded-For") != "" && a.IsValid() && !p.trusts(a) {
			at := a.String()
			p.proxy.Store(&at)
		}
		next.ServeHTTP(w, v.as(r))
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		k := p.byCookie(r)
		if p.o.Token == "" || k != nil {
			enter(w, r, cmp.Or(k, &p.keys[0]).visitor)
			return
		}
		token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		tired := false
		if ok {
			k, tired = p.right(r, token)
		}
		switch {
		case tired:
			tooMany(w)
			http.Error(w, guesses, http.StatusTooManyRequests)
		case k != nil:
			enter(w, r, k.visitor)
		case r.Method == http.MethodGet && r.URL.Path == "/":
			redirect(w, "login")
		default:
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "log in first", http.StatusUnauthorized)
		}
	})
}

// byCookie returns the key whose cookie a visitor has, or nil.
func (p *Page) byCookie(r *http.Request) *key {
	for i, k := range p.keys {
		c, err := r.Cookie(k.cookie.Name)
		if err == nil && equal(c.Value, k.cookie.Value) {
			return &p.keys[i]
		}
	}
	return nil
}

// right returns the key of a token, or nil for a wrong one. Tired reports that too many from the
// same source were wrong: then it was not looked at.
func (p *Page) right(r *http.Request, token string) (k *key, tired bool) {
	for i := range p.keys {
		if equal(token, p.keys[i].token) {
			k = &p.keys[i]
		}
	}
	tired = p.misses.tired(p.source(r), k == nil)
	if tired {
		k = nil
	}
	return k, tired
}

const guesses = "Too many tokens from your address were wrong. Wait a minute."

func tooMany(w http.ResponseWriter) { w.Header().Set("Retry-After", "60") }

func (p *Page) login(w http.ResponseWriter, r *http.Request) {
	r.ParseForm() // without a form there is no token
	k, tired := p.right(r, r.PostForm.Get("token"))
	switch {
	case tired:
		tooMany(w)
		p.show(w, http.StatusTooManyRequests, "login.html.tmpl", guesses)
		return
	case k == nil:
		p.show(w, http.StatusUnauthorized, "login.html.tmpl", "That is not the token.")
		return
	}
	for _, other := range p.keys { // who looks may have been here with the other token
		if other.cookie.Name != k.cookie.Name {
			http.SetCookie(w, &http.Cookie{Name: other.cookie.Name, MaxAge: -1})
		}
	}
	c := k.cookie
	c.Secure = r.TLS != nil || p.trusts(peer(r)) && r.Header.Get("X-Forwarded-Proto") == "https"
	// A browser gives a strict cookie to no frame inside another site. Other sites' requests are
	// refused without it, too.
	if p.framed && c.Secure {
		c.SameSite, c.Partitioned = http.SameSiteNoneMode, true
	}
	http.SetCookie(w, &c)
	redirect(w, "./")
}

// peer returns the address at the other end of the connection; it is not valid for a socket.
func peer(r *http.Request) netip.Addr {
	at, _ := netip.ParseAddrPort(r.RemoteAddr)
	return at.Addr().Unmap().WithZone("")
}

// trusts reports whether an address is that of a trusted proxy.
func (p *Page) trusts(a netip.Addr) bool {
	return slices.ContainsFunc(p.o.Proxies, func(n netip.Prefix) bool { return n.Contains(a) })
}

// source is from where a request comes: addresses, or the networks that one subscriber of IPv6 has
// to himself.
type source struct {
	at     netip.Prefix
	behind netip.Prefix // what at says for whom it asks if it may be a proxy, or else at
}

// source returns from where a request comes. Each trusted proxy has added the address from which
// it got the request to X-Forwarded-For; a visitor can write what stands before. A proxy that
// nobody has declared is not believed, but tells its visitors apart.
func (p *Page) source(r *http.Request) source {
	a := peer(r)
	declared := p.trusts(a)
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, hop := range slices.Backward(hops) {
		before, err := netip.ParseAddr(strings.TrimSpace(hop))
		if err == nil && !declared {
			return source{network(a), network(before.Unmap())}
		}
		if err != nil || !p.trusts(a) {
			break
		}
		a = before.Unmap().WithZone("")
	}
	return source{network(a), network(a)}
}

func network(a netip.Addr) netip.Prefix {
	bits := 32
	if a.Is6() {
		bits = 64
	}
	n, _ := a.Prefix(bits) // there are so many bits
	return n
}

const (
	mostMisses  = 20   // wrong tokens of one source that are looked at in a minute
	mostBehind  = 20   // as many sources behind one address: any visitor can invent them
	mostSources = 4096 // that are counted
)

// misses counts wrong tokens, or pictures, of a minute by their source, so that nobody locks out
// others. Beyond the limit a right token is refused, too: else guessing would go on.
type misses struct {
	most int // of one source in a minute

	mu    sync.Mutex
	of    map[source]int // and of all at one address, with behind left out
	since time.Time
}

// tired reports whether too many tokens of a source were wrong of late. If not, it counts this one
// if it is wrong. Beyond mostSources it forgets those that may guess on.
func (m *misses) tired(from source, wrong bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if time.Since(m.since) >= time.Minute {
		m.of, m.since = make(map[source]int), time.Now()
	}
	all := source{at: from.at}
	if m.of[from] >= m.most || m.of[all] >= mostBehind*m.most {
		return true
	}
	if wrong && len(m.of) >= mostSources {
		maps.DeleteFunc(m.of, func(_ source, n int) bool { return n < m.most })
	}
	if wrong && len(m.of) < mostSources {
		m.of[from]++
		m.of[all]++
	}
	return false
}
