// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package main

import (
	"fmt"

	"github.com/faceauth/faceauth/online"
	"github.com/spf13/cobra"
)

// roomWarning returns a function that says, once each time, that a learner has no room for another centroid.
func roomWarning(c *cobra.Command, l *online.Learner) func() {
	said := l.Full() // then the warnings at the start have said it
	return func() {
		if full := l.Full(); full != said {
			said = full
			if full {
				warn(c, fmt.Sprintf("k = %d is full: faces are recognised, and no longer learned; use a larger --k, or people undo", l.Settings().K))
			}
		}
	}
}
