// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nkeys"
)

// ErrRoom is wrapped by the errors of [Ledger.OpenRoom].
var ErrRoom = errors.New("wrong message about the people at another device")

// Limits of an encoded [Room].
const (
	MaxGuests = 500
	maxRoom   = 256 << 10
)

// Room lists the people at a device at one moment. It is sent to the devices that listen, and is not part of the log.
type Room struct {
	At      time.Time // by the device's clock
	Unknown int       // number of people without a name
	People  []Guest
}

// Guest is a person at a device.
type Guest struct {
	Person ID
	Since  time.Time
	Last   time.Time // time of the last sighting
	Camera string
	Trust  string // how the name is known: "confirmed" or "learned"
	Unsure bool   // the person may have left
}

type roomPayload struct {
	At      int64         `cbor:"1,keyasint"` // Unix time in nanoseconds
	Unknown uint64        `cbor:"2,keyasint"`
	People  []sealedGuest `cbor:"3,keyasint"`
}

// guestPayload is the sealed part of a guest. Times are Unix times in nanoseconds.
type guestPayload struct {
	Since  int64  `cbor:"1,keyasint"`
	Last   int64  `cbor:"2,keyasint"`
	Camera string `cbor:"3,keyasint"`
	Trust  string `cbor:"4,keyasint"`
	Unsure bool   `cbor:"5,keyasint"`
}

type sealedGuest struct {
	_      struct{} `cbor:",toarray"`
	Person []byte
	Key    []byte
	Sealed []byte
}

// boundGuest returns the associated data of a sealed guest: device, moment and person.
func (l *Ledger) boundGuest(device string, at int64, person ID) []byte {
	return signed("guest", l.fleet, Version, device,
		append(binary.BigEndian.AppendUint64(nil, uint64(at)), person[:]...))
}

// SealRoom encodes a room, signed by this device. Each person is sealed with the person's own key: the server reads
// only a number, and other devices read only the people that they may know. SealRoom leaves out people without a key in
// the ring, and all after the first [MaxGuests].
func (l *Ledger) SealRoom(r Room, ring *Ring, key nkeys.KeyPair) ([]byte, error) {
	device, err := key.PublicKey()
	if err != nil {
		return nil, fmt.Errorf("sealing a room: %w", err)
	}
	p := roomPayload{At: r.At.UnixNano(), Unknown: uint64(max(0, r.Unknown))}
	for _, g := range r.People {
		k, ok := l.WriteKey(g.Person, ring)
		if !ok || len(p.People) == MaxGuests {
			continue
		}
		id := k.ID(g.Person)
		plain := marshal(guestPayload{g.Since.UnixNano(), g.Last.UnixNano(), g.Camera, g.Trust, g.Unsure})
		sealed := k.seal(plain, l.boundGuest(device, p.At, g.Person))
		p.People = append(p.People, sealedGuest{Person: g.Person[:], Key: id[:], Sealed: sealed})
	}
	return signMessage("room", l.fleet, key, marshal(p))
}

// OpenRoom returns another device's room, with the people that this device may know. The error wraps [ErrRoom].
func (l *Ledger) OpenRoom(data []byte, ring *Ring) (device string, r Room, err error) {
	if len(data) > maxRoom {
		return "", r, fmt.Errorf("%w: it has %d bytes, and %d are allowed", ErrRoom, len(data), maxRoom)
	}
	m, err := openMessage("room", l.fleet, data)
	if err != nil {
		return "", r, fmt.Errorf("%w: %w", ErrRoom, err)
	}
	if d, known := l.Device(m.Device); !known || d.Revoked {
		return "", r, fmt.Errorf("%w: %s is not a member", ErrRoom, m.Device)
	}
	var p roomPayload
	if err := decoding.Unmarshal(m.Payload, &p); err != nil {
		return "", r, fmt.Errorf("%w: %w", ErrRoom, err)
	}
	if len(p.People) > MaxGuests || p.Unknown > 1<<20 {
		return "", r, fmt.Errorf("%w: %d people, and %d unknown", ErrRoom, len(p.People), p.Unknown)
	}
	r = Room{At: time.Unix(0, p.At).UTC(), Unknown: int(p.Unknown)}
	for _, s := range p.People {
		var g Guest
		var key KeyID
		if len(s.Person) != len(g.Person) || len(s.Key) != len(key) || len(s.Sealed) < sealedOverhead {
			return "", r, fmt.Errorf("%w: a person of %d bytes", ErrRoom, len(s.Sealed))
		}
		copy(g.Person[:], s.Person)
		copy(key[:], s.Key)
		k, ok := ring.Key(g.Person, key)
		if !ok {
			continue
		}
		plain, err := k.open(s.Sealed, l.boundGuest(m.Device, p.At, g.Person))
		if err == nil {
			var c guestPayload
			err = decoding.Unmarshal(plain, &c)
			g.Since, g.Last = time.Unix(0, c.Since).UTC(), time.Unix(0, c.Last).UTC()
			g.Camera, g.Trust, g.Unsure = c.Camera, c.Trust, c.Unsure
		}
		if err != nil {
			return "", r, fmt.Errorf("%w: a sealed person does not open", ErrRoom)
		}
		r.People = append(r.People, g)
	}
	return m.Device, r, nil
}
