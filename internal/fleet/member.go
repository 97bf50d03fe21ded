// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/faceauth/faceauth/internal/fleet/protocol"
	"github.com/faceauth/faceauth/internal/gallery"
	"github.com/faceauth/faceauth/internal/safefile"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
)

// ErrNotMember is wrapped by the errors of a device that has not joined a fleet.
var ErrNotMember = errors.New("this device has not joined a fleet")

// Membership is what a device needs to take part. One device gets it once, as an invitation; then
// it has keys of its own, in a file beside the gallery that only the owner can read.
type Membership struct {
	protocol.Invitation
	Ring ring `cbor:"5,keyasint"` // no keys: the first device makes them
	// key with which others seal for it; none: an invitation
	Box string `cbor:"6,keyasint,omitempty"`
	rev uint64 // number of the write of the fleet's keys that it has read
}

// ring are the keys of a fleet, as an administrator seals them for a member.
type ring struct {
	Keys  Keys   `cbor:"1,keyasint"`
	Admin string `cbor:"2,keyasint"` // public part of the administrators' key
	// AdminBox is that key: its owner invites, revokes, and makes new keys. Was is the one before.
	AdminBox string   `cbor:"3,keyasint,omitempty"`
	Was      string   `cbor:"4,keyasint,omitempty"`
	Revoked  []string `cbor:"5,keyasint,omitempty"` // keys of devices and invitations
}

// of returns what a member gets of the keys.
func (r ring) of(admin bool) ring {
	if !admin {
		r.AdminBox, r.Was, r.Revoked = "", "", nil
	}
	return r
}

// replace makes another key of the administrators.
func (r *ring) replace() {
	r.Was, r.AdminBox = r.AdminBox, protocol.NewSeed(nkeys.CreateCurveKeys)
	r.Admin = protocol.Public(r.AdminBox)
}

// foreign reports whether the server is a cluster of somebody who makes its users.
func (m Membership) foreign() bool { return len(m.Pin) == 0 }

func (m Membership) String() string { return protocol.Text(m) }

// ParseInvitation reads the text of an invitation.
func ParseInvitation(s string) (m Membership, err error) {
	err = protocol.ParseText(s, &m)
	if err == nil && (m.Name == "" || !m.Ring.Keys.sane()) {
		err = protocol.ErrNotWhole
	}
	return m, err
}

// membershipFile returns the path of the membership of the device with a gallery.
func membershipFile(gallery string) string { return gallery + "-fleet" }

func readMembership(gallery string) (m Membership, err error) {
	b, err := safefile.ReadSecret(membershipFile(gallery))
	if errors.Is(err, fs.ErrNotExist) {
		return m, fmt.Errorf("%w; faceauth fleet join makes it a member", ErrNotMember)
	}
	if err == nil {
		m, err = ParseInvitation(string(b))
	}
	if err == nil && len(m.Ring.Keys) == 0 {
		err = errors.New("there is no key of the fleet")
	}
	if err != nil {
		err = fmt.Errorf("reading %s: %w; join again with a new invitation",
			membershipFile(gallery), err)
	}
	return m, err
}

func (m Membership) save(gallery string) error {
	return safefile.Write(membershipFile(gallery), []byte(m.String()))
}

// dial connects to the server.
func (m Membership) dial(more ...nats.Option) (*nats.Conn, error) {
	o := append([]nats.Option{nats.NoReconnect(), nats.Timeout(10 * time.Second), nats.Name(m.Name),
		// or NATS prints them; who asked has them
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}),
	}, more...)
	if !m.foreign() {
		key, err := nkeys.FromSeed([]byte(m.Seed))
		if err != nil {
			return nil, err
		}
		pinned := &tls.Config{
			// the pin says whose certificate it must be
			MinVersion: tls.VersionTLS13, InsecureSkipVerify: true,
			VerifyConnection: func(s tls.ConnectionState) error {
				if !ed25519.PublicKey(m.Pin).Equal(s.PeerCertificates[0].PublicKey) {
					return errors.New("this is another server than that of the invitation")
				}
				return nil
			},
		}
		o = append(o, nats.Nkey(protocol.Public(m.Seed), key.Sign),
			nats.CustomInboxPrefix("_INBOX_"+protocol.Public(m.Seed)), nats.Secure(pinned))
	}
	nc, err := nats.Connect(strings.Join(m.URLs, ","), o...)
	switch {
	case errors.Is(err, nats.ErrAuthorization):
		err = fmt.Errorf(
			"this device was revoked, or invited too long ago, or the server is an old copy: %w",
			err)
	case err != nil:
		err = fmt.Errorf("connecting to the server of the fleet: %w", err)
	}
	return nc, err
}

// Join makes the device with a gallery a member, by an invitation. If the answer of the server got
// lost, the same one works once more. If it works, it replaces the membership of another fleet. At
// a cluster of others the URLs must be added to the invitation, with the user of this device; the
// invitation of the first one has its name alone.
func Join(ctx context.Context, gallery string, i Membership) error {
	m := i
	m.Seed, m.Box = protocol.NewSeed(nkeys.CreateUser), protocol.NewSeed(nkeys.CreateCurveKeys)
	old, none := readMembership(gallery)
	// An interrupted join goes on. Who was revoked, and is invited again, needs other keys.
	if none == nil && old.Name == m.Name && string(old.Pin) == string(m.Pin) &&
		old.Ring.Keys.now() >= m.Ring.Keys.now() {
		m.Seed, m.Box, m.Ring = old.Seed, old.Box, old.Ring
	}
	if len(m.Ring.Keys) == 0 {
		m.Ring.Keys = Keys{}
		m.Ring.Keys.add()
		m.Ring.replace()
	}
	if err := m.save(gallery); err != nil {
		return err
	}
	_, err := i.ask(protocol.Request{What: "join", Keys: []string{protocol.Public(m.Seed)}})
	if err == nil && m.foreign() {
		var b *bucket
		b, err = m.open(ctx)
		if err == nil {
			b.nc.Close()
		}
	}
	if err != nil && none == nil {
		err = errors.Join(err, old.save(gallery))
	}
	return err
}

// ask sends a request to the server, at the subject that only this device may use. A cluster of
// others knows its users itself: nobody is asked there, and the reply is empty.
func (m Membership) ask(r protocol.Request) (out protocol.Reply, err error) {
	if m.foreign() {
		return out, nil
	}
	nc, err := m.dial()
	if err != nil {
		return out, err
	}
	defer nc.Close()
	answer, err := nc.Request(protocol.Asking+protocol.Public(m.Seed), protocol.Encode(r),
		10*time.Second)
	if err == nil {
		err = protocol.Decode(answer.Data, &out)
	}
	if err != nil {
		return out, fmt.Errorf("asking the server: %w", err)
	}
	if out.Error != "" {
		err = errors.New(out.Error)
	}
	return out, err
}

// administrator reads the membership of an administrator.
func administrator(gallery string) (Membership, error) {
	m, err := readMembership(gallery)
	if err == nil && m.Ring.AdminBox == "" {
		err = protocol.ErrNoAdmin
	}
	return m, err
}

// Invite makes an invitation for a device. At a cluster of others it has no URLs, since those have
// users, and any number of devices could use it.
func Invite(gallery, name string, admin bool) (Membership, error) {
	m, err := administrator(gallery)
	if err != nil {
		return m, err
	}
	out, err := m.ask(protocol.Request{What: "invite", Name: name, Admin: admin})
	i := Membership{Invitation: out.Invitation, Ring: m.Ring.of(admin)}
	i.Name = name
	return i, err
}

// Standing is what a device knows of its fleet.
type Standing struct {
	Devices []protocol.Member `json:"devices"` // none at a cluster of others
	// people with changes that the server does not have yet
	Waiting int64 `json:"waiting"`
}

// Stand asks how the fleet of a device stands.
func Stand(path string) (s Standing, err error) {
	m, err := readMembership(path)
	if err != nil {
		return s, err
	}
	out, err := m.ask(protocol.Request{What: "members"})
	if err != nil {
		return s, err
	}
	rows, _, err := gallery.OpenRows(path)
	if err != nil {
		return s, err
	}
	s.Devices = out.Members
	s.Waiting, err = rows.Int(
		"select (select count(*) from shared where not sent) + (select count(*) from touched)")
	return s, errors.Join(err, rows.Close())
}
