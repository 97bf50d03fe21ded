// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/faceauth/faceauth/internal/store"
)

// common holds the people and faces that a gallery and the fleet shared when they were last reconciled.
type common struct {
	gallery string
	people  map[ID]sharedPerson
	// forgotten lists the faces of forgotten people: they reveal an old gallery.
	forgotten []FaceID
}

type sharedPerson struct {
	Name   string   `cbor:"1,keyasint"`           // in the gallery
	Next   string   `cbor:"2,keyasint,omitempty"` // the name in the gallery if it was saved after Reconcile
	Faces  []FaceID `cbor:"3,keyasint,omitempty"`
	Denied []FaceID `cbor:"4,keyasint,omitempty"`
	// Offered means that this device has enrolled the person. The fleet does not know the person if the program ended
	// before.
	Offered bool `cbor:"5,keyasint,omitempty"`
}

func (p sharedPerson) equal(q sharedPerson) bool {
	return p.Name == q.Name && p.Next == q.Next && p.Offered == q.Offered && slices.Equal(p.Faces, q.Faces) &&
		slices.Equal(p.Denied, q.Denied)
}

// meeting is what this program remembers of the last time when a gallery was reconciled, so that the next time only
// costs what has changed.
type meeting struct {
	common
	seen   map[ID]glance     // all people, as the fleet then had them; nil: everybody must be looked at
	crowds map[string]*crowd // by device
}

// glance is a person as the fleet had it: the name that was shown, and what was said of each number.
type glance struct {
	shown string
	said  []*joined
}

func (d *Device) glance(p Person) glance {
	g := glance{shown: p.Shown}
	for _, id := range p.IDs {
		g.said = append(g.said, d.joined(id))
	}
	return g
}

func (g glance) equal(h glance) bool {
	return g.shown == h.shown && slices.Equal(g.said, h.said)
}

// meeting returns what a gallery and the fleet share.
func (d *Device) meeting(gallery string) (*meeting, error) {
	if m := d.meetings[gallery]; m != nil {
		return m, nil
	}
	m := &meeting{common: common{gallery: gallery, people: make(map[ID]sharedPerson)}, crowds: make(map[string]*crowd)}
	err := d.db.Query("select name, data from fact where kind = ?", func(r store.Row) error {
		of, data := r.ColumnText(0), r.ColumnRawBlob(1)
		name, ours := strings.CutPrefix(of, gallery+"/")
		if !ours {
			return nil
		}
		if name == "" {
			if len(data)%len(FaceID{}) != 0 {
				return errValue
			}
			for id := range slices.Chunk(data, len(FaceID{})) {
				m.forgotten = append(m.forgotten, FaceID(id))
			}
			return nil
		}
		var p sharedPerson
		id, err := ParseID(name)
		if err == nil {
			err = decoding.Unmarshal(data, &p)
		}
		m.people[id] = p
		return err
	}, galleryFact)
	if err != nil {
		return nil, fmt.Errorf("%w: what a gallery and the fleet share: %w", ErrDamaged, err)
	}
	d.meetings[gallery] = m
	return m, nil
}

// common returns what a gallery and the fleet share, which the caller may change.
func (d *Device) common(gallery string) (common, error) {
	m, err := d.meeting(gallery)
	if err != nil {
		return common{}, err
	}
	c := m.common
	c.people, c.forgotten = maps.Clone(c.people), slices.Clip(c.forgotten)
	return c, nil
}

// keepCommon writes what has changed.
func (d *Device) keepCommon(c common) error {
	m, err := d.meeting(c.gallery)
	if err != nil {
		return err
	}
	changed := make(map[string][]byte)
	for id, p := range c.people {
		if had, there := m.people[id]; !there || !had.equal(p) {
			changed[id.String()] = encode(p)
		}
	}
	for id := range m.people {
		if _, there := c.people[id]; !there {
			changed[id.String()] = nil
		}
	}
	if !slices.Equal(c.forgotten, m.forgotten) {
		changed[""] = make([]byte, 0) // nil would remove it
		for _, id := range c.forgotten {
			changed[""] = append(changed[""], id[:]...)
		}
	}
	if len(changed) == 0 {
		return nil
	}
	err = d.db.Write(func() (err error) {
		for name, data := range changed {
			err = errors.Join(err, d.setFact(galleryFact, c.gallery+"/"+name, data))
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("keeping the people that a gallery and the fleet share: %w", err)
	}
	m.common, m.people = c, maps.Clone(c.people)
	return nil
}
