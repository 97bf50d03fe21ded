// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"encoding/base64"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/faceauth/faceauth/fleet"
	"github.com/nats-io/nats-server/v2/server"
	"golang.org/x/time/rate"
)

// gate decides who may connect to the embedded server, and with which rights. There are no passwords: each key signs
// the nonce of its connection.
type gate struct {
	fleet, service string // the id of the fleet, and the public key of the service
	log            *slog.Logger
	kick           func(client uint64)
	shown          chan []byte // admissions that unknown devices have shown

	mu      sync.Mutex
	server  *server.Server
	store   *server.Account // nil until the server has started
	pipes   *limiter        // nil until devices may connect
	devices map[string]bool // known devices; true for revoked ones
	names   map[string]string
	used    map[string]string  // devices by their tokens
	conns   map[string][]*pipe // connections by device or token, the oldest first
	seen    map[string]time.Time
	since   time.Time // what was stored before this time is not lost
	started time.Time

	refused atomic.Int64  // connections
	said    *rate.Limiter // lines of the log: a device that comes and goes must not fill it
}

const (
	// connectionsPerDevice is more than one, because an old connection may not be known to be dead yet.
	connectionsPerDevice = 4
	// joinTime is how long a token or a revoked device may stay connected.
	joinTime = time.Minute
	// lateAdmission is how long after a start a token that expired may still admit a device that used it in time.
	lateAdmission = time.Hour
	mostShown     = 4096
)

var _ server.Authentication = (*gate)(nil)

func newGate(fleet, service string, log *slog.Logger) *gate {
	return &gate{fleet: fleet, service: service, log: log, shown: make(chan []byte, mostShown),
		devices: make(map[string]bool), names: make(map[string]string), used: make(map[string]string),
		conns: make(map[string][]*pipe),
		seen:  make(map[string]time.Time), started: time.Now(),
		said: rate.NewLimiter(5, 5000)}
}

// open lets the service in.
func (g *gate) open(s *server.Server, store *server.Account) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.server, g.store = s, store
}

// listen lets devices in that come by the limiter. Since is the time of the last stored value at the start.
func (g *gate) listen(l *limiter, since time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pipes, g.since = l, since
}

// Check implements [server.Authentication].
func (g *gate) Check(c server.ClientAuthentication) bool {
	o := c.GetOpts()
	sig, err := base64.RawURLEncoding.DecodeString(o.Sig)
	if c.Kind() != server.CLIENT || len(o.Nkey) > 100 || err != nil || !fleet.Verify(o.Nkey, c.GetNonce(), sig) {
		g.refused.Add(1)
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if o.Nkey == g.service && g.store != nil {
		c.RegisterUser(&server.User{Username: o.Nkey, Account: g.store})
		return true
	}
	user, member := g.user(o.Nkey, o.Token)
	var p *pipe
	if g.pipes != nil {
		p = g.pipes.of(c.RemoteAddress())
	}
	if user == nil || p == nil {
		g.refused.Add(1)
		return false
	}
	// A new connection replaces the oldest. So a device that returns from a dead network is never locked out by its own
	// old connections, which the server believes to be alive.
	open := g.conns[o.Nkey]
	if len(open) >= connectionsPerDevice {
		go g.kick(open[0].client) // in the background: the server holds locks here
		open = open[1:]
	}
	if len(open) > 0 {
		p.limit.Store(open[0].limit.Load()) // several connections of a device share its rate
	}
	p.device, p.client = o.Nkey, c.GetID()
	g.conns[o.Nkey] = append(open, p)
	if member {
		g.seen[o.Nkey] = time.Now()
		if len(open) == 0 && g.said.Allow() {
			g.log.Info("device connected", "device", g.names[o.Nkey], "id", o.Nkey, "address", p.address())
		}
	}
	if user.Account, err = g.account(o.Nkey, member); err != nil {
		g.log.Error("a device cannot be let in", "id", o.Nkey, "error", err)
		return false
	}
	user.Username = o.Nkey
	c.RegisterUser(user)
	return true
}

// account returns the account of a device. Tokens and revoked devices share one: nobody there listens at a subject that
// another can know.
func (g *gate) account(id string, member bool) (*server.Account, error) {
	if member {
		return account(g.server, g.store, id, fleet.DeviceRights(id).Publish)
	}
	return account(g.server, g.store, "GUESTS",
		append(fleet.TokenRights("*").Publish, fleet.RevokedRights("").Publish...))
}

// user returns the rights of a key, or nil for none. The caller holds mu.
func (g *gate) user(id, shown string) (u *server.User, member bool) {
	now := time.Now()
	revoked, known := g.devices[id]
	if known && revoked {
		return &server.User{Permissions: permissions(fleet.RevokedRights(id)), ConnectionDeadline: now.Add(joinTime)},
			false
	}
	if !known && shown != "" {
		data, err := base64.RawURLEncoding.DecodeString(shown)
		if err != nil || len(data) > fleet.MaxValue {
			return nil, false
		}
		device, token, expires, err := fleet.CheckAdmission(g.fleet, data)
		switch {
		case err != nil:
		case token == id:
			// An expired token may connect, too, so that the device is told why it cannot join.
			return &server.User{Permissions: permissions(fleet.TokenRights(id)), ConnectionDeadline: now.Add(joinTime)},
				false
		case device == id && g.used[token] == "" && g.inTime(expires, now):
			// The data were lost, or an old copy was put back. The service keeps the record.
			select {
			case g.shown <- data:
				g.devices[id], g.used[token], known = false, id, true
			default:
			}
		}
	}
	if !known {
		return nil, false
	}
	return &server.User{Permissions: permissions(fleet.DeviceRights(id))}, true
}

// inTime reports whether an unknown admission by a token counts: the token is valid, or it expired when the data were
// perhaps lost. Otherwise an expired token, shown as an admission, would be valid for ever. The caller holds mu.
func (g *gate) inTime(expires, now time.Time) bool {
	return now.Before(expires) || expires.After(g.since) && expires.Before(g.started.Add(lateAdmission))
}

// admits is [gate.inTime] for the service.
func (g *gate) admits(expires time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.inTime(expires, time.Now())
}

// use notes that a token has admitted a device.
func (g *gate) use(token, device string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.used[token] = device
}

// set lets a device in, or revokes it and ends its connections.
func (g *gate) set(id, name string, revoked bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.devices[id], g.names[id] = revoked, name; revoked {
		for _, p := range g.conns[id] {
			g.kick(p.client)
		}
	}
}

// forget shuts out a device that has shown an admission which does not count.
func (g *gate) forget(id string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.devices, id)
	for _, p := range g.conns[id] {
		g.kick(p.client)
	}
}

// closed is called when a connection has ended.
func (g *gate) closed(p *pipe) {
	g.mu.Lock()
	defer g.mu.Unlock()
	id := p.device
	if id == "" {
		return
	}
	g.seen[id] = time.Now()
	left := slices.DeleteFunc(g.conns[id], func(x *pipe) bool { return x == p })
	if g.conns[id] = left; len(left) > 0 {
		return
	}
	delete(g.conns, id)
	if revoked, known := g.devices[id]; !known {
		delete(g.seen, id)
	} else if !revoked && g.said.Allow() {
		g.log.Info("device disconnected", "device", g.names[id], "id", id)
	}
}

// connected returns whether a device is connected, and when it was last. Slow means that it sends too much.
func (g *gate) connected(id string) (connected, slow bool, last time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, p := range g.conns[id] {
		slow = slow || p.slow.Load()
	}
	return len(g.conns[id]) > 0, slow, g.seen[id]
}

// permissions converts rights into the server's type.
func permissions(r fleet.Rights) *server.Permissions {
	return &server.Permissions{Publish: &server.SubjectPermission{Allow: r.Publish},
		Subscribe: &server.SubjectPermission{Allow: r.Subscribe}}
}

// slow logs that a connection has sent too much for a while.
func (g *gate) slow(p *pipe) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.log.Warn("device is slowed down: it sends too much", "device", g.names[p.device], "id", p.device,
		"address", p.address())
}
