// SPDX-License-Identifier: Apache-2.0

package bus

import (
	"sync"
	"time"

	"github.com/godbus/dbus/v5"
)

// Quotas. A call beyond them costs the service that it is read, and nothing else: no goroutine, and no question to the
// bus. Root has none but the length of a queue.
const (
	connectionRate, connectionBurst = 20, 40  // calls of one connection, a second and at once
	userRate, userBurst             = 40, 120 // calls of one user on all connections
	queueLength                     = 16      // calls of one connection that wait
	servedPerUser                   = 8       // connections of one user that are served at a time
	strangersServed                 = 256     // connections at a time of which the bus is being asked whose they are
	connectionsKnown                = 1024    // connections that are remembered
	messagesRead                    = 4096    // messages that wait to be looked at
)

// bucket holds the calls that may still be made: rate a second come in, burst are the most. The zero value is full.
type bucket struct {
	spent float64
	at    time.Time
}

// take takes one call out, where there is one.
func (b *bucket) take(now time.Time, rate, burst float64) bool {
	if gone := now.Sub(b.at).Seconds(); gone > 0 {
		b.spent, b.at = max(0, b.spent-gone*rate), now
	}
	if b.spent+1 > burst {
		return false
	}
	b.spent++
	return true
}

// connection is one client of the bus that has sent calls.
type connection struct {
	name     string
	by       caller
	known    bool // by is
	calls    bucket
	refusals bucket
	queue    []*dbus.Message
	served   bool // a goroutine works off the queue
	used     time.Time
}

// quota is what is counted of a user.
type quota struct {
	calls  bucket
	served int       // connections
	told   time.Time // when the log was told of too many calls
}

// desk takes in calls: those of one connection are answered one after the other, in their order.
type desk struct {
	s *Service

	mu          sync.Mutex
	connections map[string]*connection
	users       map[uint32]*quota
	strangers   int
	last        time.Time // when something was asked or answered
}

func newDesk(s *Service) *desk {
	return &desk{s: s, connections: make(map[string]*connection), users: make(map[uint32]*quota), last: time.Now()}
}

// read takes in messages until there are no more.
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

// take puts a call into the queue of its connection, where the quotas let it.
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
	case !root && !c.calls.take(now, connectionRate, connectionBurst), len(c.queue) >= queueLength,
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
	d.s.running.Add(1)
	go func() {
		defer d.s.running.Done()
		d.serve(c)
	}()
}

// connection returns the one of a name, or nil where there is no room for one more.
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
	c := &connection{name: name, used: now}
	d.connections[name] = c
	return c
}

func (d *desk) user(uid uint32) *quota {
	u := d.users[uid]
	if u == nil {
		u = new(quota)
		d.users[uid] = u
	}
	return u
}

// may counts a call of a user who is not root.
func (d *desk) may(uid uint32, now time.Time) bool {
	u := d.user(uid)
	if u.calls.take(now, userRate, userBurst) {
		return true
	}
	if now.Sub(u.told) > time.Minute {
		u.told = now
		d.s.o.Log.Warn("too many calls", "uid", uid)
	}
	return false
}

// refuse tells a client that it asks too often, where it has not been told too often, too.
func (d *desk) refuse(c *connection, m *dbus.Message, now time.Time) {
	if m.Flags&dbus.FlagNoReplyExpected == 0 && c.refusals.take(now, connectionRate, connectionBurst) {
		d.s.fail(m, failure(tooManyRequests, "too many requests of this user are waiting for an answer; wait a few seconds"))
	}
}

// serve works off the queue of a connection.
func (d *desk) serve(c *connection) {
	paid := c.known // calls of a connection that was not known are still to be counted as their user's
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

// idle returns how long nothing was asked or answered; 0 while something is.
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
