// SPDX-License-Identifier: Apache-2.0

package models

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

func describe(name, content string) Description {
	sum := sha256.Sum256([]byte(content))
	return Description{Name: name, File: name + ".onnx", SHA256: hex.EncodeToString(sum[:])}
}

// pack makes an npm package of the files, and returns its path and integrity.
func pack(t *testing.T, files ...string) (path, integrity string) {
	t.Helper()
	var b bytes.Buffer
	gz := gzip.NewWriter(&b)
	w := tar.NewWriter(gz)
	for i := 0; i < len(files); i += 2 {
		if err := w.WriteHeader(&tar.Header{Name: files[i], Typeflag: tar.TypeReg, Mode: 0o600,
			Size: int64(len(files[i+1]))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(files[i+1])); err != nil {
			t.Fatal(err)
		}
	}
	w.Close()
	gz.Close()
	path = filepath.Join(t.TempDir(), "p.tgz")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	sum := sha512.Sum512(b.Bytes())
	return path, "sha512-" + base64.StdEncoding.EncodeToString(sum[:])
}

func TestInstallFrom(t *testing.T) {
	a, b := describe("a", "network a"), describe("b", "network b")
	tarball, integrity := pack(t,
		"package/README.md", "words",
		"package/model/a.onnx", "network a",
		"package/model/../../../escape.onnx", "never written",
		"package/model/b.onnx", "network b")
	dir := filepath.Join(t.TempDir(), "new", "models")
	var said []string
	report := func(s string) { said = append(said, s) }
	if err := installFrom(tarball, integrity, []Description{a, b}, dir, report); err != nil {
		t.Fatal(err)
	}
	if len(said) != 2 || !strings.Contains(said[0], "installed model a") {
		t.Errorf("said %q", said)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("files %v, error %v", entries, err)
	}
	// A second run has nothing to do. After damage the damaged file is replaced.
	said = nil
	if err := installFrom(tarball, integrity, []Description{a, b}, dir, report); err != nil || len(said) != 0 {
		t.Errorf("second run: reported %q, error %v", said, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "b.onnx"), []byte("altered"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Path(dir); !errors.Is(err, ErrHash) {
		t.Errorf("an altered file: error %v", err)
	}
	if err := installFrom(tarball, integrity, []Description{a, b}, dir, report); err != nil || len(said) != 1 {
		t.Errorf("run after damage: reported %q, error %v", said, err)
	}
	if _, err := b.Path(dir); err != nil {
		t.Error(err)
	}
}

func TestInstallErrors(t *testing.T) {
	a := describe("a", "network a")
	for _, c := range []struct {
		name  string
		files []string
		err   error
	}{
		{"a network with another hash", []string{"package/model/a.onnx", "network x"}, ErrHash},
		{"a package without the network", []string{"package/other", "x"}, ErrMissing},
	} {
		dir := t.TempDir()
		tarball, integrity := pack(t, c.files...)
		if err := installFrom(tarball, integrity, []Description{a}, dir, nil); !errors.Is(err, c.err) {
			t.Errorf("%s: error %v", c.name, err)
		}
		if left, _ := os.ReadDir(dir); len(left) != 0 {
			t.Errorf("%s: left %v behind", c.name, left)
		}
	}
	tarball, _ := pack(t, "package/model/a.onnx", "network a")
	if err := InstallFrom(tarball, t.TempDir(), nil); !errors.Is(err, ErrIntegrity) {
		t.Errorf("another package: error %v", err)
	}
	if err := InstallFrom(filepath.Join(t.TempDir(), "no"), t.TempDir(), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing package: error %v", err)
	}
}

const tarballPath = "/faceplugin-face-recognition-js/-/faceplugin-face-recognition-js-0.0.1.tgz"

// noProxy ignores the machine's own proxy settings.
func noProxy(*http.Request) (*url.URL, error) { return nil, nil }

// registry starts a registry that answers as handle says, and returns a fetcher that trusts it.
func registry(t *testing.T, handle http.HandlerFunc) *fetcher {
	t.Helper()
	s := httptest.NewUnstartedServer(handle)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	f := newFetcher(Registry{})
	f.registry, f.proxy = Registry{s.URL + "/", "Bearer made-up"}, noProxy
	trusting := s.Client().Transport.(*http.Transport).TLSClientConfig
	f.client.Transport.(*http.Transport).TLSClientConfig = trusting.Clone()
	return f
}

func TestInstallByHTTPS(t *testing.T) {
	a := describe("a", "network a")
	tarball, integrity := pack(t, "package/model/a.onnx", "network a")
	content, err := os.ReadFile(tarball)
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	f := registry(t, func(w http.ResponseWriter, r *http.Request) {
		asked++
		if r.Method != http.MethodGet || r.URL.Path != tarballPath ||
			r.Header.Get("Authorization") != "Bearer made-up" {
			http.NotFound(w, r)
			return
		}
		w.Write(content)
	})
	dir := filepath.Join(t.TempDir(), "models")
	var said []string
	report := func(s string) { said = append(said, s) }
	if err := f.install(t.Context(), integrity, []Description{a}, dir, report); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Path(dir); err != nil {
		t.Error(err)
	}
	if len(said) != 2 || said[0] !=
		"fetching faceplugin-face-recognition-js, 0 MB, from "+strings.TrimSuffix(f.registry.URL, "/")+tarballPath {
		t.Errorf("said %q", said)
	}
	// If all networks are there, no registry is asked.
	if err := f.install(t.Context(), integrity, []Description{a}, dir, report); err != nil || asked != 1 {
		t.Errorf("the registry got %d requests, error %v", asked, err)
	}
	// Another package of the same name is not opened.
	other := t.TempDir()
	err = f.install(t.Context(), "sha512-other", []Description{a}, other, nil)
	if !errors.Is(err, ErrIntegrity) {
		t.Errorf("another integrity: error %v", err)
	}
	if left, _ := os.ReadDir(other); len(left) != 0 {
		t.Errorf("left %v", left)
	}
}

// For every fault of the registry the error says what happened and what to do, and no file is left behind.
func TestFetchErrors(t *testing.T) {
	hang := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "1000")
		w.Write([]byte("beginning"))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}
	for _, c := range []struct {
		name   string
		handle http.HandlerFunc
		want   []string
	}{
		{"not found", http.NotFound, []string{"answers 404 Not Found; is the registry of " +
			"NPM_CONFIG_REGISTRY or ~/.npmrc right? Or fetch ", "models install --from FILE"}},
		{"forbidden", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(403) },
			[]string{"answers 403 Forbidden; a registry that wants a password has it in ~/.npmrc, or in " +
				"NPM_CONFIG_REGISTRY"}},
		{"proxy wants a password", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(407) },
			[]string{"put the proxy's user name and password into HTTPS_PROXY"}},
		{"busy", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) },
			[]string{"503 Service Unavailable; try again later. Or fetch "}},
		{"announces too many bytes",
			func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "5000") },
			[]string{"wants to send 5000 bytes, more than the package has"}},
		{"sends too many bytes without a length", func(w http.ResponseWriter, _ *http.Request) {
			for range 20 {
				w.Write(make([]byte, 100))
				w.(http.Flusher).Flush()
			}
		}, []string{"sends more than the 1000 bytes that the package may have"}},
		{"stalls", hang, []string{"broke off after 9 bytes: nothing came for 2s; run the command again, or fetch "}},
		{"breaks off", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			w.Write([]byte("beginning"))
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}, []string{"broke off after 9 bytes: "}},
		{"redirects to itself",
			func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path, http.StatusFound) },
			[]string{"stopped after 10 redirects"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := registry(t, c.handle)
			f.limit, f.stall = 1000, 5*time.Minute
			if c.name == "stalls" {
				f.stall = 2 * time.Second
			}
			tmp := t.TempDir()
			t.Setenv("TMPDIR", tmp)
			dir := filepath.Join(t.TempDir(), "models")
			err := f.install(t.Context(), "sha512-x", []Description{describe("a", "network a")}, dir, nil)
			if !errors.Is(err, ErrFetch) {
				t.Fatalf("error %v", err)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %v, want %q in it", err, want)
				}
			}
			if left, _ := os.ReadDir(tmp); len(left) != 0 {
				t.Errorf("left %v behind", left)
			}
			if _, err := os.Stat(dir); err == nil {
				t.Errorf("the folder %s was made", dir)
			}
		})
	}
}

// The program does not wait for ever for a server that accepts a connection and sends nothing, or for one that does not
// exist.
func TestFetchUnreachable(t *testing.T) {
	closed := newFetcher(Registry{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.registry.URL, closed.proxy = "https://user:secret@"+l.Addr().String()+"/", noProxy
	l.Close()
	_, err = closed.fetch(t.Context(), t.TempDir(), nil)
	for _, want := range []string{"cannot be reached (", "connection refused",
		"is there a network? Behind a proxy set HTTPS_PROXY", "--from FILE"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no server: error %v, want %q in it", err, want)
		}
	}
	if strings.Contains(err.Error(), "secret") {
		t.Errorf("the password is in the error: %v", err)
	}

	proxy, _ := url.Parse("http://user:secret@" + l.Addr().String())
	closed.proxy = func(*http.Request) (*url.URL, error) { return proxy, nil }
	_, err = closed.fetch(t.Context(), t.TempDir(), nil)
	if err == nil || !strings.Contains(err.Error(),
		"through the proxy http://user:xxxxx@"+l.Addr().String()+"; is HTTPS_PROXY right?") {
		t.Errorf("a proxy that cannot be reached: error %v", err)
	}

	mute, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	f := newFetcher(Registry{})
	f.registry.URL, f.proxy = "https://"+mute.Addr().String(), noProxy
	f.client.Transport.(*http.Transport).TLSHandshakeTimeout = 50 * time.Millisecond
	if _, err = f.fetch(t.Context(), t.TempDir(), nil); !errors.Is(err, ErrFetch) ||
		!strings.Contains(err.Error(), "TLS handshake timeout") {
		t.Errorf("a server that sends nothing: error %v", err)
	}
}

// A server whose certificate no authority has signed gets no request.
func TestFetchUntrusted(t *testing.T) {
	f := registry(t, func(http.ResponseWriter, *http.Request) { t.Error("the server got a request") })
	f.client.Transport.(*http.Transport).TLSClientConfig = nil
	_, err := f.fetch(t.Context(), t.TempDir(), nil)
	if !errors.Is(err, ErrFetch) || !strings.Contains(err.Error(), "install the package ca-certificates") {
		t.Errorf("error %v", err)
	}
}

func TestFetchCancelled(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	f := registry(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(1<<20))
		w.Write([]byte("beginning"))
		w.(http.Flusher).Flush()
		stop()
		<-r.Context().Done()
	})
	if _, err := f.fetch(ctx, t.TempDir(), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// The address of the package follows from the registry's.
func TestRegistryAddress(t *testing.T) {
	for registry, want := range map[string]string{
		"https://mirror.example/npm": "https://mirror.example/npm" + tarballPath,
		"http://127.0.0.1:4873/":     "http://127.0.0.1:4873" + tarballPath,
		"mirror.example":             "", "file:///etc": "", "https://%zz": "", "": "",
	} {
		u, err := newFetcher(Registry{URL: registry}).address()
		if want == "" {
			if !errors.Is(err, ErrFetch) {
				t.Errorf("%q: error %v", registry, err)
			}
		} else if err != nil || u.String() != want {
			t.Errorf("%q: %v, %v", registry, u, err)
		}
	}
}
