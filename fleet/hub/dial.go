// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"time"

	"github.com/faceauth/faceauth/fleet"
	"github.com/faceauth/faceauth/internal/safefile"
	"github.com/nats-io/nats.go"
)

// Errors of a connection.
var (
	// ErrOffline is returned while there is no connection. The device works without it.
	ErrOffline = errors.New("there is no connection to the server of the fleet")
	// ErrRefused is returned if the server does not know the connecting key, or the key was revoked.
	ErrRefused = fmt.Errorf(
		"%w: it was revoked or never admitted; if that is a mistake, remove its folder and join again with "+
			"a new token: faceauth fleet join",
		fleet.ErrRefused,
	)
	// ErrTooLarge is returned for an entry that is too large for the server.
	ErrTooLarge = errors.New("the entry is too large for the server of the fleet")
	// ErrFull is returned if the server has no room left.
	ErrFull = errors.New(
		"the server of the fleet has no room left; allow more with faceauth fleet serve --disk, or free space on its " +
			"disk")
	// ErrPerson is returned for an id of a person that cannot be part of a subject.
	ErrPerson = errors.New("unusable id of a person")
)

// connectTime is the time limit of one try to connect.
const connectTime = 10 * time.Second

// dial connects once and waits for the connection until ctx ends. An empty address means a server in this process.
func dial(ctx context.Context, address string, options ...nats.Option) (*nats.Conn, error) {
	o := append(
		[]nats.Option{nats.Name("faceauth"), nats.Timeout(connectTime), nats.NoCallbacksAfterClientClose()},
		options...)
	type result struct {
		c   *nats.Conn
		err error
	}
	made := make(chan result, 1)
	go func() {
		c, err := nats.Connect(address, o...)
		made <- result{c, err}
	}()
	select {
	case r := <-made:
		return r.c, plain(r.err)
	case <-ctx.Done():
		go func() { // the try ends within connectTime
			if r := <-made; r.c != nil {
				r.c.Close()
			}
		}()
		return nil, ctx.Err()
	}
}

// plain turns an error of NATS into a sentence with advice.
func plain(err error) error {
	var network *net.OpError
	var dns *net.DNSError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrPin), strings.Contains(err.Error(), "another certificate than the token"):
		return ErrPin
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthRevoked):
		return ErrRefused
	case errors.Is(err, nats.ErrMaxPayload):
		return ErrTooLarge
	case errors.As(err, &dns):
		return fmt.Errorf("%w: the name %s cannot be found; check the network and the name", ErrOffline, dns.Name)
	case errors.As(err, &network) && network.Op == "dial":
		return fmt.Errorf("%w: %v; check that faceauth fleet serve runs there, and that no firewall blocks its port",
			ErrOffline, network)
	case errors.Is(err, nats.ErrNoServers), errors.Is(err, nats.ErrTimeout), errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf(
			"%w: it does not answer; check that faceauth fleet serve runs there, and that no firewall blocks its port",
			ErrOffline)
	case errors.Is(err, nats.ErrSecureConnWanted), errors.Is(err, nats.ErrSecureConnRequired):
		return fmt.Errorf("%w: only one side uses TLS; check whether the URL begins with tls://", ErrOffline)
	case errors.Is(err, nats.ErrConnectionClosed),
		errors.Is(err, nats.ErrDisconnected),
		errors.Is(err, nats.ErrConnectionReconnecting),
		errors.Is(err, nats.ErrReconnectBufExceeded),
		errors.Is(err, nats.ErrStaleConnection),
		errors.Is(err, nats.ErrAuthExpired),
		errors.Is(err, io.EOF):
		return ErrOffline
	}
	return err
}

// reconnectDelay returns the pause before the n-th try in a row: from 100 ms to 30 s, and a random part of up to half
// of it, so that not all devices return at once.
func reconnectDelay(n int) time.Duration {
	wait := min(100*time.Millisecond<<min(n, 10), 30*time.Second)
	return wait + rand.N(cmp.Or(wait/2, 1))
}

// Creds returns the login for a cluster from a file: user credentials (.creds), the seed of an nkey, or user and
// password with a colon between.
func Creds(path string) (nats.Option, error) {
	f, err := safefile.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("others can read the secret in %s; run: chmod 600 %s", path, path)
	}
	b, err := io.ReadAll(io.LimitReader(f, 1<<16))
	if err != nil {
		return nil, err
	}
	text := strings.TrimSpace(string(b))
	user, password, both := strings.Cut(text, ":")
	switch {
	case strings.Contains(text, "BEGIN NATS USER JWT"):
		return nats.UserCredentials(path), nil
	case strings.HasPrefix(text, "SU") && !strings.ContainsAny(text, " \n:"):
		return nats.NkeyOptionFromSeed(path)
	case both && user != "" && password != "" && !strings.ContainsAny(text, "\n"):
		return nats.UserInfo(user, password), nil
	}
	return nil, fmt.Errorf("%s holds neither NATS user credentials, nor the seed of an nkey, nor USER:PASSWORD", path)
}
