// SPDX-License-Identifier: Apache-2.0

package quantized_test

import (
	"fmt"

	"github.com/faceauth/faceauth/graph"
	"github.com/faceauth/faceauth/quantized"
)

func Example() {
	g, err := quantized.New(quantized.Config{
		K: 4, Multiplier: 1.5, Dim: 1, Scale: 1, Kernel: graph.Heat(.3), Epsilon: 1e-4, Gamma: 1e-3,
	})
	if err != nil {
		panic(err)
	}
	if err := g.Label([]float32{0}, 0); err != nil {
		panic(err)
	}
	for i := range 10 {
		point := g.Place([]float32{.2 * float32(i)})
		if point.Outlier() {
			fmt.Println("point", i, "is an outlier")
			continue
		}
		solution := point.Solve()
		point.Keep(solution.Values[0].Class, quantized.Moment{Observation: int64(i + 1)})
	}
	fmt.Printf("%d vertices for %g points, none further than %.2f from its own\n", g.Len(), g.Mass(), g.Bound())
	// Output:
	// 4 vertices for 10 points, none further than 0.75 from its own
}
