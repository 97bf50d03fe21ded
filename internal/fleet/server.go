// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"slices"
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
	Seen    time.Time `json:"seen,omitzero"` // when it went, since the server runs
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
	set    ServerSettings
	own    string // password of its own connection
	o      *server.Options
	nats   *server.Server
	books
}

// Books is the name of the file of [Copy].
const Books = "server.json"

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

// save writes the members, and has NATS let them in, and nobody else.
func (s *host) save() error {
	err := s.books.write(filepath.Join(s.folder, Books))
	s.o.Nkeys = s.users()
	if err != nil || s.nats == nil {
		return err
	}
	return s.nats.ReloadOptions(s.o.Clone())
}

// Copy copies what of a server no device can give back: who its members are, and its key. From and to are its file
// [Books] in the folder of a server, or a backup of it. Who reads it can pose as the server, and learns no name and no
// face. To the server of a backup the devices give the people when they connect.
func Copy(from, to string) error {
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
func Serve(ctx context.Context, folder string, set ServerSettings, ready func(first string)) error {
	s := &host{folder: folder, set: set, own: rand.Text()}
	files := filepath.Join(folder, server.JetStreamStoreDir)
	if err := os.MkdirAll(files, 0o700); err != nil {
		return err
	}
	unlock, err := safefile.LockFolder(files)
	if err != nil {
		return fmt.Errorf("the server's files in %s: %w", files, err)
	}
	defer unlock()
	s.books, err = readBooks(filepath.Join(folder, Books))
	if errors.Is(err, fs.ErrNotExist) {
		_, s.Key, err = ed25519.GenerateKey(rand.Reader)
	}
	if err != nil {
		return err
	}
	s.o, err = s.options()
	if err != nil {
		return err
	}
	if len(s.set.URLs) == 0 {
		name, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("the name of this machine: %w; use --url", err)
		}
		s.set.URLs = []string{fmt.Sprintf("tls://%s:%d", name, s.o.Port)}
	}
	var first string
	if slices.ContainsFunc(s.Members, func(m Member) bool { return m.Key != "" }) {
		err = s.save()
	} else {
		var i Membership
		i, err = s.invite("first", true)
		first = i.String()
	}
	if err != nil {
		return err
	}
	s.nats, err = server.NewServer(s.o.Clone())
	if err != nil {
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

const serverName = "faceauth"

// options returns the settings of NATS.
func (s *host) options() (*server.Options, error) {
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "faceauth fleet"},
		NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<33, 0)}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, s.Key.Public(), s.Key)
	if err != nil {
		return nil, err
	}
	pair := tls.Certificate{Certificate: [][]byte{cert}, PrivateKey: s.Key}
	o := &server.Options{
		ServerName: serverName, NoSigs: true, NoLog: true, AlwaysEnableNonce: true, WriteDeadline: patience,
		Users:     []*server.User{{Username: serverName, Password: s.own}},
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13},
		JetStream: true, StoreDir: s.folder, JetStreamMaxMemory: 64 << 20, JetStreamMaxStore: 1 << 50,
		TLSTimeout: 10, PingInterval: 30 * time.Second, MaxPayload: 1 << 20, DisableJetStreamBanner: true,
		SyncAlways: true, // an acknowledged value is on the disk even if the power fails
	}
	addresses := fmt.Sprintf("listen: %q\n", s.set.Listen)
	if s.set.Monitor != "" {
		addresses += fmt.Sprintf("http: %q\n", s.set.Monitor)
	}
	return o, o.ProcessConfigString(addresses)
}

// asking is the subject of requests. The key of the device that asks ends it: NATS lets no other device
// publish there.
const asking = "fleet."

// answers opens the bucket, and answers requests.
func (s *host) answers(ctx context.Context) (*nats.Conn, error) {
	nc, err := nats.Connect("", nats.InProcessServer(s.nats), nats.UserInfo(serverName, s.own), nats.MaxReconnects(-1))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	_, err = openBucket(ctx, nc, 1)
	if err == nil {
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

// users returns who may connect, and what each may do there.
func (s *host) users() (all []*server.NkeyUser) {
	add := func(key string, may ...string) {
		all = append(all, &server.NkeyUser{Nkey: key, Permissions: &server.Permissions{
			Publish:   &server.SubjectPermission{Allow: append(may, asking+key)},
			Subscribe: &server.SubjectPermission{Allow: []string{"_INBOX_" + key + ".>"}},
		}})
	}
	for _, m := range s.Members {
		add(m.Invited)
		if m.Key == "" {
			continue
		}
		values := place + "*" // of people
		if m.Admin {
			values = place + ">"
		}
		add(m.Key, values, place+herePrefix+m.Key, "$JS.API.STREAM.INFO."+stream, "$JS.API.STREAM.MSG.GET."+stream,
			"$JS.API.DIRECT.GET."+stream+".>", "$JS.API.CONSUMER.*."+stream+".>",
			"$JS.API.CONSUMER.MSG.NEXT."+stream+".>")
	}
	return all
}

// invite makes an invitation, without the keys of the fleet, which the server does not have.
func (s *host) invite(name string, admin bool) (i Membership, err error) {
	if err := face.CheckName(name); err != nil {
		return i, err
	}
	if slices.ContainsFunc(s.Members, func(m Member) bool { return m.Name == name && m.Key != "" }) {
		return i, fmt.Errorf("another device has the name %q", name)
	}
	i = Membership{Name: name, URLs: s.set.URLs, Seed: newSeed(nkeys.CreateUser), Pin: s.Key.Public().(ed25519.PublicKey)}
	s.Members = slices.DeleteFunc(s.Members, func(m Member) bool {
		return m.Name == name || m.Key == "" && time.Now().After(m.Until)
	})
	s.Members = append(s.Members, Member{Name: name, Admin: admin, Invited: public(i.Seed),
		Until: time.Now().Add(time.Hour)})
	return i, s.save()
}

// answer does what the device with a key asks for.
func (s *host) answer(by string, r request) (out reply, err error) {
	member := slices.IndexFunc(s.Members, func(m Member) bool { return m.Key == by })
	invited := slices.IndexFunc(s.Members, func(m Member) bool {
		return m.Invited == by && (m.Key != "" || time.Now().Before(m.Until))
	})
	switch {
	case member < 0 && (invited < 0 || r.What != "join" || len(r.Keys) != 1 ||
		!nkeys.IsValidPublicUserKey(r.Keys[0])):
		err = errors.New("the invitation is too old")
	case member < 0:
		m := &s.Members[invited]
		if m.Key != "" && m.Key != r.Keys[0] {
			return out, errors.New("another device has used this invitation; if you do not know it, revoke it")
		}
		m.Key = r.Keys[0]
		err = s.save()
	case r.What == "members":
		out.Members, err = s.list()
	case !s.Members[member].Admin:
		err = errNoAdmin
	case r.What == "invite":
		out.Invitation, err = s.invite(r.Name, r.Admin)
	case r.What == "revoke":
		out.Members, err = s.revoke(r.Name, r.Keys)
	default:
		err = errors.New("that is for a newer server")
	}
	return out, err
}

// revoke removes a device or invitation by its name, and others by their keys. Their connections end.
func (s *host) revoke(name string, keys []string) (gone []Member, err error) {
	s.Members = slices.DeleteFunc(s.Members, func(m Member) bool {
		found := m.Name == name || slices.Contains(keys, cmp.Or(m.Key, m.Invited))
		if found {
			gone = append(gone, m)
		}
		return found
	})
	if len(gone) == 0 { // NATS refuses who connects while it reads its users anew
		return nil, nil
	}
	return gone, s.save()
}

// list returns the members with who is connected, and when the others were.
func (s *host) list() ([]Member, error) {
	c, err := s.nats.Connz(&server.ConnzOptions{Username: true, State: server.ConnAll, Limit: 100000})
	if err != nil {
		return nil, err
	}
	all := slices.Clone(s.Members)
	for _, of := range c.Conns {
		i := slices.IndexFunc(all, func(m Member) bool { return m.Key == of.AuthorizedUser })
		switch {
		case i < 0:
		case of.Stop == nil:
			all[i].Online = true
		case of.Stop.After(all[i].Seen):
			all[i].Seen = *of.Stop
		}
	}
	return all, nil
}
