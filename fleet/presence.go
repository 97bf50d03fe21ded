// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/faceauth/faceauth/gallery"
	"github.com/nats-io/nats.go/jetstream"
)

// presence is a value in which a device tells whom its offices see, sealed as people are.
type presence struct {
	Place string       `cbor:"1,keyasint"`
	At    int64        `cbor:"2,keyasint"` // seconds since 1970
	Since map[ID]int64 `cbor:"3,keyasint"`
}

const (
	presencePrefix = "here."
	lasting        = 15 * time.Minute // after it a presence is too old, unless it was told again
)

// meeting is what a session knows of who is where.
type meeting struct {
	said    presence
	others  map[string]presence
	written []byte // what the gallery has of it
	at      time.Time
}

// meet tells the others whom this device sees, and the gallery whom the others see.
func (d *Device) meet(ctx context.Context, js jetstream.JetStream, s jetstream.Stream, m *meeting, batch []note) error {
	own := presencePrefix + public(d.m.Seed)
	for _, n := range batch {
		if !strings.HasPrefix(n.name, presencePrefix) || n.name == own {
			continue
		}
		sealed, err := get(ctx, s, n.name)
		if err != nil {
			return err
		}
		var c presence
		b, _, err := d.m.Keys.open(n.name, sealed)
		if err != nil || decoding.Unmarshal(b, &c) != nil {
			c = presence{} // of a member that was revoked, or of a newer program
		}
		m.others[n.name] = c
	}
	mine := presence{Place: d.m.Name, At: time.Now().Unix(), Since: make(map[ID]int64)}
	var away []gallery.Away
	err := d.rows.Look(func(t *gallery.Tx) error {
		err := t.Query(`select s.id, min(p.since) / 1000000000 from present p join shared s on s.person = p.person
			group by s.id`, func(r gallery.Row) error {
			mine.Since[ID(r.ColumnRawBlob(0))] = r.ColumnInt64(1)
			return nil
		})
		for _, c := range m.others {
			for id, since := range c.Since {
				person, _ := t.Int("select person from shared where id = ?", id[:])
				if person > 0 {
					away = append(away, gallery.Away{Person: person, Place: c.Place, Since: time.Unix(since, 0),
						Until: time.Unix(c.At, 0).Add(lasting)})
				}
			}
		}
		return cmp.Or(err, t.Err())
	})
	if err != nil {
		return err
	}
	slices.SortFunc(away, func(a, b gallery.Away) int {
		return cmp.Or(cmp.Compare(a.Person, b.Person), cmp.Compare(a.Place, b.Place))
	})
	if b := encode(away); !bytes.Equal(b, m.written) {
		if err := d.rows.Change(func(t *gallery.Tx) error { return t.Elsewhere(away) }); err != nil {
			return err
		}
		m.written = b
	}
	fresh := mine.At-m.said.At < int64(lasting/time.Second)/3 || len(mine.Since) == 0
	if m.said.At > 0 && fresh && bytes.Equal(encode(mine.Since), encode(m.said.Since)) {
		return nil
	}
	_, err = js.Publish(ctx, place+own, d.m.Keys.seal(own, encode(mine)))
	if err == nil {
		m.said = mine
	}
	return err
}
