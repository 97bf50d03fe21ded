// SPDX-License-Identifier: Apache-2.0

package page_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/office"
	"github.com/faceauth/faceauth/office/page"
	"github.com/faceauth/faceauth/online"
)

const token = "made up for the tests"

// site is an office that knows alice and sees nobody.
func site(t *testing.T, o page.Options) (*page.Page, *office.Office) {
	t.Helper()
	space := face.Space{ID: "plane", Dim: 2, Scale: 1, Sigma: .2, Gamma: 1e-3, Reach: .86, ImpostorRadius: .93}
	g, err := gallery.New(space, online.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.Enroll("alice", [][]float32{{0, 0}}, time.Now(), gallery.Enrolment{}); err != nil {
		t.Fatal(err)
	}
	w := office.New(g, office.Options{})
	p, err := page.New(w, o)
	if err != nil {
		t.Fatal(err)
	}
	return p, w
}

// ask makes a request; headers are pairs.
func ask(p http.Handler, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://localhost:8090"+path, strings.NewReader(body))
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
			continue
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	p.ServeHTTP(w, r)
	return w
}

func TestReads(t *testing.T) {
	p, _ := site(t, page.Options{})
	for path, want := range map[string]string{
		"/":              "<h2 id=\"strangers-title\"",
		"/page.js":       "use strict",
		"/page.css":      ".camera",
		"/login":         "Token",
		"/api/now":       `"known":[{"name":"alice"`,
		"/api/sightings": "[]",
		"/api/strangers": "[]",
		"/api/conflicts": "[]",
		"/api/sinks":     "[]",
		"/api/events":    "[]",
		"/api/events?n=99999999999999999999&before=x": "[]",
	} {
		w := ask(p, "GET", path, "")
		if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %d %.200s", path, w.Code, w.Body)
		}
		csp := w.Header().Get("Content-Security-Policy")
		if !strings.Contains(csp, "default-src 'none'") || strings.Contains(csp, "unsafe") || w.Header().Get("X-Content-Type-Options") != "nosniff" || w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %v", path, w.Header())
		}
	}
}

// What is not there is not found, whatever a path says.
func TestPaths(t *testing.T) {
	p, _ := site(t, page.Options{})
	for _, path := range []string{
		"/page.go", "/index.html.tmpl", "/../page.go", "/%2e%2e/%2e%2e/etc/passwd", "/face/../../etc/passwd", "/face/1", "/face/x",
		"/camera/../../../etc/passwd", "/camera/%2e%2e%2f%2e%2e%2fetc%2fpasswd", "/camera/", "/api/", "/api/name", "/static/x", "//etc/passwd",
	} {
		w := ask(p, "GET", path, "")
		if w.Code/100 == 2 || strings.Contains(w.Body.String(), "root:") {
			t.Errorf("%s: %d %.100s", path, w.Code, w.Body)
		}
	}
}

// Another site can have a browser make requests, and gets nothing.
func TestForeign(t *testing.T) {
	p, w := site(t, page.Options{})
	forget := `{"name":"alice"}`
	for _, c := range []struct {
		name    string
		headers []string
		want    int
	}{
		{"another name for this machine", []string{"Host", "evil.example"}, http.StatusForbidden},
		{"a name that begins like ours", []string{"Host", "localhost.evil.example"}, http.StatusForbidden},
		{"another site's script", []string{"Sec-Fetch-Site", "cross-site"}, http.StatusForbidden},
		{"another site's script, older browser", []string{"Origin", "http://evil.example"}, http.StatusForbidden},
		{"a form", []string{"Content-Type", "text/plain"}, http.StatusUnsupportedMediaType},
		{"a form of another kind", []string{"Content-Type", "application/x-www-form-urlencoded"}, http.StatusUnsupportedMediaType},
	} {
		if got := ask(p, "POST", "/api/forget", forget, c.headers...); got.Code != c.want {
			t.Errorf("%s: %d %s", c.name, got.Code, got.Body)
		}
	}
	if got := ask(p, "GET", "/api/now", "", "Host", "evil.example:8090"); got.Code != http.StatusForbidden {
		t.Errorf("reading under another name: %d", got.Code)
	}
	if n := len(w.Now().Known); n != 1 {
		t.Fatal("alice was forgotten")
	}
	for _, host := range []string{"localhost", "127.0.0.1:8090", "[::1]:8090"} {
		if got := ask(p, "GET", "/", "", "Host", host); got.Code != http.StatusOK {
			t.Errorf("%s: %d", host, got.Code)
		}
	}
	if got := ask(p, "POST", "/api/forget", forget, "Sec-Fetch-Site", "same-origin"); got.Code != http.StatusOK || len(w.Now().Known) != 0 {
		t.Errorf("the page itself: %d %s", got.Code, got.Body)
	}
}

func TestChanges(t *testing.T) {
	p, _ := site(t, page.Options{})
	for _, c := range []struct {
		path, body string
		want       int
		text       string
	}{
		{"name", `{"group":1,"name":"bob"}`, http.StatusConflict, "no such group"},
		{"name", `{"group":-1,"name":"bob"}`, http.StatusBadRequest, "cannot be read"},
		{"name", `{"group":1,"name":"bob","more":1}`, http.StatusBadRequest, "unknown field"},
		{"name", `nonsense`, http.StatusBadRequest, ""},
		{"name", ``, http.StatusBadRequest, ""},
		{"name", `{"name":"` + strings.Repeat("x", 1<<17) + `"}`, http.StatusRequestEntityTooLarge, "too much"},
		{"correct", `{"sighting":7}`, http.StatusConflict, "sighting not found"},
		{"merge", `{"into":1,"from":2}`, http.StatusConflict, ""},
		{"split", `{"group":1,"faces":[1]}`, http.StatusConflict, ""},
		{"ignore", `{"group":1,"ignored":true}`, http.StatusConflict, ""},
		{"forget-stranger", `{"group":1}`, http.StatusConflict, ""},
		{"forget", `{"name":"nobody"}`, http.StatusConflict, "nobody of that name"},
		{"unlabel", `{"face":99}`, http.StatusConflict, ""},
		{"keep", `{"on":false}`, http.StatusOK, ""},
		{"nothing", `{}`, http.StatusNotFound, ""},
	} {
		got := ask(p, "POST", "/api/"+c.path, c.body)
		if got.Code != c.want || !strings.Contains(got.Body.String(), c.text) {
			t.Errorf("%s %.60s: %d %s", c.path, c.body, got.Code, got.Body)
		}
	}
}

// With a token nothing is shown without it, and it cannot be tried for ever.
func TestToken(t *testing.T) {
	p, _ := site(t, page.Options{Token: token})
	for _, path := range []string{"/api/now", "/face/1", "/camera/door", "/api/events"} {
		if got := ask(p, "GET", path, "", "Host", "office.example"); got.Code != http.StatusUnauthorized {
			t.Errorf("%s: %d", path, got.Code)
		}
	}
	if got := ask(p, "POST", "/api/forget", `{"name":"alice"}`); got.Code != http.StatusUnauthorized {
		t.Errorf("forget: %d", got.Code)
	}
	if got := ask(p, "GET", "/", ""); got.Code != http.StatusSeeOther || got.Header().Get("Location") != "/login" {
		t.Errorf("the page: %d", got.Code)
	}
	if got := ask(p, "GET", "/api/now", "", "Authorization", "Bearer "+token); got.Code != http.StatusOK {
		t.Errorf("with the token: %d", got.Code)
	}
	form := func(token string) *httptest.ResponseRecorder {
		return ask(p, "POST", "/login", url.Values{"token": {token}}.Encode(), "Content-Type", "application/x-www-form-urlencoded")
	}
	in := form(token)
	if in.Code != http.StatusSeeOther || len(in.Result().Cookies()) != 1 {
		t.Fatalf("login: %d", in.Code)
	}
	c := in.Result().Cookies()[0]
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || strings.Contains(c.Value, token) {
		t.Errorf("%+v", c)
	}
	if got := ask(p, "GET", "/api/now", "", "Cookie", c.Name+"="+c.Value); got.Code != http.StatusOK {
		t.Errorf("with the cookie: %d", got.Code)
	}
	if got := ask(p, "GET", "/api/now", "", "Cookie", c.Name+"="+c.Value[1:]); got.Code != http.StatusUnauthorized {
		t.Errorf("with another cookie: %d", got.Code)
	}
	refused := 0
	for range 40 {
		if form("a guess").Code == http.StatusTooManyRequests {
			refused++
		}
	}
	if refused != 20 {
		t.Errorf("%d of 40 guesses were refused unread", refused)
	}
	if got := form(token); got.Code != http.StatusTooManyRequests {
		t.Errorf("after that: %d", got.Code)
	}
	if got := ask(p, "GET", "/api/now", "", "Cookie", c.Name+"="+c.Value); got.Code != http.StatusOK {
		t.Errorf("who is in already: %d", got.Code)
	}
	if _, err := page.New(nil, page.Options{Token: "short"}); !errors.Is(err, page.ErrToken) {
		t.Error(err)
	}
}

func TestListen(t *testing.T) {
	p, _ := site(t, page.Options{})
	for _, address := range []string{"0.0.0.0:0", ":0"} {
		if l, err := p.Listen(address); !errors.Is(err, page.ErrToken) {
			l.Close()
			t.Errorf("%s: %v", address, err)
		}
	}
	if _, err := p.Listen("nowhere"); err == nil {
		t.Error("it listens nowhere")
	}
	l, err := p.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- p.Serve(ctx, l, nil) }()
	answer, err := http.Get("http://" + l.Addr().String() + "/api/now")
	if err != nil {
		t.Fatal(err)
	}
	io.Copy(io.Discard, answer.Body)
	answer.Body.Close()
	// One who says nothing is not waited for.
	silent, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}

	// Over TLS it is not to be had without.
	s := httptest.NewUnstartedServer(nil)
	s.StartTLS()
	certificates := s.TLS.Certificates
	client := s.Client()
	s.Close()
	if l, err = p.Listen("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	go func() { done <- p.Serve(ctx, l, certificates) }()
	client.Transport.(*http.Transport).TLSClientConfig.InsecureSkipVerify = true
	client.Transport.(*http.Transport).DialContext = nil
	if answer, err = client.Get("https://" + l.Addr().String() + "/api/now"); err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.TLS == nil || answer.TLS.Version < tls.VersionTLS12 {
		t.Errorf("%+v", answer.TLS)
	}
	if answer, err = http.Get("http://" + l.Addr().String() + "/api/now"); err == nil {
		answer.Body.Close()
		if answer.StatusCode == http.StatusOK {
			t.Error("without TLS")
		}
	}
	cancel()
	<-done
}
