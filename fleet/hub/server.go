// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"cmp"
	"log/slog"
	"net"
	"time"

	"github.com/nats-io/nkeys"
)

// Server is a NATS server with JetStream that lets in only the keys that the service names. Package embedded implements
// it.
type Server interface {
	// InProcessConn returns a connection of this process. It logs in with Key and may do everything.
	InProcessConn() (net.Conn, error)
	Key() nkeys.KeyPair
	// Pin is the SHA-256 of the certificate that devices see.
	Pin() []byte
	// Admit lets these devices in with their [DeviceRights], and ends the connections of all other devices.
	Admit(devices []string)
	// Invite lets the bearers of tokens in with their [BearerRights], each until the given time.
	Invite(tokens map[string]time.Time)
	// Rejoin lets in all devices that give [RejoinToken] as their token, with [RejoinRights].
	Rejoin()
	// Revoked lets these devices in with [RejoinRights] if they give [RejoinToken], so that they can be shown their
	// revocation.
	Revoked(devices []string)
	// Pause refuses entries of a device until the given time. The device can still read.
	Pause(device string, until time.Time)
	// Received returns the number of bytes that each device has sent since the last call.
	Received() map[string]int
	// Connections returns the connected devices, each with the time of its connection.
	Connections() map[string]time.Time
	// Listen opens the socket. Before that, only this process can connect. Address returns the address afterwards.
	Listen() error
	Address() string
	// Ended is closed when the server has ended.
	Ended() <-chan struct{}
	Close()
}

// ServerOptions are the settings of a [Server].
type ServerOptions struct {
	Folder string // folder of its files
	Listen string
	Fleet  string // its admin key may connect, too
	Limits Limits // without zeros
	Log    *slog.Logger
}

// Limits of a server. Zero means the default.
type Limits struct {
	Devices int   // connections at once. Default 10,000
	Message int   // bytes of the largest message. Default 1 MiB
	Burst   int   // bytes that one device may send at once; then a 128th of it each second. Default 256 MiB
	Disk    int64 // bytes of the log and the snapshots on disk. Default 4 GiB
}

func (l Limits) defaults() Limits {
	l.Devices = cmp.Or(l.Devices, 10000)
	l.Message = cmp.Or(l.Message, 1<<20)
	l.Burst = cmp.Or(l.Burst, 256<<20)
	l.Disk = cmp.Or(l.Disk, 4<<30)
	return l
}

// logShare is the log's share of the disk. The rest is for two snapshots, the old one and its replacement.
const logShare = 0.6
