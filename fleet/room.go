// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"slices"
	"time"

	"github.com/faceauth/faceauth/fleet/ledger"
)

// Radio sends messages to the devices that listen at this moment; it stores none. hub.Conn implements it.
type Radio interface {
	// Broadcast sends data to all other devices that listen.
	Broadcast(ctx context.Context, data []byte) error
	// Listen calls take with the messages of other devices, until ctx ends or the connection is lost.
	Listen(ctx context.Context, take func(data []byte)) error
}

// Room lists the people who are at a device at one moment.
type Room struct {
	Device ledger.Member
	ledger.Room
	Names map[ledger.ID]string // names of the people, as this device shows them
}

// Here lists the people who are at this device at one moment.
type Here struct {
	At      time.Time
	People  map[string]ledger.Guest // by shown name; SealRoom finds their numbers
	Unknown int                     // number of further people without a name
}

// SealRoom encodes and seals the people at this device for [Radio.Broadcast]. It leaves out people whom the fleet does
// not know.
func (d *Device) SealRoom(here Here) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := ledger.Room{At: here.At, Unknown: here.Unknown}
	for id, name := range d.shown() {
		if g, there := here.People[name]; there {
			g.Person = id
			r.People = append(r.People, g)
		}
	}
	slices.SortFunc(r.People, func(a, b ledger.Guest) int { return slices.Compare(a.Person[:], b.Person[:]) })
	return d.current().SealRoom(r, d.ring, d.key)
}

// OpenRoom decodes the message of another device. The error wraps [ledger.ErrRoom].
func (d *Device) OpenRoom(data []byte) (Room, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	device, room, err := d.base.OpenRoom(data, d.ring)
	if err != nil {
		return Room{}, err
	}
	r := Room{Room: room, Names: make(map[ledger.ID]string)}
	r.Device, _ = d.base.Device(device)
	shown := d.shown()
	for i, g := range room.People {
		id := d.current().Group(g.Person)[0] // a merged person has the name of the person that it was merged into
		r.People[i].Person = id
		r.Names[id] = shown[id]
	}
	return r, nil
}
