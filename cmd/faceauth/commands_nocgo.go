// SPDX-License-Identifier: Apache-2.0

//go:build !cgo

package main

import (
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
)

// commands returns the commands that need no camera in this process. Built without cgo this program is faceauth-daemon,
// which links no video decoder.
func commands() []*cobra.Command {
	return []*cobra.Command{newDaemon(), newTablet(), newPeople(), newFleet()}
}

// eyeCommand returns the command line of an eye: the program faceauth beside this one.
func eyeCommand() []string {
	self, err := os.Executable()
	if err != nil {
		return []string{"faceauth", "eye"}
	}
	return []string{filepath.Join(filepath.Dir(self), "faceauth"), "eye"}
}

// fleetServers returns the commands of a fleet's server: none, because logins need no server.
func fleetServers() []*cobra.Command { return nil }
