// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"encoding/base64"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/faceauth/faceauth/fleet"
	"github.com/nats-io/nats-server/v2/server"
	"golang.org/x/time/rate"
)

// gate decides who may connect to the embedded server, and with which rights. There are no passwords: each key signs
// the nonce of its connection.
type gate struct {
	*roster
	service string // the public key of the service
	log     *slog.Logger
	give    func(record []byte) bool // to the service, which stores it; false: it has too much to do
	kick    func(client uint64)

	server *server.Server
	store  *server.Account // nil until the server has started
	pipes  *limiter        // nil until devices may connect

	refused atomic.Int64  // connections
	said    *rate.Limiter // lines of the log: a device that comes and goes must not fill it
}

const (
	// connectionsPerDevice is more than one, because an old connection may not be known to be dead yet.
	connectionsPerDevice = 4
	// joinTime is how long a token or a revoked device may stay connected.
	joinTime = time.Minute
)

var _ server.Authentication = (*gate)(nil)

func newGate(r *roster, service string, log *slog.Logger) *gate {
	return &gate{roster: r, service: service, log: log, said: rate.NewLimiter(5, 5000)}
}

// open lets the service in.
func (g *gate) open(s *server.Server, store *server.Account) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.server, g.store = s, store
}

// listen lets devices in that come by the limiter.
func (g *gate) listen(l *limiter) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pipes = l
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
	var p *pipe
	var user *server.User
	member := false
	if g.pipes != nil {
		p = g.pipes.of(c.RemoteAddress())
	}
	if p != nil {
		user, member = g.user(o.Nkey, o.Token)
	}
	if user == nil {
		g.refused.Add(1)
		return false
	}
	// A new connection replaces the oldest. So a device that returns from a dead network is never locked out by its own
	// old connections, which the server believes to be alive.
	x := g.peer(o.Nkey)
	open := x.conns
	if len(open) >= connectionsPerDevice {
		go g.kick(open[0].client) // in the background: the server holds locks here
		open = open[1:]
	}
	p.device, p.client = o.Nkey, c.GetID()
	p.limit.Store(x.sent) // all connections of a device share its rate
	x.conns, x.seen = append(open, p), time.Now()
	if member && len(open) == 0 && g.said.Allow() {
		m, _ := g.members.Device(o.Nkey)
		g.log.Info("device connected", "device", m.Name, "id", o.Nkey, "address", p.address())
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
	_, known := g.members.Device(id)
	if g.members.Revoked(id) {
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
		case device == id && g.members.Admitted(token) == "" && g.inTime(expires, now) && g.give(data):
			// The data were lost, or an old copy was put back.
			_, err := g.learn(data)
			known = err == nil
		}
	}
	if !known {
		return nil, false
	}
	return &server.User{Permissions: permissions(fleet.DeviceRights(id))}, true
}

// cut ends the connections of a device.
func (g *gate) cut(id string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, p := range g.peer(id).conns {
		g.kick(p.client)
	}
}

// closed is called when a connection has ended.
func (g *gate) closed(p *pipe) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if p.device == "" {
		return
	}
	x := g.peer(p.device)
	x.conns, x.seen = slices.DeleteFunc(x.conns, func(other *pipe) bool { return other == p }), time.Now()
	if m, known := g.members.Device(p.device); len(x.conns) == 0 && known && !m.Revoked && g.said.Allow() {
		g.log.Info("device disconnected", "device", m.Name, "id", p.device)
	}
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
	m, _ := g.members.Device(p.device)
	g.log.Warn("device is slowed down: it sends too much", "device", m.Name, "id", p.device, "address", p.address())
}
