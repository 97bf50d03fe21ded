// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/faceauth/faceauth/gallery"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"
)

// introduction is what a member tells the others, sealed, so that no server can invent a member. One
// without a key to seal for is of a device that was revoked.
type introduction struct {
	Name  string `cbor:"1,keyasint"`
	Box   string `cbor:"2,keyasint"`
	Admin bool   `cbor:"3,keyasint,omitempty"`
}

// renewal is the value of keyName: a ring for each member, sealed by the administrators' key.
type renewal struct {
	For map[string][]byte `cbor:"1,keyasint"`
}

// get returns the value of a key of the bucket, or nil if there is none.
func get(ctx context.Context, s jetstream.Stream, name string) ([]byte, error) {
	m, err := s.GetLastMsgForSubject(ctx, place+name)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading from the fleet: %w", err)
	}
	return m.Data, nil
}

// introduce tells the others who this device is, unless they know.
func (m membership) introduce(ctx context.Context, js jetstream.JetStream, s jetstream.Stream) error {
	name := memberPrefix + public(m.Seed)
	mine := encode(introduction{m.Name, public(m.Box), m.AdminBox != ""})
	there, err := get(ctx, s, name)
	if err != nil {
		return err
	}
	if b, key, err := m.Keys.open(name, there); err == nil && string(b) == string(mine) && key == m.Keys.now() {
		return nil
	}
	_, err = js.Publish(ctx, place+name, m.Keys.seal(name, mine))
	return err
}

// introduced returns the introductions of all members by their keys, with the numbers of the keys
// that sealed them in their place.
func (m membership) introduced(ctx context.Context, s jetstream.Stream) (map[string]introduction, error) {
	all := make(map[string]introduction)
	info, err := s.Info(ctx, jetstream.WithSubjectFilter(place+memberPrefix+"*"))
	if err != nil {
		return nil, err
	}
	for subject := range info.State.Subjects {
		name := strings.TrimPrefix(subject, place)
		sealed, err := get(ctx, s, name)
		if err != nil {
			return nil, err
		}
		var i introduction
		b, _, err := m.Keys.open(name, sealed)
		if err == nil && decoding.Unmarshal(b, &i) == nil && i.Box != "" {
			all[strings.TrimPrefix(name, memberPrefix)] = i
		}
	}
	return all, nil
}

// publishKeys seals the keys of the fleet for all members, and their introductions with the present
// key, so that who is away is known when the old key is gone. Signer is the administrators' key that
// the members know; without all, they are those that the server has.
func (m membership) publishKeys(ctx context.Context, js jetstream.JetStream, s jetstream.Stream, signer string,
	all map[string]introduction) error {
	box, err := nkeys.FromCurveSeed([]byte(signer))
	if err == nil && all == nil {
		all, err = m.introduced(ctx, s)
	}
	if err != nil {
		return err
	}
	all[public(m.Seed)] = introduction{m.Name, public(m.Box), true}
	r := renewal{For: make(map[string][]byte)}
	for id, i := range all {
		in := m.ring
		if !i.Admin {
			in.AdminBox = ""
		}
		if r.For[id], err = box.Seal(encode(in), i.Box); err != nil {
			return err
		}
		name := memberPrefix + id
		if _, err := js.Publish(ctx, place+name, m.Keys.seal(name, encode(i))); err != nil {
			return err
		}
	}
	_, err = js.Publish(ctx, place+keyName, encode(r))
	return err
}

// renew makes a new key, of which a revoked member, by its name or its key, learns nothing. If it was
// an administrator, the administrators' key is new, too.
func renew(ctx context.Context, gallery string, m membership, name, key string) error {
	nc, js, s, err := m.stream(ctx)
	if err != nil {
		return err
	}
	defer nc.Close()
	if m, _, err = m.renewed(ctx, s); err != nil { // another administrator may have made a key
		return err
	}
	all, err := m.introduced(ctx, s)
	if err != nil {
		return err
	}
	signer, found := m.AdminBox, key != ""
	m.Keys.add()
	for id, i := range all {
		if id != key && (name == "" || i.Name != name) {
			continue
		}
		found = true
		delete(all, id)
		of := memberPrefix + id
		if _, err := js.Publish(ctx, place+of, m.Keys.seal(of, encode(introduction{Name: i.Name}))); err != nil {
			return err
		}
		if i.Admin {
			m.AdminBox = newSeed(nkeys.CreateCurveKeys)
			m.Admin = public(m.AdminBox)
		}
	}
	if name != "" && !found {
		return fmt.Errorf("no device has the name %q", name)
	}
	if err := m.publishKeys(ctx, js, s, signer, all); err != nil {
		return err
	}
	return m.save(gallery) // after a crash before it, the next session takes them from the server
}

// renewed returns the membership with the newest keys that an administrator has sealed for it. Old
// says that the server has none or older ones: it is a new one or an old copy.
func (m membership) renewed(ctx context.Context, s jetstream.Stream) (_ membership, old bool, err error) {
	sealed, err := get(ctx, s, keyName)
	if err != nil || sealed == nil {
		return m, true, err
	}
	var r renewal
	box, err := nkeys.FromCurveSeed([]byte(m.Box))
	if err != nil || decoding.Unmarshal(sealed, &r) != nil {
		return m, false, err // of a newer program
	}
	b, err := box.Open(r.For[public(m.Seed)], m.Admin)
	var in ring
	if err != nil || decoding.Unmarshal(b, &in) != nil || in.check() != nil {
		return m, err != nil && m.AdminBox != "", nil // nothing for this device
	}
	if in.Keys.now() > m.Keys.now() || in.Keys.now() == m.Keys.now() && len(in.Keys) < len(m.Keys) {
		m.ring = in
	}
	return m, in.Keys.now() < m.Keys.now(), nil
}

// retire has all values sealed with the present key, and drops the old ones when that is done. It
// reports whether something is left to do.
func (d *Device) retire(ctx context.Context, js jetstream.JetStream, s jetstream.Stream) (left bool, err error) {
	now := d.m.Keys.now()
	err = d.rows.Change(func(t *gallery.Tx) error {
		old, err := t.Int("select count(*) from shared where key < ? and rev > 0", int64(now))
		left = old > 0
		if err != nil || !left {
			return err
		}
		return t.Exec("update shared set sent = 0 where key < ? and rev > 0", int64(now))
	})
	if err != nil || left || len(d.m.Keys) == 1 {
		return left, err
	}
	all, err := d.m.introduced(ctx, s)
	if err != nil {
		return true, err
	}
	d.m.Keys = Keys{now: d.m.Keys[now]}
	if err := d.m.save(d.path); err != nil {
		return true, err
	}
	return false, d.m.publishKeys(ctx, js, s, d.m.AdminBox, all)
}
