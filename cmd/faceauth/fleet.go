// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/faceauth/faceauth/internal/cli"
	"github.com/faceauth/faceauth/internal/fleet"
	"github.com/faceauth/faceauth/internal/fleet/protocol"
	"github.com/faceauth/faceauth/internal/table"
	"github.com/spf13/cobra"
)

func newFleet() *cobra.Command {
	var o options
	c := &cobra.Command{
		Use:   "fleet",
		Short: "share people with other devices",
		Long: "Devices of a fleet know the same people: enrolled on one, known on all;\n" +
			"forgotten on one, forgotten on all. Each has its own gallery and works alone\n" +
			"when the server is away. The server reads no name and no face. It is another\n" +
			"program: begin with faceauth-fleet-server serve there, and with the line that\n" +
			"it prints on the first device.",
		Args: cobra.NoArgs,
	}
	o.galleryFlags(c.PersistentFlags())
	run := &cobra.Command{Use: "run",
		Short: "keep the people of this device in step, if no office does",
		Args:  cobra.NoArgs, RunE: o.onDevice(
			func(c *cobra.Command, path string, _ []string) error {
				return cli.Fail(cli.BadGallery,
					fleet.Run(c.Context(), path, func(s string) { cli.Note(c, s) }))
			})}
	c.AddCommand(o.fleetInvite(), o.fleetJoin(), run, o.fleetDevices(), o.fleetRevoke())
	return c
}

// onDevice returns the work of a command on the device with a gallery.
func (o *options) onDevice(
	do func(*cobra.Command, string, []string) error) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		path, err := o.galleryPath()
		if err != nil {
			return err
		}
		return do(c, path, args)
	}
}

func (o *options) fleetInvite() *cobra.Command {
	admin := false
	c := &cobra.Command{
		Use:   "invite NAME",
		Short: "print what one device, which will be called NAME, needs to join",
		Long: "Invite prints a line for the device that will be called NAME. It has the key\n" +
			"of the fleet: send it where nobody else reads it. It is good for one device\n" +
			"and one hour.",
		Args: cobra.ExactArgs(1),
		RunE: o.onDevice(func(c *cobra.Command, path string, args []string) error {
			i, err := fleet.Invite(path, args[0], admin)
			if err == nil {
				fmt.Fprintf(c.OutOrStdout(),
					"on %s, within an hour:\n\n    faceauth fleet join %s\n\n", args[0], i)
			}
			return err
		}),
	}
	c.Flags().BoolVar(&admin, "administrator", false, "the device may invite and revoke, too")
	return c
}

func (o *options) fleetJoin() *cobra.Command {
	var urls []string
	name := ""
	c := &cobra.Command{
		Use:   "join [INVITATION]",
		Short: "make this device a member",
		Long: "Join makes this device a member of the fleet that has invited it. For -, it\n" +
			"reads the invitation from standard input. Afterwards an office shares its\n" +
			"people by itself; without one, run faceauth fleet run.\n\n" +
			"At a NATS cluster of your own, make a user for each device, and give it in\n" +
			"--nats. The first device has no invitation, but --device.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			var i fleet.Membership
			var err error
			i.Name = name
			if len(args) == 1 {
				if args[0] == "-" {
					// what could not be read is no invitation
					fmt.Fscan(io.LimitReader(c.InOrStdin(), 1<<16), &args[0])
				}
				i, err = fleet.ParseInvitation(args[0])
			}
			if len(urls) > 0 {
				i.URLs = urls
			}
			if err == nil && (len(i.URLs) == 0 || i.Name == "") {
				err = errors.New("give an invitation; at a cluster also --nats, and on its first " +
					"device --device")
			}
			if err != nil {
				return cli.Fail(cli.BadUsage, err)
			}
			g, err := o.anyGallery(c)
			if err != nil {
				return err
			}
			err = errors.Join(cli.Fail(cli.BadGallery, g.Close()),
				fleet.Join(c.Context(), g.Path(), i))
			if err == nil {
				fmt.Fprintf(c.OutOrStdout(),
					"this device is %s; it shares its people while faceauth office or faceauth "+
						"fleet run runs\n", i.Name)
			}
			return err
		},
	}
	o.EmbeddingFlags(c)
	f := c.Flags()
	f.StringSliceVar(&urls, "nats", nil,
		"addresses of a NATS cluster; with three the values have three copies")
	f.StringVar(&name, "device", "", "name of the first device at a NATS cluster")
	return c
}

func (o *options) fleetRevoke() *cobra.Command {
	anew := false
	c := &cobra.Command{
		Use:   "revoke [NAME]",
		Short: "shut a device out, and give the others a new key",
		Long: "Revoke shuts a device out at once and makes a new key, with which the\n" +
			"administrators' devices seal all people anew. People whom the device has\n" +
			"enrolled stay; what it has read it keeps.\n\n" +
			"With --renew it only makes a new key. Afterwards nobody can read older copies\n" +
			"of the server any more: do it once a month, by a timer on an administrator's\n" +
			"device.",
		Args: cobra.MaximumNArgs(1),
		RunE: o.onDevice(func(c *cobra.Command, path string, args []string) error {
			if anew == (len(args) == 1) {
				return cli.Fail(cli.BadUsage, errors.New("give the name of a device, or --renew"))
			}
			err := fleet.Revoke(c.Context(), path, strings.Join(args, ""), func(s string) {
				cli.Note(c, s)
			})
			if err == nil {
				fmt.Fprintln(c.OutOrStdout(),
					"the fleet has a new key; all people are sealed with it while this device "+
						"runs faceauth office or faceauth fleet run")
			}
			return err
		}),
	}
	cli.Again(c, "unless it said that the fleet has a new key, run faceauth fleet revoke --renew")
	c.Flags().BoolVar(&anew, "renew", false, "make a new key, and revoke nobody")
	return c
}

func (o *options) fleetDevices() *cobra.Command {
	c := &cobra.Command{
		Use:   "devices",
		Short: "list the devices of the fleet, and how many changes wait here",
		Args:  cobra.NoArgs,
		RunE: o.onDevice(func(c *cobra.Command, path string, _ []string) error {
			s, err := fleet.Stand(path)
			if err != nil {
				return err
			}
			if o.JSON {
				return json.NewEncoder(c.OutOrStdout()).Encode(s)
			}
			t := table.New(c.OutOrStdout(), 3)
			for _, m := range s.Devices {
				fmt.Fprintf(t, "%s\t%s\n", m.Name, state(m))
			}
			if s.Waiting > 0 {
				fmt.Fprintf(t, "the changes of %s wait on this device\n",
					cli.Count(int(s.Waiting), "person"))
			}
			return t.Flush()
		}),
	}
	o.JSONFlag(c.Flags())
	return c
}

// state says where a device is.
func state(m protocol.Member) string {
	is := "away"
	switch {
	case m.Online:
		is = "connected"
	case m.Key == "":
		is = "invited until " + m.Until.Local().Format(time.DateTime)
	case !m.Seen.IsZero():
		is = "away since " + m.Seen.Local().Format(time.DateTime)
	}
	if m.Admin {
		is += ", administrator"
	}
	return is
}
