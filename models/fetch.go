// SPDX-License-Identifier: Apache-2.0

package models

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"
)

// ErrFetch is returned when the package cannot be fetched from the registry.
var ErrFetch = errors.New("package cannot be fetched")

// Registry is an npm registry.
type Registry struct {
	URL           string // http or https; it may have a user name and a password
	Authorization string // header of requests; "" for none
}

// fetcher fetches the package from an npm registry.
type fetcher struct {
	name     string // of the package
	version  string
	registry Registry
	client   *http.Client
	proxy    func(*http.Request) (*url.URL, error)
	stall    time.Duration // longest time without a byte from the registry
	limit    int64         // bytes; the networks' package has 41 million
}

// newFetcher returns a fetcher that uses the proxy of the environment.
func newFetcher(r Registry) *fetcher {
	f := &fetcher{name: packageName, version: packageVersion, registry: r,
		proxy: http.ProxyFromEnvironment, stall: 30 * time.Second, limit: 64 << 20}
	f.client = &http.Client{Transport: &http.Transport{
		Proxy:                 func(r *http.Request) (*url.URL, error) { return f.proxy(r) },
		DialContext:           (&net.Dialer{Timeout: 15 * time.Second}).DialContext,
		TLSHandshakeTimeout:   15 * time.Second,
		ResponseHeaderTimeout: 30 * time.Second,
		ForceAttemptHTTP2:     true,
		DisableKeepAlives:     true,
	}}
	return f
}

// address returns the URL of the tarball. All npm registries have the same layout.
func (f *fetcher) address() (*url.URL, error) {
	u, err := url.Parse(f.registry.URL)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return nil, fmt.Errorf("%w: the address of the registry is not an http or https URL", ErrFetch)
	}
	return u.JoinPath(f.name, "-", f.name+"-"+f.version+".tgz"), nil
}

// fetch stores the tarball in the folder dir, and returns its path. It does not check the content.
func (f *fetcher) fetch(ctx context.Context, dir string, report func(string)) (string, error) {
	u, err := f.address()
	if err != nil {
		return "", err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	stalled := fmt.Errorf("nothing came for %v", f.stall)
	watchdog := time.AfterFunc(f.stall, func() { stop(stalled) })
	watchdog.Stop() // connecting has its own deadlines
	defer watchdog.Stop()

	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrFetch, err)
	}
	if f.registry.Authorization != "" {
		request.Header.Set("Authorization", f.registry.Authorization)
	}
	answer, err := f.client.Do(request)
	if err != nil {
		return "", f.unreachable(ctx, u, err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return "", f.refused(u, answer)
	}
	if answer.ContentLength > f.limit {
		return "", fmt.Errorf("%w: %s wants to send %d bytes, more than the package has; %s", ErrFetch, u.Redacted(),
			answer.ContentLength, checkRegistry)
	}
	if report != nil {
		size := ""
		if answer.ContentLength > 0 {
			size = fmt.Sprintf(", %d MB,", answer.ContentLength/1e6)
		}
		report(fmt.Sprintf("fetching %s%s from %s", f.name, size, u.Redacted()))
	}
	path := filepath.Join(dir, "package.tgz")
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", err
	}
	defer file.Close()
	watchdog.Reset(f.stall)
	body := &watched{r: io.LimitReader(answer.Body, f.limit+1), alive: func() { watchdog.Reset(f.stall) }}
	n, err := io.Copy(file, body)
	watchdog.Stop()
	switch {
	case body.failed != nil:
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return "", fmt.Errorf("%w: %s broke off after %d bytes: %w; run the command again, or %s", ErrFetch,
			u.Redacted(), n, err, byHand(u))
	case err != nil:
		return "", fmt.Errorf("writing the package that was fetched: %w", err)
	case n > f.limit:
		return "", fmt.Errorf("%w: %s sends more than the %d bytes that the package may have; %s", ErrFetch,
			u.Redacted(), f.limit, checkRegistry)
	}
	return path, file.Close()
}

// watched is a reader that reports arriving bytes. It stores its own error, to distinguish it from errors of the
// writer.
type watched struct {
	r      io.Reader
	alive  func()
	failed error
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.r.Read(p)
	if n > 0 {
		w.alive()
	}
	if err != nil && err != io.EOF {
		w.failed = err
	}
	return n, err
}

const checkRegistry = "is the registry of NPM_CONFIG_REGISTRY or ~/.npmrc right?"

// byHand says how to install without a network on this machine.
func byHand(u *url.URL) string {
	return fmt.Sprintf("fetch %s on another machine and run here: faceauth models install --from FILE", u.Redacted())
}

// unreachable explains why there is no answer.
func (f *fetcher) unreachable(ctx context.Context, u *url.URL, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%w: %w", ErrFetch, context.Cause(ctx))
	}
	var outer *url.Error // its text begins with the URL, which may hold a password
	if errors.As(err, &outer) {
		err = outer.Err
	}
	var authority x509.UnknownAuthorityError
	var certificate *tls.CertificateVerificationError
	if errors.As(err, &authority) || errors.As(err, &certificate) {
		return fmt.Errorf("%w: the certificate of %s is not trusted (%w); install the package ca-certificates, "+
			"or where a proxy "+
			"shows a certificate of its own, add it with update-ca-certificates; or %s", ErrFetch, u.Host, err,
			byHand(u))
	}
	through := "; is there a network? Behind a proxy set HTTPS_PROXY."
	if proxy, perr := f.proxy(&http.Request{URL: u}); perr != nil {
		through = "; is HTTPS_PROXY right?"
	} else if proxy != nil {
		through = fmt.Sprintf(" through the proxy %s; is HTTPS_PROXY right?", proxy.Redacted())
	}
	return fmt.Errorf("%w: %s cannot be reached (%w)%s Or %s", ErrFetch, u.Host, err, through, byHand(u))
}

// refused explains an answer that is not a package.
func (f *fetcher) refused(u *url.URL, answer *http.Response) error {
	hint := checkRegistry
	switch answer.StatusCode {
	case http.StatusProxyAuthRequired:
		hint = "put the proxy's user name and password into HTTPS_PROXY."
	case http.StatusUnauthorized, http.StatusForbidden:
		hint = "a registry that wants a password has it in ~/.npmrc, or in NPM_CONFIG_REGISTRY: " +
			"https://USER:PASSWORD@HOST/."
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		hint = "try again later."
	}
	return fmt.Errorf("%w: %s answers %s; %s Or %s", ErrFetch, u.Redacted(), answer.Status, hint, byHand(u))
}
