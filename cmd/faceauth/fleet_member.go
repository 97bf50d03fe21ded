// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/faceauth/faceauth/fleet"
	"github.com/faceauth/faceauth/fleet/hub"
	"github.com/faceauth/faceauth/gallery"
	"github.com/spf13/cobra"
)

// member is the part that a command takes in a fleet.
type member struct {
	device *fleet.Device
	conn   *hub.Conn
	stop   context.CancelFunc
	ended  chan error // of the device's run; closed after it
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
	set.StringVar(&f.state, "fleet-state", "", "folder of this device in the fleet (default: faceauth/fleet below $XDG_DATA_HOME or ~/.local/share)")
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
	d, err := fleet.Open(folder, fleet.Settings{Tell: func(s string) { warn(c, "fleet: "+s) }})
	if err != nil {
		return nil, memberFailure(err)
	}
	conn, err := known.Connect(nil)
	if err != nil {
		d.Close()
		return nil, memberFailure(err)
	}
	ctx, stop := context.WithCancel(c.Context())
	m := &member{device: d, conn: conn, stop: stop, ended: make(chan error, 1)}
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
		return fail(badUsage, fmt.Errorf("%w; join first: faceauth fleet join", err))
	case errors.Is(err, fleet.ErrBusy):
		return fail(badUsage, fmt.Errorf("%w; what it does reaches the fleet, too", err))
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

// exchange brings a gallery in line with the fleet, both ways.
func (m *member) exchange(c *cobra.Command, g *gallery.Gallery) (fleet.Reconciled, error) {
	r, err := m.device.Reconcile(g, fleet.Reconciling{Publish: true})
	for _, s := range r.Refused {
		warn(c, "fleet: "+s)
	}
	return r, err
}
