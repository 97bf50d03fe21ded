// SPDX-License-Identifier: Apache-2.0

package calibrate_test

import (
	"context"
	"fmt"

	"github.com/faceauth/faceauth/lab/calibrate"
)

// Nine people give 18 pairs, so they only show that fewer than one pair in six matches falsely.
func ExampleRun() {
	o, err := calibrate.Run(context.Background(), people(9, 8, 3), plane, options(1e-3))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("sigma %g, gamma %g\n", o.Choice.Sigma, o.Choice.Gamma)
	fmt.Printf("%d of %d pairs: below %.2f; supported: %t\n", o.Pairs.Accepted, o.Pairs.Total,
		o.FMRUpperBound, o.Supported())
	// Output:
	// sigma 0.2, gamma 0.001
	// 0 of 18 pairs: below 0.17; supported: false
}
