// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"cmp"
	"log/slog"
	"net"
	"time"

	"github.com/nats-io/nkeys"
)

// Server is a NATS server with JetStream that lets in whom the service says. Package embedded has one.
type Server interface {
	// InProcessConn returns a connection of this process. It is let in with Key, and may do everything.
	InProcessConn() (net.Conn, error)
	Key() nkeys.KeyPair
	// Pin is the SHA-256 of the certificate that devices see.
	Pin() []byte
	// Admit lets these devices in with their [DeviceRights], and ends the connections of all others.
	Admit(devices []string)
	// Invite lets bearers of tokens in with their [BearerRights], each until a moment.
	Invite(tokens map[string]time.Time)
	// Rejoin lets in all devices that give [RejoinToken] as their token, with their [RejoinRights].
	Rejoin()
	// Revoked lets these devices in to be told so, where they give [RejoinToken], with their [RejoinRights].
	Revoked(devices []string)
	// Pause takes no entries of a device until a moment, and lets it read.
	Pause(device string, until time.Time)
	// Connections returns the devices that are connected, and since when.
	Connections() map[string]time.Time
	// Listen opens the socket: until then only this process is let in. Address is the address then.
	Listen() error
	Address() string
	// Ended is closed when the server has ended.
	Ended() <-chan struct{}
	Close()
}

// ServerOptions say which server there is to be.
type ServerOptions struct {
	Folder string // of its files
	Listen string
	Fleet  string // whose admin key is let in, too
	Limits Limits // without zeros
	Log    *slog.Logger
}

// Limits say how much a server takes. A zero value is the default.
type Limits struct {
	Devices int   // connections at once. Default 10,000
	Message int   // bytes of the largest message. Default 1 MiB
	Burst   int   // bytes that one device may say at once; a 128th of it each second afterwards. Default 256 MiB
	Disk    int64 // bytes of the log and the snapshots on disk. Default 4 GiB
}

func (l Limits) defaults() Limits {
	l.Devices = cmp.Or(l.Devices, 10000)
	l.Message = cmp.Or(l.Message, 1<<20)
	l.Burst = cmp.Or(l.Burst, 256<<20)
	l.Disk = cmp.Or(l.Disk, 4<<30)
	return l
}

// logShare is the part of the disk that the log may take; the rest is for two snapshots and what is being replaced.
const logShare = 0.6
