// SPDX-License-Identifier: Apache-2.0

package npm

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"
)

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
	registry  Registry
	transport *http.Transport
	stall     time.Duration // longest time without a byte from the registry
}

// NewClient returns a client for the [Registry]. It uses the proxy of the environment.
func NewClient() (*Client, error) {
	r, err := configured()
	if err != nil {
		return nil, err
	}
	c := &Client{registry: r, stall: 30 * time.Second}
	c.transport = &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := (&net.Dialer{Timeout: 15 * time.Second}).DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return patient{conn, c.stall}, nil
		}}
	return c, nil
}

// patient is a connection on which each byte may take some time.
type patient struct {
	net.Conn
	most time.Duration
}

func (p patient) Read(b []byte) (int, error) {
	if err := p.SetReadDeadline(time.Now().Add(p.most)); err != nil {
		return 0, err
	}
	return p.Conn.Read(b)
}

// Fetch begins to fetch the tarball of a package, and tells report, if it is not nil, from where. The content is not
// checked. The caller closes the tarball. The errors of Fetch and of reading the tarball wrap [ErrFetch] and say what to
// do.
func (c *Client) Fetch(ctx context.Context, p Package, report func(string)) (io.ReadCloser, error) {
	file := p.Name + "-" + p.Version + ".tgz" // all npm registries have this layout
	u, err := url.Parse(c.registry.URL)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFetch, err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.JoinPath(p.Name, "-", file).String(), nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFetch, err)
	}
	if c.registry.Authorization != "" {
		r.Header.Set("Authorization", c.registry.Authorization)
	}
	t := &tarball{shown: r.URL.Redacted(), limit: p.Limit}
	t.byHand = fmt.Sprintf("fetch %s on another machine and %s", t.shown, p.Elsewhere)
	answer, err := (&http.Client{Transport: c.transport}).Do(r)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFetch, c.unreachable(r, t.byHand, err))
	}
	t.body = answer.Body
	size := ""
	switch {
	case answer.StatusCode != http.StatusOK:
		t.Close()
		return nil, fmt.Errorf("%w: %s answers %s; %s or %s", ErrFetch, t.shown, answer.Status, hint(answer.StatusCode),
			t.byHand)
	case answer.ContentLength > 0:
		size = fmt.Sprintf(", %d MB,", answer.ContentLength/1e6)
	}
	if report != nil {
		report(fmt.Sprintf("fetching %s%s from %s", p.Name, size, t.shown))
	}
	return t, nil
}

// tarball is a package while it is fetched.
type tarball struct {
	body          io.ReadCloser
	n, limit      int64 // bytes
	shown, byHand string
}

func (t *tarball) Read(p []byte) (int, error) {
	n, err := t.body.Read(p)
	t.n += int64(n)
	switch {
	case t.n > t.limit:
		return 0, fmt.Errorf("%w: %s sends more than the %d bytes that the package may have; %s", ErrFetch, t.shown,
			t.limit, checkRegistry)
	case err != nil && err != io.EOF:
		err = fmt.Errorf("%w: %s broke off after %d bytes: %w; run the command again, or %s", ErrFetch, t.shown, t.n, err,
			t.byHand)
	}
	return n, err
}

func (t *tarball) Close() error { return t.body.Close() }

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
	if r.Context().Err() != nil {
		return context.Cause(r.Context())
	}
	var outer *url.Error // its text begins with the URL, which may hold a password
	if errors.As(err, &outer) {
		err = outer.Err
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
