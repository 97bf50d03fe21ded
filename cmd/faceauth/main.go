// SPDX-License-Identifier: Apache-2.0

// Command faceauth recognises people by their faces, on this device alone.
//
// Run "faceauth help" for its commands, and see the README for what they do together. Results go to
// standard output and words for people to standard error.
//
// Exit codes: 0 done; 1 something else failed; 2 the command line is wrong; 3 the source cannot be
// opened or read; 4 no usable face was found; 5 the gallery cannot be used or saved; 6 a model is
// missing or wrong; 7 a face was not recognised, or not enrolled; 130 interrupted.
package main

import (
	"github.com/faceauth/faceauth/internal/cli"
	"github.com/spf13/cobra"
)

func newRoot() *cobra.Command {
	return cli.Root(&cobra.Command{
		Use:   "faceauth",
		Short: "recognise people by their faces, on this device alone",
		Long: "faceauth recognises people whom you have enrolled. It learns from later faces by itself,\n" +
			"refuses strangers, and its memory has a fixed limit.",
	}, commands()...)
}

// commands returns all commands.
func commands() []*cobra.Command {
	return []*cobra.Command{
		newEnroll(), newReplay(), newWatch(), newPeople(), newOffice(), newSearch(), newWho(), newAudit(),
		newDaemon(), newLogin(), newModels(), newDemo(), newDoctor(), newBackup(), newVersion(),
	}
}
