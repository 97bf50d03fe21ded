// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/faceauth/faceauth/fleet"
	"github.com/faceauth/faceauth/fleet/hub"
	"github.com/spf13/cobra"
)

// serverFailure gives an error of the commands of a server its exit code.
func serverFailure(err error) error {
	for _, of := range []error{hub.ErrNoFleet, hub.ErrFolder, hub.ErrOther, hub.ErrDevice, hub.ErrRunning} {
		if errors.Is(err, of) {
			return fail(badUsage, err)
		}
	}
	return fleetFailure(err)
}

// serverFlags adds the flags for the folder of a server and its admin key.
func (o *fleetFlags) serverFlags(c *cobra.Command, key bool) {
	c.Flags().StringVar(&o.state, "state", "", "folder of the server (default: faceauth/fleet-server below "+
		"$XDG_DATA_HOME or ~/.local/share)")
	if key {
		c.Flags().StringVar(&o.adminKey, "admin-key", "", "file of the admin key (default: admin.nk in a folder "+
			"beside the server's, with -admin after its name)")
	}
}

// server returns the folder of the server and the file of the admin key.
func (o *fleetFlags) server() (folder, key string, err error) {
	folder, err = fleetFolder(o.state, "fleet-server")
	if key = o.adminKey; key == "" {
		key = filepath.Join(filepath.Clean(folder)+"-admin", "admin.nk")
	}
	return folder, key, err
}

// fleetLog returns a logger with one line for each event.
func fleetLog(c *cobra.Command, verbose bool) *slog.Logger {
	level := slog.LevelInfo
	if verbose {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(c.ErrOrStderr(), &slog.HandlerOptions{Level: level}))
}

func newFleetServe() *cobra.Command {
	var o fleetFlags
	var s hub.Options
	var quota int64
	address, verbose, noToken := "", false, false
	c := &cobra.Command{
		Use:   "serve",
		Short: "run the server of a fleet",
		Long: "Serve runs the server of a fleet until it is interrupted. The first start makes the fleet: a\n" +
			"folder for the server, and the admin key, which is not in this folder. The admin key admits and\n" +
			"revokes devices. The server runs without it: keep it, and a copy of it, on another machine, and\n" +
			"bring it only for faceauth fleet invite, revoke, allow and move.\n\n" +
			"With --nats it uses an existing NATS cluster and starts no server of its own.",
		Example: "  faceauth fleet serve\n" +
			"  faceauth fleet serve --listen 192.0.2.7:4222 --url tls://office.example:4222 --admin-key " +
			"/media/key/admin.nk\n" +
			"  faceauth fleet serve --nats tls://a.example:4222,tls://b.example:4222 --creds fleet.creds --replicas 3",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			key := ""
			if s.Folder, key, err = o.server(); err != nil {
				return err
			}
			switch {
			case quota < 1:
				return fail(badUsage, fmt.Errorf("--quota must be at least 1 (MB), got %d", quota))
			case s.Connections < 1:
				return fail(badUsage, fmt.Errorf("--most-devices must be positive, got %d", s.Connections))
			case s.Replicas < 1 || s.Replicas > 5:
				return fail(badUsage, fmt.Errorf("--replicas must be 1 to 5, got %d", s.Replicas))
			case s.Cluster == "" && (s.Creds != "" || s.Replicas != 1):
				return fail(badUsage, errors.New("--creds and --replicas are for --nats"))
			case s.Cluster != "" && c.Flags().Changed("listen"):
				return fail(badUsage, errors.New("--listen is for the server of this program's own, and --nats for "+
					"one that is there"))
			}
			if s.Listen, err = fleetListen(s.Folder, s.Listen); err != nil {
				return fail(badUsage, err)
			}
			if _, err := hub.Fleet(s.Folder); errors.Is(err, hub.ErrNoFleet) {
				if address == "" {
					if address = s.Cluster; address == "" {
						address = hub.DefaultURL(s.Listen)
					}
				}
				if err := firstStart(c.OutOrStdout(), s.Folder, key, address); err != nil {
					return serverFailure(err)
				}
			} else if err != nil {
				return serverFailure(err)
			} else if was, err := hub.Address(s.Folder); err == nil && address != "" && was != address {
				return fail(badUsage, fmt.Errorf("the server is at %s; to move it, with the admin key: faceauth fleet "+
					"move %s", was, address))
			}
			s.Quota, s.Log = quota<<20, fleetLog(c, verbose)
			s.Ready = func(r hub.Ready) { welcome(c, key, r, noToken) }
			return serverFailure(hub.Serve(c.Context(), s))
		},
	}
	o.serverFlags(c, true)
	f := c.Flags()
	f.StringVar(&s.Listen, "listen", ":4222", "address to listen at; port 0 is a free one, chosen at the first start")
	f.StringVar(&address, "url", "", "at the first start: URL of this server for devices, such as "+
		"tls://office.example:4222 (default: an address of this machine)")
	f.StringVar(&s.Cluster, "nats", "", "URL of an existing NATS cluster with JetStream, instead of an own server; "+
		"several with commas")
	f.StringVar(&s.Creds, "creds", "", "file with the credentials for the cluster: user credentials, the seed of an "+
		"nkey, or USER:PASSWORD")
	f.IntVar(&s.Replicas, "replicas", 1, "copies of the data in the cluster")
	f.Int64Var(&quota, "quota", 64, "largest size of what one device stores, in MB")
	f.IntVar(&s.Connections, "most-devices", 10000, "largest number of connections")
	f.StringVar(&s.Metrics, "metrics", "", "address for /healthz and /metrics (Prometheus), such as 127.0.0.1:9422; "+
		"everybody who reaches it can read the names of devices (default: none)")
	f.BoolVar(&noToken, "no-token", false, "print no token at the first start, for example because others can read "+
		"the journal")
	f.BoolVarP(&verbose, "verbose", "v", false, "print more")
	return c
}

// fleetListen replaces port 0 by the port that the server had before, or by a free one.
func fleetListen(folder, listen string) (string, error) {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return "", fmt.Errorf("--listen must look like :4222 or 192.0.2.7:4222, got %q", listen)
	}
	if port != "0" {
		return listen, nil
	}
	if was, err := hub.Address(folder); err == nil {
		if u, err := url.Parse(was); err == nil && u.Port() != "" {
			return net.JoinHostPort(host, u.Port()), nil
		}
	}
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return "", err
	}
	defer l.Close()
	_, port, err = net.SplitHostPort(l.Addr().String())
	return net.JoinHostPort(host, port), err
}

// firstStart makes a fleet.
func firstStart(out io.Writer, folder, key, url string) error {
	a, err := fleet.OpenAdminKey(key)
	if errors.Is(err, fs.ErrNotExist) {
		a, err = fleet.NewAdminKey(key)
	}
	if err != nil {
		return err
	}
	if err := hub.Create(folder, a, url); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "the admin key of the fleet is %s\n  it admits and revokes devices; the server runs "+
		"without it: move it to another machine, and keep a copy\n", key)
	return err
}

// welcome prints how a device joins.
func welcome(c *cobra.Command, key string, r hub.Ready, noToken bool) {
	out := c.OutOrStdout()
	fmt.Fprintf(out, "the fleet is at %s\n  id: %s\n  devices: %d\n", r.URL, r.Fleet, r.Devices)
	if r.Metrics != "" {
		fmt.Fprintf(out, "  metrics: http://%s/metrics\n", r.Metrics)
	}
	a, err := fleet.OpenAdminKey(key)
	if r.Devices == 0 && !noToken && err == nil && a.Fleet() == r.Fleet {
		var t fleet.Token
		if t, err = a.Invite(r.URL, fleet.Scope{All: true}, time.Now().Add(time.Hour)); err == nil {
			fmt.Fprintln(out, tokenText(t))
			return
		}
	}
	fmt.Fprintln(out, "for another device, print a token: faceauth fleet invite")
}

func tokenText(t fleet.Token) string {
	return fmt.Sprintf("on the device that is to join, until %s, once:\n  faceauth fleet join --token %s",
		t.Expires.Local().Format("2006-01-02 15:04"), t)
}

// timed calls do with the folder of the server and, if it signs, the admin key, until --timeout.
func (o *fleetFlags) timed(c *cobra.Command, signs bool,
	do func(ctx context.Context, folder string, key *fleet.AdminKey) error) error {
	folder, file, err := o.server()
	if err != nil {
		return err
	}
	ctx, cancel, err := o.within(c)
	if err != nil {
		return err
	}
	defer cancel()
	var key *fleet.AdminKey
	if signs {
		key, err = fleet.OpenAdminKey(file)
	}
	if err == nil {
		err = do(ctx, folder, key)
	}
	return serverFailure(err)
}

// asAdmin connects to the running server and calls do. With signs it opens the admin key, too.
func (o *fleetFlags) asAdmin(c *cobra.Command, signs bool, do func(ctx context.Context, a *hub.Admin) error) error {
	return o.timed(c, signs, func(ctx context.Context, folder string, key *fleet.AdminKey) error {
		a, err := hub.OpenAdmin(ctx, folder, key)
		if err != nil {
			return err
		}
		defer a.Close()
		return do(ctx, a)
	})
}

// adminFlags adds the flags of commands that talk to a running server.
func (o *fleetFlags) adminFlags(c *cobra.Command, key bool) {
	o.serverFlags(c, key)
	c.Flags().BoolVar(&o.json, "json", false, "print JSON for programs")
	o.waitFlag(c)
}

func newFleetInvite() *cobra.Command {
	var o fleetFlags
	var people []string
	var lasts time.Duration
	address := ""
	c := &cobra.Command{
		Use:   "invite",
		Short: "print a token with which one device can join",
		Long: "Invite prints a token. Anybody who has it can join the fleet once, until it expires, so protect it\n" +
			"like a key. With --people the device gets and changes only these people, and people whom it enrols\n" +
			"itself. It needs the admin key and no server; until one device of the fleet is online, a new device\n" +
			"has no keys of people.",
		Example: "  faceauth fleet invite\n" +
			"  faceauth fleet invite --expires 24h --people 0123456789abcdef0123456789abcdef",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if lasts < time.Minute || lasts > 30*24*time.Hour {
				return fail(badUsage, fmt.Errorf("--expires must be 1m to 720h, got %v", lasts))
			}
			scope := fleet.Scope{All: len(people) == 0}
			for _, s := range people {
				id, err := fleet.ParseID(s)
				if err != nil {
					return fail(badUsage, fmt.Errorf("--people: %w", err))
				}
				scope.People = append(scope.People, id)
			}
			folder, file, err := o.server()
			if err != nil {
				return err
			}
			key, err := fleet.OpenAdminKey(file)
			if err == nil && address == "" {
				address, err = hub.Address(folder)
			}
			if err != nil {
				return serverFailure(err)
			}
			t, err := key.Invite(address, scope, time.Now().Add(lasts))
			if err != nil {
				return fail(badUsage, err)
			}
			return o.print(c, map[string]any{"token": t.String(), "url": t.URL, "fleet": t.Fleet, "expires": t.Expires},
				tokenText(t))
		},
	}
	o.serverFlags(c, true)
	f := c.Flags()
	f.BoolVar(&o.json, "json", false, "print JSON for programs")
	f.StringVar(&address, "url", "", "URL of the server (default: from the folder of the server)")
	f.DurationVar(&lasts, "expires", time.Hour, "how long the token can be used: 1m to 720h")
	f.StringSliceVar(&people, "people", nil, "numbers of the people for this device, from faceauth people --fleet "+
		"(default: all)")
	return c
}

func newFleetDevices() *cobra.Command {
	var o fleetFlags
	c := &cobra.Command{
		Use:   "devices",
		Short: "list the devices of the fleet and their state",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return o.asAdmin(c, false, func(ctx context.Context, a *hub.Admin) error {
				all, err := a.Devices(ctx)
				if err != nil {
					return err
				}
				if o.json {
					return json.NewEncoder(c.OutOrStdout()).Encode(all)
				}
				if len(all) == 0 {
					fmt.Fprintln(c.ErrOrStderr(), "no device has joined yet; for a token: faceauth fleet invite")
					return nil
				}
				return printDevices(c.OutOrStdout(), all, time.Now())
			})
		},
	}
	o.adminFlags(c, false)
	return c
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
	var o fleetFlags
	c := &cobra.Command{
		Use:   "check",
		Short: "say of each device whether it works",
		Long: "Check prints one line for each device: whether it is connected, how many of its values the server\n" +
			"does not have yet, how many keys it lacks, and whose values it skips and why. The exit code is 1 if\n" +
			"anything is wrong.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return o.asAdmin(c, false, func(ctx context.Context, a *hub.Admin) error {
				all, err := a.Devices(ctx)
				if err != nil {
					return err
				}
				return printCheck(c.OutOrStdout(), all, time.Now(), o.json)
			})
		},
	}
	o.adminFlags(c, false)
	return c
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

func newFleetRevoke() *cobra.Command {
	var o fleetFlags
	keep := false
	c := &cobra.Command{
		Use:   "revoke NAME",
		Short: "remove a device from the fleet at once, by its name or id",
		Long: "Revoke disconnects a device for ever, and takes back all that it said: the people whom it alone\n" +
			"enrolled are lost to the others, and are listed by number. With --keep what it said of them stays.\n" +
			"The device keeps the data that it has already, and gets no later keys. In a NATS cluster the operator\n" +
			"must remove the user of the device, too.",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return o.asAdmin(c, true, func(ctx context.Context, a *hub.Admin) error {
				values, err := a.Alone(ctx, args[0])
				if err != nil {
					return err
				}
				people := []string{}
				for name := range values {
					people = append(people, name[:32])
				}
				slices.Sort(people)
				people = slices.Compact(people)
				if !keep {
					values = nil
				}
				id, err := a.Revoke(ctx, args[0], values)
				if err != nil {
					return err
				}
				what, text := "gone with it", args[0]+" is revoked"
				if keep {
					what = "kept"
				}
				if len(people) > 0 {
					text = fmt.Sprintf("%s whom only this device enrolled, %s:\n  %s\n%s", count(len(people), "person"),
						what, strings.Join(people, "\n  "), text)
				}
				return o.print(c, map[string]any{"revoked": id, "alone": people, "kept": keep}, text)
			})
		},
	}
	o.adminFlags(c, true)
	c.Flags().BoolVar(&keep, "keep", false, "keep what the device said of people whom no other device knows")
	return c
}

func newFleetAllow() *cobra.Command {
	var o fleetFlags
	c := &cobra.Command{
		Use:   "allow NAME",
		Short: "let a device forget more people today, by its name or id",
		Long: fmt.Sprintf("One device can forget %d people a day, so that a device that lies cannot forget\n"+
			"everybody. Allow lets it forget any number within the next hour, and those whom it forgot within\n"+
			"the last day.", fleet.DailyForgets),
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return o.asAdmin(c, true, func(ctx context.Context, a *hub.Admin) error {
				id, err := a.Allow(ctx, args[0])
				if err != nil {
					return err
				}
				return o.print(c, map[string]string{"allowed": id}, args[0]+" can forget more people today")
			})
		},
	}
	o.adminFlags(c, true)
	return c
}

func newFleetMove() *cobra.Command {
	var o fleetFlags
	c := &cobra.Command{
		Use:   "move URL",
		Short: "give the server a new address and a new certificate",
		Long: "Move signs a new address and a new certificate of the server with the admin key. Run it on the new\n" +
			"machine, after its folder was copied or restored, and also on the old one while devices are connected:\n" +
			"they learn the new address. A device that was away is told by: faceauth fleet join URL",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := fleet.CheckURL(args[0]); err != nil {
				return fail(badUsage, err)
			}
			return o.timed(c, true, func(ctx context.Context, folder string, key *fleet.AdminKey) error {
				if err := hub.Move(ctx, folder, key, args[0]); err != nil {
					return err
				}
				_, err := fmt.Fprintf(c.OutOrStdout(), "the fleet is at %s\n", args[0])
				return err
			})
		},
	}
	o.serverFlags(c, true)
	o.waitFlag(c)
	return c
}

func newFleetBackup() *cobra.Command {
	return fleetFile("backup FILE", "write a copy of all data of the server, running or not", hub.Backup,
		func(_, file string) string {
			return file + " is written\n  a thief of it can read the names of devices, and no name and no face of a " +
				"person; it lets nobody act as the server or as a device; the admin key is not in it: keep a copy of " +
				"that, too"
		})
}

func newFleetRestore() *cobra.Command {
	return fleetFile("restore FILE", "make the folder of a server from a backup", hub.Restore,
		func(folder, _ string) string {
			return folder + " is restored\n  it needs a certificate: faceauth fleet move URL; then: faceauth fleet " +
				"serve"
		})
}

// fleetFile returns a command about the folder of a server and a file.
func fleetFile(use, short string, do func(ctx context.Context, folder, file string) error,
	done func(folder, file string) string) *cobra.Command {
	var o fleetFlags
	c := &cobra.Command{
		Use: use, Short: short, Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			folder, _, err := o.server()
			if err == nil {
				err = do(c.Context(), folder, args[0])
			}
			if err != nil {
				return serverFailure(err)
			}
			_, err = fmt.Fprintln(c.OutOrStdout(), done(folder, args[0]))
			return err
		},
	}
	o.serverFlags(c, false)
	return c
}
