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

// gate says who may connect to the embedded server, and as what. Nobody has a password: each key signs the nonce of its
// connection.
type gate struct {
	fleet string
	// kick ends a connection by its number, and alive says whether it is there.
	kick  func(uint64)
	alive func(uint64) bool

	mu      sync.Mutex
	service string                 // key of the join service, drawn at each start
	devices map[string]*admitted   // by id
	bearers map[string]time.Time   // until when a token may be used, by its public key
	open    map[string][]connected // by key
	revoked map[string]bool        // who may be told so
	lost    bool                   // the log may have lost who is a member: devices may show that they are
}

type admitted struct {
	permissions *server.Permissions
	paused      time.Time // until when no entry of it is taken
}

type connected struct {
	number uint64
	since  time.Time
}

// Limits of connections.
const (
	// connectionsPerDevice is for a device whose old connection is not known to be dead yet.
	connectionsPerDevice = 4
	connectionsPerToken  = 4
	// joinTime is how long a bearer of a token may stay connected.
	joinTime = time.Minute
)

var _ server.Authentication = (*gate)(nil)

func newGate(fleet, service string) *gate {
	return &gate{
		fleet: fleet, service: service, devices: make(map[string]*admitted), bearers: make(map[string]time.Time),
		open: make(map[string][]connected),
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
		// The admin key may do everything: it lies with the one who runs the fleet.
	case device:
		user.Permissions, most = d.permissions, connectionsPerDevice
		if now.Before(d.paused) {
			user.Permissions = permissions(hub.DeviceRights(g.fleet, id))
			user.Permissions.Publish.Deny = []string{hub.LogSubjects(g.fleet)}
			user.ConnectionDeadline = d.paused // it connects again, and may
		}
	case (g.lost || g.revoked[id]) && o.Token == hub.RejoinToken && nkeys.IsValidPublicUserKey(id):
		if !verify(id, c.GetNonce(), o.Sig) {
			return false
		}
		// Nothing is kept of it: anybody can make such keys.
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
	// A new connection takes the place of the oldest: a device that comes back from a dead network is never locked out by
	// connections of its own that the server still believes in.
	for most > 0 && len(open) >= most {
		if g.devices[id] == nil {
			return false
		}
		go g.kick(open[0].number)
		open = open[1:]
	}
	g.open[id] = append(open, connected{c.GetID(), now})
	c.RegisterUser(user)
	return true
}

// admit lets devices in that the log names, and ends the connections of all others.
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

// rejoin lets devices in to show that they are members.
func (g *gate) rejoin() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lost = true
}

// tell lets devices in to be told that they were revoked.
func (g *gate) tell(ids []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.revoked = make(map[string]bool, len(ids))
	for _, id := range ids {
		g.revoked[id] = true
	}
}

// pause takes no entries of a device until a moment: it connects again, and may only read.
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

// invite says which tokens may be used, and until when.
func (g *gate) invite(bearers map[string]time.Time) {
	g.mu.Lock()
	var gone []string
	for id := range g.bearers {
		if _, still := bearers[id]; !still {
			gone = append(gone, id)
		}
	}
	g.bearers = maps.Clone(bearers)
	// The device that has just joined waits for its answer: its connection ends by itself.
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

// connections returns since when each device is connected.
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

// permissions returns rights as the server has them.
func permissions(r hub.Rights) *server.Permissions {
	p := &server.Permissions{Publish: &server.SubjectPermission{Allow: r.Publish}, Subscribe: &server.SubjectPermission{Allow: r.Subscribe}}
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
