// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"

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

// SealRoom returns who is at this device as it is broadcast. Guests are given by the names that are shown; those whom
// the fleet does not know are left out.
func (d *Device) SealRoom(r ledger.Room, names []string) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	ids := make(map[string]ledger.ID)
	for id, name := range d.shown() {
		ids[name] = id
	}
	all := r.People
	r.People = nil
	for i, g := range all {
		if id, known := ids[names[i]]; known {
			g.Person = id
			r.People = append(r.People, g)
		}
	}
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
