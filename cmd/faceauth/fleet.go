// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/faceauth/faceauth/fleet"
	"github.com/faceauth/faceauth/internal/cli"
	"github.com/spf13/cobra"
)

func newFleet() *cobra.Command {
	var o options
	c := &cobra.Command{
		Use:   "fleet",
		Short: "share people with other devices",
		Long: "Devices of a fleet know the same people: enrolled on one, known on all; forgotten on one, forgotten\n" +
			"on all. Each has its own gallery and works alone when the server is away. The server reads no name and\n" +
			"no face. Begin with fleet serve on the server, and with the line that it prints on the first device.",
		Args: cobra.NoArgs,
	}
	o.galleryFlags(c.PersistentFlags())
	c.AddCommand(fleetServe(), o.fleetInvite(), o.fleetJoin(), o.fleetRun(), o.fleetDevices(), o.fleetRevoke(),
		&cobra.Command{
			Use:   "backup FOLDER FILE",
			Short: "copy the members of the server in FOLDER into the new file FILE",
			Args:  cobra.ExactArgs(2),
			RunE:  func(_ *cobra.Command, args []string) error { return fleet.Backup(args[0], args[1]) },
		},
		&cobra.Command{
			Use:   "restore FILE FOLDER",
			Short: "make the folder of a server from a backup; its devices give it the people",
			Args:  cobra.ExactArgs(2),
			RunE:  func(_ *cobra.Command, args []string) error { return fleet.Restore(args[0], args[1]) },
		})
	return c
}

func fleetServe() *cobra.Command {
	var set fleet.ServerSettings
	c := &cobra.Command{
		Use:   "serve FOLDER",
		Short: "run the server of a fleet, which keeps its files in FOLDER",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			s, err := fleet.Serve(args[0], set)
			if err != nil {
				return err
			}
			defer s.Close()
			cli.Note(c, "the server of the fleet runs")
			if s.First != nil {
				_, err := fmt.Fprintf(c.OutOrStdout(), "on the first device, within an hour:\n\n"+
					"    faceauth fleet join %s\n\n", s.First)
				if err != nil {
					return err
				}
			}
			return s.Wait(c.Context())
		},
	}
	f := c.Flags()
	f.StringVar(&set.Listen, "listen", "0.0.0.0:4222", "address at which the server listens")
	f.StringSliceVar(&set.URLs, "url", nil, "addresses at which devices find it, such as tls://fleet.local:4222 "+
		"(default: the name of this machine)")
	f.StringVar(&set.Monitor, "monitor", "", "address at which /healthz and the counters of NATS can be read, "+
		"without TLS, such as 127.0.0.1:8222")
	return c
}

func (o *options) fleetInvite() *cobra.Command {
	admin := false
	c := &cobra.Command{
		Use:   "invite NAME",
		Short: "print what one device, which will be called NAME, needs to join",
		Long: "Invite prints a line for the device that will be called NAME. It has the key of the fleet: send it\n" +
			"where nobody else reads it. It is good for one device and one hour.",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			path, err := o.galleryPath()
			if err != nil {
				return err
			}
			i, err := fleet.Invite(path, args[0], admin)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "on %s, within an hour:\n\n    faceauth fleet join %s\n\n", args[0], i)
			return err
		},
	}
	c.Flags().BoolVar(&admin, "administrator", false, "the device may invite and revoke, too")
	return c
}

func (o *options) fleetJoin() *cobra.Command {
	var by fleet.Invitation
	creds := ""
	c := &cobra.Command{
		Use:   "join [INVITATION]",
		Short: "make this device a member",
		Long: "Join makes this device a member of the fleet that has invited it. For -, it reads the invitation from\n" +
			"standard input. Afterwards an office shares its people by itself; without one, run faceauth fleet run.\n\n" +
			"At a NATS cluster of your own, make a user for each device. The first one joins with --nats, --device\n" +
			"and --creds, the others with an invitation and --creds.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) (err error) {
			switch {
			case len(args) == 0 && (len(by.URLs) == 0 || by.Name == ""):
				err = errors.New("an invitation is missing, or --nats and --device of the first device at a cluster")
			case len(args) == 1 && len(by.URLs) > 0:
				err = errors.New("--nats is for the first device, which has no invitation")
			case len(args) == 1:
				by, err = readInvitation(c, args[0])
			}
			if err != nil {
				return cli.Fail(cli.BadUsage, err)
			}
			g, path, err := o.ownGallery(c, true)
			if err == nil {
				err = cli.Fail(cli.BadGallery, g.Close())
			}
			if err == nil {
				err = fleet.Join(c.Context(), path, by, creds)
			}
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "this device is %s; it shares its people while faceauth office or "+
				"faceauth fleet run runs\n", by.Name)
			return err
		},
	}
	o.EmbeddingFlags(c)
	f := c.Flags()
	f.StringSliceVar(&by.URLs, "nats", nil, "addresses of a NATS cluster, for the first device; with three the "+
		"values have three copies")
	f.StringVar(&by.Name, "device", "", "name of this device, with --nats")
	f.StringVar(&creds, "creds", "", "file of the user of this device at a NATS cluster")
	return c
}

func readInvitation(c *cobra.Command, text string) (fleet.Invitation, error) {
	if text == "-" {
		line, err := bufio.NewReader(io.LimitReader(c.InOrStdin(), 1<<16)).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return fleet.Invitation{}, err
		}
		text = line
	}
	return fleet.ParseInvitation(text)
}

func (o *options) fleetRun() *cobra.Command {
	return &cobra.Command{
		Use:   "run",
		Short: "keep the people of this device in step, if no office does",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			path, err := o.galleryPath()
			if err != nil {
				return err
			}
			d, err := fleet.Open(path, func(s string) { cli.Note(c, s) })
			if err != nil {
				return cli.Fail(cli.BadGallery, err)
			}
			return errors.Join(d.Run(c.Context()), d.Close())
		},
	}
}

// share keeps the gallery of an office in step with its fleet, if it has joined one, until ctx ends.
func share(ctx context.Context, path string, note func(string)) {
	d, err := fleet.Open(path, note)
	for errors.Is(err, fleet.ErrRunning) { // until that program ends
		select {
		case <-ctx.Done():
			return
		case <-time.After(10 * time.Second):
		}
		d, err = fleet.Open(path, note)
	}
	if errors.Is(err, fleet.ErrNotMember) {
		return
	}
	if err == nil {
		err = errors.Join(d.Run(ctx), d.Close())
	}
	if err != nil {
		note("warning: the people are not shared: " + err.Error())
	}
}

func (o *options) fleetRevoke() *cobra.Command {
	anew := false
	c := &cobra.Command{
		Use:   "revoke [NAME]",
		Short: "shut a device out, and give the others a new key",
		Long: "Revoke shuts a device out at once and makes a new key, with which the administrators' devices seal all\n" +
			"people anew. People whom the device has enrolled stay; what it has read it keeps.\n\n" +
			"With --renew it only makes a new key. Afterwards nobody can read older copies of the server any more:\n" +
			"do it once a month, by a timer on an administrator's device.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if anew == (len(args) == 1) {
				return cli.Fail(cli.BadUsage, errors.New("give the name of a device, or --renew"))
			}
			path, err := o.galleryPath()
			if err != nil {
				return err
			}
			said := "the fleet has a new key"
			if anew {
				err = fleet.Renew(c.Context(), path)
			} else {
				err = fleet.Revoke(c.Context(), path, args[0])
				said = args[0] + " is shut out"
			}
			if err == nil {
				_, err = fmt.Fprintln(c.OutOrStdout(), said+"; all people are sealed with a new key while this device "+
					"runs faceauth office or faceauth fleet run")
			}
			return err
		},
	}
	c.Flags().BoolVar(&anew, "renew", false, "make a new key, and revoke nobody")
	return c
}

func (o *options) fleetDevices() *cobra.Command {
	c := &cobra.Command{
		Use:   "devices",
		Short: "list the devices of the fleet, and how many changes wait here",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			path, err := o.galleryPath()
			if err != nil {
				return err
			}
			if _, err := os.Stat(path); err != nil {
				return cli.Fail(cli.BadGallery, fmt.Errorf("%w at %s", errNoGallery, path))
			}
			all, err := fleet.Members(c.Context(), path)
			if err != nil {
				return err
			}
			waiting, err := fleet.Waiting(path)
			if err != nil {
				return cli.Fail(cli.BadGallery, err)
			}
			if o.JSON {
				return json.NewEncoder(c.OutOrStdout()).Encode(map[string]any{"devices": all, "waiting": waiting})
			}
			return printDevices(c.OutOrStdout(), all, waiting)
		},
	}
	o.JSONFlag(c.Flags())
	return c
}

func printDevices(w io.Writer, all []fleet.Member, waiting int64) error {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	for _, m := range all {
		var is []string
		switch {
		case m.Online:
			is = append(is, "connected")
		case m.Key == "":
			is = append(is, "invited until "+m.Until.Local().Format(time.DateTime))
		case !m.Seen.IsZero():
			is = append(is, "away; it came last at "+m.Seen.Local().Format(time.DateTime))
		}
		if m.Admin {
			is = append(is, "administrator")
		}
		fmt.Fprintf(t, "%s\t%s\n", m.Name, strings.Join(is, ", "))
	}
	if err := t.Flush(); err != nil || waiting == 0 {
		return err
	}
	_, err := fmt.Fprintf(w, "the changes of %s wait on this device\n", cli.Count(int(waiting), "person"))
	return err
}
