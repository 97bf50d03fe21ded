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
		Short: "take back, on all devices, what a device has learned",
		Long: "Withdraw takes back what a device has taught the others of people: after it they judge as if that " +
			"device had\n" +
			"never taught anything. DEVICE is its name or id; faceauth fleet devices lists them. Enrolled faces, and " +
			"what was\n" +
			"said on pages, stay. The device itself keeps what it has learned: faceauth people undo takes that back " +
			"there.\n\n" +
			"With --mute the device is not listened to later either, until it is withdrawn again without.",
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
	c.Flags().BoolVar(&mute, "mute", false, "do not listen to it from now on either")
	return c
}
