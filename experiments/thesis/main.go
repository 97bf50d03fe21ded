// SPDX-License-Identifier: Apache-2.0

// Command thesis makes the figures and tables of docs/results.md from recordings and tables.
//
// Each figure or table has a subcommand, which writes a CSV file and a picture below --out. The data are read from
// --data, which is $FACEAUTH_DATA or ../shared/data.
package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var o options
	root := &cobra.Command{Use: "thesis", Short: "make the figures and tables of docs/results.md", SilenceUsage: true,
		SilenceErrors: true}
	root.PersistentFlags().StringVar(&o.data, "data", cmp.Or(os.Getenv("FACEAUTH_DATA"), "../shared/data"),
		"folder of the recordings and tables")
	root.PersistentFlags().StringVar(&o.out, "out", "docs/thesis", "folder of what is made")
	root.AddCommand(newCliff(&o), newParallel(&o), newDrift(&o), newApproximation(&o), newSensitivity(&o),
		newClaims(&o), newSquares(&o), newCuts(&o), newJoint(&o), newJointTime(&o), newAnomaly(&o), newAnomalyTime(&o),
		newAudit(&o), newPoses(&o), newChapelle(&o), newDistil(&o), newCompact(&o), newStrangers(&o), newFleet(&o),
		newPasses(&o), newMorph(&o), newFrontal(&o), newCasts(&o), newConditions(&o))
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "thesis:", err)
		stop()
		os.Exit(1)
	}
}

// options are the flags of all subcommands.
type options struct{ data, out string }
