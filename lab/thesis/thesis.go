// SPDX-License-Identifier: Apache-2.0

// Package thesis makes the figures and tables of lab/NOTES.md from recordings and tables. [New]
// returns the command: each figure or table has a subcommand, which writes a CSV file and a picture
// below --out.
package thesis

import (
	"cmp"
	"os"

	"github.com/spf13/cobra"
)

// New returns the command "thesis".
func New() *cobra.Command {
	var o options
	c := &cobra.Command{
		Use:   "thesis",
		Short: "make the figures and tables of lab/NOTES.md",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.PersistentFlags().StringVar(&o.data, "data",
		cmp.Or(os.Getenv("FACEAUTH_DATA"), "../shared/data"), "folder of the recordings and tables")
	c.PersistentFlags().StringVar(&o.out, "out", "docs/thesis", "folder of what is made")
	c.AddCommand(newParallel(&o), newLogin(&o), newApproximation(&o), newClaims(&o), newSquares(&o),
		newCuts(&o), newJoint(&o), newJointTime(&o), newAnomaly(&o), newAnomalyTime(&o),
		newStrangers(&o), newPasses(&o))
	return c
}

// options are the flags of all subcommands.
type options struct{ data, out string }
