// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Readable reports whether somebody who holds all that these devices hold can read what values say about a person.
// Values holds what the server ever stored, by device and name.
func Readable(devices []*Device, person ID, values [][3]string) bool {
	var epochs []secret
	var states []state
	keys := make(map[secret]bool)
	for _, d := range devices {
		d.mu.Lock()
		if d.own.Epoch > 0 && len(d.own.Secret) > 0 {
			epochs = append(epochs, secret(d.own.Secret))
		}
		states = append(states, d.own)
		if k, have := d.secrets[person]; have {
			keys[k] = true
		}
		d.mu.Unlock()
	}
	for range 3 { // an epoch may open keys, which open words
		for _, x := range values {
			_, v, err := parseValue([]byte(x[2]))
			if err != nil {
				continue
			}
			n := (&Device{notes: make(map[string]*notes)}).note("")
			if strings.HasPrefix(x[1], "_") && n.take(x[1], v.Note) == nil {
				for _, p := range n.epochs {
					for _, f := range p.For {
						for _, s := range states {
							if k, ok := s.openBox(f.Box); ok && len(k) == 32 {
								epochs = append(epochs, secret(k))
							}
						}
					}
				}
				for _, p := range n.rings {
					for _, e := range p.Keys {
						for _, s := range epochs {
							if ID(e.Person) != person {
								continue
							}
							if k, err := s.open(e.Box, person.String()); err == nil {
								keys[secret(k)] = true
							}
						}
					}
				}
				for _, parts := range n.lent {
					for _, p := range parts {
						for _, s := range states {
							k, ok := s.openBox(p.Box)
							for i, id := range p.People {
								if ok && ID(id) == person {
									keys[secret(k[32*i:32*i+32])] = true
								}
							}
						}
					}
				}
			}
		}
	}
	for _, x := range values {
		_, v, err := parseValue([]byte(x[2]))
		if id, _, ok := personOf(x[1]); err != nil || !ok || id != person || len(v.Box) == 0 {
			continue
		}
		for k := range keys {
			if _, err := k.open(v.Box, placeOf(x[0], x[1])); err == nil {
				return true
			}
		}
	}
	return false
}

// Dead reports whether a device has destroyed the key of a person.
func (d *Device) Dead(person ID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.dead[person]
}

// Debug describes the epochs of a device.
func (d *Device) Debug() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	h := d.own.epochHash()
	s := fmt.Sprintf("%s epoch %d %x box %x note %x known=%v\n", d.id[:6], d.own.Epoch, h[:3], d.own.Public[:3],
		d.note(d.id).box[:min(3, len(d.note(d.id).box))], d.full())
	for by, n := range d.notes {
		m, known := d.members.Device(by)
		s += fmt.Sprintf("   of %s (%v %v) box %x head %d", by[:6], known, m.full(), n.box[:min(3, len(n.box))],
			n.head.Sum)
		for name, p := range n.epochs {
			s += fmt.Sprintf(" %s %d %x", name, p.Epoch, p.Hash[:3])
			for _, f := range p.For {
				s += fmt.Sprintf(" [%s %x]", f.Device[:6], f.To[:3])
			}
		}
		for name, parts := range n.lent {
			for _, p := range parts {
				s += fmt.Sprintf(" %s [%s %x: %d]", name, p.Device[:6], p.To[:3], len(p.People))
			}
		}
		for name, p := range n.rings {
			s += fmt.Sprintf(" %s %d: %d", name, p.Epoch, len(p.Keys))
		}
		s += "\n"
	}
	return s
}

// JoinBy joins a fleet whose server takes the admission.
func JoinBy(folder string, t Token, name string, give func([]byte) error) error {
	admission, err := admit(folder, t, name)
	if err == nil {
		err = give(admission)
	}
	return errors.Join(err, join(folder, t.Fleet, admission))
}

// Lies says all that a limited device may not say about a person: its own methods would refuse it. Guest is a person
// whom the device has made, and full is a full device.
func (d *Device) Lies(person, guest ID, full string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	key, name := newSecret(), person.String()
	w := words{Name: &naming{Clock: d.tick(), Name: "mallory"}}
	epoch := epochPart{Epoch: 5, Hash: hashOf("epoch", key[:]),
		For: []sealedFor{{Device: full, To: d.note(full).box, Box: sealBox(d.note(full).box, key[:])}}}
	ring := ringPart{Epoch: 1, Keys: []ringEntry{{Person: person[:], Box: key.seal(key[:], name)}}}
	for _, n := range d.notes {
		for _, p := range n.rings {
			ring.Epoch, ring.Hash = p.Epoch, p.Hash
		}
	}
	lent := lentPart{Device: full, To: d.note(full).box, People: [][]byte{person[:]},
		Box: sealBox(d.note(full).box, key[:])}
	forget := value{Forget: d.tick(), Born: make([]byte, len(born{})), Box: key.seal(encode(w), placeOf(d.id, name))}
	return d.write(func() error {
		return errors.Join(d.put(name, forget),
			d.put(name+lessonName(0), value{Box: key.seal(encode(lessonPart{Clock: d.tick(), Parts: 1}), "")}),
			d.same(Merge{guest, person}, false),
			d.putNote(epochNote+digit(full), epoch),
			d.putNote(ringNote+name[:1], ring),
			d.putNote(lentNote+digit(full), []lentPart{lent}),
			d.putNote(awayNote, map[string]withdrawal{full: {d.tick(), true}}))
	})
}

// Nameless adds a person without a name, as no program does.
func (d *Device) Nameless(space string, faces []Face) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	id, b := newID(d.id)
	key := newSecret()
	d.secrets[id] = key
	var w words
	for _, f := range faces {
		w.setFace(w.newFaceWord(space, f, labelled, d.tick()))
	}
	return d.write(func() error {
		return errors.Join(d.setFact(keyFact, id.String(), key[:]),
			d.put(id.String(), value{Born: b[:], Box: key.seal(encode(w), placeOf(d.id, id.String()))}))
	})
}

// Loaded returns the number of people whose faces were read.
func (r Reconciled) Loaded() int { return len(r.loaded) }

// SetTake sets how long an exchange takes new people.
func (p *Part) SetTake(d time.Duration) { p.take = d }
