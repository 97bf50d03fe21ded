// SPDX-License-Identifier: Apache-2.0

package page_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/office/page"
)

// A trusted proxy names the visitor's address and says whether the browser used TLS. Nobody else is
// believed, and what stands before a trusted proxy's own words is not believed either.
func TestForwarded(t *testing.T) {
	p, _ := site(t, page.Options{Token: token, Proxies: []netip.Prefix{
		netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8::1/128"),
	}})
	login := func(peer, from, proto, token string) *httptest.ResponseRecorder {
		r := httptest.NewRequest("POST", "http://office/login",
			strings.NewReader(url.Values{"token": {token}}.Encode()))
		r.RemoteAddr = peer
		for name, value := range map[string]string{"Content-Type": "application/x-www-form-urlencoded",
			"X-Forwarded-For": from, "X-Forwarded-Proto": proto} {
			r.Header.Set(name, value)
		}
		w := httptest.NewRecorder()
		p.ServeHTTP(w, r)
		return w
	}
	secure := func(peer, proto string) bool {
		return login(peer, "", proto, token).Result().Cookies()[0].Secure
	}
	for _, c := range []struct {
		peer, proto string
		want        bool
	}{{"10.1.2.3:4", "https", true}, {"10.1.2.3:4", "http", false},
		{"[2001:db8::1]:4", "https", true},
		{"192.0.2.1:4", "https", false}, {"[2001:db8::2]:4", "https", false},
		{"@", "https", false}} {
		if got := secure(c.peer, c.proto); got != c.want {
			t.Errorf("%s, %s: secure is %t", c.peer, c.proto, got)
		}
	}
	for range 20 {
		login("10.0.0.1:1", "198.51.100.7, 203.0.113.5, 10.0.0.2", "", "wrong")
	}
	for _, c := range []struct {
		peer, from string
		want       int
	}{
		{"10.0.0.1:1", "203.0.113.5", http.StatusTooManyRequests},
		// the visitor wrote the first address
		{"10.0.0.9:1", "9.9.9.9, 203.0.113.5", http.StatusTooManyRequests},
		{"203.0.113.5:1", "", http.StatusTooManyRequests},
		{"10.0.0.1:1", "203.0.113.6", http.StatusSeeOther},
		{"10.0.0.1:1", "198.51.100.7", http.StatusSeeOther}, // others cannot lock them out
		{"10.0.0.1:1", "", http.StatusSeeOther},
		{"10.0.0.1:1", "garbage", http.StatusSeeOther},
		{"192.0.2.1:1", "203.0.113.5", http.StatusSeeOther}, // an address that is no proxy's
	} {
		if got := login(c.peer, c.from, "", token).Code; got != c.want {
			t.Errorf("%s for %q: %d, want %d", c.peer, c.from, got, c.want)
		}
	}
}

// A stranger locks out nobody else behind a proxy that is not declared, and gains little by writing
// what a proxy writes. Health names such a proxy once somebody has come through it with the token.
func TestUndeclaredProxy(t *testing.T) {
	p, _ := site(t, page.Options{Token: token})
	get := func(path, from, token string) *httptest.ResponseRecorder {
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		r := httptest.NewRequestWithContext(ctx, "GET", "http://office"+path, nil)
		r.RemoteAddr = "192.0.2.1:1"
		r.Header.Set("X-Forwarded-For", from)
		r.Header.Set("Authorization", "Bearer "+token)
		w := httptest.NewRecorder()
		p.ServeHTTP(&briefly{w, stop}, r)
		return w
	}
	for range 30 {
		get("/api/now", "9.9.9.9, 203.0.113.5", "wrong")
	}
	for from, want := range map[string]int{"203.0.113.5": http.StatusTooManyRequests,
		"203.0.113.6": http.StatusOK, "203.0.113.5, 203.0.113.6": http.StatusOK} {
		if got := get("/api/now", from, token).Code; got != want {
			t.Errorf("for %q: %d, want %d", from, got, want)
		}
	}
	if got := get("/api/changes", "203.0.113.6", token).Body.String(); !strings.Contains(got,
		`"proxy":"192.0.2.1"`) {
		t.Errorf("%.300s", got)
	}
	looked := 0
	for i := range 1000 {
		if get("/api/now", fmt.Sprintf("10.0.%d.%d", i/256, i%256),
			"wrong").Code == http.StatusUnauthorized {
			looked++
		}
	}
	if looked != 400-20 {
		t.Errorf("%d guesses are looked at", looked)
	}
}

// Behind nginx, which removes its path or keeps it, a browser logs in, stays logged in, and two
// offices on one host do not end each other's logins. The same holds for the ingress of Home
// Assistant, which removes its path.
func TestSystemNginx(t *testing.T) {
	nginx, err := exec.LookPath("nginx")
	if err != nil {
		if nginx = "/usr/sbin/nginx"; !isFile(nginx) {
			t.Skip("there is no nginx; scripts/setup.sh test installs it")
		}
	}
	proxies := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	backend := func(o page.Options) string {
		o.Proxies = proxies
		p, _ := site(t, o)
		s := httptest.NewServer(p)
		t.Cleanup(s.Close)
		return s.URL
	}
	tokens := map[string]string{"stripped": token, "kept": token + " of another office",
		"ingress": token + " third"}
	stripped := backend(page.Options{Token: tokens["stripped"]})
	kept := backend(page.Options{Token: tokens["kept"], Base: "/kept"})
	ingress := backend(page.Options{Token: tokens["ingress"]})
	port := freePort(t)
	dir := t.TempDir()
	const forward = "proxy_set_header Host $http_host; proxy_set_header X-Forwarded-For " +
		"$proxy_add_x_forwarded_for; proxy_set_header X-Forwarded-Proto $scheme; "
	config := fmt.Sprintf(`daemon off; pid %[1]s/pid; error_log stderr; worker_processes 1;
events { worker_connections 64; }
http {
	access_log off; client_body_temp_path %[1]s/a; proxy_temp_path %[1]s/b; fastcgi_temp_path %[1]s/c;
	uwsgi_temp_path %[1]s/d; scgi_temp_path %[1]s/e;
	server {
		listen 127.0.0.1:%[2]s;
		location /stripped/ { %[3]s proxy_pass %[4]s/; }
		location /kept/ { %[3]s proxy_pass %[5]s; }
		location /api/hassio_ingress/x1/ {
			%[3]s proxy_set_header X-Ingress-Path /api/hassio_ingress/x1; proxy_pass %[6]s/;
		}
	}
}`, dir, port, forward, stripped, kept, ingress)
	fixture.Check(t, os.WriteFile(filepath.Join(dir, "nginx.conf"), []byte(config), 0o600))
	c := exec.Command(nginx, "-p", dir, "-c", filepath.Join(dir, "nginx.conf"))
	fixture.Check(t, c.Start())
	defer func() {
		c.Process.Signal(syscall.SIGTERM) // its workers end with it, which a kill would leave
		c.Wait()
	}()
	jar, _ := cookiejar.New(nil)
	browser := &http.Client{Jar: jar, Timeout: time.Minute}
	at := "http://127.0.0.1:" + port
	for range 6000 {
		if conn, err := net.Dial("tcp", "127.0.0.1:"+port); err == nil {
			conn.Close()
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	get := func(path string) (string, int, string) {
		t.Helper()
		a := fixture.Must(browser.Get(at + path))(t)
		defer a.Body.Close()
		b, _ := io.ReadAll(a.Body)
		return a.Request.URL.Path, a.StatusCode, string(b)
	}
	paths := map[string]string{"stripped": "/stripped/", "kept": "/kept/",
		"ingress": "/api/hassio_ingress/x1/"}
	for name, base := range paths {
		if path, code, text := get(base); path != base+"login" || code != 200 ||
			!strings.Contains(text, "Token") {
			t.Fatalf("%s: %s %d", base, path, code)
		}
		a := fixture.Must(browser.PostForm(at+base+"login", url.Values{"token": {tokens[name]}}))(t)
		a.Body.Close()
		if a.Request.URL.Path != base || a.StatusCode != http.StatusOK {
			t.Errorf("after the login at %s: %s %d", base, a.Request.URL.Path, a.StatusCode)
		}
	}
	for _, base := range paths { // each login still holds
		if _, code, text := get(base + "api/now"); code != http.StatusOK ||
			!strings.Contains(text, `"alice"`) {
			t.Errorf("%s: %d %.100s", base, code, text)
		}
		there, _ := url.Parse(at + base)
		if n := len(jar.Cookies(there)); n != 1 {
			t.Errorf("%s: %d cookies", base, n)
		}
	}
}

// Two offices on two ports of one host, whose cookies a browser shares.
func TestTwoOffices(t *testing.T) {
	jar, _ := cookiejar.New(nil)
	browser := &http.Client{Jar: jar, Timeout: time.Minute}
	var at []string
	for _, secret := range []string{token, token + " of another office"} {
		p, _ := site(t, page.Options{Token: secret})
		s := httptest.NewServer(p)
		t.Cleanup(s.Close)
		at = append(at, s.URL)
		a, err := browser.PostForm(s.URL+"/login", url.Values{"token": {secret}})
		if err != nil || a.StatusCode != http.StatusOK {
			t.Fatal(a, err)
		}
	}
	for _, url := range at {
		a, err := browser.Get(url + "/api/now")
		if err != nil || a.StatusCode != http.StatusOK {
			t.Errorf("%s: %v %v", url, a, err)
		}
	}
}

func isFile(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// freePort returns a port that nobody uses.
func freePort(t *testing.T) string {
	t.Helper()
	l := fixture.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}
