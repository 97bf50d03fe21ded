// SPDX-License-Identifier: Apache-2.0

package npm

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var made = Package{Name: "made-up", Version: "0.0.1", Limit: 1000, Elsewhere: "run here: this"}

const madePath = "/made-up/-/made-up-0.0.1.tgz"

// client returns a client for a registry that does not use the machine's own proxy.
func client(t *testing.T, registry string) *Client {
	t.Helper()
	t.Setenv("NPM_CONFIG_REGISTRY", registry)
	c, err := NewClient()
	if err != nil {
		t.Fatal(err)
	}
	c.transport.Proxy = func(*http.Request) (*url.URL, error) { return nil, nil }
	return c
}

// registry starts a registry that answers as handle says, and returns a client that trusts it.
func registry(t *testing.T, handle http.HandlerFunc) *Client {
	t.Helper()
	s := httptest.NewUnstartedServer(handle)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	c := client(t, s.URL+"/")
	c.transport.TLSClientConfig = s.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	return c
}

// fetched fetches a package whole.
func fetched(ctx context.Context, c *Client) (content, said string, err error) {
	tarball, err := c.Fetch(ctx, made, func(s string) { said += s })
	if err != nil {
		return "", said, err
	}
	defer tarball.Close()
	b, err := io.ReadAll(tarball)
	return string(b), said, err
}

func TestFetch(t *testing.T) {
	c := registry(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && r.URL.Path == madePath && r.Header.Get("Authorization") == "Bearer made-up" {
			w.Write([]byte("content"))
		}
	})
	c.authorization = "Bearer made-up"
	content, said, err := fetched(t.Context(), c)
	want := "fetching made-up, 0 MB, from " + strings.TrimSuffix(c.registry, "/") + madePath
	if content != "content" || said != want || err != nil {
		t.Errorf("%q, %q, %v", content, said, err)
	}
}

// beginning sends the beginning of an answer.
func beginning(w http.ResponseWriter) {
	w.Header().Set("Content-Length", "1000")
	w.Write([]byte("beginning"))
	w.(http.Flusher).Flush()
}

// For every fault of the registry the error says what happened and what to do.
func TestFetchErrors(t *testing.T) {
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	for _, c := range []struct {
		name   string
		handle http.HandlerFunc
		want   string
	}{
		{"not found", http.NotFound, "answers 404 Not Found; is the registry of NPM_CONFIG_REGISTRY or ~/.npmrc right? " +
			"or fetch https://"},
		{"forbidden", status(403), "answers 403 Forbidden; a registry that wants a password has it in ~/.npmrc, or in " +
			"NPM_CONFIG_REGISTRY"},
		{"proxy wants a password", status(407), "put the proxy's user name and password into HTTPS_PROXY"},
		{"busy", status(503), "503 Service Unavailable; try again later, or fetch https://"},
		{"sends too many bytes", func(w http.ResponseWriter, _ *http.Request) {
			for range 20 {
				w.Write(make([]byte, 100))
				w.(http.Flusher).Flush()
			}
		}, "sends more than the 1000 bytes that the package may have"},
		{"stalls", func(w http.ResponseWriter, r *http.Request) {
			beginning(w)
			<-r.Context().Done()
		}, "broke off after 9 bytes: timeout: "},
		{"breaks off", func(w http.ResponseWriter, _ *http.Request) {
			beginning(w)
			panic(http.ErrAbortHandler)
		}, "broke off after 9 bytes: "},
		{"redirects to itself",
			func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path, http.StatusFound) },
			"stopped after 10 redirects"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := registry(t, c.handle)
			r.stall = 5 * time.Minute
			if c.name == "stalls" {
				r.stall = 2 * time.Second
			}
			if _, _, err := fetched(t.Context(), r); !errors.Is(err, ErrFetch) || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("error %v, want %q in it", err, c.want)
			}
		})
	}
}

// The program does not wait for ever for a server that accepts a connection and sends nothing, or for one that does not
// exist.
func TestFetchUnreachable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := client(t, "https://user:secret@"+l.Addr().String()+"/")
	l.Close()
	_, _, err = fetched(t.Context(), closed)
	for _, want := range []string{"cannot be reached (", "connection refused",
		"is there a network? Behind a proxy set HTTPS_PROXY, or fetch https://user:xxxxx@", "run here: this"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no server: error %v, want %q in it", err, want)
		}
	}
	proxy, _ := url.Parse("http://user:secret@" + l.Addr().String())
	closed.transport.Proxy = func(*http.Request) (*url.URL, error) { return proxy, nil }
	_, _, err = fetched(t.Context(), closed)
	if err == nil || !strings.Contains(err.Error(),
		"through the proxy http://user:xxxxx@"+l.Addr().String()+"; is HTTPS_PROXY right?") {
		t.Errorf("a proxy that cannot be reached: error %v", err)
	}

	mute, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	c := client(t, "https://"+mute.Addr().String())
	c.stall = 50 * time.Millisecond
	if _, _, err = fetched(t.Context(), c); !errors.Is(err, ErrFetch) ||
		!strings.Contains(err.Error(), "timeout") {
		t.Errorf("a server that sends nothing: error %v", err)
	}
}

// A server whose certificate no authority has signed gets no request.
func TestFetchUntrusted(t *testing.T) {
	c := registry(t, func(http.ResponseWriter, *http.Request) { t.Error("the server got a request") })
	c.transport.TLSClientConfig = nil
	_, _, err := fetched(t.Context(), c)
	if !errors.Is(err, ErrFetch) || !strings.Contains(err.Error(), "install the package ca-certificates") {
		t.Errorf("error %v", err)
	}
}

func TestFetchCancelled(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	c := registry(t, func(w http.ResponseWriter, r *http.Request) {
		beginning(w)
		stop()
		<-r.Context().Done()
	})
	if _, _, err := fetched(ctx, c); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// The registry is that of npm's variables, else of the user's npmrc, else npm's own. A file npmrc in the present folder
// says nothing.
func TestRegistry(t *testing.T) {
	for _, c := range []struct {
		name, upper, lower, npmrc string
		url, authorization        string
		err                       string
	}{
		{name: "npm's own"},
		{"a mirror", "https://mirror.example/npm", "", "", "https://mirror.example/npm", "", ""},
		{"small letters", "", "http://127.0.0.1:4873/", "", "http://127.0.0.1:4873/", "", ""},
		{"a password", "https://u:p@a.example", "", "", "https://u:p@a.example", "", ""},
		{"npmrc", "", "", "registry=https://b.example/\n//b.example/:_authToken=made-up\n",
			"https://b.example/", "Bearer made-up", ""},
		{"npmrc with a part of the address", "", "", "; npm's\nregistry = \"https://b.example/npm/all/\"\n" +
			"//b.example/npm/:_authToken=${TOKEN}\n",
			"https://b.example/npm/all/", "Bearer made-up", ""},
		{"a token for another host", "", "", "registry=https://b.example/\n//b.example.org/:_authToken=made-up\n",
			"https://b.example/", "", ""},
		{"both", "https://a.example/", "", "registry=https://b.example/\n//b.example/:_authToken=made-up\n",
			"https://a.example/", "", ""},
		{"no URL", "mirror.example", "", "", "", "", "is not an http or https URL"},
		{"a file", "file:///etc", "", "", "", "", "is not an http or https URL"},
		{"no host", "https://%zz", "", "", "", "", "is not an http or https URL"},
	} {
		t.Run(c.name, func(t *testing.T) {
			home := t.TempDir()
			t.Setenv("HOME", home)
			t.Setenv("NPM_CONFIG_REGISTRY", c.upper)
			t.Setenv("npm_config_registry", c.lower)
			t.Setenv("TOKEN", "made-up")
			for name, value := range map[string]string{"NPM_CONFIG_REGISTRY": c.upper, "npm_config_registry": c.lower} {
				if value == "" {
					os.Unsetenv(name) // t.Setenv restores it
				}
			}
			for dir, text := range map[string]string{home: c.npmrc, t.TempDir(): "registry=https://bad.example/\n"} {
				if err := os.WriteFile(filepath.Join(dir, ".npmrc"), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				if dir != home {
					t.Chdir(dir)
				}
			}
			got, err := NewClient()
			switch {
			case c.err != "":
				if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), c.err) {
					t.Errorf("error %v", err)
				}
			case c.url == "":
				if err != nil || got.registry != "https://registry.npmjs.org/" || got.authorization != "" {
					t.Errorf("%+v, %v", got, err)
				}
			case err != nil || got.registry != c.url || got.authorization != c.authorization:
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}
