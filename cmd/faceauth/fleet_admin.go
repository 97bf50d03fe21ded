// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
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

// adminCommand makes a command ask the running server, with the first argument. With signs it needs the admin key.
func adminCommand(c *cobra.Command, signs bool,
	do func(c *cobra.Command, o *fleetFlags, a *hub.Admin, name string) error) *cobra.Command {
	var o fleetFlags
	c.RunE = func(c *cobra.Command, args []string) error {
		return o.timed(c, signs, func(ctx context.Context, folder string, key *fleet.AdminKey) error {
			a, err := hub.OpenAdmin(ctx, folder, key)
			if err != nil {
				return err
			}
			defer a.Close()
			c.SetContext(ctx)
			return do(c, &o, a, strings.Join(args, " "))
		})
	}
	o.serverFlags(c, signs)
	c.Flags().BoolVar(&o.json, "json", false, "print JSON for programs")
	o.waitFlag(c)
	return c
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

func newFleetRevoke() *cobra.Command {
	keep := false
	c := adminCommand(&cobra.Command{
		Use:   "revoke NAME",
		Short: "remove a device from the fleet at once, by its name or id",
		Long: "Revoke disconnects a device for ever, and takes back all that it said: the people whom it alone\n" +
			"enrolled are lost to the others, and are listed by number. With --keep what it said of them stays.\n" +
			"The device keeps the data that it has already, and gets no later keys. In a NATS cluster the operator\n" +
			"must remove the user of the device, too.",
		Args: cobra.ExactArgs(1),
	}, true, func(c *cobra.Command, o *fleetFlags, a *hub.Admin, name string) error {
		values, err := a.Alone(c.Context(), name)
		if err != nil {
			return err
		}
		people := []string{}
		for value := range values {
			people = append(people, value[:32])
		}
		slices.Sort(people)
		people = slices.Compact(people)
		what, text := "kept", name+" is revoked"
		if !keep {
			what, values = "gone with it", nil
		}
		id, err := a.Revoke(c.Context(), name, values)
		if err != nil {
			return err
		}
		if len(people) > 0 {
			text = fmt.Sprintf("%s whom only this device enrolled, %s:\n  %s\n%s", count(len(people), "person"), what,
				strings.Join(people, "\n  "), text)
		}
		return o.print(c, map[string]any{"revoked": id, "alone": people, "kept": keep}, text)
	})
	c.Flags().BoolVar(&keep, "keep", false, "keep what the device said of people whom no other device knows")
	return c
}

func newFleetAllow() *cobra.Command {
	return adminCommand(&cobra.Command{
		Use:   "allow NAME",
		Short: "let a device forget more people today, by its name or id",
		Long: fmt.Sprintf("One device can forget %d people a day, so that a device that lies cannot forget\n"+
			"everybody. Allow lets it forget any number within the next hour, and those whom it forgot within\n"+
			"the last day.", fleet.DailyForgets),
		Args: cobra.ExactArgs(1),
	}, true, func(c *cobra.Command, o *fleetFlags, a *hub.Admin, name string) error {
		id, err := a.Allow(c.Context(), name)
		if err != nil {
			return err
		}
		return o.print(c, map[string]string{"allowed": id}, name+" can forget more people today")
	})
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
