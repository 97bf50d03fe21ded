// SPDX-License-Identifier: Apache-2.0

package page_test

import (
	"context"
	"crypto/tls"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/gallery"
	"github.com/faceauth/faceauth/internal/office"
	"github.com/faceauth/faceauth/internal/office/page"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/sighting"
)

const token = "made up for the tests"

var plane = face.Space{ID: "plane", Dim: 2, Scale: 1, Sigma: .2, Gamma: 1e-3, Reach: .86,
	ImpostorRadius: .93}

// site is an office that knows alice and sees nobody.
func site(t *testing.T, o page.Options) (*page.Page, *office.Office) {
	t.Helper()
	p, w, _ := siteOnDisk(t, o)
	return p, w
}

// siteOnDisk is the same, with the path of its gallery.
func siteOnDisk(t *testing.T, o page.Options) (*page.Page, *office.Office, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "gallery")
	g, err := gallery.Create(path, plane, online.Settings{})
	fixture.Check(t, err)
	_, err = g.Enroll("alice", [][]float32{{0, 0}}, time.Now(), gallery.Enrolment{})
	if err == nil { // another device of the fleet sees her
		err = g.Rows().Write(false, func(t *gallery.Tx) error {
			now := time.Now().Unix()
			t.Exec("insert into shared values(zeroblob(16), 1, '', 0, 0, 1, 0, x'')")
			return t.Elsewhere("here.hall",
				gallery.There{Place: "hall", At: now, Since: map[[16]byte]int64{{}: now}})
		})
	}
	fixture.Check(t, err)
	t.Cleanup(func() { g.Close() })
	past := fixture.Must(office.OpenPast(g, "", office.PastSettings{}))(t)
	w := office.New(past, office.Options{})
	p := fixture.Must(page.New(w, o))(t)
	return p, w, path
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
		"/":                      "<main",
		"/page.js":               "import",
		"/page.css":              ".camera",
		"/icon.svg":              "<svg",
		"/login":                 "Token",
		"/api/now":               `"known":[{"id":1,"name":"alice"`,
		"/api/people":            `"place":"hall"`,
		"/api/people?":           `[{"id":1,"name":"alice","faces":1,`,
		"/api/person?name=alice": `"faces":[{"id":1,"not":false,"learned":false,`,
		"/api/way?face=1":        `"whole":true`,
		"/api/sinks":             "[]",
		"/api/events":            "[]",
		"/api/events?n=200&before=7&name=alice&kind=left&camera=door": "[]",
	} {
		w := ask(p, "GET", path, "")
		if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %d %.200s", path, w.Code, w.Body)
		}
		csp := w.Header().Get("Content-Security-Policy")
		if !strings.Contains(csp, "default-src 'none'") || strings.Contains(csp, "unsafe") ||
			w.Header().Get("X-Content-Type-Options") != "nosniff" ||
			strings.Contains(path, ".") != (w.Header().Get("Cache-Control") == "private, no-cache") {
			t.Errorf("%s: %v", path, w.Header())
		}
	}
}

// A wrong request is refused with a message. It is not answered as if there were nothing.
func TestQueries(t *testing.T) {
	p, _ := site(t, page.Options{})
	for path, want := range map[string]string{
		"/api/events?n=99999999999999999999": `the parameter "n" must be a whole number from 1 to 200`,
		"/api/events?n=0":                    `must be a whole number from 1 to 200`,
		"/api/events?n=":                     `must be a whole number`,
		"/api/events?before=x":               `the parameter "before" must be a whole number`,
		"/api/events?after=3":                `the parameter "after" is unknown`,
		"/api/events?n=1&n=2":                `the parameter "n" appears twice`,
		"/api/events?name=%ff":               `the parameter "name" is not UTF-8`,
		"/api/events?n=1;n=2":                `invalid semicolon`,
		"/api/now?n=1":                       `the parameter "n" is unknown`,
		"/api/sightings?n=101":               `from 1 to 100`,
		"/api/corrections?before=-1":         `must be a whole number`,
		"/api/person":                        `the parameter "name" is missing`,
		"/api/way":                           `the parameter "face" is missing`,
		"/api/way?face=9223372036854775808":  `must be a whole number`,
	} {
		w := ask(p, "GET", path, "")
		if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), want) ||
			!strings.Contains(w.Body.String(), "openapi.json") {
			t.Errorf("%s: %d %.200s", path, w.Code, w.Body)
		}
	}
	for _, path := range []string{"/api/person?name=nobody", "/api/way?face=99"} {
		if w := ask(p, "GET", path, ""); w.Code != http.StatusNotFound {
			t.Errorf("%s: %d %.200s", path, w.Code, w.Body)
		}
	}
}

// Missing things are not found, whatever the path is.
func TestPaths(t *testing.T) {
	p, _ := site(t, page.Options{})
	for _, path := range []string{
		"/page.go", "/index.html.tmpl", "/../page.go", "/%2e%2e/%2e%2e/etc/passwd",
		"/face/../../etc/passwd", "/face/1",
		"/face/x",
		"/camera/../../../etc/passwd", "/camera/%2e%2e%2f%2e%2e%2fetc%2fpasswd", "/camera/",
		"/api/", "/api/name",
		"/static/x", "//etc/passwd",
	} {
		w := ask(p, "GET", path, "")
		if w.Code/100 == 2 || strings.Contains(w.Body.String(), "root:") {
			t.Errorf("%s: %d %.100s", path, w.Code, w.Body)
		}
	}
}

// Another site can make a browser send requests, but gets nothing.
func TestForeign(t *testing.T) {
	p, w := site(t, page.Options{})
	forget := `{"name":"alice"}`
	for _, c := range []struct {
		name    string
		headers []string
		want    int
	}{
		{"another name for this machine", []string{"Host", "evil.example"}, http.StatusForbidden},
		{"a name that begins like ours", []string{"Host", "localhost.evil.example"},
			http.StatusForbidden},
		{"another site's script", []string{"Sec-Fetch-Site", "cross-site"}, http.StatusForbidden},
		{"another site's script, older browser", []string{"Origin", "http://evil.example"},
			http.StatusForbidden},
		{"a form", []string{"Content-Type", "text/plain"}, http.StatusUnsupportedMediaType},
		{"a form of another kind", []string{"Content-Type", "application/x-www-form-urlencoded"},
			http.StatusUnsupportedMediaType},
	} {
		if got := ask(p, "POST", "/api/forget", forget, c.headers...); got.Code != c.want {
			t.Errorf("%s: %d %s", c.name, got.Code, got.Body)
		}
	}
	if got := ask(p, "GET", "/api/now", "", "Host",
		"evil.example:8090"); got.Code != http.StatusForbidden {
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
	if got := ask(p, "POST", "/api/forget", forget, "Sec-Fetch-Site",
		"same-origin"); got.Code != http.StatusOK ||
		len(w.Now().Known) != 0 {
		t.Errorf("the page itself: %d %s", got.Code, got.Body)
	}
}

func TestChanges(t *testing.T) {
	p, w := site(t, page.Options{})
	for _, c := range []struct {
		path, body string
		want       int
		text       string
	}{
		{"name", `{"group":1,"name":"bob","force":false}`, http.StatusConflict, "no such group"},
		{"name", `{"group":1,"name":"bob"}`, http.StatusConflict, "no such group"},
		{"name", `{"group":-1,"name":"bob"}`, http.StatusBadRequest,
			`the field "group" must be a whole number`},
		{"name", `{"group":1.5,"name":"bob"}`, http.StatusBadRequest,
			`the field "group" must be a whole number`},
		{"name", `{"group":1,"name":"bob","more":1}`, http.StatusBadRequest,
			`the field "more" is unknown`},
		{"name", `{"group":1,"Name":"bob"}`, http.StatusBadRequest, `the field "name" is missing`},
		{"name", `{"group":1,"name":null}`, http.StatusBadRequest,
			`the field "name" must be a text`},
		{"name", `{"group":1,"name":7}`, http.StatusBadRequest, `the field "name" must be a text`},
		{"name", `{"group":1,"name":"bob","force":"no"}`, http.StatusBadRequest,
			`the field "force" must be true or false`},
		{"name", `{"name":"bob"}`, http.StatusBadRequest, `the field "group" is missing`},
		{"name", `{"group":1,"name":"bob"} {}`, http.StatusBadRequest, "must be one JSON object"},
		{"name", `{"group":1,"name":"bob"`, http.StatusBadRequest, "must be one JSON object"},
		{"name", `[{"group":1,"name":"bob"}]`, http.StatusBadRequest, "must be one JSON object"},
		{"name", "{\"group\":1,\"name\":\"\xff\"}", http.StatusBadRequest, "in UTF-8"},
		{"name", `nonsense`, http.StatusBadRequest, "must be one JSON object"},
		{"name", ``, http.StatusBadRequest, "must be one JSON object"},
		{"name", `null`, http.StatusBadRequest, "must be one JSON object"},
		{"name", `{"group":1,"name":` + strings.Repeat("[", 20000) + `}`, http.StatusBadRequest,
			""},
		{"name", `{"name":"` + strings.Repeat("x", 1<<17) + `"}`, http.StatusRequestEntityTooLarge,
			"64 KiB"},
		{"name?force=true", `{"group":1,"name":"bob"}`, http.StatusBadRequest,
			`the parameter "force" is unknown`},
		{"correct", `{"sighting":7}`, http.StatusBadRequest, `the field "is" is missing`},
		{"correct", `{"sighting":7,"is":""}`, http.StatusConflict, "sighting not found"},
		{"split", `{"group":1,"faces":1}`, http.StatusBadRequest, "a list of whole numbers"},
		{"split", `{"group":1,"faces":[1,-1]}`, http.StatusBadRequest, "a list of whole numbers"},
		{"ignore", `{"group":1}`, http.StatusBadRequest,
			`the field "ignored" is missing; it must be true or false`},
		{"forget", `{"name":"nobody"}`, http.StatusConflict, "not known: nobody"},
		{"take-back", `{"face":99}`, http.StatusConflict, "no stored face has the number 99"},
		{"keep", `{"on":false}x`, http.StatusBadRequest, "must be one JSON object"},
		{"keep", `{"on":null}`, http.StatusBadRequest, `the field "on" must be true or false`},
		{"nothing", `{}`, http.StatusNotFound, ""},
		{"rename", `{"from":"alice","to":" "}`, http.StatusUnprocessableEntity, ""},
		{"rename", `{"from":"nobody","to":"bob"}`, http.StatusConflict, ""},
	} {
		got := ask(p, "POST", "/api/"+c.path, c.body)
		if got.Code != c.want || !strings.Contains(got.Body.String(), c.text) {
			t.Errorf("%s %.60s: %d %s", c.path, c.body, got.Code, got.Body)
		}
		if n := w.Now(); len(n.Known) != 1 || !n.Keeps {
			t.Fatalf("%s %.60s changed something", c.path, c.body)
		}
	}
	if got := ask(p, "POST", "/api/keep", `{"on":false}`); got.Code != http.StatusOK ||
		w.Now().Keeps {
		t.Errorf("%d %s", got.Code, got.Body)
	}
}

// If there is a token, nothing is shown without it, and guesses are limited.
func TestToken(t *testing.T) {
	p, _ := site(t, page.Options{Token: token})
	for _, path := range []string{"/api/now", "/face/1", "/camera/door", "/api/events"} {
		if got := ask(p, "GET", path, "", "Host",
			"office.example"); got.Code != http.StatusUnauthorized {
			t.Errorf("%s: %d", path, got.Code)
		}
	}
	if got := ask(p, "POST", "/api/forget",
		`{"name":"alice"}`); got.Code != http.StatusUnauthorized {
		t.Errorf("forget: %d", got.Code)
	}
	if got := ask(p, "GET", "/", ""); got.Code != http.StatusSeeOther ||
		got.Header().Get("Location") != "login" {
		t.Errorf("the page: %d", got.Code)
	}
	if got := ask(p, "GET", "/api/now", "", "Authorization", "Bearer "+
		token); got.Code != http.StatusOK {
		t.Errorf("with the token: %d", got.Code)
	}
	form := func(token string) *httptest.ResponseRecorder {
		return ask(p, "POST", "/login", url.Values{"token": {token}}.Encode(), "Content-Type",
			"application/x-www-form-urlencoded")
	}
	in := form(token)
	if in.Code != http.StatusSeeOther || len(in.Result().Cookies()) != 1 {
		t.Fatalf("login: %d", in.Code)
	}
	c := in.Result().Cookies()[0]
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || strings.Contains(c.Value, token) {
		t.Errorf("%+v", c)
	}
	if got := ask(p, "GET", "/api/now", "", "Cookie", c.Name+"="+
		c.Value); got.Code != http.StatusOK {
		t.Errorf("with the cookie: %d", got.Code)
	}
	if got := ask(p, "GET", "/api/now", "", "Cookie", c.Name+"="+
		c.Value[1:]); got.Code != http.StatusUnauthorized {
		t.Errorf("with another cookie: %d", got.Code)
	}
	var refused atomic.Int64 // also of those that come at once
	var all sync.WaitGroup
	for range 400 {
		all.Go(func() {
			if form("a guess").Code == http.StatusTooManyRequests {
				refused.Add(1)
			}
		})
	}
	if all.Wait(); refused.Load() != 380 {
		t.Errorf("%d of 400 guesses were refused unread", refused.Load())
	}
	if got := form(token); got.Code != http.StatusTooManyRequests ||
		got.Header().Get("Retry-After") != "60" {
		t.Errorf("after that: %d", got.Code)
	}
	if got := ask(p, "GET", "/api/now", "", "Cookie",
		c.Name+"="+c.Value); got.Code != http.StatusOK {
		t.Errorf("who is in already: %d", got.Code)
	}
	if _, err := page.New(nil, page.Options{Token: "short"}); !errors.Is(err, page.ErrToken) {
		t.Error(err)
	}
}

// Wrong guesses block only the address that they come from.
func TestLockOut(t *testing.T) {
	p, _ := site(t, page.Options{Token: token})
	from := func(address, token string) int {
		r := httptest.NewRequest("GET", "http://office.example/api/now", nil)
		r.RemoteAddr = address
		r.Header.Set("Authorization", "Bearer "+token)
		w := httptest.NewRecorder()
		p.ServeHTTP(w, r)
		return w.Code
	}
	for i := range 30 {
		want := http.StatusUnauthorized
		if i >= 20 {
			want = http.StatusTooManyRequests
		}
		for _, guesser := range []string{"192.0.2.7:1", "[2001:db8::1]:1"} {
			if got := from(guesser, "a guess"); got != want {
				t.Fatalf("guess %d of %s: %d", i+1, guesser, got)
			}
		}
	}
	for _, c := range []struct {
		address string
		want    int
	}{
		{"192.0.2.7:999", http.StatusTooManyRequests}, // another port of the same machine
		// another address of the same connection
		{"[2001:db8::ffff]:1", http.StatusTooManyRequests},
		{"[::ffff:192.0.2.7]:1", http.StatusTooManyRequests}, // the same in the other notation
		{"[2001:db8::1%eth0]:1", http.StatusTooManyRequests}, // with a zone
		{"192.0.2.8:1", http.StatusOK},
		{"[2001:db8:0:1::1]:1", http.StatusOK},
	} {
		if got := from(c.address, token); got != c.want {
			t.Errorf("%s: %d", c.address, got)
		}
	}
	// Guesses from many addresses take limited memory, and do not block an address without guesses.
	for i := range 10000 {
		from(fmt.Sprintf("10.%d.%d.1:1", i>>8, i&255), "a guess")
	}
	if got := from("192.0.2.8:1", token); got != http.StatusOK {
		t.Errorf("after guesses from everywhere: %d", got)
	}
	if got := from("192.0.2.7:1", token); got != http.StatusTooManyRequests {
		t.Errorf("one who has guessed much is forgotten: %d", got)
	}
}

// The page can be served below a path, behind a server that keeps the path or removes it, and
// inside other pages.
func TestBase(t *testing.T) {
	p, _ := site(t,
		page.Options{Token: token, Base: "/home/faceauth",
			Frames: []string{"self", "https://home.example:8123"}})
	bearer := []string{"Authorization", "Bearer " + token}
	for path, want := range map[string]int{
		"/home/faceauth/": http.StatusOK, "/home/faceauth/api/now": http.StatusOK,
		"/home/faceauth/page.js": http.StatusOK,
		"/home/faceauth":         http.StatusSeeOther, "/": http.StatusSeeOther,
		"/api/now": http.StatusNotFound, "/home/": http.StatusNotFound,
		"/home/faceauthx/": http.StatusNotFound,
	} {
		if got := ask(p, "GET", path, "", bearer...); got.Code != want ||
			want == http.StatusSeeOther && got.Header().Get("Location") != "/home/faceauth/" {
			t.Errorf("%s: %d %v", path, got.Code, got.Header())
		}
	}
	if got := ask(p, "GET", "/home/faceauth/", ""); got.Header().Get("Location") != "login" {
		t.Errorf("%v", got.Header())
	}
	in := ask(p, "POST", "/home/faceauth/login", url.Values{"token": {token}}.Encode(),
		"Content-Type", "application/x-www-form-urlencoded")
	if c := in.Result().Cookies(); in.Header().Get("Location") != "./" || len(c) != 1 ||
		c[0].Path != "" {
		t.Errorf("%d %v", in.Code, in.Header())
	}
	if csp := in.Header().Get("Content-Security-Policy"); !strings.HasSuffix(csp,
		"frame-ancestors 'self' https://home.example:8123") {
		t.Error(csp)
	}
	for _, text := range []string{"/", "faceauth", "/face/", "//evil.example", "/a/../b", "/a;b",
		"/a\nb", "/%2e",
		"/a b", "/" + strings.Repeat("a", 300)} {
		if _, err := page.New(nil, page.Options{Base: text}); !errors.Is(err, page.ErrBase) {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, text := range []string{"", "*", "'self'", "https://*", "home.example",
		"https://home.example/",
		"https://a b", "https://a;script-src *", "ftp://a", "https://a@b"} {
		if _, err := page.New(nil, page.Options{Frames: []string{text}}); !errors.Is(err,
			page.ErrFrame) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// Only Options say who may show the page in a frame.
func TestFrames(t *testing.T) {
	plain, _ := site(t, page.Options{Token: token})
	if csp := ask(plain, "GET", "/login",
		"").Header().Get("Content-Security-Policy"); !strings.HasSuffix(csp,
		"frame-ancestors 'none'") {
		t.Error(csp)
	}
	// Inside a frame of another site the cookie is sent only over TLS, and is partitioned.
	framed, _ := site(t, page.Options{Token: token, Frames: []string{"https://home.example"}})
	r := httptest.NewRequest("POST", "https://office.example/login",
		strings.NewReader(url.Values{"token": {token}}.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	framed.ServeHTTP(w, r)
	if c := w.Result().Cookies(); len(c) != 1 || c[0].SameSite != http.SameSiteNoneMode ||
		!c[0].Secure ||
		!c[0].Partitioned {
		t.Errorf("%v", w.Header())
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
	l := fixture.Must(p.Listen("127.0.0.1:0"))(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- p.Serve(ctx, l, nil) }()
	answer := fixture.Must(http.Get("http://" + l.Addr().String() + "/api/now"))(t)
	io.Copy(io.Discard, answer.Body)
	answer.Body.Close()
	// The server does not wait for a silent client.
	silent, err := net.Dial("tcp", l.Addr().String())
	fixture.Check(t, err)
	defer silent.Close()
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}

	// With TLS the page is not served without it.
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

// Who is to be forgotten is shown no more, stays for 30 seconds, and is then erased; or at the end
// of the page.
func TestRegret(t *testing.T) {
	names := func(p http.Handler) string { return ask(p, "GET", "/api/people", "").Body.String() }
	forget := func(p http.Handler) string {
		t.Helper()
		got := ask(p, "POST", "/api/forget", `{"name":"alice","wait":true}`)
		if got.Code != http.StatusOK || strings.Contains(names(p), "alice") {
			t.Errorf("%d %s; %s", got.Code, got.Body, names(p))
		}
		return strings.TrimSpace(got.Body.String())
	}
	synctest.Test(t, func(t *testing.T) {
		p, w := site(t, page.Options{})
		regret := forget(p)
		if w.Number("alice") == 0 {
			t.Error("she is erased at once")
		}
		if got := ask(p, "POST", "/api/keep-after-all", regret); got.Code != http.StatusOK {
			t.Errorf("%d %s", got.Code, got.Body)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if w.Number("alice") == 0 || !strings.Contains(names(p), "alice") {
			t.Error("she was forgotten after all")
		}
		regret = forget(p)
		time.Sleep(31 * time.Second)
		synctest.Wait()
		if w.Number("alice") != 0 {
			t.Error("she is not forgotten")
		}
		if got := ask(p, "POST", "/api/keep-after-all", regret); got.Code != http.StatusConflict {
			t.Errorf("%d %s", got.Code, got.Body)
		}
	})
	p, w := site(t, page.Options{})
	forget(p)
	fixture.Check(t, page.Finish(p))
	if w.Number("alice") != 0 {
		t.Error("she outlives the office")
	}
}

// Attendance is a table of the visits, without formulas.
func TestPlainAttendance(t *testing.T) {
	s := perform(t, page.Options{}, 3, 0)
	got := ask(s.page, "GET", "/api/attendance?name=Ben+Okafor", "")
	rows, err := csv.NewReader(got.Body).ReadAll()
	visits := s.office.Visits(office.Wanted{Person: s.office.Number("Ben Okafor")})
	if err != nil || len(visits) == 0 || len(rows) != len(visits)+1 {
		t.Fatalf("%d rows of %d visits, %v", len(rows), len(visits), err)
	}
	first, last := visits[len(visits)-1], rows[1]
	if last[0] != "Ben Okafor" || last[3] != first.First.Format(time.RFC3339) {
		t.Errorf("%q, and the first visit is %+v", last, first)
	}
	for path, want := range map[string]int{"?name=nobody": 404, "?from=now": 400, "?days=3": 400} {
		if got := ask(s.page, "GET", "/api/attendance"+path, ""); got.Code != want {
			t.Errorf("%s: %d", path, got.Code)
		}
	}
	visit := office.Visit{Sighting: office.Sighting{Who: sighting.Who{Name: "=1+1"}}}
	if got := string(office.CSV([]office.Visit{visit})); !strings.Contains(got, "\n'=1+1,,,") {
		t.Error(got)
	}
}

// Nobody is in a photograph twice: the nearer face has the name.
func TestRecogniseOnce(t *testing.T) {
	_, w := site(t, page.Options{})
	all := fixture.Must(w.Recognise([]face.Sample{{Vector: []float32{.3, 0}},
		{Reason: face.NoVector},
		{Vector: []float32{0, .01}}}))(t)
	if all[0].Name != "" || all[1].Name != "" || all[2].Name != "alice" {
		t.Errorf("%+v", all)
	}
}

// A picture that comes slowly holds up nobody else.
func TestSlowUpload(t *testing.T) {
	p, _ := site(t, page.Options{See: see})
	server := httptest.NewServer(p)
	defer server.Close()
	for _, path := range []string{"/api/recognise", "/api/people?name=zoe"} {
		body, more := io.Pipe()
		r := fixture.Must(http.NewRequest(http.MethodPost, server.URL+path, body))(t)
		r.Header.Set("Content-Type", "image/jpeg")
		if strings.HasPrefix(path, "/api/people") {
			r.Header.Set("Content-Type", "multipart/form-data; boundary=x")
		}
		r.ContentLength = 1 << 20
		r.Header.Set("Expect", "100-continue")
		begun := make(chan bool) // the server reads the body
		r = r.WithContext(httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
			Got100Continue: func() { close(begun) }}))
		var slow sync.WaitGroup
		slow.Go(func() {
			if a, err := http.DefaultClient.Do(r); err == nil {
				a.Body.Close()
			}
		})
		<-begun
		a := fixture.Must(http.Post(server.URL+"/api/recognise", "image/jpeg",
			strings.NewReader("\xff\xd8\xffgood")))(t)
		a.Body.Close()
		if a.StatusCode != http.StatusOK {
			t.Errorf("beside %s: %s", path, a.Status)
		}
		more.CloseWithError(io.ErrClosedPipe)
		slow.Wait()
	}
}

// Who only looks is refused every change, whatever it is, and sees nothing of cameras that are not
// theirs.
func TestLook(t *testing.T) {
	const looker = "another one made up for the tests"
	for _, cameras := range [][]string{nil, {"door"}} {
		s := newScene(t, page.Options{Token: token, See: see,
			Look: page.Look{Token: looker, Cameras: cameras}})
		with := func(token, method, path string) *httptest.ResponseRecorder {
			return ask(s.page, method, path, "{}", "Authorization", "Bearer "+token, "Content-Type",
				"application/json")
		}
		for _, route := range page.Routes(s.page) {
			method, path, _ := strings.Cut(route, " ")
			if method == "POST" && path != "/api/recognise" {
				if got := with(looker, method, path); got.Code != http.StatusForbidden {
					t.Errorf("%s: %d %s", route, got.Code, got.Body)
				}
			}
		}
		face := func(camera string) (path string) {
			for _, x := range s.office.Sightings(0, 64) {
				if x.Camera == camera && s.office.CameraOf(x.Face) == camera {
					path = fmt.Sprintf("/face/%d", x.Face)
				}
			}
			return path
		}
		for path, part := range map[string]int{
			"/": 200, "/api/now": 200, "/api/people": 200, "/api/sightings": 200,
			"/api/visits":     200,
			"/api/attendance": 200, "/api/events?n=200": 200, "/api/inbox": 200,
			"/api/corrections": 200, "/camera/door": 200, face("door"): 200, "/camera/hall": 403,
			face("hall"): 403, s.aClip(): 403, "/api/person?name=Ann+Archer": 403,
		} {
			got := with(looker, "GET", path)
			whole := cameras == nil
			if whole && got.Code != 200 && path != "/camera/hall" || !whole && got.Code != part {
				t.Errorf("%q, %s: %d", cameras, path, got.Code)
			}
			if text := got.Body.String(); !whole && strings.Contains(text, "hall") {
				t.Errorf("%s tells of the hall: %.200s", path, text)
			}
		}
		form := ask(s.page, "POST", "/login", url.Values{"token": {looker}}.Encode(),
			"Content-Type",
			"application/x-www-form-urlencoded")
		if all := form.Result().Cookies(); len(all) != 2 || all[0].MaxAge >= 0 {
			t.Errorf("%+v", all)
		}
		if got := with(token, "POST", "/api/keep"); got.Code != http.StatusBadRequest {
			t.Errorf("who may change: %d", got.Code)
		}
	}
	for _, o := range []page.Options{{Look: page.Look{Token: looker}},
		{Token: token, Look: page.Look{Token: token}},
		{Token: token, Look: page.Look{Token: "short"}}} {
		if _, err := page.New(nil, o); !errors.Is(err, page.ErrToken) {
			t.Error(err)
		}
	}
}
