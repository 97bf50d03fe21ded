// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/faceauth/faceauth/fleet/ledger"
	"github.com/spf13/cobra"
)

func newFleetWithdraw() *cobra.Command {
	var m memberFlags
	mute := false
	c := &cobra.Command{
		Use:   "withdraw DEVICE",
		Short: "take back the learned faces of one device on all other devices",
		Long: "Withdraw takes back everything that a device has taught others: they judge as if it had never\n" +
			"taught anything. DEVICE is a name or an id from faceauth fleet devices. Enrolled faces, and\n" +
			"corrections on pages, stay. The device itself keeps its learned faces: to take them back, run\n" +
			"faceauth people undo there.\n\n" +
			"With --mute other devices also ignore its later lessons, until you withdraw it again without\n" +
			"--mute.",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			m.fleet = true
			part, err := m.join(c)
			if err != nil {
				return err
			}
			defer part.close()
			part.arrive(c)
			var found []ledger.Member
			for _, d := range part.device.Members() {
				if d.Name == args[0] || d.ID == args[0] {
					found = append(found, d)
				}
			}
			if len(found) != 1 {
				return fail(badUsage, fmt.Errorf("%d devices of the fleet are called %q; give the id of one: "+
					"faceauth fleet devices", len(found), args[0]))
			}
			if _, err := part.device.Withdraw(found[0].ID, mute); err != nil {
				return fail(refused, err)
			}
			part.leave(c)
			_, err = fmt.Fprintf(c.OutOrStdout(), "what %s has taught is taken back\n", found[0].Name)
			return err
		},
	}
	deviceFolderFlag(c.Flags(), &m.state, "state")
	c.Flags().BoolVar(&mute, "mute", false, "also ignore its later lessons")
	return c
}
