// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/faceauth/faceauth/internal/backoff"
)

// ErrRoom is wrapped by the errors of [Device.OpenRoom].
var ErrRoom = errors.New("wrong message about the people at another device")

// Limits of a [Room].
const (
	maxGuests = 500
	maxRoom   = 256 << 10
)

// Room lists the people who are at a device at one moment.
type Room struct {
	Device  Member
	At      time.Time // by the device's clock
	Silent  bool      // it has said nothing for a while; only [Neighbours] tell
	Unknown int       // number of people without a name
	People  []Guest
}

// Guest is a person at a device.
type Guest struct {
	Person ID        `cbor:"-"`
	Name   string    `cbor:"-"` // as this device shows it
	Since  time.Time `cbor:"1,keyasint"`
	Last   time.Time `cbor:"2,keyasint"` // time of the last sighting
	Camera string    `cbor:"3,keyasint"`
	Trust  string    `cbor:"4,keyasint"` // how the name is known: "confirmed" or "learned"
	Unsure bool      `cbor:"5,keyasint"` // the person may have left
}

// On the wire a room is a [wireValue] of roomBody.
type roomBody struct {
	At      int64         `cbor:"1,keyasint"` // nanoseconds since 1970
	Unknown uint64        `cbor:"2,keyasint"`
	People  []sealedGuest `cbor:"3,keyasint"`
}

type sealedGuest struct {
	_      struct{} `cbor:",toarray"`
	Person []byte
	Box    []byte // [Guest], sealed with the key of the person
}

func guestPlace(device string, at int64, person ID) string {
	return fmt.Sprint("room.", device, ".", at, ".", person)
}

// SealRoom encodes and seals the people at this device for [Device.Broadcast]: the server reads only numbers, and other
// devices only the people whom they may know. It finds their numbers by their shown names, and leaves out people whom
// the fleet does not know.
func (d *Device) SealRoom(here Room) []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	b := roomBody{At: here.At.UnixNano(), Unknown: uint64(max(0, here.Unknown))}
	guests := make(map[string]Guest)
	for _, g := range here.People {
		guests[g.Name] = g
	}
	for id, name := range d.names() {
		g, there := guests[name]
		key, have := d.secrets[id]
		if !there || !have || len(b.People) == maxGuests {
			continue
		}
		b.People = append(b.People, sealedGuest{Person: slices.Clone(id[:]),
			Box: key.seal(encode(g), guestPlace(d.id, b.At, id))})
	}
	payload := encode(b)
	return encode(wireValue{Version: Version, Payload: payload,
		Sig: sign(d.key, signed("room", d.fleet, d.id, payload))})
}

// OpenRoom decodes the message of another device. The error wraps [ErrRoom].
func (d *Device) OpenRoom(device string, data []byte) (r Room, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	m, known := d.members.Device(device)
	var w wireValue
	var b roomBody
	switch {
	case !known || m.Revoked:
		return r, fmt.Errorf("%w: %s is not a member", ErrRoom, device)
	case len(data) > maxRoom || decoding.Unmarshal(data, &w) != nil || w.Version != Version ||
		!Verify(device, signed("room", d.fleet, device, w.Payload), w.Sig):
		return r, fmt.Errorf("%w: it cannot be read, or %s has not signed it", ErrRoom, m.Name)
	case decoding.Unmarshal(w.Payload, &b) != nil || len(b.People) > maxGuests || b.Unknown > 1<<20:
		return r, fmt.Errorf("%w: wrong content", ErrRoom)
	}
	r = Room{Device: m, At: time.Unix(0, b.At).UTC(), Unknown: int(b.Unknown)}
	for _, s := range b.People {
		if len(s.Person) != len(ID{}) {
			return r, fmt.Errorf("%w: wrong content", ErrRoom)
		}
		id := ID(s.Person)
		key, have := d.secrets[id]
		plain, err := key.open(s.Box, guestPlace(device, b.At, id))
		var g Guest
		if !have || err != nil || decoding.Unmarshal(plain, &g) != nil {
			continue
		}
		g.Person = d.group(id)[0] // a merged person has the name of the person that it was merged into
		g.Name = d.names()[g.Person]
		r.People = append(r.People, g)
	}
	return r, nil
}

// Broadcast sends data to the devices that listen now, or returns [ErrOffline].
func (d *Device) Broadcast(ctx context.Context, data []byte) error {
	d.mu.Lock()
	server := d.server
	d.mu.Unlock()
	if server == nil {
		return ErrOffline
	}
	return server.Broadcast(ctx, data)
}

// Listen calls take with the messages of other devices, over whatever connection there is, until ctx ends.
func (d *Device) Listen(ctx context.Context, take func(device string, data []byte)) {
	for backoff.Wait(ctx, d.s.Retry) {
		d.mu.Lock()
		server := d.server
		d.mu.Unlock()
		if server != nil {
			server.Listen(ctx, take) // the next round listens again after an error
		}
	}
}
