// SPDX-License-Identifier: Apache-2.0

// Command faceauth-fleet-server is the server of a fleet: devices that know the same people. Its
// devices use the program faceauth.
package main

import (
	"fmt"
	"path/filepath"

	"github.com/faceauth/faceauth/internal/cli"
	"github.com/faceauth/faceauth/internal/fleet/server"
	"github.com/spf13/cobra"
)

func main() { cli.Main(newRoot, "") }

func newRoot() *cobra.Command {
	backup := &cobra.Command{
		Use:   "backup FOLDER FILE",
		Short: "copy the members of the server in FOLDER into a new file",
		Args:  cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			return server.Copy(filepath.Join(args[0], server.Books), args[1])
		},
	}
	restore := &cobra.Command{
		Use: "restore FILE FOLDER",
		Short: "make the folder of a server from a backup; its devices give it " +
			"the people",
		Args: cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			return server.Copy(args[0], filepath.Join(args[1], server.Books))
		},
	}
	return cli.Root(&cobra.Command{
		Use:   "faceauth-fleet-server",
		Short: "the server of a fleet: devices that know the same people",
		Long: "faceauth-fleet-server stores the people of a fleet for its devices, sealed: it\n" +
			"can read no name and no face. Begin with serve, and with the line that it\n" +
			"prints on the first device.",
	}, newServe(), backup, restore)
}

func newServe() *cobra.Command {
	var set server.Settings
	c := &cobra.Command{
		Use:   "serve FOLDER",
		Short: "run the server, which keeps its files in FOLDER",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return server.Serve(c.Context(), args[0], set, func(first string) {
				cli.Note(c, "the server of the fleet runs")
				if first != "" {
					fmt.Fprintf(c.OutOrStdout(),
						"on the first device, within an hour:\n\n    faceauth fleet join %s\n\n",
						first)
				}
			})
		},
	}
	f := c.Flags()
	f.StringVar(&set.Listen, "listen", "0.0.0.0:4222", "address at which the server listens")
	f.StringSliceVar(&set.URLs, "url", nil,
		"addresses at which devices find it, such as tls://fleet.local:4222 "+
			"(default: the name of this machine)")
	f.StringVar(&set.Monitor, "monitor", "",
		"address of /healthz and the counters of NATS, without TLS, such as "+
			"127.0.0.1:8222")
	return c
}
