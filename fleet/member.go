// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"strings"
	"time"

	"github.com/faceauth/faceauth/internal/safefile"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"
	"golang.org/x/crypto/chacha20poly1305"
)

// ErrNotMember is wrapped by the errors of a device that has not joined a fleet.
var ErrNotMember = errors.New("this device has not joined a fleet")

var errNoAdmin = errors.New("this device is no administrator of the fleet; do it on the first device, or on one " +
	"that was invited with --administrator")

// membership is what a device needs to take part: a file that only its owner can read, beside the
// gallery.
type membership struct {
	Name  string   `json:"name"`
	URLs  []string `json:"urls"`
	Pin   []byte   `json:"pin,omitempty"`   // SHA-256 of the server's certificate; none: of an authority
	Creds string   `json:"creds,omitempty"` // file of the user of a cluster
	Seed  string   `json:"seed"`            // key with which the device connects
	Box   string   `json:"box"`             // key with which others seal for it
	ring
}

// ring are the keys of a fleet, as an administrator seals them for a member.
type ring struct {
	Keys  Keys   `cbor:"1,keyasint" json:"keys"`
	Admin string `cbor:"2,keyasint" json:"admin"` // public part of the administrators' key
	// AdminBox is that key: its owner invites, revokes, and makes new keys.
	AdminBox string `cbor:"3,keyasint,omitempty" json:"admin_box,omitempty"`
}

// check returns an error if no value could be sealed with the keys.
func (r ring) check() error {
	for _, k := range r.Keys {
		if len(k) != chacha20poly1305.KeySize {
			return errors.New("a key of the fleet has another length")
		}
	}
	if len(r.Keys) == 0 {
		return errors.New("there is no key of the fleet")
	}
	return nil
}

func newRing() ring {
	r := ring{Keys: Keys{}, AdminBox: newSeed(nkeys.CreateCurveKeys)}
	r.Keys.add()
	r.Admin = public(r.AdminBox)
	return r
}

// foreign reports whether the server is a cluster of somebody who makes its users.
func (m membership) foreign() bool { return len(m.Pin) == 0 }

// Invitation is what one device needs to become a member, once.
type Invitation struct {
	Name string   `cbor:"1,keyasint"` // of the device
	URLs []string `cbor:"2,keyasint"` // of the server
	Pin  []byte   `cbor:"3,keyasint,omitempty"`
	Seed string   `cbor:"4,keyasint,omitempty"`
	Ring ring     `cbor:"5,keyasint"` // no keys: the first device makes them
}

const invitationHead = "faceauth-fleet-1-"

func (i Invitation) String() string {
	return invitationHead + base64.RawURLEncoding.EncodeToString(encode(i))
}

// ParseInvitation reads the text of an invitation.
func ParseInvitation(s string) (i Invitation, err error) {
	text, ok := strings.CutPrefix(strings.TrimSpace(s), invitationHead)
	b, err := base64.RawURLEncoding.DecodeString(text)
	if !ok || err != nil || decoding.Unmarshal(b, &i) != nil || len(i.URLs) == 0 || i.Name == "" {
		return i, errors.New("that is not a whole invitation; copy all of the line that fleet invite has printed")
	}
	if len(i.Ring.Keys) > 0 {
		err = i.Ring.check()
	}
	return i, err
}

// membershipFile returns the path of the membership of the device with a gallery.
func membershipFile(gallery string) string { return gallery + "-fleet" }

func readMembership(gallery string) (m membership, err error) {
	b, err := safefile.ReadSecret(membershipFile(gallery))
	if errors.Is(err, fs.ErrNotExist) {
		return m, fmt.Errorf("%w; faceauth fleet join makes it a member", ErrNotMember)
	}
	if err == nil {
		err = json.Unmarshal(b, &m)
	}
	if err == nil {
		err = m.ring.check()
	}
	if err != nil {
		err = fmt.Errorf("reading %s: %w; join again with a new invitation", membershipFile(gallery), err)
	}
	return m, err
}

func (m *membership) save(gallery string) error {
	b, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	return safefile.Write(membershipFile(gallery), b)
}

// public returns the public part of a key, or "" if it is none.
func public(seed string) string {
	key, err := nkeys.FromSeed([]byte(seed))
	if err != nil {
		return ""
	}
	p, _ := key.PublicKey() // a key that was read has one
	return p
}

func newSeed(make func() (nkeys.KeyPair, error)) string {
	key, err := make()
	if err != nil {
		panic("fleet: " + err.Error()) // the system has no random numbers
	}
	seed, _ := key.Seed() // a key that was made has one
	return string(seed)
}

// dial connects to the server.
func (m membership) dial(more ...nats.Option) (*nats.Conn, error) {
	o := append([]nats.Option{nats.NoReconnect(), nats.Timeout(10 * time.Second), nats.Name(m.Name)}, more...)
	switch {
	case m.Creds != "":
		o = append(o, nats.UserCredentials(m.Creds))
	case !m.foreign():
		key, err := nkeys.FromSeed([]byte(m.Seed))
		if err != nil {
			return nil, err
		}
		o = append(o, nats.Nkey(public(m.Seed), key.Sign), nats.CustomInboxPrefix("_INBOX_"+public(m.Seed)))
	}
	if !m.foreign() {
		o = append(o, nats.Secure(&tls.Config{
			MinVersion: tls.VersionTLS13, InsecureSkipVerify: true, // the pin says which certificate it must be
			VerifyConnection: func(s tls.ConnectionState) error {
				sum := sha256.Sum256(s.PeerCertificates[0].Raw)
				if string(sum[:]) != string(m.Pin) {
					return errors.New("this is another server than that of the invitation")
				}
				return nil
			},
		}))
	}
	nc, err := nats.Connect(strings.Join(m.URLs, ","), o...)
	if err != nil {
		return nil, fmt.Errorf("connecting to the server of the fleet: %w", err)
	}
	return nc, nil
}

// stream connects to the server, and opens the bucket.
func (m membership) stream(ctx context.Context, more ...nats.Option) (*nats.Conn, jetstream.JetStream,
	jetstream.Stream, error) {
	nc, err := m.dial(more...)
	if err != nil {
		return nil, nil, nil, err
	}
	js, err := jetstream.New(nc, jetstream.WithPublishAsyncMaxPending(256))
	if err == nil {
		var s jetstream.Stream
		if s, err = js.Stream(ctx, stream); err == nil {
			return nc, js, s, nil
		}
		err = fmt.Errorf("opening the bucket of the fleet: %w", err)
	}
	nc.Close()
	return nil, nil, nil, err
}

// Join makes the device with a gallery a member. If the answer of the server got lost, the same
// invitation works once more. Creds is the file of this device's user at a cluster of others, whose
// invitations have no user. It replaces the membership of another fleet.
func Join(ctx context.Context, gallery string, i Invitation, creds string) error {
	m := membership{Name: i.Name, URLs: i.URLs, Pin: i.Pin, Creds: creds, ring: i.Ring,
		Seed: newSeed(nkeys.CreateUser), Box: newSeed(nkeys.CreateCurveKeys)}
	old, err := readMembership(gallery)
	if err == nil && old.Name == m.Name && string(old.Pin) == string(m.Pin) {
		m.Seed, m.Box = old.Seed, old.Box // an interrupted join goes on
		if len(i.Ring.Keys) == 0 {
			m.ring = old.ring
		}
	}
	if len(m.Keys) == 0 {
		m.ring = newRing()
	}
	if m.foreign() {
		if err := m.bucket(ctx); err != nil {
			return err
		}
		return m.save(gallery)
	}
	if err := m.save(gallery); err != nil {
		return err
	}
	by := membership{Name: i.Name, URLs: i.URLs, Pin: i.Pin, Seed: i.Seed}
	_, err = by.ask("join", request{Key: public(m.Seed)})
	return err
}

// bucket makes the bucket at a cluster of others, if there is none.
func (m membership) bucket(ctx context.Context) error {
	nc, err := m.dial()
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	if len(m.URLs) < 3 {
		return openBucket(ctx, js, 1)
	}
	return openBucket(ctx, js, 3)
}

type request struct {
	What  string `cbor:"1,keyasint,omitempty"`
	Name  string `cbor:"2,keyasint,omitempty"`
	Key   string `cbor:"3,keyasint,omitempty"`
	Admin bool   `cbor:"4,keyasint,omitempty"`
}

type reply struct {
	Error  string `cbor:"1,keyasint,omitempty"`
	Result []byte `cbor:"2,keyasint,omitempty"`
}

// ask sends a request to the server, at the subject that only this device may use.
func (m membership) ask(service string, r request) ([]byte, error) {
	nc, err := m.dial()
	if err != nil {
		return nil, err
	}
	defer nc.Close()
	answer, err := nc.Request("fleet."+service+"."+public(m.Seed), encode(r), 10*time.Second)
	var out reply
	if err == nil {
		err = decoding.Unmarshal(answer.Data, &out)
	}
	if err != nil {
		return nil, fmt.Errorf("asking the server: %w", err)
	}
	if out.Error != "" {
		return nil, errors.New(out.Error)
	}
	return out.Result, nil
}

// administrator reads the membership of an administrator.
func administrator(gallery string) (membership, error) {
	m, err := readMembership(gallery)
	if err == nil && m.AdminBox == "" {
		err = errNoAdmin
	}
	return m, err
}

// Invite makes an invitation for a device. At a cluster of others it has no user, and any number of
// devices could use it.
func Invite(gallery, name string, admin bool) (i Invitation, err error) {
	m, err := administrator(gallery)
	if err != nil {
		return i, err
	}
	if i = (Invitation{Name: name}); m.foreign() {
		for _, at := range m.URLs {
			if u, err := url.Parse(at); err == nil {
				u.User = nil // that of this device
				i.URLs = append(i.URLs, u.String())
			}
		}
	} else if out, err := m.ask("admin", request{What: "invite", Name: name, Admin: admin}); err != nil {
		return i, err
	} else if err := decoding.Unmarshal(out, &i); err != nil {
		return i, err
	}
	if i.Ring = m.ring; !admin {
		i.Ring.AdminBox = ""
	}
	return i, nil
}

// Revoke shuts a device out at once, and makes a new key for the others; the administrators' devices
// seal all values anew while they run. What the device has enrolled stays. At a cluster of others,
// remove its user first. Without a name it only makes a new key, after which nobody can read old
// copies of the server's values.
func Revoke(ctx context.Context, gallery, name string) error {
	m, err := administrator(gallery)
	if err != nil {
		return err
	}
	if name == m.Name {
		return errors.New("a device cannot revoke itself; do it on another administrator's device")
	}
	var gone Member
	if name != "" && !m.foreign() {
		out, err := m.ask("admin", request{What: "revoke", Name: name})
		if err == nil {
			err = decoding.Unmarshal(out, &gone)
		}
		if err != nil {
			return err
		}
	}
	return renew(ctx, gallery, m, name, gone.Key)
}

// Members lists the devices of the fleet of a device.
func Members(ctx context.Context, gallery string) (all []Member, err error) {
	m, err := readMembership(gallery)
	if err != nil {
		return nil, err
	}
	if !m.foreign() {
		out, err := m.ask("members", request{})
		if err == nil {
			err = decoding.Unmarshal(out, &all)
		}
		return all, err
	}
	nc, _, s, err := m.stream(ctx)
	if err != nil {
		return nil, err
	}
	defer nc.Close()
	known, err := m.introduced(ctx, s)
	for key, i := range known {
		all = append(all, Member{Name: i.Name, Key: key, Admin: i.Admin})
	}
	return all, err
}
