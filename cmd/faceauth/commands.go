// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package main

import "github.com/spf13/cobra"

// commands returns all commands.
func commands() []*cobra.Command {
	return []*cobra.Command{
		newEnroll(), newReplay(), newWatch(), newPeople(), newEval(), newTune(), newOffice(), newSearch(), newAudit(),
		newCompact(), newDistil(), newVerify(), newDaemon(), newTablet(), newFleet(), newModels(), newDemo(),
		newDoctor(), newBackup(), newSalvage(), newRekey(),
		newVersion(), newMan(), newEye(),
	}
}

// eyeCommand returns the command line of an eye for eye.Config: nil means this program.
func eyeCommand() []string { return nil }

// trials returns the measuring commands of tablet.
func trials() []*cobra.Command { return []*cobra.Command{newTrial(), newLiveness()} }
