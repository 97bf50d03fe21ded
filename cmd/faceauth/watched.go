// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package main

import (
	"fmt"

	"github.com/faceauth/faceauth/online"
	"github.com/spf13/cobra"
)

// roomWarning returns a function that warns whenever a learner becomes full.
func roomWarning(c *cobra.Command, l *online.Learner) func() {
	said := l.Full() // warnings at the start have said this
	return func() {
		if full := l.Full(); full != said {
			said = full
			if full {
				warn(c, fmt.Sprintf("k = %d is full: faces are recognised, and no longer learned; use a larger --k, "+
					"or people undo", l.Settings().K))
			}
		}
	}
}
