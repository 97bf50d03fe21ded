// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package main

import "github.com/spf13/cobra"

// commands returns all commands.
func commands() []*cobra.Command {
	return []*cobra.Command{
		newEnroll(), newReplay(), newWatch(), newPeople(), newEval(), newTune(), newOffice(), newSearch(), newAudit(),
		newCompact(), newDistil(), newVerify(), newDaemon(), newTablet(), newFleet(), newModels(), newDemo(), newDoctor(),
		newVersion(), newMan(), newEye(),
	}
}

// eyeCommand starts an eye: this program is one. It is what eye.Config takes.
func eyeCommand() []string { return nil }

// trials returns the commands of tablet that measure.
func trials() []*cobra.Command { return []*cobra.Command{newTrial(), newLiveness()} }
