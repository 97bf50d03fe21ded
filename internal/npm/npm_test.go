// SPDX-License-Identifier: Apache-2.0

package npm

import (
	"context"
	"errors"
	"github.com/faceauth/faceauth/internal/fixture"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

// own returns a client that does not use the machine's own proxy.
func own() client {
	return client{&http.Transport{Proxy: http.ProxyURL(nil), DisableKeepAlives: true},
		5 * time.Minute}
}

func made(server string) Package {
	return Package{URL: server + "/made-up-0.0.1.tgz", Limit: 1000, Elsewhere: "run here: this"}
}

// serve starts a server that answers as handle says, and returns a client that trusts it.
func serve(t *testing.T, handle http.HandlerFunc) (client, Package) {
	t.Helper()
	s := httptest.NewUnstartedServer(handle)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	c := own()
	c.transport.TLSClientConfig = s.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	return c, made(s.URL)
}

// fetched fetches a package whole.
func fetched(ctx context.Context, c client, p Package) (content, said string, err error) {
	tarball, err := c.fetch(ctx, p, func(s string) { said += s })
	if err != nil {
		return "", said, err
	}
	defer tarball.Close()
	b, err := io.ReadAll(tarball)
	return string(b), said, err
}

func TestFetch(t *testing.T) {
	c, p := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && r.URL.Path == "/made-up-0.0.1.tgz" {
			w.Write([]byte("content"))
		}
	})
	content, said, err := fetched(t.Context(), c, p)
	u, _ := url.Parse(p.URL)
	if content != "content" || said != "fetching made-up-0.0.1.tgz, 0 MB, from "+u.Host ||
		err != nil {
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
		{"not found", http.NotFound,
			"answers 404 Not Found; is a proxy between? or fetch https://"},
		{"proxy wants a password", status(407),
			"put the proxy's user name and password into HTTPS_PROXY"},
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
			func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, r.URL.Path,
					http.StatusFound)
			},
			"stopped after 10 redirects"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, p := serve(t, c.handle)
			if c.name == "stalls" {
				r.stall = 2 * time.Second
			}
			_, _, err := fetched(t.Context(), r, p)
			if !errors.Is(err, ErrFetch) || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("error %v, want %q in it", err, c.want)
			}
		})
	}
}

// The program does not wait for ever for a server that accepts a connection and sends nothing, or
// for one that does not exist.
func TestFetchUnreachable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	fixture.Check(t, err)
	l.Close()
	closed, p := own(), made("https://"+l.Addr().String())
	_, _, err = fetched(t.Context(), closed, p)
	for _, want := range []string{"cannot be reached (", "connection refused",
		"is there a network? Behind a proxy set HTTPS_PROXY, or fetch https://", "run here: this"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no server: error %v, want %q in it", err, want)
		}
	}
	proxy, _ := url.Parse("http://user:secret@" + l.Addr().String())
	closed.transport.Proxy = http.ProxyURL(proxy)
	_, _, err = fetched(t.Context(), closed, p)
	if err == nil || !strings.Contains(err.Error(),
		"through the proxy http://user:xxxxx@"+l.Addr().String()+"; is HTTPS_PROXY right?") {
		t.Errorf("a proxy that cannot be reached: error %v", err)
	}

	mute, err := net.Listen("tcp", "127.0.0.1:0")
	fixture.Check(t, err)
	defer mute.Close()
	c := own()
	c.stall = 50 * time.Millisecond
	_, _, err = fetched(t.Context(), c, made("https://"+mute.Addr().String()))
	if !errors.Is(err, ErrFetch) || !strings.Contains(err.Error(), "timeout") {
		t.Errorf("a server that sends nothing: error %v", err)
	}
}

// A server whose certificate no authority has signed gets no request.
func TestFetchUntrusted(t *testing.T) {
	_, p := serve(t, func(http.ResponseWriter, *http.Request) {
		t.Error("the server got a request")
	})
	_, _, err := fetched(t.Context(), own(), p)
	if !errors.Is(err, ErrFetch) ||
		!strings.Contains(err.Error(), "install the package ca-certificates") {
		t.Errorf("error %v", err)
	}
}

func TestFetchCancelled(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	c, p := serve(t, func(w http.ResponseWriter, r *http.Request) {
		beginning(w)
		stop()
		<-r.Context().Done()
	})
	_, _, err := fetched(ctx, c, p)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}
