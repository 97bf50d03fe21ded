// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/faceauth/faceauth/gallery"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"
)

// introduction is what a member tells the others, sealed, so that no server can invent a member: who it
// is, and whom it sees.
type introduction struct {
	gallery.There
	Box   string `cbor:"4,keyasint"`           // others seal for it with this key
	Admin []byte `cbor:"5,keyasint,omitempty"` // that an administrator has vouched for it
}

// renewal is the value of keyName: the ring of each member, sealed by the administrators' key, and by the
// one before for who was away.
type renewal struct {
	For    map[string][][]byte `cbor:"1,keyasint"`
	Number uint32              `cbor:"2,keyasint"` // of the newest key
}

// vouch returns what only an administrator can say of a member, or nothing.
func (r ring) vouch(key string) []byte {
	if r.AdminBox == "" {
		return nil
	}
	h := hmac.New(sha256.New, []byte(r.AdminBox))
	h.Write([]byte(key))
	return h.Sum(nil)
}

// introduction returns what this device says of itself.
func (m Membership) introduction(there gallery.There) introduction {
	return introduction{there, public(m.Box), m.Ring.vouch(public(m.Seed))}
}

// introduce seals the introduction of the member with a key, and writes it.
func (m Membership) introduce(ctx context.Context, b *bucket, key string, i introduction) error {
	return b.put(ctx, herePrefix+key, m.Ring.Keys.seal(herePrefix+key, i))
}

// introduced returns the introductions of all members by their keys. An administrator learns who is one.
func (m Membership) introduced(ctx context.Context, b *bucket) (map[string]introduction, error) {
	all := make(map[string]introduction)
	info, err := b.s.Info(ctx, jetstream.WithSubjectFilter(place+herePrefix+"*"))
	if err != nil {
		return nil, err
	}
	for subject := range info.State.Subjects {
		name, key := strings.TrimPrefix(subject, place), strings.TrimPrefix(subject, place+herePrefix)
		sealed, err := b.get(ctx, name, 0)
		if err != nil {
			return nil, err
		}
		var i introduction
		if !m.Ring.Keys.open(name, sealed.Data, &i) || !nkeys.IsValidPublicCurveKey(i.Box) ||
			slices.Contains(m.Ring.Revoked, key) {
			continue
		}
		if !hmac.Equal(i.Admin, m.Ring.vouch(key)) {
			i.Admin = nil
		}
		all[key] = i
	}
	return all, nil
}

// publishKeys seals the keys of the fleet for members, and their introductions with the present key, so
// that who is away is known when the old key is gone.
func (m Membership) publishKeys(ctx context.Context, b *bucket, all map[string]introduction) error {
	all[public(m.Seed)] = m.introduction(gallery.There{Place: m.Name})
	r := renewal{make(map[string][][]byte), m.Ring.Keys.now()}
	seeds := slices.DeleteFunc([]string{m.Ring.AdminBox, m.Ring.Was}, func(seed string) bool { return seed == "" })
	for key, i := range all {
		in := encode(m.Ring.of(i.Admin != nil))
		if i.Admin != nil {
			i.Admin = m.Ring.vouch(key)
		}
		for _, seed := range seeds {
			box, err := nkeys.FromCurveSeed([]byte(seed))
			if err != nil {
				return err
			}
			sealed, err := box.Seal(in, i.Box)
			if err != nil {
				return err
			}
			r.For[key] = append(r.For[key], sealed)
		}
		if err := m.introduce(ctx, b, key, i); err != nil {
			return err
		}
	}
	return b.put(ctx, keyName, encode(r))
}

// Revoke shuts a device out at once, and makes a new key for the others; the administrators' devices seal all values anew
// while they run. What the device has enrolled stays. At a cluster of others, remove its user first. Without a name it only
// makes a new key, after which nobody can read old copies of the server's values.
func Revoke(ctx context.Context, path, name string) error {
	m, err := administrator(path)
	if err != nil {
		return err
	}
	if name == m.Name {
		return errors.New("a device cannot revoke itself; do it on another administrator's device")
	}
	out, err := m.ask(request{What: "revoke", Name: name})
	if err != nil {
		return err
	}
	gone := out.Members // those that the server has let go, and those of the name
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
		if i.Place == name {
			gone = append(gone, Member{Key: key})
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
	if err := m.publishKeys(ctx, b, all); err != nil {
		return err
	}
	return m.save(path) // after a crash before it, the next session takes them from the server
}

// again gives a server that has lost the newest keys, or is an old copy, what it lacks: the keys, and whom it must not
// let in.
func (m Membership) again(ctx context.Context, b *bucket) error {
	_, err := m.ask(request{What: "revoke", Keys: m.Ring.Revoked})
	if err != nil {
		return err
	}
	all, err := m.introduced(ctx, b)
	if err != nil {
		return err
	}
	return m.publishKeys(ctx, b, all)
}

var errOldKey = errors.New("the fleet has a newer key than this device, which was revoked, or was invited before " +
	"the key was made; join with a new invitation")

// renewed takes and saves the newest keys that an administrator has sealed for this device. Old says that
// the server has none or older ones: it is a new one or an old copy.
func (m *Membership) renewed(ctx context.Context, b *bucket, path string) (old bool, err error) {
	there, err := b.get(ctx, keyName, 0)
	if err != nil {
		return false, err
	}
	m.seen = there.Header.Get("Write")
	if there.Data == nil {
		return true, nil
	}
	var r renewal
	box, err := nkeys.FromCurveSeed([]byte(m.Box))
	err = cmp.Or(err, decoding.Unmarshal(there.Data, &r))
	if err != nil {
		return false, fmt.Errorf("reading the keys of the fleet: %w", err)
	}
	now := m.Ring.Keys.now()
	for _, sealed := range r.For[public(m.Seed)] {
		var in ring
		plain, err := box.Open(sealed, m.Ring.Admin)
		if err != nil || decoding.Unmarshal(plain, &in) != nil || !in.Keys.sane() {
			continue
		}
		if n := in.Keys.now(); n > now || n == now && len(in.Keys) < len(m.Ring.Keys) {
			m.Ring = in
			return false, m.save(path)
		}
	}
	if r.Number > now {
		return false, errOldKey
	}
	return r.Number < now, nil
}

// retire has all values sealed with the present key by an administrator's device, and drops the old ones when that is
// done. It reports whether something is left to do.
func (d *syncer) retire(ctx context.Context, b *bucket) (left bool, err error) {
	if len(d.m.Ring.Keys) == 1 || d.m.Ring.AdminBox == "" {
		return false, nil
	}
	now := d.m.Ring.Keys.now()
	err = d.write(func(b *ledger) {
		old, _ := b.Ints("update shared set sent = 0 where key < ? and rev > 0 returning 1", int64(now))
		left = len(old) > 0
	})
	if err != nil || left {
		return left, err
	}
	all, err := d.m.introduced(ctx, b) // as long as there is a key for those who do not know the new one
	if err != nil {
		return true, err
	}
	d.m.Ring.Keys = Keys{now: d.m.Ring.Keys[now]}
	if err := d.m.save(d.path); err != nil {
		return true, err
	}
	return false, d.m.publishKeys(ctx, b, all)
}
