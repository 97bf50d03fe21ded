// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/faceauth/faceauth/online"
	"github.com/spf13/cobra"
)

// roomWarning returns a function that warns whenever a learner has too little room.
func roomWarning(c *cobra.Command, l *online.Learner) func() {
	said := l.Room() // warnings at the start have said this
	return func() {
		if now := l.Room(); now.Changed(said) {
			if said = now; now.Warning() != "" {
				warn(c, now.Warning())
			}
		}
	}
}
