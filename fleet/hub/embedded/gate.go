// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"encoding/base64"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/faceauth/faceauth/fleet/hub"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"
)

// gate decides who may connect to the embedded server, and with which rights. There are no passwords: each key signs
// the nonce of its connection.
type gate struct {
	fleet string
	// kick ends a connection by its number, and alive reports whether it exists.
	kick  func(uint64)
	alive func(uint64) bool

	mu      sync.Mutex
	service string                 // public key of the service, new at each start
	devices map[string]*admitted   // by id
	bearers map[string]time.Time   // until when a token may be used, by its public key
	open    map[string][]connected // by key
	owners  map[uint64]string      // devices by the numbers of their connections, also of ended ones
	in      map[uint64]int64       // bytes that came over each connection until the last call of received
	revoked map[string]bool        // devices that may connect to be shown their revocation
	lost    bool                   // the log may have lost admissions: devices may show theirs
}

type admitted struct {
	permissions *server.Permissions
	paused      time.Time // until when its entries are refused
}

type connected struct {
	number uint64
	since  time.Time
}

// Limits of connections.
const (
	// connectionsPerDevice is more than one, because an old connection may not be known to be dead yet.
	connectionsPerDevice = 4
	connectionsPerToken  = 4
	// joinTime is how long the bearer of a token may stay connected.
	joinTime = time.Minute
)

var _ server.Authentication = (*gate)(nil)

func newGate(fleet, service string) *gate {
	return &gate{
		fleet: fleet, service: service, devices: make(map[string]*admitted), bearers: make(map[string]time.Time),
		open: make(map[string][]connected), owners: make(map[uint64]string),
	}
}

// Check implements [server.Authentication].
func (g *gate) Check(c server.ClientAuthentication) bool {
	o := c.GetOpts()
	id := o.Nkey
	if c.Kind() != server.CLIENT || id == "" || len(id) > 100 {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	user, most := &server.User{Username: id}, 0
	now := time.Now()
	switch d, device := g.devices[id]; {
	case id == g.service || id == g.fleet:
		// The admin key may do everything: its owner runs the fleet.
	case device:
		user.Permissions, most = d.permissions, connectionsPerDevice
		if now.Before(d.paused) {
			user.Permissions = permissions(hub.DeviceRights(g.fleet, id))
			user.Permissions.Publish.Deny = []string{hub.LogSubjects(g.fleet)}
			user.ConnectionDeadline = d.paused // then it connects again with full rights
		}
	case (g.lost || g.revoked[id]) && o.Token == hub.RejoinToken && nkeys.IsValidPublicUserKey(id):
		if !verify(id, c.GetNonce(), o.Sig) {
			return false
		}
		// No record is kept, because anybody can make such keys.
		user.Permissions, user.ConnectionDeadline = permissions(hub.RejoinRights(g.fleet, id)), now.Add(joinTime)
		c.RegisterUser(user)
		return true
	default:
		until, bearer := g.bearers[id]
		if !bearer || now.After(until) {
			return false
		}
		user.Permissions, most = permissions(hub.BearerRights(g.fleet, id)), connectionsPerToken
		user.ConnectionDeadline = now.Add(joinTime)
	}
	if !verify(id, c.GetNonce(), o.Sig) {
		return false
	}
	open := slices.DeleteFunc(g.open[id], func(c connected) bool { return !g.alive(c.number) })
	// A new connection replaces the oldest. So a device that returns from a dead network is never locked out by its own
	// old connections, which the server believes to be alive.
	for most > 0 && len(open) >= most {
		if g.devices[id] == nil {
			return false
		}
		go g.kick(open[0].number)
		open = open[1:]
	}
	g.open[id] = append(open, connected{c.GetID(), now})
	if g.devices[id] != nil {
		g.owners[c.GetID()] = id
	}
	c.RegisterUser(user)
	return true
}

// admit lets the given devices in, and ends the connections of all others.
func (g *gate) admit(ids []string) {
	now := make(map[string]*admitted, len(ids))
	g.mu.Lock()
	for _, id := range ids {
		if now[id] = g.devices[id]; now[id] == nil {
			now[id] = &admitted{permissions: permissions(hub.DeviceRights(g.fleet, id))}
		}
	}
	var gone []string
	for id := range g.devices {
		if now[id] == nil {
			gone = append(gone, id)
		}
	}
	g.devices = now
	numbers := g.drop(gone)
	g.mu.Unlock()
	for _, n := range numbers {
		g.kick(n)
	}
}

// rejoin lets devices in to show their admissions.
func (g *gate) rejoin() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lost = true
}

// tell lets revoked devices in to be shown their revocation.
func (g *gate) tell(ids []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.revoked = make(map[string]bool, len(ids))
	for _, id := range ids {
		g.revoked[id] = true
	}
}

// pause refuses entries of a device until the given time: the device connects again and may only read.
func (g *gate) pause(id string, until time.Time) {
	g.mu.Lock()
	var numbers []uint64
	if d := g.devices[id]; d != nil {
		d.paused = until
		numbers = g.drop([]string{id})
	}
	g.mu.Unlock()
	for _, n := range numbers {
		g.kick(n)
	}
}

// invite sets the tokens that may be used, each with its end.
func (g *gate) invite(bearers map[string]time.Time) {
	g.mu.Lock()
	var gone []string
	for id := range g.bearers {
		if _, still := bearers[id]; !still {
			gone = append(gone, id)
		}
	}
	g.bearers = maps.Clone(bearers)
	// Connections of removed tokens stay open: a device may still wait for its answer, and they end by themselves.
	for _, id := range gone {
		delete(g.open, id)
	}
	g.mu.Unlock()
}

// drop forgets the connections of these keys and returns their numbers. The caller holds mu.
func (g *gate) drop(ids []string) (numbers []uint64) {
	for _, id := range ids {
		for _, c := range g.open[id] {
			numbers = append(numbers, c.number)
		}
		delete(g.open, id)
	}
	return numbers
}

// received returns the number of bytes that each device has sent since the last call. In has the bytes of each
// connection.
func (g *gate) received(in map[uint64]int64) map[string]int {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := make(map[string]int)
	for number, id := range g.owners {
		if n, there := in[number]; there {
			all[id] += int(n - g.in[number])
		} else {
			delete(g.owners, number)
		}
	}
	g.in = in
	return all
}

// connections returns the connected devices, each with the time of its connection.
func (g *gate) connections() map[string]time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := make(map[string]time.Time)
	for id := range g.devices {
		open := slices.DeleteFunc(g.open[id], func(c connected) bool { return !g.alive(c.number) })
		if len(open) > 0 {
			all[id] = open[len(open)-1].since
			g.open[id] = open
		} else {
			delete(g.open, id)
		}
	}
	return all
}

// permissions converts rights into the server's type.
func permissions(r hub.Rights) *server.Permissions {
	p := &server.Permissions{
		Publish:   &server.SubjectPermission{Allow: r.Publish},
		Subscribe: &server.SubjectPermission{Allow: r.Subscribe},
	}
	if r.Answers {
		p.Response = &server.ResponsePermission{MaxMsgs: 1, Expires: time.Minute}
	}
	return p
}

// verify reports whether the key with this name has signed the nonce of a connection.
func verify(id string, nonce []byte, signature string) bool {
	sig, err := base64.RawURLEncoding.DecodeString(signature)
	if err != nil {
		return false
	}
	key, err := nkeys.FromPublicKey(id)
	return err == nil && key.Verify(nonce, sig) == nil
}
