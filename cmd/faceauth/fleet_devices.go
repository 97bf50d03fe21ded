// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/faceauth/faceauth/fleet/hub"
	"github.com/spf13/cobra"
)

func newFleetDevices() *cobra.Command {
	return adminCommand(&cobra.Command{
		Use: "devices", Short: "list the devices of the fleet and their state", Args: cobra.NoArgs,
	}, false, func(c *cobra.Command, o *fleetFlags, a *hub.Admin, _ string) error {
		all, err := a.Devices(c.Context())
		switch {
		case err != nil:
			return err
		case o.json:
			return json.NewEncoder(c.OutOrStdout()).Encode(all)
		case len(all) == 0:
			fmt.Fprintln(c.ErrOrStderr(), "no device has joined yet; for a token: faceauth fleet invite")
			return nil
		}
		return printDevices(c.OutOrStdout(), all, time.Now())
	})
}

func printDevices(out io.Writer, all []hub.Device, now time.Time) error {
	t := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "NAME\tID\tSINCE\tLAST SEEN\tPEOPLE\tSTATE")
	for _, d := range all {
		scope, state := "all", "away"
		if !d.Scope.All {
			scope = fmt.Sprint(len(d.Scope.People))
		}
		switch {
		case d.Revoked:
			state = "revoked"
		case d.Status != nil && d.Status.Waiting > 0:
			state = "behind by " + count(d.Status.Waiting, "value")
		case d.Connected && d.Status != nil && d.Status.Keys > 0:
			state = "lacks " + count(d.Status.Keys, "key")
		case d.Connected && d.Status != nil && d.Status.InStep:
			state = "in step"
		case d.Connected:
			state = "connected"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", d.Name, d.ID, d.Admitted.Local().Format("2006-01-02"),
			lastSeen(d, now), scope, strings.Join(append([]string{state}, blamed(d)...), "; "))
	}
	return t.Flush()
}

// blamed says for what the server and the other devices hold back a device.
func blamed(d hub.Device) (all []string) {
	if d.Limited != "" {
		all = append(all, d.Limited)
	}
	by := make(map[string]int)
	for _, why := range d.Skipped {
		by[why]++
	}
	for _, why := range slices.Sorted(maps.Keys(by)) {
		all = append(all, fmt.Sprintf("values of it are skipped by %s: %q", count(by[why], "device"), why))
	}
	return all
}

// lastSeen says when a device was last connected.
func lastSeen(d hub.Device, now time.Time) string {
	switch {
	case d.Connected:
		return "now"
	case d.Seen.IsZero():
		return "not since the server started"
	}
	return ago(now.Sub(d.Seen))
}

// ago writes a past time as people say it.
func ago(d time.Duration) string {
	switch {
	case d < time.Minute:
		return "just now"
	case d < time.Hour:
		return count(int(d/time.Minute), "minute") + " ago"
	case d < 48*time.Hour:
		return count(int(d/time.Hour), "hour") + " ago"
	}
	return count(int(d/(24*time.Hour)), "day") + " ago"
}

func newFleetCheck() *cobra.Command {
	return adminCommand(&cobra.Command{
		Use:   "check",
		Short: "say of each device whether it works",
		Long: "Check prints one line for each device: whether it is connected, how many of its values the server\n" +
			"does not have yet, how many keys it lacks, and whose values it skips and why. The exit code is 1 if\n" +
			"anything is wrong.",
		Args: cobra.NoArgs,
	}, false, func(c *cobra.Command, o *fleetFlags, a *hub.Admin, _ string) error {
		all, err := a.Devices(c.Context())
		if err != nil {
			return err
		}
		return printCheck(c.OutOrStdout(), all, time.Now(), o.json)
	})
}

func printCheck(out io.Writer, all []hub.Device, now time.Time, asJSON bool) error {
	type line struct {
		Name  string   `json:"name"`
		ID    string   `json:"id"`
		Wrong []string `json:"wrong"`
	}
	names := make(map[string]string)
	for _, d := range all {
		names[d.ID] = d.Name
	}
	lines, bad := []line{}, 0
	for _, d := range all {
		if d.Revoked {
			continue
		}
		l := line{d.Name, d.ID, problems(d, names, now)}
		if lines = append(lines, l); len(l.Wrong) > 0 {
			bad++
		}
	}
	if asJSON {
		if err := json.NewEncoder(out).Encode(lines); err != nil {
			return err
		}
	} else {
		for _, l := range lines {
			fmt.Fprintf(out, "%s: %s\n", l.Name, strings.Join(append(l.Wrong, "ok")[:max(1, len(l.Wrong))], "; "))
		}
	}
	if bad > 0 {
		return fail(failed, fmt.Errorf("%d of %s need attention", bad, count(len(lines), "device")))
	}
	return nil
}

// problems returns what is wrong with a device.
func problems(d hub.Device, names map[string]string, now time.Time) (all []string) {
	wrong := func(is bool, format string, a ...any) {
		if is {
			all = append(all, fmt.Sprintf(format, a...))
		}
	}
	wrong(!d.Connected, "not reachable, last seen: %s", lastSeen(d, now))
	all = append(all, blamed(d)...)
	s := d.Status
	if s == nil {
		wrong(d.Connected, "it has not told its state yet")
		return all
	}
	wrong(d.Connected && !s.InStep, "it does not have all values yet")
	wrong(s.Waiting > 0, "the server lacks %s of it", count(s.Waiting, "value"))
	wrong(s.Keys > 0, "it lacks the keys of %s; another full device must be online to give them",
		count(s.Keys, "person"))
	for _, author := range slices.Sorted(maps.Keys(s.Refused)) {
		name := author
		if names[author] != "" {
			name = names[author]
		}
		wrong(true, "it skips values of %q: %q", name, s.Refused[author])
	}
	wrong(s.Trouble != "", "it says %q", s.Trouble)
	return all
}
