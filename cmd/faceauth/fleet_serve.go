// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"text/tabwriter"
	"time"

	"github.com/faceauth/faceauth/fleet/hub"
	"github.com/faceauth/faceauth/fleet/hub/embedded"
	"github.com/faceauth/faceauth/fleet/ledger"
	"github.com/spf13/cobra"
)

// fleetServers returns the commands of the machine that runs the server.
func fleetServers() []*cobra.Command {
	return []*cobra.Command{newFleetServe(), newFleetInvite(), newFleetDevices(), newFleetRevoke(), newFleetAllow()}
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
	var disk int64
	verbose, noToken := false, false
	c := &cobra.Command{
		Use:   "serve",
		Short: "run the server of a fleet",
		Long: "Serve runs the server of a fleet until it is interrupted. The first start makes the fleet: a\n" +
			"folder with its certificate, its log and its admin key. It prints how the first device joins. The\n" +
			"admin key admits and revokes devices; keep a copy of it, and of the certificate, where nobody else\n" +
			"can read them.\n\n" +
			"If the folder was restored from a backup, or only the admin key and the certificate are left,\n" +
			"devices refuse the server until you start it once with --restored. Then devices give back the lost\n" +
			"data that they have. Forgotten people stay forgotten, and revoked devices stay revoked.\n\n" +
			"With --nats it uses an existing NATS cluster and starts no server of its own.",
		Example: "  faceauth fleet serve\n" +
			"  faceauth fleet serve --listen 192.0.2.7:4222 --url tls://office.example:4222 --admin-key " +
			"/media/key/admin.nk\n" +
			"  faceauth fleet serve --nats tls://a.example:4222,tls://b.example:4222 --creds fleet.creds --replicas 3",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			if s.Folder, err = fleetFolder(o.state, "fleet-server"); err != nil {
				return err
			}
			switch {
			case disk < 16:
				return fail(badUsage, fmt.Errorf("--disk must be at least 16 (MB), got %d", disk))
			case s.Limits.Devices < 1:
				return fail(badUsage, fmt.Errorf("--most-devices must be positive, got %d", s.Limits.Devices))
			case s.Replicas < 1 || s.Replicas > 5:
				return fail(badUsage, fmt.Errorf("--replicas must be 1 to 5, got %d", s.Replicas))
			case s.Cluster == "" && (s.Creds != "" || s.Replicas != 1 || s.Callout != ""):
				return fail(badUsage, errors.New("--creds, --replicas and --callout are for --nats"))
			case s.Cluster != "" && c.Flags().Changed("listen"):
				return fail(badUsage, errors.New("--listen is for the server of this program's own, and --nats for "+
					"one that is there"))
			}
			s.AdminKey, s.Limits.Disk, s.Log, s.Start = o.adminKey, disk<<20, fleetLog(c, verbose), embedded.Start
			told := make(chan error, 1)
			ctx, cancel := context.WithCancel(c.Context())
			defer cancel()
			s.Ready = func(r hub.Ready) {
				// in the background, because the server must answer the request for a token
				go func() { told <- o.welcome(ctx, c, s, r, noToken) }()
			}
			done := make(chan error, 1)
			go func() { done <- hub.Serve(ctx, s) }()
			for {
				select {
				case err := <-told:
					if err != nil && c.Context().Err() == nil {
						cancel()
						<-done
						return fleetFailure(err)
					}
				case err := <-done:
					if c.Context().Err() != nil && errors.Is(err, context.Canceled) {
						return nil // it was interrupted
					}
					return fleetFailure(err)
				}
			}
		},
	}
	f := c.Flags()
	f.StringVar(&o.state, "state", "", "folder of the server (default: faceauth/fleet-server below $XDG_DATA_HOME or "+
		"~/.local/share)")
	f.StringVar(&o.adminKey, "admin-key", "", "file of the admin key, made at the first start (default: admin.nk in "+
		"the folder)")
	f.StringVar(&s.Listen, "listen", ":4222", "address to listen at")
	f.StringVar(&s.URL, "url", "", "URL of this server for devices, such as tls://office.example:4222 (default: an "+
		"address of this machine)")
	f.StringVar(&s.Cluster, "nats", "", "URL of an existing NATS cluster with JetStream, instead of an own server; "+
		"several with commas")
	f.StringVar(&s.Creds, "creds", "", "file with the credentials for the cluster: user credentials, the seed of an "+
		"nkey, or USER:PASSWORD")
	f.StringVar(&s.Callout, "callout", "", "account of the cluster whose connections this service admits (auth "+
		"callout)")
	f.IntVar(&s.Replicas, "replicas", 1, "copies of the log in the cluster")
	f.BoolVar(&s.Restored, "restored", false, "once after a backup was restored or the disk was lost: devices give "+
		"back the lost data")
	f.Int64Var(&disk, "disk", 4096, "largest size of the log and the snapshots on disk, in MB")
	f.IntVar(&s.Limits.Devices, "most-devices", 10000, "largest number of connections")
	f.BoolVar(&noToken, "no-token", false, "print no token at the first start, for example because others can read "+
		"the journal")
	f.BoolVarP(&verbose, "verbose", "v", false, "print more")
	return c
}

// welcome prints how a device joins.
func (o *fleetFlags) welcome(ctx context.Context, c *cobra.Command, s hub.Options, r hub.Ready, noToken bool) error {
	out := c.OutOrStdout()
	fmt.Fprintf(out, "the fleet is at %s\n  id: %s\n  devices: %d\n", r.URL, r.Fleet, r.Devices)
	if s.Restored {
		fmt.Fprintln(out, "the log continues: devices of the fleet come back by themselves, and give back the lost "+
			"data")
		return nil
	}
	if r.Devices > 0 || noToken {
		fmt.Fprintln(out, "for another device, print a token: faceauth fleet invite")
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	a, err := hub.OpenAdmin(ctx, s.Folder, o.adminKey)
	if err != nil {
		return err
	}
	defer a.Close()
	t, err := a.Invite(ctx, time.Hour, nil)
	if err != nil {
		return err
	}
	return printToken(out, t)
}

func printToken(out io.Writer, t hub.Token) error {
	_, err := fmt.Fprintf(out, "on the device that is to join, until %s, once:\n  faceauth fleet join --token %s\n",
		t.Expires.Local().Format("2006-01-02 15:04"), t)
	return err
}

// adminFlags adds the flags of commands that talk to a running server.
func (o *fleetFlags) adminFlags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&o.state, "state", "", "folder of the server (default: faceauth/fleet-server below $XDG_DATA_HOME or "+
		"~/.local/share)")
	f.StringVar(&o.adminKey, "admin-key", "", "file of the admin key (default: the one that the server uses)")
	f.BoolVar(&o.json, "json", false, "print JSON for programs")
	o.waitFlag(c)
}

// asAdmin connects to the running server and calls do.
func (o *fleetFlags) asAdmin(c *cobra.Command, do func(ctx context.Context, a *hub.Admin) error) error {
	folder, err := fleetFolder(o.state, "fleet-server")
	if err != nil {
		return err
	}
	ctx, cancel, err := o.within(c)
	if err != nil {
		return err
	}
	defer cancel()
	a, err := hub.OpenAdmin(ctx, folder, o.adminKey)
	if err != nil {
		return fleetFailure(err)
	}
	defer a.Close()
	return fleetFailure(do(ctx, a))
}

func newFleetInvite() *cobra.Command {
	var o fleetFlags
	var people []string
	var lasts time.Duration
	c := &cobra.Command{
		Use:   "invite",
		Short: "print a token with which one device can join",
		Long: "Invite prints a token. Anybody who has it can join the fleet once, until it expires, so protect it\n" +
			"like a key. With --people the device gets and changes only these people, and people whom it enrols\n" +
			"itself.",
		Example: "  faceauth fleet invite\n" +
			"  faceauth fleet invite --expires 24h --people 0123456789abcdef0123456789abcdef",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return o.asAdmin(c, func(ctx context.Context, a *hub.Admin) error {
				t, err := a.Invite(ctx, lasts, people)
				if err != nil {
					return err
				}
				if o.json {
					return json.NewEncoder(c.OutOrStdout()).Encode(map[string]any{"token": t.String(), "url": t.URL,
						"fleet": t.Fleet, "expires": t.Expires})
				}
				return printToken(c.OutOrStdout(), t)
			})
		},
	}
	o.adminFlags(c)
	c.Flags().DurationVar(&lasts, "expires", time.Hour, "how long the token can be used: 1m to 720h")
	c.Flags().StringSliceVar(&people, "people", nil, "numbers of the people for this device, from faceauth people "+
		"--fleet (default: all)")
	return c
}

func newFleetDevices() *cobra.Command {
	var o fleetFlags
	c := &cobra.Command{
		Use:   "devices",
		Short: "list the devices of the fleet and their state",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return o.asAdmin(c, func(ctx context.Context, a *hub.Admin) error {
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
	o.adminFlags(c)
	return c
}

func printDevices(out io.Writer, all []hub.Device, now time.Time) error {
	t := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "NAME\tID\tSINCE\tLAST SEEN\tPEOPLE\tSTATE")
	for _, d := range all {
		seen, scope, state := "never", "all", ""
		switch {
		case d.Connected:
			seen = "now"
		case !d.Seen.IsZero():
			seen = ago(now.Sub(d.Seen))
		}
		if !d.Scope.All {
			scope = fmt.Sprint(len(d.Scope.People))
		}
		switch {
		case d.Revoked:
			state = "revoked"
		case d.InStep:
			state = "in step"
		case d.Behind > 0:
			state = fmt.Sprintf("behind by %d", d.Behind)
		default:
			state = "away, has all so far"
			if d.Connected {
				state = "connected"
			}
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", d.Name, d.ID, d.Admitted.Local().Format("2006-01-02"), seen, scope,
			state)
	}
	return t.Flush()
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

func newFleetRevoke() *cobra.Command {
	var o fleetFlags
	c := &cobra.Command{
		Use:   "revoke NAME",
		Short: "remove a device from the fleet at once, by its name or id",
		Long: "Revoke disconnects a device for ever. Its later messages do not count, and later messages of\n" +
			"others are encrypted with keys that it does not get. It keeps the data that it has already.",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return o.asAdmin(c, func(ctx context.Context, a *hub.Admin) error {
				id, err := a.Revoke(ctx, args[0])
				if err != nil {
					return err
				}
				if o.json {
					return json.NewEncoder(c.OutOrStdout()).Encode(map[string]string{"revoked": id})
				}
				_, err = fmt.Fprintf(c.OutOrStdout(), "%s is revoked\n", args[0])
				return err
			})
		},
	}
	o.adminFlags(c)
	return c
}

func newFleetAllow() *cobra.Command {
	var o fleetFlags
	c := &cobra.Command{
		Use:   "allow NAME",
		Short: "let a device forget more people today, by its name or id",
		Long: fmt.Sprintf("One device can forget %d people a day, so that a device that lies cannot forget\n"+
			"everybody. Allow lets it forget as many again.", ledger.DailyForgets),
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return o.asAdmin(c, func(ctx context.Context, a *hub.Admin) error {
				id, err := a.Allow(ctx, args[0])
				if err != nil {
					return err
				}
				if o.json {
					return json.NewEncoder(c.OutOrStdout()).Encode(map[string]string{"allowed": id})
				}
				_, err = fmt.Fprintf(c.OutOrStdout(), "%s can forget %d more people today\n", args[0],
					ledger.DailyForgets)
				return err
			})
		},
	}
	o.adminFlags(c)
	return c
}
