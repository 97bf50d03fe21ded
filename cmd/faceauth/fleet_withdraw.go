// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"

	"github.com/faceauth/faceauth/fleet"
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
			"If an office or another program takes part in the fleet on this device, it does this for the\n" +
			"command.\n\n" +
			"With --mute other devices also ignore its later lessons, until you withdraw it again without\n" +
			"--mute.",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			name, err := m.withdraw(c, args[0], mute)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "what %s has taught is taken back\n", name)
			return err
		},
	}
	deviceFolderFlag(c.Flags(), &m.state, "state")
	c.Flags().BoolVar(&mute, "mute", false, "also ignore its later lessons")
	return c
}

// withdraw takes back the lessons of a device, and returns its name. If a program such as an office uses the folder of
// this device, that program does it.
func (f *memberFlags) withdraw(c *cobra.Command, device string, mute bool) (name string, err error) {
	f.fleet = true
	m, err := f.join(c)
	if errors.Is(err, fleet.ErrBusy) {
		return f.withdrawThere(c, device, mute)
	}
	if err != nil {
		return "", err
	}
	defer m.close()
	m.arrive(c)
	name, err = m.Withdraw(device, mute)
	if errors.Is(err, fleet.ErrNobody) {
		return "", fail(badUsage, err)
	} else if err != nil {
		return "", fail(refused, err)
	}
	m.leave(c)
	return name, nil
}

// withdrawThere lets the program that uses the folder of this device take back lessons.
func (f *memberFlags) withdrawThere(c *cobra.Command, device string, mute bool) (name string, err error) {
	folder, err := fleetFolder(f.state, "fleet")
	if err != nil {
		return "", err
	}
	a, err := fleet.AskWithdraw(c.Context(), folder, device, mute)
	switch {
	case err != nil:
		return "", fail(badUsage, fmt.Errorf("%w, and it does not answer (%w); end it, and try again", fleet.ErrBusy,
			err))
	case a.Nobody:
		return "", fail(badUsage, errors.New(a.Error))
	case a.Error != "":
		return "", fail(refused, errors.New(a.Error))
	case !a.Sent:
		warn(c, unsent)
	}
	return a.Name, nil
}
