// SPDX-License-Identifier: Apache-2.0

// Package npm fetches packages from an npm registry, without npm: [Client.Fetch], and [Unpack].
//
// It asks the registry that npm itself would use: the one in NPM_CONFIG_REGISTRY, else in the user's file npmrc, with the
// token that the file has for it. A file npmrc in the present folder is not trusted. Without a configuration it is npm's
// own registry.
package npm

import (
	"archive/tar"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// ErrConfig is wrapped if npm's configuration cannot be used.
var ErrConfig = errors.New("npm's configuration (NPM_CONFIG_REGISTRY, ~/.npmrc) cannot be used")

// ErrFetch is wrapped if a package cannot be fetched from the registry.
var ErrFetch = errors.New("package cannot be fetched")

// Package is a package of a registry.
type Package struct {
	Name, Version string
	Limit         int64  // bytes that it has at most
	Elsewhere     string // what to do with the package if it is fetched on another machine
}

// Client fetches packages from a registry.
type Client struct {
	registry      string // http or https; it may have a user name and a password
	authorization string // header of requests; "" for none
	transport     *http.Transport
	stall         time.Duration // longest time without a byte from the registry
}

// NewClient returns a client for the registry of packages without a scope. It uses the proxy of the environment. The
// error wraps [ErrConfig].
func NewClient() (*Client, error) {
	set, err := settings()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	c := &Client{registry: cmp.Or(set["registry"], "https://registry.npmjs.org/"), stall: 30 * time.Second,
		transport: &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true}}
	u, err := url.Parse(c.registry)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return nil, fmt.Errorf("%w: its registry is not an http or https URL", ErrConfig)
	}
	// A password is kept for the registry's address without its scheme, or for a part of it that ends at a slash.
	for at := "//" + u.Host + strings.TrimSuffix(u.Path, "/"); len(at) > 2 && c.authorization == ""; {
		if token := set[at+"/:_authToken"]; token != "" {
			c.authorization = "Bearer " + token
		} else if basic := set[at+"/:_auth"]; basic != "" {
			c.authorization = "Basic " + basic
		}
		at = at[:strings.LastIndex(at, "/")]
	}
	return c, nil
}

// variable is a variable of the environment in npmrc.
var variable = regexp.MustCompile(`\$\{\w+\}`)

// settings returns the settings of the user's npmrc, with the registry of the environment.
func settings() (map[string]string, error) {
	path := ""
	if home, err := os.UserHomeDir(); err == nil { // without it there is no such file
		path = filepath.Join(home, ".npmrc")
	}
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	set := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, "=")
		set[strings.TrimSpace(name)] = variable.ReplaceAllStringFunc(
			strings.Trim(strings.TrimSpace(value), `"'`), os.ExpandEnv)
	}
	set["registry"] = cmp.Or(os.Getenv("NPM_CONFIG_REGISTRY"), os.Getenv("npm_config_registry"), set["registry"])
	return set, nil
}

// Fetch begins to fetch the tarball of a package, and tells report from where. The content is not checked. The caller
// closes the tarball. The errors of Fetch and of reading the tarball wrap [ErrFetch] and say what to do.
func (c *Client) Fetch(ctx context.Context, p Package, report func(string)) (io.ReadCloser, error) {
	file := p.Name + "-" + p.Version + ".tgz" // all npm registries have this layout
	u, err := url.JoinPath(c.registry, p.Name, "-", file)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFetch, err)
	}
	t := &tarball{limit: p.Limit, stall: c.stall}
	t.ctx, t.end = context.WithCancelCause(ctx)
	t.patience = time.AfterFunc(c.stall, func() { t.end(errStall) })
	r, err := http.NewRequestWithContext(t.ctx, http.MethodGet, u, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFetch, err)
	}
	if c.authorization != "" {
		r.Header.Set("Authorization", c.authorization)
	}
	t.shown = r.URL.Redacted()
	t.byHand = fmt.Sprintf("fetch %s on another machine and %s", t.shown, p.Elsewhere)
	answer, err := (&http.Client{Transport: c.transport}).Do(r)
	t.patience.Stop()
	if err != nil {
		defer t.end(nil)
		return nil, fmt.Errorf("%w: %w", ErrFetch, c.unreachable(r, t.byHand, err))
	}
	t.ReadCloser = answer.Body
	if answer.StatusCode != http.StatusOK {
		t.Close()
		return nil, fmt.Errorf("%w: %s answers %s; %s or %s", ErrFetch, t.shown, answer.Status, hint(answer.StatusCode),
			t.byHand)
	}
	size := ""
	if answer.ContentLength > 0 {
		size = fmt.Sprintf(", %d MB,", answer.ContentLength/1e6)
	}
	report(fmt.Sprintf("fetching %s%s from %s", p.Name, size, t.shown))
	return t, nil
}

var errStall = errors.New("timeout: it sends nothing")

// tarball is a package while it is fetched.
type tarball struct {
	io.ReadCloser
	ctx           context.Context
	end           context.CancelCauseFunc
	patience      *time.Timer // ends ctx
	stall         time.Duration
	n, limit      int64 // bytes
	shown, byHand string
}

func (t *tarball) Read(p []byte) (int, error) {
	t.patience.Reset(t.stall)
	n, err := t.ReadCloser.Read(p)
	t.patience.Stop()
	t.n += int64(n)
	switch {
	case t.n > t.limit:
		return 0, fmt.Errorf("%w: %s sends more than the %d bytes that the package may have; %s", ErrFetch, t.shown,
			t.limit, checkRegistry)
	case err != nil && err != io.EOF:
		err = fmt.Errorf("%w: %s broke off after %d bytes: %w; run the command again, or %s", ErrFetch, t.shown, t.n,
			cmp.Or(context.Cause(t.ctx), err), t.byHand)
	}
	return n, err
}

func (t *tarball) Close() error {
	t.patience.Stop()
	t.end(nil)
	return t.ReadCloser.Close()
}

// Unpack calls do with the name and the content of each file of a tarball.
func Unpack(tarball io.Reader, do func(name string, content io.Reader) error) error {
	gz, err := gzip.NewReader(tarball)
	if err != nil {
		return err
	}
	for r := tar.NewReader(gz); ; {
		head, err := r.Next()
		if err == io.EOF {
			return nil
		}
		if err == nil && head.Typeflag == tar.TypeReg {
			err = do(head.Name, r)
		}
		if err != nil {
			return err
		}
	}
}

const checkRegistry = "is the registry of NPM_CONFIG_REGISTRY or ~/.npmrc right?"

// unreachable explains why there is no answer.
func (c *Client) unreachable(r *http.Request, byHand string, err error) error {
	var outer *url.Error // its text begins with the URL, which may hold a password
	if errors.As(err, &outer) {
		err = cmp.Or(context.Cause(r.Context()), outer.Err)
	}
	var certificate *tls.CertificateVerificationError
	if errors.As(err, &certificate) {
		return fmt.Errorf("the certificate of %s is not trusted (%w); install the package ca-certificates, or where a "+
			"proxy shows a certificate of its own, add it with update-ca-certificates; or %s", r.URL.Host, err, byHand)
	}
	through := "; is there a network? Behind a proxy set HTTPS_PROXY,"
	if proxy, wrong := c.transport.Proxy(r); wrong != nil {
		through = "; is HTTPS_PROXY right?"
	} else if proxy != nil {
		through = fmt.Sprintf(" through the proxy %s; is HTTPS_PROXY right?", proxy.Redacted())
	}
	return fmt.Errorf("%s cannot be reached (%w)%s or %s", r.URL.Host, err, through, byHand)
}

// hint says what to do about the status of an answer that is no package.
func hint(status int) string {
	switch status {
	case http.StatusProxyAuthRequired:
		return "put the proxy's user name and password into HTTPS_PROXY,"
	case http.StatusUnauthorized, http.StatusForbidden:
		return "a registry that wants a password has it in ~/.npmrc, or in NPM_CONFIG_REGISTRY: " +
			"https://USER:PASSWORD@HOST/,"
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return "try again later,"
	}
	return checkRegistry
}
