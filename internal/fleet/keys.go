// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/faceauth/faceauth/internal/fleet/protocol"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"
	"golang.org/x/crypto/chacha20poly1305"
)

// introduction is what a member tells the administrators, sealed, so that no server can invent a
// member.
type introduction struct {
	Name  string `cbor:"1,keyasint"`           // of the device
	Box   string `cbor:"2,keyasint"`           // others seal for it with this key
	Admin []byte `cbor:"3,keyasint,omitempty"` // that an administrator has vouched for it
}

// renewal is the value of keysName: the ring of members and that of administrators, each sealed
// with a key of its own, and that key sealed for each of them. As one value of 100 bytes for a
// member it is there whole or not at all.
type renewal struct {
	Number uint32   `cbor:"1,keyasint"` // of the newest key
	Rings  [][]byte `cbor:"2,keyasint"`
	// For has an entry for each member: a tag, and the key and the hash of its ring, sealed by the
	// administrators' key. There is another one by the key before, for who was away.
	For []byte `cbor:"3,keyasint"`
}

const (
	tagSize  = 8
	hashSize = 16 // a member that has the key of its ring can make no other ring with this hash
	openSize = chacha20poly1305.KeySize + hashSize
	// what nkeys adds: a version, a nonce, a tag
	entrySize = tagSize + len("xkv1") + 24 + 16 + openSize
)

func hash(b []byte, size int) []byte {
	h := sha256.Sum256(b)
	return h[:size]
}

// vouch returns what only an administrator can say of a member with its two keys, or nothing.
func (r ring) vouch(key, box string) []byte {
	if r.AdminBox == "" {
		return nil
	}
	h := hmac.New(sha256.New, []byte(r.AdminBox))
	h.Write([]byte(key + " " + box))
	return h.Sum(nil)
}

// introduction returns what this device says of itself.
func (m Membership) introduction() introduction {
	box := protocol.Public(m.Box)
	return introduction{m.Name, box, m.Ring.vouch(protocol.Public(m.Seed), box)}
}

// introduce writes what this device says of itself, unless it is there.
func (m Membership) introduce(ctx context.Context, b *bucket) error {
	at := protocol.Introductions + protocol.Public(m.Seed)
	there, err := b.get(ctx, at, 0)
	if err != nil {
		return err
	}
	var old introduction
	mine := m.introduction()
	if m.Ring.Keys.open(at, there.Data, &old) &&
		bytes.Equal(protocol.Encode(old), protocol.Encode(mine)) {
		return nil
	}
	return b.put(ctx, at, m.Ring.Keys.seal(at, mine))
}

// introduced returns the introductions of all members by their keys: those that an administrator
// has kept, and those of newcomers. An administrator learns who is one.
func (m Membership) introduced(ctx context.Context, b *bucket) (map[string]introduction, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	all := make(map[string]introduction)
	kept, err := b.get(ctx, protocol.Values+membersName, 0)
	if err != nil {
		return nil, err
	}
	m.Ring.Keys.open(membersName, kept.Data, &all) // otherwise there are none yet
	err = b.all(ctx, protocol.Introductions, func(key string, sealed []byte) {
		var i introduction
		_, known := all[key]
		if !known && m.Ring.Keys.open(protocol.Introductions+key, sealed, &i) {
			all[key] = i
		}
	})
	if err != nil {
		return nil, fmt.Errorf("reading who the members of the fleet are: %w", err)
	}
	for key, i := range all {
		if !hmac.Equal(i.Admin, m.Ring.vouch(key, i.Box)) {
			i.Admin = nil
		}
		all[key] = i
		if !nkeys.IsValidPublicCurveKey(i.Box) || slices.Contains(m.Ring.Revoked, key) {
			delete(all, key)
		}
	}
	return all, nil
}

// renewal seals the keys of the fleet for members.
func (m Membership) renewal(all map[string]introduction) (r renewal, err error) {
	r.Number = m.Ring.Keys.now()
	var opens [2][]byte // the rings of members, and of administrators
	for i := range opens {
		key := make([]byte, chacha20poly1305.KeySize)
		rand.Read(key)
		sealed := Keys{1: key}.seal(keysName, m.Ring.of(i == 1))
		r.Rings, opens[i] = append(r.Rings, sealed), append(key, hash(sealed, hashSize)...)
	}
	for _, seed := range []string{m.Ring.AdminBox, m.Ring.Was} {
		if seed == "" {
			continue
		}
		box, err := nkeys.FromCurveSeed([]byte(seed))
		if err != nil {
			return r, err
		}
		for key, i := range all {
			opened := opens[0]
			if i.Admin != nil {
				opened = opens[1]
			}
			sealed, err := box.Seal(opened, i.Box)
			if err != nil {
				return r, err
			}
			r.For = append(append(r.For, hash([]byte(key), tagSize)...), sealed...)
		}
	}
	return r, nil
}

// ring returns the ring that the administrators have sealed for a member, or none.
func (r renewal) ring(m *Membership) (in ring, ok bool) {
	box, err := nkeys.FromCurveSeed([]byte(m.Box))
	if err != nil {
		return in, false
	}
	tag := hash([]byte(protocol.Public(m.Seed)), tagSize)
	for entry := range slices.Chunk(r.For, entrySize) {
		sealed, mine := bytes.CutPrefix(entry, tag)
		if !mine {
			continue
		}
		opens, err := box.Open(sealed, m.Ring.Admin)
		if err != nil || len(opens) != openSize {
			continue
		}
		key, sum := opens[:chacha20poly1305.KeySize], opens[chacha20poly1305.KeySize:]
		for _, sealed := range r.Rings {
			if bytes.Equal(hash(sealed, hashSize), sum) &&
				(Keys{1: key}).open(keysName, sealed, &in) && in.Keys.sane() {
				return in, true
			}
		}
	}
	return in, false
}

// errFaster is of an administrator's device that would have written over keys that it has not read.
var errFaster = errors.New(
	"another administrator's device has changed the keys of the fleet meanwhile; try again")

// publish gives the keys of the fleet to members: they seal with the newest one from now on. Then
// it keeps their introductions, so that who is away is known when the old key is gone. Those are
// not given up if ctx ends meanwhile.
func (m *Membership) publish(ctx context.Context, b *bucket, all map[string]introduction) error {
	all[protocol.Public(m.Seed)] = m.introduction()
	r, err := m.renewal(all)
	if err != nil {
		return err
	}
	ack, err := b.js.PublishMsg(ctx, message(protocol.Values+keysName, protocol.Encode(r)),
		jetstream.WithExpectLastSequencePerSubject(m.rev))
	if wasFaster(err) {
		return errFaster
	}
	if err != nil {
		return fmt.Errorf("giving the keys to the fleet: %w", err)
	}
	m.rev = ack.Sequence
	for key, i := range all {
		if i.Admin != nil {
			i.Admin = m.Ring.vouch(key, i.Box)
			all[key] = i
		}
	}
	// all devices fetch the key now
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Minute)
	defer cancel()
	return b.put(ctx, protocol.Values+membersName, m.Ring.Keys.seal(membersName, all))
}

// Revoke shuts a device out at once, and gives the others a new key; the administrators' devices
// seal all values anew while they run. What the device has enrolled stays. At a cluster of others,
// remove its user first. Without a name it only makes a new key, after which nobody can read old
// copies of the server's values. Progress gets a sentence for people after each step. After an
// error, or if ctx ends, what progress was told has happened; either all have the new key or none.
func Revoke(ctx context.Context, path, name string, progress func(string)) error {
	m, err := administrator(path)
	if err != nil {
		return err
	}
	if name == m.Name {
		return errors.New("a device cannot revoke itself; do it on another administrator's device")
	}
	out, err := m.ask(protocol.Request{What: "revoke", Name: name})
	if err != nil {
		return err
	}
	gone := out.Members // those that the server has let go, and those of the name
	if len(gone) > 0 {
		progress(name + " is shut out")
	}
	b, err := m.open(ctx)
	if err != nil {
		return err
	}
	defer b.nc.Close()
	_, err = m.renewed(ctx, b, path)
	if err != nil { // another administrator may have made a key
		return err
	}
	all, err := m.introduced(ctx, b)
	if err != nil {
		return err
	}
	for key, i := range all {
		if i.Name == name {
			gone = append(gone, protocol.Member{Key: key})
		}
	}
	if name != "" && len(gone) == 0 {
		return fmt.Errorf("no device has the name %q", name)
	}
	admin := false
	for _, g := range gone {
		m.Ring.Revoked = append(m.Ring.Revoked, cmp.Or(g.Key, g.Invited))
		admin = admin || g.Admin || all[g.Key].Admin != nil
		delete(all, g.Key)
	}
	if admin {
		m.Ring.replace() // one who is gone has the administrators' key
	}
	m.Ring.Keys.add()
	progress(fmt.Sprintf("sealing a new key for %d devices", len(all)))
	err = m.publish(ctx, b, all)
	if err != nil {
		return err // if the server has the key nevertheless, the next session takes it from there
	}
	return m.save(path)
}

// again gives a server that has lost the newest keys, or is an old copy, what it lacks: the keys,
// and whom it must not let in.
func (m Membership) again(ctx context.Context, b *bucket) error {
	_, err := m.ask(protocol.Request{What: "revoke", Keys: m.Ring.Revoked})
	if err != nil {
		return err
	}
	all, err := m.introduced(ctx, b)
	if err != nil {
		return err
	}
	return m.publish(ctx, b, all)
}

var errOldKey = errors.New(
	"the fleet has a newer key than this device, which was revoked, or was invited before " +
		"the key was made; join with a new invitation")

// renewed takes and saves the newest keys that an administrator has sealed for this device. Old
// says that the server has none or older ones: it is a new one or an old copy.
func (m *Membership) renewed(ctx context.Context, b *bucket, path string) (old bool, err error) {
	there, err := b.get(ctx, protocol.Values+keysName, 0)
	if err != nil {
		return false, err
	}
	m.rev = there.Sequence
	if there.Data == nil {
		return true, nil
	}
	var r renewal
	err = protocol.Decode(there.Data, &r)
	if err != nil {
		return false, fmt.Errorf("reading the keys of the fleet: %w", err)
	}
	now := m.Ring.Keys.now()
	in, mine := r.ring(m)
	n := in.Keys.now()
	if mine && (n > now || n == now && len(in.Keys) < len(m.Ring.Keys)) {
		m.Ring = in
		return false, m.save(path)
	}
	if r.Number > now {
		return false, errOldKey
	}
	return r.Number < now, nil
}

// retire seals all values with the present key on an administrator's device, and drops the old keys
// when that is done. It reports whether something is left to do.
func (d *syncer) retire(ctx context.Context, b *bucket) (left bool, err error) {
	if len(d.m.Ring.Keys) == 1 || d.m.Ring.AdminBox == "" {
		return false, nil
	}
	now := d.m.Ring.Keys.now()
	left, err = d.push(ctx, b, outdated, int64(now))
	if err != nil || left {
		return left, err
	}
	n, err := d.rows.Int("select count(*) from shared where rev > 0 and key < ?", int64(now))
	if err != nil || n > 0 {
		return true, err
	}
	// as long as there is a key for those who do not know the new one
	all, err := d.m.introduced(ctx, b)
	if err != nil {
		return true, err
	}
	m := d.m
	m.Ring.Keys = Keys{now: d.m.Ring.Keys[now]}
	err = m.publish(ctx, b, all)
	if err != nil {
		return true, err
	}
	d.m = m
	d.tell("all people are sealed with the newest key of the fleet, and the old one is gone")
	return false, d.m.save(d.path)
}
