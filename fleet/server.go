// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
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

	"github.com/faceauth/faceauth/internal/backoff"
	"github.com/faceauth/faceauth/internal/safefile"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
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
	URLs    []string  `json:"urls"`
	Cert    []byte    `json:"cert"`  // DER
	Key     []byte    `json:"key"`   // PKCS #8
	Local   string    `json:"local"` // key of the commands on this machine
	Members []*Member `json:"members"`
}

// ServerSettings say how a server is reached.
type ServerSettings struct {
	Listen  string   // address
	URLs    []string // at which devices find it; default: the name of this machine and the port
	Monitor string   // address of /healthz without TLS; "": none
}

// Server is a NATS server with JetStream that lets the members of one fleet in. Beside what NATS does
// it knows the members. It has no key of the fleet.
type Server struct {
	// First is the invitation of the first device, if the server is new.
	First *Invitation

	folder string
	set    ServerSettings
	nc     *nats.Conn

	mu   sync.Mutex // guards nats and books
	nats *server.Server
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
	if err == nil && (len(b.Cert) == 0 || len(b.URLs) == 0) {
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

func (s *Server) save() error { return s.books.write(booksOf(s.folder)) }

// Backup writes what of the server with a folder no device can give back: who its members are, and its
// certificate. Who reads the file can pose as the server, and learns no name and no face.
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

// Serve starts the server of a fleet, which keeps its files in folder. Close it after use.
func Serve(folder string, set ServerSettings) (s *Server, err error) {
	s = &Server{folder: folder, set: set}
	s.books, err = readBooks(booksOf(folder))
	fresh := errors.Is(err, fs.ErrNotExist)
	if fresh {
		s.Local = newSeed(nkeys.CreateUser)
		s.Cert, s.Key, err = certificate()
	}
	if err != nil {
		return nil, err
	}
	_, port, err := address(set.Listen)
	if err != nil {
		return nil, err
	}
	if len(set.URLs) > 0 {
		s.URLs = set.URLs
	} else if len(s.URLs) == 0 {
		name, err := os.Hostname()
		if err != nil {
			return nil, fmt.Errorf("the name of this machine: %w; use --url", err)
		}
		s.URLs = []string{fmt.Sprintf("tls://%s:%d", name, port)}
	}
	if err = s.save(); err == nil && fresh {
		var i Invitation
		i, err = s.invite("first", true)
		s.First = &i
	}
	if err == nil {
		err = s.start()
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// start starts NATS.
func (s *Server) start() error {
	o, err := s.options(s.set)
	if err != nil {
		return err
	}
	n, err := server.NewServer(o)
	if err != nil {
		return fmt.Errorf("starting the server: %w", err)
	}
	s.mu.Lock()
	s.nats = n
	s.mu.Unlock()
	n.Start()
	if !n.ReadyForConnections(time.Minute) {
		err = fmt.Errorf("the server does not start: is another one running at %s, or the disk full?", s.set.Listen)
	} else {
		err = s.begin(n)
	}
	if err != nil {
		s.Close()
	}
	return err
}

// Run serves until ctx ends. NATS takes nothing any more once it could not write: when there is room
// again, it is started anew. Tell gets a sentence for people.
func (s *Server) Run(ctx context.Context, tell func(string)) {
	for full := false; backoff.Wait(ctx, 2*time.Second); {
		if health := s.nats.Healthz(nil); !full && health.Error != "" {
			full = true
			tell("nothing can be stored; the devices wait until there is room on the disk: " + health.Error)
			s.Close()
		}
		if !full {
			continue
		}
		room := filepath.Join(s.folder, "room")
		err := errors.Join(os.WriteFile(room, make([]byte, 1<<20), 0o600), os.Remove(room))
		if err == nil && s.start() == nil {
			full = false
			tell("there is room again: the server goes on")
		}
	}
}

// options returns the settings of NATS.
func (s *Server) options(set ServerSettings) (*server.Options, error) {
	key, err := x509.ParsePKCS8PrivateKey(s.Key)
	if err != nil {
		return nil, err
	}
	pair := tls.Certificate{Certificate: [][]byte{s.Cert}, PrivateKey: key}
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

// begin opens the bucket, and answers requests.
func (s *Server) begin(n *server.Server) error {
	local, err := nkeys.FromSeed([]byte(s.Local))
	if err != nil {
		return err
	}
	s.nc, err = nats.Connect("", nats.InProcessServer(n), nats.Nkey(public(s.Local), local.Sign),
		nats.MaxReconnects(-1))
	if err != nil {
		return err
	}
	js, err := jetstream.New(s.nc)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := openBucket(ctx, js, 1); err != nil {
		return err
	}
	for _, of := range []struct {
		subject string
		answer  func(by string, r request) (any, error)
	}{{"fleet.join.", s.joins}, {"fleet.admin.", s.admin}, {"fleet.members.", s.list}} {
		_, err := s.nc.Subscribe(of.subject+"*", func(m *nats.Msg) {
			// NATS lets a device publish only at the subject that ends with its own key.
			m.Respond(encode(answerTo(m.Data, m.Subject[len(of.subject):], of.answer)))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Close ends the server.
func (s *Server) Close() {
	if s.nc != nil {
		s.nc.Close()
	}
	s.nats.Shutdown()
	s.nats.WaitForShutdown()
}

// openBucket makes the bucket if there is none: a JetStream key-value bucket of one value for each
// key. Its sequence numbers begin with the time, so those of a later bucket, after the first was
// lost, are never those of an earlier one.
func openBucket(ctx context.Context, js jetstream.JetStream, copies int) error {
	_, err := js.Stream(ctx, stream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		_, err = js.CreateStream(ctx, jetstream.StreamConfig{
			Name: stream, Subjects: []string{place + ">"}, MaxMsgsPerSubject: 1, MaxMsgSize: 1 << 20,
			Discard: jetstream.DiscardNew, DenyDelete: true, DenyPurge: true, AllowDirect: true,
			Storage: jetstream.FileStorage, Replicas: copies, Duplicates: 100 * time.Millisecond,
			FirstSeq: uint64(time.Now().UnixMilli()), MaxBytes: 4 << 30,
		})
	}
	if err != nil {
		return fmt.Errorf("opening the bucket of the fleet: %w", err)
	}
	return nil
}

func answerTo(data []byte, by string, do func(by string, r request) (any, error)) reply {
	var r request
	var result any
	err := decoding.Unmarshal(data, &r)
	if err == nil {
		result, err = do(by, r)
	}
	if err != nil {
		return reply{Error: err.Error()}
	}
	return reply{Result: encode(result)}
}

var _ server.Authentication = (*Server)(nil)

// Check lets members and invitations in, by the signature of their key.
func (s *Server) Check(c server.ClientAuthentication) bool {
	o := c.GetOpts()
	sig, err := base64.RawURLEncoding.DecodeString(o.Sig)
	if err != nil {
		return false
	}
	key, err := nkeys.FromPublicKey(o.Nkey)
	if err != nil || key.Verify(c.GetNonce(), sig) != nil {
		return false
	}
	if o.Nkey == public(s.Local) {
		c.RegisterUser(&server.User{Username: o.Nkey})
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.Members, func(m *Member) bool {
		return m.Key == o.Nkey || m.Invited == o.Nkey && time.Now().Before(m.Until)
	})
	if i < 0 {
		return false
	}
	m := s.Members[i]
	may := []string{"fleet.join." + o.Nkey}
	if m.Key == o.Nkey {
		m.Seen = time.Now()
		may = []string{
			place + ">", "fleet.members." + o.Nkey, "$JS.API.STREAM.INFO." + stream,
			"$JS.API.STREAM.MSG.GET." + stream, "$JS.API.DIRECT.GET." + stream + ".>",
			"$JS.API.CONSUMER.CREATE." + stream + ".>", "$JS.API.CONSUMER.MSG.NEXT." + stream + ".>",
			"$JS.API.CONSUMER.INFO." + stream + ".>", "$JS.API.CONSUMER.DELETE." + stream + ".>",
		}
		if m.Admin {
			may = append(may, "fleet.admin."+o.Nkey)
		}
	}
	inbox := []string{"_INBOX_" + o.Nkey + ".>"}
	c.RegisterUser(&server.User{Username: o.Nkey, Permissions: &server.Permissions{
		Publish: &server.SubjectPermission{Allow: may}, Subscribe: &server.SubjectPermission{Allow: inbox},
	}})
	return true
}

// invite makes an invitation, without the keys of the fleet, which the server does not have.
func (s *Server) invite(name string, admin bool) (i Invitation, err error) {
	taken := slices.ContainsFunc(s.Members, func(m *Member) bool { return m.Name == name && m.Key != "" })
	if len(name) == 0 || len(name) > 64 || taken {
		return i, fmt.Errorf("%q cannot be the name of a further device: it needs 1 to 64 bytes that no other one "+
			"has", name)
	}
	pin := sha256.Sum256(s.Cert)
	i = Invitation{Name: name, URLs: s.URLs, Seed: newSeed(nkeys.CreateUser), Pin: pin[:]}
	s.Members = slices.DeleteFunc(s.Members, func(m *Member) bool {
		return m.Name == name || m.Key == "" && time.Now().After(m.Until)
	})
	s.Members = append(s.Members, &Member{Name: name, Admin: admin, Invited: public(i.Seed),
		Until: time.Now().Add(invitedFor)})
	return i, s.save()
}

func (s *Server) joins(by string, r request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.Members {
		if m.Invited != by || !nkeys.IsValidPublicUserKey(r.Key) {
			continue
		}
		if m.Key != "" && m.Key != r.Key {
			return nil, errors.New("another device has used this invitation; if you do not know it, revoke it")
		}
		m.Key = r.Key
		return nil, s.save()
	}
	return nil, errors.New("the invitation is too old")
}

func (s *Server) admin(by string, r request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.ContainsFunc(s.Members, func(m *Member) bool { return m.Key == by && m.Admin }) {
		return nil, errNoAdmin
	}
	switch r.What {
	case "invite":
		return s.invite(r.Name, r.Admin)
	case "revoke":
		i := slices.IndexFunc(s.Members, func(m *Member) bool { return m.Name == r.Name })
		if i < 0 {
			return nil, fmt.Errorf("no device has the name %q", r.Name)
		}
		gone := *s.Members[i]
		s.Members = slices.Delete(s.Members, i, i+1)
		if err := s.save(); err != nil {
			return nil, err
		}
		here, err := s.connected()
		for _, id := range append(here[gone.Key], here[gone.Invited]...) {
			s.nats.DisconnectClientByID(id) // an error: it is gone already
		}
		return gone, err
	}
	return nil, errors.New("that is for a newer server")
}

// connected returns the numbers of the connections of each device.
func (s *Server) connected() (map[string][]uint64, error) {
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

func (s *Server) list(string, request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	here, err := s.connected()
	if err != nil {
		return nil, err
	}
	var all []Member
	for _, m := range s.Members {
		of := *m
		of.Online = len(here[m.Key]) > 0
		all = append(all, of)
	}
	return all, nil
}

// certificate makes the certificate of a server, for ever: devices know it by its hash.
func certificate() (cert, key []byte, err error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "faceauth fleet"},
		NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<33, 0)}
	if cert, err = x509.CreateCertificate(rand.Reader, template, template, public, private); err == nil {
		key, err = x509.MarshalPKCS8PrivateKey(private)
	}
	return cert, key, err
}
