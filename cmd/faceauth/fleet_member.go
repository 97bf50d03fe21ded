// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/faceauth/faceauth/fleet"
	"github.com/spf13/cobra"
)

// member connects a command with a fleet.
type member struct{ *fleet.Session }

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
	var mu sync.Mutex
	last := ""
	session, err := fleet.Enter(c.Context(), folder, fleet.Settings{Tell: func(s string) {
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
	return &member{session}, nil
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

// close disconnects. Waiting entries are sent next time.
func (m *member) close() error { return memberFailure(m.Close()) }

// mind calls failed if the device cannot take part any more, until ctx ends. A program of a revoked device goes on
// without the fleet.
func (m *member) mind(ctx context.Context, c *cobra.Command, failed func(error)) {
	select {
	case err := <-m.Ended:
		if errors.Is(err, fleet.ErrRevoked) {
			warn(c, "fleet: this device was revoked; this goes on without the fleet, with the people that it knows")
		} else if err != nil {
			failed(memberFailure(err))
		}
	case <-ctx.Done():
	}
}

// reach is how long a command that ends by itself waits for the fleet.
const reach = 5 * time.Second

// arrive waits until the device has the state of the fleet.
func (m *member) arrive(c *cobra.Command) {
	ctx, cancel := context.WithTimeout(c.Context(), reach)
	defer cancel()
	if m.InStep(ctx) {
		return
	}
	if s := m.Device.State(); s.Connected && s.Keys > 0 {
		warn(c, fmt.Sprintf("%s missing: people they belong to are not known here; run faceauth office --fleet or "+
			"faceauth fleet follow for a moment on one of the other devices", count(s.Keys, "key")))
		return
	}
	warn(c, "the fleet cannot be reached; its latest changes are missing here")
}

// unsent is a warning.
const unsent = "the fleet cannot be reached; the change is sent when a command with --fleet reaches it"

// leave waits until the fleet has what the device says.
func (m *member) leave(c *cobra.Command) {
	ctx, cancel := context.WithTimeout(c.Context(), reach)
	defer cancel()
	if !m.Sent(ctx) {
		warn(c, unsent)
	}
}
