// SPDX-License-Identifier: Apache-2.0

// Package npm fetches packages of npm's registry, without npm: [Fetch], and [Unpack].
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
	"net/http"
	"net/url"
	"path"
	"time"
)

// ErrFetch is wrapped if a package cannot be fetched.
var ErrFetch = errors.New("package cannot be fetched")

// Package is a tarball at an address.
type Package struct {
	URL       string
	Limit     int64  // bytes that it has at most
	Elsewhere string // what to do with the tarball if it is fetched on another machine
}

// client fetches packages.
type client struct {
	transport *http.Transport
	stall     time.Duration // longest time without a byte
}

// Fetch begins to fetch a package through the proxy of the environment, and tells report from
// where. The content is not checked. The caller closes the tarball. The errors of Fetch and of
// reading the tarball wrap [ErrFetch] and say what to do.
func Fetch(ctx context.Context, p Package, report func(string)) (io.ReadCloser, error) {
	c := client{&http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true},
		30 * time.Second}
	return c.fetch(ctx, p, report)
}

func (c client) fetch(ctx context.Context, p Package, report func(string)) (io.ReadCloser, error) {
	t := &tarball{Package: p, stall: c.stall}
	t.ctx, t.end = context.WithCancelCause(ctx)
	t.patience = time.AfterFunc(c.stall, func() { t.end(errStall) })
	r, err := http.NewRequestWithContext(t.ctx, http.MethodGet, p.URL, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFetch, err)
	}
	t.byHand = fmt.Sprintf("fetch %s on another machine and %s", p.URL, p.Elsewhere)
	answer, err := (&http.Client{Transport: c.transport}).Do(r)
	t.patience.Stop()
	if err != nil {
		defer t.end(nil)
		return nil, fmt.Errorf("%w: %w", ErrFetch, c.unreachable(r, t.byHand, err))
	}
	t.ReadCloser = answer.Body
	if answer.StatusCode != http.StatusOK {
		t.Close()
		return nil, fmt.Errorf("%w: %s answers %s; %s or %s", ErrFetch, p.URL, answer.Status,
			hint(answer.StatusCode), t.byHand)
	}
	size := ""
	if answer.ContentLength > 0 {
		size = fmt.Sprintf(", %d MB,", answer.ContentLength/1e6)
	}
	report(fmt.Sprintf("fetching %s%s from %s", path.Base(p.URL), size, r.URL.Host))
	return t, nil
}

var errStall = errors.New("timeout: it sends nothing")

// tarball is a package while it is fetched.
type tarball struct {
	io.ReadCloser
	Package
	ctx      context.Context
	end      context.CancelCauseFunc
	patience *time.Timer // ends ctx
	stall    time.Duration
	n        int64 // bytes
	byHand   string
}

func (t *tarball) Read(p []byte) (int, error) {
	t.patience.Reset(t.stall)
	n, err := t.ReadCloser.Read(p)
	t.patience.Stop()
	t.n += int64(n)
	switch {
	case t.n > t.Limit:
		return 0, fmt.Errorf(
			"%w: %s sends more than the %d bytes that the package may have; is a proxy between?",
			ErrFetch, t.URL, t.Limit)
	case err != nil && err != io.EOF:
		err = fmt.Errorf("%w: %s broke off after %d bytes: %w; run the command again, or %s",
			ErrFetch, t.URL, t.n, cmp.Or(context.Cause(t.ctx), err), t.byHand)
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

// unreachable explains why there is no answer.
func (c client) unreachable(r *http.Request, byHand string, err error) error {
	var outer *url.Error // its text begins with the URL, which is said already
	if errors.As(err, &outer) {
		err = cmp.Or(context.Cause(r.Context()), outer.Err)
	}
	var certificate *tls.CertificateVerificationError
	if errors.As(err, &certificate) {
		return fmt.Errorf("the certificate of %s is not trusted (%w); install the package "+
			"ca-certificates, or where a proxy shows a certificate of its own, add it with "+
			"update-ca-certificates; or %s", r.URL.Host, err, byHand)
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
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable,
		http.StatusGatewayTimeout:
		return "try again later,"
	}
	return "is a proxy between?"
}
