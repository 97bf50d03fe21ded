// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/backoff"
	"github.com/faceauth/faceauth/internal/safefile"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
)

// Member is a device of a fleet, or an invitation.
type Member struct {
	Name    string    `json:"name"`
	Key     string    `json:"key,omitempty"` // public; none: it has not joined yet
	Admin   bool      `json:"administrator,omitempty"`
	Invited string    `json:"invited,omitempty"` // key of the invitation
	Until   time.Time `json:"until,omitzero"`
	Seen    time.Time `json:"seen,omitzero"` // when it connected last
	Online  bool      `json:"connected"`
}

// books are what a server keeps beside the bucket.
type books struct {
	Key     ed25519.PrivateKey `json:"key"` // of the server: devices know it
	Members []Member           `json:"members"`
}

// ServerSettings say how a server is reached.
type ServerSettings struct {
	Listen  string   // address
	URLs    []string // at which devices find it; default: the name of this machine and the port
	Monitor string   // address of /healthz without TLS; "": none
}

// host is a NATS server with JetStream that lets the members of one fleet in. Beside what NATS does it
// knows the members. It has no key of the fleet.
type host struct {
	folder string
	urls   []string
	own    string // password of its own connection
	nats   *server.Server

	mu sync.Mutex // guards books
	books
}

// invitedFor is the time for which an invitation is good.
const invitedFor = time.Hour

func booksOf(folder string) string { return filepath.Join(folder, "server.json") }

func readBooks(path string) (b books, err error) {
	text, err := safefile.ReadSecret(path)
	if err == nil {
		err = json.Unmarshal(text, &b)
	}
	if err == nil && len(b.Key) != ed25519.PrivateKeySize {
		err = errors.New("the file is damaged, or not of a server")
	}
	if err != nil {
		err = fmt.Errorf("reading the server's members from %s: %w", path, err)
	}
	return b, err
}

func (b books) write(path string) error {
	text, err := json.MarshalIndent(b, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return safefile.Write(path, text)
}

func (s *host) save() error { return s.books.write(booksOf(s.folder)) }

// Backup writes what of the server with a folder no device can give back: who its members are, and its
// key. Who reads the file can pose as the server, and learns no name and no face.
func Backup(folder, path string) error { return copyBooks(booksOf(folder), path) }

// Restore makes the folder of a server of a backup. The devices give it the people when they connect.
func Restore(path, folder string) error { return copyBooks(path, booksOf(folder)) }

func copyBooks(from, to string) error {
	b, err := readBooks(from)
	if err != nil {
		return err
	}
	if _, err := os.Lstat(to); err == nil {
		return fmt.Errorf("%s is there already; name another place", to)
	}
	return b.write(to)
}

// Serve runs the server of a fleet, which keeps its files in folder, until ctx ends. When it runs it calls
// ready, with an invitation for the first device while the fleet has none. NATS takes nothing any more once
// it could not write, so a full disk ends the server: start it again.
func Serve(ctx context.Context, folder string, set ServerSettings, ready func(first *Invitation)) error {
	s := &host{folder: folder, urls: set.URLs, own: rand.Text()}
	var err error
	s.books, err = readBooks(booksOf(folder))
	if errors.Is(err, fs.ErrNotExist) {
		_, s.Key, err = ed25519.GenerateKey(rand.Reader)
	}
	if err != nil {
		return err
	}
	o, err := s.options(set)
	if err != nil {
		return err
	}
	if len(s.urls) == 0 {
		name, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("the name of this machine: %w; use --url", err)
		}
		s.urls = []string{fmt.Sprintf("tls://%s:%d", name, o.Port)}
	}
	var first *Invitation
	if slices.ContainsFunc(s.Members, func(m Member) bool { return m.Key != "" }) {
		err = s.save()
	} else {
		first, err = s.invite("first", true)
	}
	if err != nil {
		return err
	}
	if s.nats, err = server.NewServer(o); err != nil {
		return fmt.Errorf("starting the server: %w", err)
	}
	s.nats.Start()
	defer s.nats.WaitForShutdown()
	defer s.nats.Shutdown()
	if !s.nats.ReadyForConnections(time.Minute) {
		return fmt.Errorf("the server does not start: is another one running at %s, or the disk full?", set.Listen)
	}
	nc, err := s.answers(ctx)
	if err != nil {
		return err
	}
	defer nc.Close()
	ready(first)
	for backoff.Wait(ctx, 2*time.Second) {
		if health := s.nats.Healthz(nil); health.Error != "" {
			return errors.New("nothing can be stored; the devices wait until there is room on the disk, and the server " +
				"is started again: " + health.Error)
		}
	}
	return nil
}

// options returns the settings of NATS.
func (s *host) options(set ServerSettings) (*server.Options, error) {
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "faceauth fleet"},
		NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<33, 0)}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, s.Key.Public(), s.Key)
	if err != nil {
		return nil, err
	}
	pair := tls.Certificate{Certificate: [][]byte{cert}, PrivateKey: s.Key}
	o := &server.Options{
		ServerName: "faceauth", NoSigs: true, NoLog: true, AlwaysEnableNonce: true, CustomClientAuthentication: s,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13},
		JetStream: true, StoreDir: s.folder, JetStreamMaxMemory: 64 << 20, JetStreamMaxStore: 1 << 50,
		TLSTimeout: 10, PingInterval: 30 * time.Second, MaxPayload: 1 << 20, DisableJetStreamBanner: true,
		SyncAlways: true, // an acknowledged value is on the disk even if the power fails
	}
	if o.Host, o.Port, err = address(set.Listen); err == nil && set.Monitor != "" {
		o.HTTPHost, o.HTTPPort, err = address(set.Monitor)
	}
	return o, err
}

func address(text string) (host string, port int, err error) {
	host, number, err := net.SplitHostPort(text)
	if err == nil {
		port, err = strconv.Atoi(number)
	}
	return host, port, err
}

// asking is the subject of requests. The key of the device that asks ends it: NATS lets no other device
// publish there.
const asking = "fleet."

// answers opens the bucket, and answers requests.
func (s *host) answers(ctx context.Context) (*nats.Conn, error) {
	nc, err := nats.Connect("", nats.InProcessServer(s.nats), nats.Token(s.own), nats.MaxReconnects(-1))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err = makeBucket(ctx, nc, 1); err == nil {
		_, err = nc.Subscribe(asking+"*", func(m *nats.Msg) {
			var r request
			var out reply
			err := decoding.Unmarshal(m.Data, &r)
			if err == nil {
				out, err = s.answer(m.Subject[len(asking):], r)
			}
			if err != nil {
				out = reply{Error: err.Error()}
			}
			m.Respond(encode(out))
		})
	}
	if err != nil {
		nc.Close()
	}
	return nc, err
}

var _ server.Authentication = (*host)(nil)

// Check lets members and invitations in, by the signature of their key.
func (s *host) Check(c server.ClientAuthentication) bool {
	o := c.GetOpts()
	if o.Token == s.own {
		c.RegisterUser(&server.User{})
		return true
	}
	sig, err := base64.RawURLEncoding.DecodeString(o.Sig)
	if err != nil {
		return false
	}
	key, err := nkeys.FromPublicKey(o.Nkey)
	if err != nil || key.Verify(c.GetNonce(), sig) != nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.Members, func(m Member) bool {
		return m.Key == o.Nkey || m.Invited == o.Nkey && time.Now().Before(m.Until)
	})
	if i < 0 {
		return false
	}
	m := &s.Members[i]
	may := []string{asking + o.Nkey}
	if m.Key == o.Nkey {
		m.Seen = time.Now()
		may = append(may, place+"*", place+memberPrefix+o.Nkey, place+presencePrefix+o.Nkey)
		for _, what := range []string{"STREAM.INFO.%s", "STREAM.MSG.GET.%s", "DIRECT.GET.%s.>", "CONSUMER.CREATE.%s.>",
			"CONSUMER.MSG.NEXT.%s.>", "CONSUMER.INFO.%s.>", "CONSUMER.DELETE.%s.>"} {
			may = append(may, "$JS.API."+fmt.Sprintf(what, stream))
		}
		if m.Admin {
			may = append(may, place+">")
		}
	}
	inbox := []string{"_INBOX_" + o.Nkey + ".>"}
	c.RegisterUser(&server.User{Username: o.Nkey, Permissions: &server.Permissions{
		Publish: &server.SubjectPermission{Allow: may}, Subscribe: &server.SubjectPermission{Allow: inbox},
	}})
	return true
}

// invite makes an invitation, without the keys of the fleet, which the server does not have.
func (s *host) invite(name string, admin bool) (*Invitation, error) {
	if err := face.CheckName(name); err != nil {
		return nil, err
	}
	if slices.ContainsFunc(s.Members, func(m Member) bool { return m.Name == name && m.Key != "" }) {
		return nil, fmt.Errorf("another device has the name %q", name)
	}
	i := &Invitation{Name: name, URLs: s.urls, Seed: newSeed(nkeys.CreateUser), Pin: s.Key.Public().(ed25519.PublicKey)}
	s.Members = slices.DeleteFunc(s.Members, func(m Member) bool {
		return m.Name == name || m.Key == "" && time.Now().After(m.Until)
	})
	s.Members = append(s.Members, Member{Name: name, Admin: admin, Invited: public(i.Seed),
		Until: time.Now().Add(invitedFor)})
	return i, s.save()
}

// answer does what the device with a key asks for.
func (s *host) answer(by string, r request) (out reply, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	member := slices.IndexFunc(s.Members, func(m Member) bool { return m.Key == by })
	invited := slices.IndexFunc(s.Members, func(m Member) bool {
		return m.Invited == by && (m.Key != "" || time.Now().Before(m.Until))
	})
	switch {
	case member < 0 && (invited < 0 || r.What != "join" || !nkeys.IsValidPublicUserKey(r.Key)):
		err = errors.New("the invitation is too old")
	case member < 0:
		m := &s.Members[invited]
		if m.Key != "" && m.Key != r.Key {
			return out, errors.New("another device has used this invitation; if you do not know it, revoke it")
		}
		m.Key = r.Key
		err = s.save()
	case r.What == "members":
		out.Members, err = s.list()
	case !s.Members[member].Admin:
		err = errNoAdmin
	case r.What == "invite":
		out.Invitation, err = s.invite(r.Name, r.Admin)
	case r.What == "revoke":
		out.Key, err = s.revoke(r.Name)
	default:
		err = errors.New("that is for a newer server")
	}
	return out, err
}

// revoke removes a device and ends its connections.
func (s *host) revoke(name string) (key string, err error) {
	i := slices.IndexFunc(s.Members, func(m Member) bool { return m.Name == name })
	if i < 0 {
		return "", fmt.Errorf("no device has the name %q", name)
	}
	gone := s.Members[i]
	s.Members = slices.Delete(s.Members, i, i+1)
	if err := s.save(); err != nil {
		return "", err
	}
	here, err := s.connected()
	for _, id := range append(here[gone.Key], here[gone.Invited]...) {
		s.nats.DisconnectClientByID(id) // an error: it is gone already
	}
	return gone.Key, err
}

// connected returns the numbers of the connections of each device.
func (s *host) connected() (map[string][]uint64, error) {
	c, err := s.nats.Connz(&server.ConnzOptions{Username: true, Limit: 100000})
	if err != nil {
		return nil, err
	}
	here := make(map[string][]uint64)
	for _, of := range c.Conns {
		here[of.AuthorizedUser] = append(here[of.AuthorizedUser], of.Cid)
	}
	return here, nil
}

func (s *host) list() ([]Member, error) {
	here, err := s.connected()
	all := slices.Clone(s.Members)
	for i, m := range all {
		all[i].Online = len(here[m.Key]) > 0
	}
	return all, err
}
