// SPDX-License-Identifier: Apache-2.0

package evaluate

import "github.com/faceauth/faceauth/quantized"

// Soft returns the soft solver with labels of a weight.
func Soft(g *quantized.Graph, c float64) func(quantized.Trial) quantized.Solution {
	return func(t quantized.Trial) quantized.Solution { return soft(c)(g, t) }
}
