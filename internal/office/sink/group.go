// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/faceauth/faceauth/internal/album"
	"github.com/faceauth/faceauth/internal/office"
	"github.com/faceauth/faceauth/internal/office/presence"
)

// Status is the state of the delivery to one sink.
type Status struct {
	Name    string `json:"name"`
	Waiting int    `json:"waiting"` // number of events that are not delivered yet
	Lost    int    `json:"lost"`    // number of events that were dropped for lack of room
	Error   string `json:"error"`   // error of the last try; "" if it succeeded
}

// Group delivers the events of a book to several sinks. All methods but Close can be called at
// once.
type Group struct {
	// Changed is called by the delivering goroutine: with an error when a sink begins to fail, and
	// with nil when delivery resumes. It must not call the group. Set it before the first Reserve.
	// May be nil.
	Changed func(name string, err error)
	// Link and Shot are those of [Options]. Set them before the first Reserve.
	Link string
	Shot func(presence.Event) album.Face
	// Quiet are the names of people about whom nothing is sent. Set it before the first Reserve.
	Quiet []string

	book   *office.Past
	failed func(error)
	ctx    context.Context
	stop   context.CancelFunc
	work   sync.WaitGroup

	mu      sync.Mutex
	members []*member
}

// member is a sink of a group.
type member struct {
	name  string
	queue *office.Queue
	last  string // the error of the last try
}

// NewGroup returns a group that delivers from b until ctx ends or Close is called. Failed is called
// with an error that ends the delivery to a sink for good.
func NewGroup(ctx context.Context, b *office.Past, failed func(error)) *Group {
	g := &Group{book: b, failed: failed}
	g.ctx, g.stop = context.WithCancel(ctx)
	return g
}

// Reserve adds a sink before it is made, so that its first failures can be reported. With faces it
// gets pictures of unknown people. Report reports a failure; deliver starts the delivery.
func (g *Group) Reserve(name string, faces bool) (report func(error), deliver func(Sink)) {
	q := g.book.Queue(name)
	m := &member{name: name, queue: q}
	g.mu.Lock()
	g.members = append(g.members, m)
	g.mu.Unlock()
	report = func(err error) { g.note(m, err) }
	return report, func(s Sink) {
		o := Options{Failed: report, Link: g.Link, Shot: g.Shot, Faces: faces,
			Quiet: func(e presence.Event) bool { return g.quiet(e.Name) }}
		g.Go(func(ctx context.Context) error { Deliver(ctx, q, s, o); return nil })
	}
}

// quiet reports whether nothing is sent about a person.
func (g *Group) quiet(name string) bool { return slices.Contains(g.Quiet, name) }

// Now returns a state without those about whom nothing is sent.
func (g *Group) Now(n office.Now) office.Now {
	n.People = slices.DeleteFunc(slices.Clone(n.People), func(p presence.Presence) bool {
		return g.quiet(p.Name)
	})
	n.Known = slices.DeleteFunc(slices.Clone(n.Known), func(p office.KnownPerson) bool {
		return g.quiet(p.Name)
	})
	n.Cameras = slices.Clone(n.Cameras)
	for i := range n.Cameras {
		c := &n.Cameras[i]
		if c.Last != nil && g.quiet(c.Last.Name) {
			c.Last = nil
		}
	}
	return n
}

// Go runs do until the group is closed. Failed is called with its error.
func (g *Group) Go(do func(ctx context.Context) error) {
	g.work.Go(func() {
		if err := do(g.ctx); err != nil {
			g.failed(err)
		}
	})
}

// note records the result of the last try, and calls Changed if it differs.
func (g *Group) note(m *member, err error) {
	if errors.Is(err, ErrOffline) {
		return // the cause of the lost connection was reported already
	}
	text := ""
	if err != nil {
		text = err.Error()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	news := text != m.last
	m.last = text
	if news && g.Changed != nil { // with the lock: the last word is the last state
		g.Changed(m.name, err)
	}
}

// Status returns the state of the delivery to each sink.
func (g *Group) Status() []Status {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := make([]Status, len(g.members))
	for i, m := range g.members {
		waiting, lost, err := m.queue.Waiting()
		all[i] = Status{Name: m.name, Waiting: waiting, Lost: lost, Error: m.last}
		if err != nil && m.last == "" {
			all[i].Error = err.Error()
		}
	}
	return all
}

// Close ends the delivery and waits for its goroutines. Before that, unless the group's context
// ends, working sinks get the remaining events, however slow they are. The next start delivers the
// others, whose number is in [Group.Status].
func (g *Group) Close() {
	for g.ctx.Err() == nil && g.waiting() {
		time.Sleep(50 * time.Millisecond)
	}
	g.stop()
	g.work.Wait()
}

// waiting reports whether a working sink still lacks events.
func (g *Group) waiting() bool {
	for _, s := range g.Status() {
		if s.Waiting > 0 && s.Error == "" {
			return true
		}
	}
	return false
}
