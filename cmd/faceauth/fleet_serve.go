// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/url"
	"time"

	"github.com/faceauth/faceauth/fleet"
	"github.com/faceauth/faceauth/fleet/hub"
	"github.com/spf13/cobra"
)

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
