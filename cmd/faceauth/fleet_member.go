// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/faceauth/faceauth/fleet"
	"github.com/faceauth/faceauth/fleet/hub"
	"github.com/faceauth/faceauth/fleet/ledger"
	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/internal/backoff"
	"github.com/spf13/cobra"
)

// member is the part that a command takes in a fleet.
type member struct {
	device *fleet.Device
	conn   *hub.Conn
	stop   context.CancelFunc
	ended  chan error // of the device's run; closed after it

	space  string               // of the gallery
	people map[string]ledger.ID // of the gallery, whom the fleet knows

	taught  time.Time       // when the others were given last what was learned here
	forgot  map[string]bool // names whom this program has forgotten since the last exchange
	refused map[string]bool // sentences that were said
	spoken  chan struct{}   // has a value when something was said on the page
}

// memberFlags say whether a command takes part in a fleet, and as whom.
type memberFlags struct {
	fleet bool
	state string
}

func (f *memberFlags) flags(c *cobra.Command, persistent bool) {
	set := c.Flags()
	if persistent {
		set = c.PersistentFlags()
	}
	set.BoolVar(&f.fleet, "fleet", false, "share people with the fleet that this device has joined (faceauth fleet join)")
	deviceFolderFlag(set, &f.state, "fleet-state")
}

// join begins to take part, or returns nil where that is not wanted.
func (f *memberFlags) join(c *cobra.Command) (*member, error) {
	if !f.fleet {
		if f.state != "" {
			return nil, fail(badUsage, errors.New("--fleet-state is for --fleet"))
		}
		return nil, nil
	}
	folder, err := fleetFolder(f.state, "fleet")
	if err != nil {
		return nil, err
	}
	known, err := hub.Open(folder)
	if err != nil {
		return nil, memberFailure(err)
	}
	var mu sync.Mutex
	last := ""
	d, err := fleet.Open(folder, fleet.Settings{Tell: func(s string) {
		mu.Lock()
		defer mu.Unlock()
		if s != last { // it tries again and again
			warn(c, "fleet: "+s)
		}
		last = s
	}})
	if err != nil {
		return nil, memberFailure(err)
	}
	conn, err := known.Connect(nil)
	if err != nil {
		d.Close()
		return nil, memberFailure(err)
	}
	ctx, stop := context.WithCancel(c.Context())
	m := &member{device: d, conn: conn, stop: stop, ended: make(chan error, 1), refused: make(map[string]bool), forgot: make(map[string]bool), spoken: make(chan struct{}, 1)}
	go func() {
		defer close(m.ended)
		m.ended <- d.Run(ctx, conn)
	}()
	return m, nil
}

// memberFailure gives an error of taking part its exit code.
func memberFailure(err error) error {
	switch {
	case errors.Is(err, fleet.ErrNotJoined):
		return fail(badUsage, err)
	case errors.Is(err, fleet.ErrBusy):
		return fail(badUsage, fmt.Errorf("%w; end it first, or say it there: faceauth office takes it in on its page", err))
	}
	return fleetFailure(err)
}

// inStep waits until the device has everything of the fleet and the fleet everything of the device, or for so long.
func (m *member) inStep(ctx context.Context, most time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	for {
		if s := m.device.State(); s.InStep && s.Keys == 0 {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-m.device.Changed():
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// close ends the part. What waits to be said is said next time.
func (m *member) close() error {
	m.stop()
	err := <-m.ended
	m.conn.Close()
	return errors.Join(memberFailure(err), m.device.Close())
}

// exchange brings a gallery in line with the fleet, both ways. Save the gallery where it has changed, and call Done.
// Forgetting, which may be nil, is told of those who are about to be forgotten.
func (m *member) exchange(c *cobra.Command, g *gallery.Gallery, forgetting func(name string)) (r fleet.Reconciled, err error) {
	if r, err = m.device.Reconcile(g, fleet.Reconciling{Publish: true, Forgetting: forgetting}); err == nil {
		r.TakeLessons(g)
		m.space, m.people = g.Space().ID, r.People
		// Whom this program has forgotten itself it has forgotten whole, and the name may be somebody else's by now.
		r.Forgotten = slices.DeleteFunc(r.Forgotten, func(name string) bool { return m.forgot[name] })
		clear(m.forgot)
	}
	m.tellRefused(c, r.Refused)
	return r, err
}

// tellRefused says what could not be taken, each once.
func (m *member) tellRefused(c *cobra.Command, sentences []string) {
	for _, s := range sentences {
		if !m.refused[s] {
			warn(c, "fleet: "+s)
		}
		m.refused[s] = true
	}
}

// say tells the fleet what somebody did to the people of the gallery.
func (m *member) say(c fleet.Change) error {
	if err := m.device.Say(m.space, m.people, c); err != nil {
		return err
	}
	for _, r := range c.Renamed {
		if id, known := m.people[r.From]; known {
			delete(m.people, r.From)
			m.people[r.To] = id
		}
	}
	for _, name := range c.Forgotten {
		delete(m.people, name)
		m.forgot[name] = true
	}
	return nil
}

// How often a gallery and the fleet are compared at the least, and the others are given what was learned here at most.
const (
	lookEvery  = time.Minute
	teachEvery = time.Minute
)

// share brings the people of a program and of the fleet in line with exchange, when either has changed, until ctx ends.
func (m *member) share(ctx context.Context, c *cobra.Command, exchange func() error) {
	last := ""
	for {
		begun := time.Now()
		err := exchange()
		// What cannot be done now, as the disk is full or another program has changed the gallery, is tried again.
		if err != nil && err.Error() != last {
			warn(c, "fleet: "+err.Error())
		}
		last = ""
		if err != nil {
			last = err.Error()
		}
		// With thousands of people it takes a while, in which the cameras wait.
		if !backoff.Wait(ctx, 4*time.Since(begun)) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-m.device.Changed():
		case <-m.spoken:
		case <-time.After(lookEvery):
		}
	}
}

// mind tells failed where the device cannot take part any more, until ctx ends. A program of a device that was revoked
// goes on without the fleet.
func (m *member) mind(ctx context.Context, c *cobra.Command, failed func(error)) {
	select {
	case err := <-m.ended:
		if errors.Is(err, fleet.ErrRevoked) {
			warn(c, "fleet: this device was revoked; this goes on without the fleet, with the people that it knows")
		} else if err != nil {
			failed(memberFailure(err))
		}
	case <-ctx.Done():
	}
}

// teach gives the others what was learned here, now and then.
func (m *member) teach(g *gallery.Gallery) error {
	if time.Since(m.taught) < teachEvery {
		return nil
	}
	m.taught = time.Now()
	_, err := m.device.TeachLessons(g, m.people)
	return err
}

// reach is how long a command that ends by itself waits for the fleet.
const reach = 5 * time.Second

// arrive waits until the device knows what the fleet knows.
func (m *member) arrive(c *cobra.Command) {
	if m.inStep(c.Context(), reach) {
		return
	}
	if s := m.device.State(); s.Connected && s.Keys > 0 {
		warn(c, fmt.Sprintf("%s missing, and no device that has them answers: people they belong to are not known here; "+
			"run faceauth office --fleet or faceauth fleet follow on one of the other devices", count(s.Keys, "key")))
		return
	}
	warn(c, "the fleet is not reached; what it was told lately is not known here")
}

// leave waits until the fleet knows what the device has said.
func (m *member) leave(c *cobra.Command) {
	ctx, cancel := context.WithTimeout(c.Context(), reach)
	defer cancel()
	for m.device.State().Waiting > 0 {
		if !backoff.Wait(ctx, 10*time.Millisecond) {
			warn(c, "the fleet is not reached; it is told when a command with --fleet reaches it")
			return
		}
	}
}

// align brings a gallery in line with the fleet, and saves it where it has changed.
func (m *member) align(c *cobra.Command, g *gallery.Gallery, path string) error {
	x, err := m.exchange(c, g, nil)
	if err != nil {
		return err
	}
	if _, err := m.device.TeachLessons(g, m.people); err != nil || !x.Changed {
		return err
	}
	if err := g.Save(path); err != nil {
		return err
	}
	return x.Done()
}

// changed tells the fleet what a command did to a gallery that it has saved. Before are its labels and names before
// that: somebody who is not there any more was forgotten.
func (m *member) changed(c *cobra.Command, g *gallery.Gallery, path string, before map[int64]fleet.Label, names []string) error {
	change := fleet.Difference(before, fleet.Labels(g))
	for _, name := range names {
		if !g.Learner().Knows(name) {
			change.Forgotten = append(change.Forgotten, name)
		}
	}
	if err := m.say(change); err != nil {
		return err
	}
	return m.keep(c, g, path)
}

// keep brings the file of a gallery that was saved a moment ago in line with the fleet.
func (m *member) keep(c *cobra.Command, g *gallery.Gallery, path string) error {
	x, err := m.device.Keep(path, g.Space(), g.Learner().Settings(), fleet.Reconciling{Publish: true})
	m.space, m.people = g.Space().ID, x.People
	m.tellRefused(c, x.Refused)
	return err
}
