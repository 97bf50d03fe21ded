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

// member connects a command with a fleet.
type member struct {
	device *fleet.Device
	conn   *hub.Conn
	stop   context.CancelFunc
	ended  chan error // closed when the device has ended
	deaf   func()     // ends listening to other commands

	space  string               // of the gallery
	people map[string]ledger.ID // people of the gallery whom the fleet knows

	taught  time.Time       // when lessons were last given to the fleet
	pause   time.Duration   // the shortest time between two lessons
	forgot  map[string]bool // names that this program has forgotten since the last exchange
	refused map[string]bool // sentences that were printed
	spoken  chan struct{}   // gets a value when something was corrected on the page
}

// memberFlags say whether a command takes part in a fleet.
type memberFlags struct {
	fleet bool
	state string
}

func (f *memberFlags) flags(c *cobra.Command, persistent bool) {
	set := c.Flags()
	if persistent {
		set = c.PersistentFlags()
	}
	set.BoolVar(&f.fleet, "fleet", false,
		"share people with the fleet that this device has joined (faceauth fleet join)")
	deviceFolderFlag(set, &f.state, "fleet-state")
}

// beside reports whether this device has joined a fleet, but the command does not take part.
func (f *memberFlags) beside() bool {
	folder, err := fleetFolder("", "fleet")
	if f.fleet || err != nil {
		return false
	}
	_, err = fleet.Joined(folder)
	return err == nil
}

// join connects to the fleet, or returns nil without --fleet.
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
		if s != last { // the device repeats its attempts
			warn(c, "fleet: "+s)
		}
		last = s
	}})
	if err != nil {
		return nil, memberFailure(err)
	}
	people, err := d.Shared("")
	if err != nil {
		d.Close()
		return nil, memberFailure(err)
	}
	conn, err := known.Connect(nil)
	if err != nil {
		d.Close()
		return nil, memberFailure(err)
	}
	ctx, stop := context.WithCancel(c.Context())
	m := &member{device: d, conn: conn, stop: stop, ended: make(chan error, 1), pause: teachEvery, people: people,
		refused: make(map[string]bool), forgot: make(map[string]bool), spoken: make(chan struct{}, 1)}
	go func() {
		defer close(m.ended)
		m.ended <- d.Run(ctx, conn)
	}()
	if m.deaf, err = m.listen(ctx, folder); err != nil {
		m.deaf = func() {}
		warn(c, "fleet: other commands cannot ask this one while it runs: "+err.Error())
	}
	return m, nil
}

// memberFailure gives an error of a member its exit code.
func memberFailure(err error) error {
	switch {
	case errors.Is(err, fleet.ErrNotJoined):
		return fail(badUsage, err)
	case errors.Is(err, fleet.ErrBusy):
		return fail(badUsage, fmt.Errorf("%w; end it first, or say it there: faceauth office takes it in on its page",
			err))
	}
	return fleetFailure(err)
}

// inStep waits until the device and the fleet have the same state, or until the time most is over.
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

// close disconnects. Waiting entries are sent next time.
func (m *member) close() error {
	m.deaf()
	m.stop()
	err := <-m.ended
	m.conn.Close()
	return errors.Join(memberFailure(err), m.device.Close())
}

// exchange updates a gallery from the fleet, and the fleet from the gallery. The caller saves the gallery if it has
// changed, and calls Done. Forgetting, which may be nil, is called before a person is forgotten.
func (m *member) exchange(c *cobra.Command, g *gallery.Gallery, forgetting func(name string)) (r fleet.Reconciled,
	err error) {
	if r, err = m.device.Reconcile(g, fleet.Reconciling{Publish: true, Forgetting: forgetting}); err == nil {
		r.TakeLessons(g)
		m.space, m.people = g.Space().ID, r.People
		// People that this program has forgotten itself are complete, and another person may have the name by now.
		r.Forgotten = slices.DeleteFunc(r.Forgotten, func(name string) bool { return m.forgot[name] })
		clear(m.forgot)
	}
	m.tellRefused(c, r.Refused)
	return r, err
}

// tellRefused prints each sentence about refused changes once.
func (m *member) tellRefused(c *cobra.Command, sentences []string) {
	for _, s := range sentences {
		if !m.refused[s] {
			warn(c, "fleet: "+s)
		}
		m.refused[s] = true
	}
}

// say sends a user's change of the gallery to the fleet.
func (m *member) say(c fleet.Change) error {
	if err := m.device.Say(m.space, m.people, c); err != nil {
		return err
	}
	for _, name := range c.Forgotten {
		m.forgot[name] = true
	}
	return nil
}

// The longest time between two comparisons of gallery and fleet, also after a failure, and the shortest between two
// lessons.
const (
	lookEvery  = time.Minute
	retryEvery = 5 * time.Second
	teachEvery = time.Minute
)

// share calls exchange whenever the program's people or the fleet have changed, until ctx ends.
func (m *member) share(ctx context.Context, c *cobra.Command, exchange func() error) {
	last := ""
	for {
		begun := time.Now()
		err := exchange()
		// A failure, because the disk is full or another program has changed the gallery, is tried again.
		if err != nil && err.Error() != last {
			warn(c, "fleet: "+err.Error())
		}
		last = ""
		pause := lookEvery
		if err != nil {
			last, pause = err.Error(), retryEvery
		}
		// With thousands of people an exchange takes a while, and the cameras wait for it.
		if !backoff.Wait(ctx, 4*time.Since(begun)) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-m.device.Changed():
		case <-m.spoken:
		case <-time.After(pause):
		}
	}
}

// mind calls failed if the device cannot take part any more, until ctx ends. A program of a revoked device goes on
// without the fleet.
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

// teach gives lessons to the fleet at intervals.
func (m *member) teach(g *gallery.Gallery) error {
	if time.Since(m.taught) < m.pause {
		return nil
	}
	m.taught = time.Now()
	_, err := m.device.TeachLessons(g, m.people)
	return err
}

// reach is how long a command that ends by itself waits for the fleet.
const reach = 5 * time.Second

// arrive waits until the device has the state of the fleet.
func (m *member) arrive(c *cobra.Command) {
	if m.inStep(c.Context(), reach) {
		return
	}
	if s := m.device.State(); s.Connected && s.Keys > 0 {
		warn(c, fmt.Sprintf("%s missing, and no device that has them answers: people they belong to are not known "+
			"here; run faceauth office --fleet or faceauth fleet follow on one of the other devices",
			count(s.Keys, "key")))
		return
	}
	warn(c, "the fleet cannot be reached; its latest changes are missing here")
}

// unsent is a warning.
const unsent = "the fleet cannot be reached; the change is sent when a command with --fleet reaches it"

// sent waits until the fleet has the entries of the device, and reports false if ctx ends before.
func (m *member) sent(ctx context.Context) bool {
	for m.device.State().Waiting > 0 {
		if !backoff.Wait(ctx, 10*time.Millisecond) {
			return false
		}
	}
	return true
}

// leave waits until the fleet has the entries of the device, and another device the keys of new people.
func (m *member) leave(c *cobra.Command) {
	ctx, cancel := context.WithTimeout(c.Context(), reach)
	defer cancel()
	if !m.sent(ctx) {
		warn(c, unsent)
		return
	}
	for n := m.device.Ungiven(); n > 0; n = m.device.Ungiven() {
		if !backoff.Wait(ctx, 10*time.Millisecond) {
			warn(c, fmt.Sprintf("no other device has asked for %s of new people: they are known there when this "+
				"device is connected again; run faceauth fleet follow here, or on a device that is always on",
				count(n, "key")))
			return
		}
	}
}

// align updates a gallery from the fleet, and saves it if it has changed.
func (m *member) align(c *cobra.Command, g *gallery.Gallery, path string) error {
	if err := g.At(path).Begin(); err != nil {
		return err
	}
	defer g.End()
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

// changed tells the fleet about changes that a command has saved in a gallery. Before and names have the labels and
// names before the change: a missing person was forgotten.
func (m *member) changed(c *cobra.Command, g *gallery.Gallery, path string, before map[int64]fleet.Label,
	names []string) error {
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

// keep updates the file of a gallery that was just saved from the fleet. What g has learned since stays in memory.
func (m *member) keep(c *cobra.Command, g *gallery.Gallery, path string) error {
	x, err := m.device.Keep(path, g.Space(), g.Learner().Settings(), fleet.Reconciling{Publish: true})
	m.space, m.people = g.Space().ID, x.People
	m.tellRefused(c, x.Refused)
	return err
}
