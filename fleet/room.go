// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"slices"
	"time"

	"github.com/faceauth/faceauth/fleet/ledger"
)

// Radio tells the devices that listen now; nothing is kept of it. hub.Conn is one.
type Radio interface {
	// Broadcast tells all devices that listen, but this one.
	Broadcast(ctx context.Context, data []byte) error
	// Listen gives take what other devices tell, until ctx ends or the connection is lost.
	Listen(ctx context.Context, take func(data []byte)) error
}

// Room is who is at a device at a moment.
type Room struct {
	Device ledger.Member
	ledger.Room
	Names map[ledger.ID]string // of the people, as they are shown here
}

// Here is who is at this device at a moment.
type Here struct {
	At      time.Time
	People  map[string]ledger.Guest // by the names that are shown; the number of the person is found by the name
	Unknown int                     // how many more are there, whom nobody has named
}

// SealRoom returns who is at this device as it is broadcast. Those whom the fleet does not know are left out.
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
	return d.now().SealRoom(r, d.ring, d.key)
}

// OpenRoom returns who is at another device. The error wraps [ledger.ErrRoom].
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
		id := d.now().Group(g.Person)[0] // who was merged has the name of the other
		r.People[i].Person = id
		r.Names[id] = shown[id]
	}
	return r, nil
}
