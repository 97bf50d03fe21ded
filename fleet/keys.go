// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
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
	Admin []byte `cbor:"3,keyasint,omitempty"` // that an administrator has vouched for it
}

// renewal is the value of keyName: the ring of each member, sealed by the administrators' key, and by the
// one before for who was away.
type renewal struct {
	For map[string][][]byte `cbor:"1,keyasint"`
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

// introduce tells the others who this device is, unless they know.
func (m membership) introduce(ctx context.Context, b *bucket) error {
	me := public(m.Seed)
	mine := introduction{m.Name, public(m.Box), m.Ring.vouch(me)}
	there, err := b.get(ctx, memberPrefix+me)
	if err != nil {
		return err
	}
	var said introduction
	if m.Ring.Keys.open(memberPrefix+me, there.Data, &said) == nil && string(encode(said)) == string(encode(mine)) {
		return nil
	}
	return m.put(ctx, b, memberPrefix+me, mine)
}

// put seals a value with the present key, and writes it.
func (m membership) put(ctx context.Context, b *bucket, name string, v any) error {
	return b.put(ctx, name, m.Ring.Keys.now(), m.Ring.Keys.seal(name, v))
}

// introduced returns the introductions of all members by their keys. An administrator learns who is one.
func (m membership) introduced(ctx context.Context, b *bucket) (map[string]introduction, error) {
	all := make(map[string]introduction)
	info, err := b.s.Info(ctx, jetstream.WithSubjectFilter(place+memberPrefix+"*"))
	if err != nil {
		return nil, err
	}
	for subject := range info.State.Subjects {
		name := strings.TrimPrefix(subject, place)
		sealed, err := b.get(ctx, name)
		if err != nil {
			return nil, err
		}
		var i introduction
		if m.Ring.Keys.open(name, sealed.Data, &i) != nil || i.Box == "" {
			continue
		}
		key := strings.TrimPrefix(name, memberPrefix)
		if m.Ring.AdminBox != "" && !hmac.Equal(i.Admin, m.Ring.vouch(key)) {
			i.Admin = nil
		}
		all[key] = i
	}
	return all, nil
}

// publishKeys seals the keys of the fleet for members, and their introductions with the present key, so
// that who is away is known when the old key is gone.
func (m membership) publishKeys(ctx context.Context, b *bucket, all map[string]introduction) error {
	me := public(m.Seed)
	all[me] = introduction{m.Name, public(m.Box), m.Ring.vouch(me)}
	r := renewal{For: make(map[string][][]byte)}
	for key, i := range all {
		in := encode(m.Ring.of(i.Admin != nil))
		if i.Admin != nil {
			i.Admin = m.Ring.vouch(key)
		}
		for _, seed := range []string{m.Ring.AdminBox, m.Ring.Was} {
			if seed == "" {
				continue
			}
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
		if err := m.put(ctx, b, memberPrefix+key, i); err != nil {
			return err
		}
	}
	return b.put(ctx, keyName, m.Ring.Keys.now(), encode(r))
}

// renew makes a new key, of which a revoked member, by its name or its key, learns nothing. If it was an
// administrator, the administrators' key is new, too.
func (m membership) renew(ctx context.Context, gallery, name, revoked string) error {
	b, err := m.open(ctx)
	if err != nil {
		return err
	}
	defer b.nc.Close()
	if m, _, err = m.renewed(ctx, b); err != nil { // another administrator may have made a key
		return err
	}
	all, err := m.introduced(ctx, b)
	if err != nil {
		return err
	}
	m.Ring.Keys.add()
	found := name == "" || revoked != ""
	for key, i := range all {
		if key != revoked && (name == "" || i.Name != name) {
			continue
		}
		found = true
		delete(all, key)
		if err := m.put(ctx, b, memberPrefix+key, introduction{Name: name}); err != nil {
			return err
		}
		if i.Admin != nil {
			m.Ring.replace()
		}
	}
	if !found {
		return fmt.Errorf("no device has the name %q", name)
	}
	if err := m.publishKeys(ctx, b, all); err != nil {
		return err
	}
	return m.save(gallery) // after a crash before it, the next session takes them from the server
}

var errOldKey = errors.New("the fleet has a newer key than this device, which was revoked, or was invited before " +
	"the key was made; join with a new invitation")

// renewed returns the membership with the newest keys that an administrator has sealed for it. Old
// says that the server has none or older ones: it is a new one or an old copy.
func (m membership) renewed(ctx context.Context, b *bucket) (_ membership, old bool, err error) {
	there, err := b.get(ctx, keyName)
	if err != nil || there.Data == nil {
		return m, true, err
	}
	var r renewal
	box, err := nkeys.FromCurveSeed([]byte(m.Box))
	if err = cmp.Or(err, decoding.Unmarshal(there.Data, &r)); err != nil {
		return m, false, fmt.Errorf("reading the keys of the fleet: %w", err)
	}
	now := m.Ring.Keys.now()
	for _, sealed := range r.For[public(m.Seed)] {
		var in ring
		plain, err := box.Open(sealed, m.Ring.Admin)
		if err != nil || decoding.Unmarshal(plain, &in) != nil || in.check() != nil {
			continue
		}
		if n := in.Keys.now(); n > now || n == now && len(in.Keys) < len(m.Ring.Keys) {
			m.Ring = in
		}
		break
	}
	if numberOf(there.Header) > m.Ring.Keys.now() {
		return m, false, errOldKey
	}
	return m, numberOf(there.Header) < now, nil
}

// retire has all values sealed with the present key, and drops the old ones when that is done. It
// reports whether something is left to do.
func (d *syncer) retire(ctx context.Context, b *bucket) (left bool, err error) {
	now := d.m.Ring.Keys.now()
	err = d.rows.Change(func(t *gallery.Tx) error {
		old, _ := t.Int("select count(*) from shared where key < ? and rev > 0", int64(now))
		left = old > 0
		return t.Exec("update shared set sent = 0 where key < ? and rev > 0", int64(now))
	})
	if err != nil || left || len(d.m.Ring.Keys) == 1 {
		return left, err
	}
	all, err := d.m.introduced(ctx, b)
	if err != nil {
		return true, err
	}
	d.m.Ring.Keys = Keys{now: d.m.Ring.Keys[now]}
	if err := d.m.save(d.path); err != nil {
		return true, err
	}
	return false, d.m.publishKeys(ctx, b, all)
}
