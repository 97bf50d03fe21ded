// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/internal/backoff"
)

// Times of a [Part].
const (
	lookAtLeast = time.Minute     // between two comparisons of gallery and fleet
	lookAgain   = 5 * time.Second // after a failure
	teachEvery  = time.Minute     // between two lessons
)

// takeFor is how long an exchange takes new people: cameras wait for it.
const takeFor = 250 * time.Millisecond

// Part is the part that a program with a gallery takes in a fleet: it brings both in line, and tells the fleet about
// changes. One goroutine at a time may call its methods, except [Part.Share].
type Part struct {
	Device *Device
	People map[string]ID // people of the gallery whom the fleet knows
	Pause  time.Duration // between two lessons. Default a minute

	take    time.Duration // how long an exchange takes new people
	tell    func(string)
	space   string // of the gallery
	taught  time.Time
	forgot  map[string]bool // names that this program has forgotten since the last exchange
	refused map[string]bool // sentences that were told
	spoken  chan struct{}   // gets a value when a user has changed something
}

// NewPart returns the part of a program in a fleet. Tell gets sentences for people, each once; it may be nil. The error
// wraps [ErrDamaged].
func NewPart(d *Device, space string, tell func(string)) (*Part, error) {
	people, err := d.Shared("")
	if tell == nil {
		tell = func(string) {}
	}
	return &Part{Device: d, People: people, tell: tell, space: space, Pause: teachEvery, take: takeFor,
		forgot: make(map[string]bool), refused: make(map[string]bool), spoken: make(chan struct{}, 1)}, err
}

// Exchange updates a gallery from the fleet, and the fleet from the gallery. The caller saves the gallery if it has
// changed, and calls Done; if there is More, [Part.Share] exchanges again soon. Forgetting, which may be nil, is called
// before a person is forgotten.
func (p *Part) Exchange(g *gallery.Gallery, forgetting func(name string)) (r Reconciled, err error) {
	r, err = p.Device.Reconcile(g, Reconciling{Publish: true, Forgetting: forgetting, Most: p.take})
	if err == nil {
		if r.More {
			signal(p.spoken)
		}
		r.TakeLessons(g)
		p.space, p.People = g.Space().ID, r.People
		// People that this program has forgotten itself are complete, and another person may have the name by now.
		r.Forgotten = slices.DeleteFunc(r.Forgotten, func(name string) bool { return p.forgot[name] })
		clear(p.forgot)
	}
	p.tellRefused(r.Refused)
	return r, err
}

// tellRefused tells each sentence once.
func (p *Part) tellRefused(sentences []string) {
	for _, s := range sentences {
		if !p.refused[s] {
			p.tell(s)
		}
		p.refused[s] = true
	}
}

// Say sends a user's change of the gallery to the fleet. The errors are those of [Device.Say].
func (p *Part) Say(c Change) error {
	if err := p.Device.Say(p.space, p.People, c); err != nil {
		return err
	}
	for _, name := range c.Forgotten {
		p.forgot[name] = true
	}
	signal(p.spoken)
	return nil
}

// Spoke makes [Part.Share] exchange at once.
func (p *Part) Spoke() { signal(p.spoken) }

// Teach gives lessons to the fleet, at most once a minute.
func (p *Part) Teach(g *gallery.Gallery) error {
	if time.Since(p.taught) < p.Pause {
		return nil
	}
	p.taught = time.Now()
	_, err := p.Device.TeachLessons(g, p.People)
	return err
}

// Align updates an open gallery and the fleet from each other, gives lessons like [Part.Teach], and saves the gallery.
// A large fleet takes several exchanges, between which other programs can change the gallery.
func (p *Part) Align(g *gallery.Gallery) error {
	for {
		x, err := saving(g, func() (Reconciled, error) {
			x, err := p.Exchange(g, nil)
			if err == nil {
				err = p.Teach(g)
			}
			return x, err
		})
		if err != nil || !x.More {
			return err
		}
	}
}

// Keep updates the file of a gallery that was just saved from the fleet. What g has learned since stays in memory.
func (p *Part) Keep(g *gallery.Gallery, path string) error {
	x, err := p.Device.Keep(path, g.Space(), g.Learner().Settings(), Reconciling{Publish: true})
	p.space, p.People = g.Space().ID, x.People
	p.tellRefused(x.Refused)
	return err
}

// borrowed names a gallery of which nothing is saved: its file does not have the faces that it learns.
const borrowed = "watch"

// Borrow notes the people that the fleet and a gallery have in common of which nothing will be saved. People who were
// forgotten since it was read are forgotten here, too.
func (p *Part) Borrow(g *gallery.Gallery) error {
	r, err := p.Device.Reconcile(g, Reconciling{Gallery: borrowed})
	if err != nil {
		return err
	}
	for name := range p.People {
		if _, there := r.People[name]; !there && g.Learner().Knows(name) {
			if err := g.Forget(name); err != nil {
				return err
			}
		}
	}
	return r.Done()
}

// Refresh updates a gallery from the fleet of which nothing is saved ([Part.Borrow]), and the file that it was read
// from.
func (p *Part) Refresh(g *gallery.Gallery, path string) error {
	r, err := p.Device.Reconcile(g, Reconciling{Gallery: borrowed})
	if err != nil {
		return err
	}
	r.TakeLessons(g)
	p.tellRefused(r.Refused)
	if err := r.Done(); err != nil {
		return err
	}
	return p.Keep(g, path)
}

// SayChanged tells the fleet about changes that a program has saved in a gallery, and updates its file. Before and
// names have the labels and names before the change: a missing person was forgotten.
func (p *Part) SayChanged(g *gallery.Gallery, path string, before map[int64]gallery.Label, names []string) error {
	var c Change
	c.Added, c.Removed = gallery.Difference(before, g.Labels())
	for _, name := range names {
		if !g.Learner().Knows(name) {
			c.Forgotten = append(c.Forgotten, name)
		}
	}
	if err := p.Say(c); err != nil {
		return err
	}
	return p.Keep(g, path)
}

// Share calls exchange whenever the program's people or the fleet have changed, until ctx ends. It tells an error, and
// tries again: the disk is full, or another program has changed the gallery.
func (p *Part) Share(ctx context.Context, exchange func() error) {
	last := ""
	for {
		begun := time.Now()
		err := exchange()
		if err != nil && err.Error() != last {
			p.tell(err.Error())
		}
		last = ""
		pause := lookAtLeast
		if err != nil {
			last, pause = err.Error(), lookAgain
		}
		// With thousands of people an exchange takes a while, and the cameras wait for it.
		if !backoff.Wait(ctx, 4*time.Since(begun)) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-p.Device.Changed():
		case <-p.spoken:
		case <-time.After(pause):
		}
	}
}

// Neighbours are the other devices that tell who is with them.
type Neighbours struct {
	mu  sync.Mutex
	all map[string]neighbour
}

type neighbour struct {
	room  Room
	heard time.Time // by the clock of this machine
}

// Times of neighbours.
const (
	silentFrom = 10 * time.Second // without a message for so long, the people at a site are unknown
	leftFrom   = 24 * time.Hour   // after this a silent site is not listed
)

// Hear takes the messages of other devices until ctx ends.
func (n *Neighbours) Hear(ctx context.Context, d *Device) {
	d.Listen(ctx, func(device string, data []byte) {
		if r, err := d.OpenRoom(device, data); err == nil { // otherwise it is no message of a member
			n.take(r, time.Now())
		}
	})
}

// take keeps the message of another device, unless it is older than the last one: messages can be sent twice.
func (n *Neighbours) take(r Room, now time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.all == nil {
		n.all = make(map[string]neighbour)
	}
	last, known := n.all[r.Device.ID]
	if known && !r.At.After(last.room.At) && now.Sub(last.heard) < silentFrom {
		return
	}
	n.all[r.Device.ID] = neighbour{r, now}
}

// Rooms returns the rooms of the other devices, by name.
func (n *Neighbours) Rooms(now time.Time) (rooms []Room) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for id, x := range n.all {
		if now.Sub(x.heard) > leftFrom {
			delete(n.all, id)
			continue
		}
		x.room.Silent = now.Sub(x.heard) > silentFrom
		rooms = append(rooms, x.room)
	}
	slices.SortFunc(rooms, func(a, b Room) int {
		return slices.Compare([]string{a.Device.Name, a.Device.ID}, []string{b.Device.Name, b.Device.ID})
	})
	return rooms
}

// String returns the name of a merge, which [ParseMerge] reads.
func (m Merge) String() string {
	if m == (Merge{}) {
		return ""
	}
	return m.From.String() + "/" + m.Into.String()
}

// ParseMerge reads the text of [Merge.String].
func ParseMerge(s string) (m Merge, err error) {
	if len(s) == 65 && s[32] == '/' {
		if m.From, err = ParseID(s[:32]); err == nil {
			m.Into, err = ParseID(s[33:])
			return m, err
		}
	}
	return m, fmt.Errorf("%.80q is not the name of a merge in the fleet", s)
}
