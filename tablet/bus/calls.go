// SPDX-License-Identifier: Apache-2.0

package bus

import (
	"sync"
	"time"

	"github.com/godbus/dbus/v5"
	"golang.org/x/time/rate"
)

// Quotas. A call beyond them is only read, and costs no goroutine and no question to the bus. For root only the length
// of a queue is limited.
const (
	connectionRate, connectionBurst = 20, 40  // calls of one connection: per second and at once
	userRate, userBurst             = 40, 120 // calls of one user on all connections
	queueLength                     = 16      // calls of one connection that wait
	servedPerUser                   = 8       // connections of one user that are served at once
	strangersServed                 = 256     // connections whose user the bus is being asked for
	connectionsKnown                = 1024    // connections that are remembered
	messagesRead                    = 4096    // messages that wait to be read
)

// connection is a client of the bus that has sent calls.
type connection struct {
	name     string
	by       caller
	known    bool // by is
	calls    *rate.Limiter
	refusals *rate.Limiter
	queue    []*dbus.Message
	served   bool // a goroutine answers the calls of the queue
	used     time.Time
}

// quota limits the calls of a user.
type quota struct {
	calls  *rate.Limiter
	served int       // connections
	told   time.Time // time of the last log line about too many calls
}

// desk receives calls. The calls of one connection are answered one after the other, in order.
type desk struct {
	s *service

	mu          sync.Mutex
	connections map[string]*connection
	users       map[uint32]*quota
	strangers   int
	last        time.Time // time of the last request or answer
}

func newDesk(s *service) *desk {
	return &desk{s: s, connections: make(map[string]*connection), users: make(map[uint32]*quota), last: time.Now()}
}

// read receives messages until the channel is closed.
func (d *desk) read(messages <-chan *dbus.Message) {
	for {
		select {
		case <-d.s.ctx.Done():
			return
		case m, ok := <-messages:
			if !ok {
				return
			}
			if m.Type == dbus.TypeMethodCall {
				d.take(m, time.Now())
			}
		}
	}
}

// take puts a call into the queue of its connection, if the quotas allow it.
func (d *desk) take(m *dbus.Message, now time.Time) {
	sender, _ := m.Headers[dbus.FieldSender].Value().(string)
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.connection(sender, now)
	if c == nil {
		return
	}
	root := c.known && c.by.root()
	switch {
	case !root && !c.calls.AllowN(now, 1), len(c.queue) >= queueLength,
		c.known && !root && !d.may(c.by.uid, now),
		!c.served && c.known && !root && d.user(c.by.uid).served >= servedPerUser,
		!c.served && !c.known && d.strangers >= strangersServed:
		d.refuse(c, m, now)
		return
	}
	c.queue = append(c.queue, m)
	if c.served {
		return
	}
	c.served = true
	if c.known {
		d.user(c.by.uid).served++
	} else {
		d.strangers++
	}
	d.s.running.Go(func() {
		d.serve(c)
	})
}

// connection returns the connection with a name, or nil if there is no room for one more.
func (d *desk) connection(name string, now time.Time) *connection {
	if c := d.connections[name]; c != nil {
		c.used = now
		return c
	}
	if len(d.connections) >= connectionsKnown {
		var oldest *connection
		for _, c := range d.connections {
			if !c.served && (oldest == nil || c.used.Before(oldest.used)) {
				oldest = c
			}
		}
		if oldest == nil {
			return nil
		}
		delete(d.connections, oldest.name)
	}
	c := &connection{name: name, used: now, calls: rate.NewLimiter(connectionRate, connectionBurst),
		refusals: rate.NewLimiter(connectionRate, connectionBurst)}
	d.connections[name] = c
	return c
}

func (d *desk) user(uid uint32) *quota {
	u := d.users[uid]
	if u == nil {
		u = &quota{calls: rate.NewLimiter(userRate, userBurst)}
		d.users[uid] = u
	}
	return u
}

// may counts a call of a user other than root, and reports whether it is allowed.
func (d *desk) may(uid uint32, now time.Time) bool {
	u := d.user(uid)
	if u.calls.AllowN(now, 1) {
		return true
	}
	if now.Sub(u.told) > time.Minute {
		u.told = now
		d.s.o.Log.Warn("too many calls", "uid", uid)
	}
	return false
}

// refuse tells a client that it calls too often, but not too often itself.
func (d *desk) refuse(c *connection, m *dbus.Message, now time.Time) {
	if m.Flags&dbus.FlagNoReplyExpected == 0 && c.refusals.AllowN(now, 1) {
		d.s.fail(m,
			failure(tooManyRequests, "too many requests of this user are waiting for an answer; wait a few seconds"))
	}
}

// serve answers the calls of a connection.
func (d *desk) serve(c *connection) {
	paid := c.known // calls of a new connection are not counted for their user yet
	if !c.known {
		by, failed := d.s.caller(c.name)
		d.mu.Lock()
		d.strangers--
		if failed == nil {
			c.by, c.known = by, true
		}
		full := failed == nil && !by.root() && d.user(by.uid).served >= servedPerUser
		if failed != nil || full {
			for _, m := range c.queue {
				if full {
					d.refuse(c, m, time.Now())
				} else {
					d.s.fail(m, failed)
				}
			}
			c.queue, c.served = nil, false
			d.mu.Unlock()
			return
		}
		d.user(by.uid).served++
		d.mu.Unlock()
	}
	for {
		d.mu.Lock()
		d.last = time.Now()
		if len(c.queue) == 0 || d.s.ctx.Err() != nil {
			c.queue, c.served = nil, false
			d.user(c.by.uid).served--
			d.mu.Unlock()
			return
		}
		m := c.queue[0]
		c.queue = c.queue[1:]
		if !paid && !c.by.root() && !d.may(c.by.uid, d.last) {
			d.refuse(c, m, d.last)
			d.mu.Unlock()
			continue
		}
		d.mu.Unlock()
		d.s.answer(c.by, m)
	}
}

// idle returns the time since the last request or answer; 0 during a request.
func (d *desk) idle(now time.Time) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.strangers > 0 {
		return 0
	}
	for _, u := range d.users {
		if u.served > 0 {
			return 0
		}
	}
	return now.Sub(d.last)
}
