// SPDX-License-Identifier: Apache-2.0

// Package server is the server of a fleet: [Serve] runs it, and [Copy] makes a backup. It is NATS
// with JetStream, which lets the members of one fleet in, and answers their requests. It has no key
// of the fleet: it stores sealed values.
package server

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/backoff"
	"github.com/faceauth/faceauth/internal/fleet/protocol"
	"github.com/faceauth/faceauth/internal/safefile"
	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
)

// Settings say how a server is reached.
type Settings struct {
	Listen  string   // address
	URLs    []string // at which devices find it; default: the name of this machine and the port
	Monitor string   // address of /healthz without TLS; "": none
}

// host is the server while it runs.
type host struct {
	set  Settings
	own  string // password of its own connection
	nats *natsserver.Server
	// One request is answered at a time. The lock is for the connections, which read the members.
	lock sync.RWMutex
	*books
}

var _ natsserver.Authentication = (*host)(nil)

// Serve runs the server of a fleet, which keeps its files in folder, until ctx ends. When it runs
// it calls ready, with an invitation for the first device while the fleet has none. NATS takes
// nothing any more once it could not write, so a full disk ends the server: start it again.
func Serve(ctx context.Context, folder string, set Settings, ready func(first string)) error {
	s := &host{set: set, own: rand.Text()}
	files := filepath.Join(folder, natsserver.JetStreamStoreDir)
	err := os.MkdirAll(files, 0o700)
	if err != nil {
		return err
	}
	unlock, err := safefile.LockFolder(files)
	if err != nil {
		return fmt.Errorf("the server's files in %s: %w", files, err)
	}
	defer unlock()
	s.books, err = read(filepath.Join(folder, Books))
	if errors.Is(err, fs.ErrNotExist) {
		_, s.key, err = ed25519.GenerateKey(rand.Reader)
	}
	if err != nil {
		return err
	}
	err = s.keep(filepath.Join(folder, Books))
	if err != nil {
		return err
	}
	defer s.file.Close()
	o, err := s.options(folder)
	if err != nil {
		return err
	}
	if len(s.set.URLs) == 0 {
		name, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("the name of this machine: %w; use --url", err)
		}
		s.set.URLs = []string{fmt.Sprintf("tls://%s:%d", name, o.Port)}
	}
	first := ""
	if !slices.ContainsFunc(s.members, func(m *protocol.Member) bool { return m.Key != "" }) {
		i, err := s.invite("first", true)
		if err != nil {
			return err
		}
		first = protocol.Text(i)
	}
	s.nats, err = natsserver.NewServer(o)
	if err != nil {
		return fmt.Errorf("starting the server: %w", err)
	}
	s.nats.Start()
	defer s.nats.WaitForShutdown()
	defer s.nats.Shutdown()
	if !s.nats.ReadyForConnections(time.Minute) {
		return fmt.Errorf(
			"the server does not start: is another one running at %s, or the disk full?",
			set.Listen)
	}
	nc, err := s.answers(ctx)
	if err != nil {
		return err
	}
	defer nc.Close()
	ready(first)
	for backoff.Wait(ctx, 2*time.Second) {
		if health := s.nats.Healthz(nil); health.Error != "" {
			return errors.New("nothing can be stored; the devices wait until there is room on " +
				"the disk, and the server is started again: " + health.Error)
		}
	}
	return nil
}

const serverName = "faceauth"

// options returns the settings of NATS.
func (s *host) options(folder string) (*natsserver.Options, error) {
	template := &x509.Certificate{SerialNumber: big.NewInt(1),
		Subject:   pkix.Name{CommonName: "faceauth fleet"},
		NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<33, 0)}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, s.key.Public(), s.key)
	if err != nil {
		return nil, err
	}
	pair := tls.Certificate{Certificate: [][]byte{cert}, PrivateKey: s.key}
	o := &natsserver.Options{
		ServerName: serverName, NoSigs: true, NoLog: true, DisableJetStreamBanner: true,
		AlwaysEnableNonce: true, CustomClientAuthentication: s,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair},
			MinVersion: tls.VersionTLS13},
		TLSTimeout: 10, PingInterval: 30 * time.Second, WriteDeadline: protocol.Patience,
		JetStream: true, StoreDir: folder, JetStreamMaxMemory: 64 << 20, JetStreamMaxStore: 1 << 50,
		MaxPayload: protocol.MostBytes,
		SyncAlways: true, // an acknowledged value is on the disk even if the power fails
	}
	addresses := fmt.Sprintf("listen: %q\n", s.set.Listen)
	if s.set.Monitor != "" {
		addresses += fmt.Sprintf("http: %q\n", s.set.Monitor)
	}
	return o, o.ProcessConfigString(addresses)
}

// Check lets a device in that has the key of a member or of an invitation, with its rights.
func (s *host) Check(c natsserver.ClientAuthentication) bool {
	o := c.GetOpts()
	if o.Nkey == "" {
		return o.Username == serverName &&
			subtle.ConstantTimeCompare([]byte(o.Password), []byte(s.own)) == 1
	}
	may := s.may(o.Nkey)
	if may == nil {
		return false
	}
	key, err := nkeys.FromPublicKey(o.Nkey)
	if err != nil {
		return false
	}
	signature, err := base64.RawURLEncoding.DecodeString(o.Sig)
	if err != nil || key.Verify(c.GetNonce(), signature) != nil {
		return false
	}
	c.RegisterUser(&natsserver.User{Permissions: &natsserver.Permissions{
		Publish:   &natsserver.SubjectPermission{Allow: may},
		Subscribe: &natsserver.SubjectPermission{Allow: []string{"_INBOX_" + o.Nkey + ".>"}},
	}})
	return true
}

// may returns where the device with a key may publish, or nil for a stranger.
func (s *host) may(key string) []string {
	s.lock.RLock()
	defer s.lock.RUnlock()
	m := s.by[key]
	switch {
	case m == nil:
		return nil
	case key == m.Key:
		return append(protocol.Rights(key, m.Admin), protocol.Asking+key)
	}
	return []string{protocol.Asking + key} // it has an invitation
}

// change changes the members, on the disk first.
func (s *host) change(all ...change) error {
	err := s.note(all)
	if err != nil {
		return err
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	for _, c := range all {
		s.apply(c)
	}
	return nil
}

// answers opens the bucket, and answers requests.
func (s *host) answers(ctx context.Context) (*nats.Conn, error) {
	nc, err := nats.Connect("", nats.InProcessServer(s.nats), nats.UserInfo(serverName, s.own),
		nats.MaxReconnects(-1))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	_, _, err = protocol.OpenBucket(ctx, nc, 1)
	if err == nil {
		_, err = nc.Subscribe(protocol.Asking+"*", func(m *nats.Msg) {
			var r protocol.Request
			var out protocol.Reply
			err := protocol.Decode(m.Data, &r)
			if err == nil {
				out, err = s.answer(m.Subject[len(protocol.Asking):], r)
			}
			if err != nil {
				out = protocol.Reply{Error: err.Error()}
			}
			m.Respond(protocol.Encode(out))
		})
	}
	if err != nil {
		nc.Close()
	}
	return nc, err
}

// invite makes an invitation, without the keys of the fleet, which the server does not have. An
// earlier one of that name, and those that are too old, are none any more.
func (s *host) invite(name string, admin bool) (i protocol.Invitation, err error) {
	err = face.CheckName(name)
	if err != nil {
		return i, err
	}
	var all []change
	for _, m := range s.members {
		switch {
		case m.Name == name && m.Key != "":
			return i, fmt.Errorf("another device has the name %q", name)
		case m.Name == name || m.Key == "" && time.Now().After(m.Until):
			all = append(all, change{Member: m, Gone: true})
		}
	}
	i = protocol.Invitation{Name: name, URLs: s.set.URLs, Seed: protocol.NewSeed(nkeys.CreateUser),
		Pin: s.key.Public().(ed25519.PublicKey)}
	all = append(all, change{Member: &protocol.Member{
		Name: name, Admin: admin, Invited: protocol.Public(i.Seed),
		Until: time.Now().Add(time.Hour),
	}})
	return i, s.change(all...)
}

// answer does what the device with a key asks for.
func (s *host) answer(by string, r protocol.Request) (out protocol.Reply, err error) {
	m := s.by[by]
	switch {
	case m == nil:
		err = errors.New("this device was revoked")
	case m.Key != by:
		err = s.join(*m, r)
	case r.What == "members":
		out.Members, err = s.list()
	case !m.Admin:
		err = protocol.ErrNoAdmin
	case r.What == "invite":
		out.Invitation, err = s.invite(r.Name, r.Admin)
	case r.What == "revoke":
		out.Members, err = s.revoke(r.Name, r.Keys)
	default:
		err = errors.New("that is for a newer server")
	}
	return out, err
}

// join makes the device with an invitation a member. The answer may get lost, so it can ask again.
func (s *host) join(m protocol.Member, r protocol.Request) error {
	if r.What != "join" || len(r.Keys) != 1 || !nkeys.IsValidPublicUserKey(r.Keys[0]) {
		return errors.New("that is for a newer server")
	}
	switch {
	case m.Key == r.Keys[0]:
		return nil
	case m.Key != "":
		return errors.New(
			"another device has used this invitation; if you do not know it, revoke it")
	case time.Now().After(m.Until):
		return errors.New("the invitation is too old")
	case s.by[r.Keys[0]] != nil:
		return errors.New("another member has this key")
	}
	m.Key = r.Keys[0]
	return s.change(change{Member: &m})
}

// revoke removes a device or invitation by its name, and others by their keys. Their connections
// end.
func (s *host) revoke(name string, keys []string) (gone []protocol.Member, err error) {
	var all []change
	shut := make(map[string]bool)
	for _, m := range s.members {
		if m.Name == name || slices.Contains(keys, m.Key) || slices.Contains(keys, m.Invited) {
			gone = append(gone, *m)
			all = append(all, change{Member: m, Gone: true})
			shut[m.Key], shut[m.Invited] = true, true
		}
	}
	if len(gone) == 0 {
		return nil, nil
	}
	err = s.change(all...)
	if err != nil {
		return nil, err
	}
	delete(shut, "") // an invitation that nobody has used
	open, err := s.connections(natsserver.ConnOpen)
	for _, c := range open {
		if shut[c.AuthorizedUser] {
			s.nats.DisconnectClientByID(c.Cid) // the error says that it has gone meanwhile
		}
	}
	return gone, err
}

// connections returns those in a state, with the keys of their devices.
func (s *host) connections(in natsserver.ConnState) ([]*natsserver.ConnInfo, error) {
	all, err := s.nats.Connz(&natsserver.ConnzOptions{Username: true, State: in, Limit: 1 << 20})
	if err != nil {
		return nil, err
	}
	return all.Conns, nil
}

// list returns the members with who is connected, and when the others were.
func (s *host) list() (all []protocol.Member, err error) {
	open, err := s.connections(natsserver.ConnAll)
	if err != nil {
		return nil, err
	}
	seen := make(map[string]time.Time) // zero: now
	for _, c := range open {
		at, there := seen[c.AuthorizedUser]
		switch {
		case c.Stop == nil:
			seen[c.AuthorizedUser] = time.Time{}
		case !there || !at.IsZero() && c.Stop.After(at):
			seen[c.AuthorizedUser] = *c.Stop
		}
	}
	for _, m := range s.members {
		at, there := seen[m.Key]
		is := *m
		is.Seen, is.Online = at, there && at.IsZero() && m.Key != ""
		all = append(all, is)
	}
	return all, nil
}
