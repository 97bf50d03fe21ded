// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/faceauth/faceauth/internal/cli"
	"github.com/spf13/cobra"
)

// commands returns all commands.
func commands() []*cobra.Command {
	return []*cobra.Command{
		newEnroll(), newReplay(), newWatch(), newPeople(), newOffice(), newSearch(), newAudit(),
		newDaemon(), newTablet(), newFleet(), newModels(), newDemo(), newDoctor(),
		newBackup(), newSalvage(), newRekey(), newVersion(),
		cli.NewMan(manSections),
	}
}
