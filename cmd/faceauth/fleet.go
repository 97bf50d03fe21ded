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
	"path/filepath"
	"strings"
	"time"

	"github.com/faceauth/faceauth/fleet"
	"github.com/faceauth/faceauth/fleet/hub"
	"github.com/faceauth/faceauth/internal/xdg"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// fleetFlags holds the flags of fleet commands.
type fleetFlags struct {
	state, adminKey string
	json            bool
	wait            time.Duration
}

func newFleet() *cobra.Command {
	c := &cobra.Command{
		Use:   "fleet",
		Short: "share people between devices",
		Long: "Fleet lets several devices share people. One machine runs faceauth fleet serve; each device joins\n" +
			"once with a token. The server keeps what each device says, and can read no name and no face.\n" +
			"docs/fleet.md says how it works, and what it does not protect against.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newFleetServe(), newFleetInvite(), newFleetDevices(), newFleetCheck(), newFleetRevoke(),
		newFleetAllow(), newFleetMove(), newFleetBackup(), newFleetRestore())
	c.AddCommand(newFleetJoin(), newFleetFollow(), newFleetTablet(), newFleetWithdraw())
	return c
}

// fleetFolder returns the given folder of a fleet, or the default.
func fleetFolder(given, usual string) (string, error) {
	if given != "" {
		return given, nil
	}
	data, err := xdg.Data()
	if err != nil {
		return "", fail(badUsage, fmt.Errorf("%w; give a folder by --state", err))
	}
	return filepath.Join(data, "faceauth", usual), nil
}

// deviceFolderFlag adds the flag for the folder of this device.
func deviceFolderFlag(f *pflag.FlagSet, folder *string, name string) {
	f.StringVar(folder, name, "", "folder of this device in the fleet (default: faceauth/fleet below $XDG_DATA_HOME "+
		"or ~/.local/share)")
}

// fleetFailure gives an error of a fleet its exit code.
func fleetFailure(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fleet.ErrToken), errors.Is(err, fleet.ErrName), errors.Is(err, fleet.ErrOther),
		errors.Is(err, fleet.ErrAdmin), errors.Is(err, hub.ErrNoServer):
		return fail(badUsage, err)
	case errors.Is(err, fleet.ErrOffline), errors.Is(err, fleet.ErrServer),
		errors.Is(err, context.DeadlineExceeded):
		return fail(badSource, err)
	case errors.Is(err, fleet.ErrRefused), errors.Is(err, fleet.ErrRevoked), errors.Is(err, hub.ErrCommand):
		return fail(refused, err)
	}
	return err
}

func (o *fleetFlags) waitFlag(c *cobra.Command) {
	c.Flags().DurationVar(&o.wait, "timeout", 20*time.Second, "how long to wait for the server")
}

func (o *fleetFlags) within(c *cobra.Command) (context.Context, context.CancelFunc, error) {
	if o.wait <= 0 {
		return nil, nil, fail(badUsage, fmt.Errorf("--timeout must be positive, got %v", o.wait))
	}
	ctx, cancel := context.WithTimeout(c.Context(), o.wait)
	return ctx, cancel, nil
}

// print prints the result of a command: for programs, or as text.
func (o *fleetFlags) print(c *cobra.Command, result any, text string) error {
	if o.json {
		return json.NewEncoder(c.OutOrStdout()).Encode(result)
	}
	_, err := fmt.Fprintln(c.OutOrStdout(), text)
	return err
}

func newFleetJoin() *cobra.Command {
	var o fleetFlags
	var j fleet.Joining
	token := ""
	c := &cobra.Command{
		Use:   "join [URL]",
		Short: "make this device a member of a fleet, with a token",
		Long: "Join makes a key for this device, and asks the server to admit it. The token, which faceauth fleet\n" +
			"serve and faceauth fleet invite print, has the address of the server and identifies it. Without\n" +
			"--token the token is read from standard input, so that other users of this machine do not see it.\n" +
			"If this device cannot reach the address in the token, give another address as URL.\n\n" +
			"On a device that has joined, URL without --token tells it where the server is now.",
		Example: "  faceauth fleet join --token TOKEN --name door\n" +
			"  ssh server faceauth fleet invite --json | jq -r .token | faceauth fleet join --name hall",
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			folder, err := fleetFolder(o.state, "fleet")
			if err != nil {
				return err
			}
			if len(args) > 0 {
				j.URL = args[0]
				if err := fleet.CheckURL(j.URL); err != nil {
					return fail(badUsage, err)
				}
			}
			if _, err := fleet.Joined(folder); err == nil && j.URL != "" && token == "" {
				if err := fleet.Move(folder, j.URL); err != nil {
					return err
				}
				_, err := fmt.Fprintf(c.OutOrStdout(), "the server of the fleet is at %s now\n", j.URL)
				return err
			}
			if j.Name == "" {
				if j.Name, err = os.Hostname(); err != nil || fleet.CheckName(j.Name) != nil {
					return fail(badUsage, errors.New("this machine has no name that the device could have; give one "+
						"by --name"))
				}
			}
			if token == "" || token == "-" {
				if token, err = readToken(c); err != nil {
					return err
				}
			}
			t, err := fleet.ParseToken(token)
			if err != nil {
				return fleetFailure(err)
			}
			ctx, cancel, err := o.within(c)
			if err != nil {
				return err
			}
			defer cancel()
			m, err := fleet.Join(ctx, folder, t, j)
			if err != nil {
				if c.Context().Err() != nil {
					return c.Context().Err()
				}
				return fleetFailure(err)
			}
			scope := "all people"
			if !m.Scope.All {
				scope = count(len(m.Scope.People), "person") + ", and those it enrols"
			}
			return o.print(c, m, fmt.Sprintf("this device is %s, %s, in fleet %s\n"+
				"it shares %s; office, watch, enroll and people take part with --fleet, and logins by: faceauth "+
				"fleet tablet", m.Name, m.ID, t.Fleet, scope))
		},
	}
	f := c.Flags()
	f.StringVar(&token, "token", "", "the token, or - to read it from standard input (the default)")
	f.StringVar(&j.Name, "name", "", "name of this device, for people (default: the machine's)")
	f.StringVar(&j.Creds, "creds", "", "file with the credentials of this device for another NATS cluster")
	deviceFolderFlag(f, &o.state, "state")
	f.BoolVar(&o.json, "json", false, "print JSON for programs")
	o.waitFlag(c)
	return c
}

// readToken reads a token from standard input.
func readToken(c *cobra.Command) (string, error) {
	if f, ok := c.InOrStdin().(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			fmt.Fprintln(c.ErrOrStderr(), "paste the token, then press Enter:")
		}
	}
	type result struct {
		line string
		err  error
	}
	read := make(chan result, 1)
	go func() { // a read from a terminal cannot be ended; it ends with the process
		line, err := bufio.NewReader(io.LimitReader(c.InOrStdin(), 1<<16)).ReadString('\n')
		if errors.Is(err, io.EOF) {
			err = nil
		}
		read <- result{strings.TrimSpace(line), err}
	}()
	select {
	case r := <-read:
		return r.line, r.err
	case <-c.Context().Done():
		return "", c.Context().Err()
	}
}
