// SPDX-License-Identifier: Apache-2.0

package thesis

import (
	"context"
	"fmt"
	"os"

	"github.com/faceauth/faceauth/lab/evaluate"
	"github.com/faceauth/faceauth/online"
	"github.com/spf13/cobra"
)

// The axes of the map.
var (
	cliffSigmas = []float64{.16, .18, .20, .22, .24, .27, .30}
	cliffGammas = []float64{1e-4, 1e-3, 1e-2}
)

// unbounded is longer than any edge between vectors of length 1.
const unbounded = 3

// cell is one setting of the map.
type cell struct {
	bounded      bool
	sigma, gamma float64
	recall, far  float64
	worst        float64 // FAR of the worst choice of strangers
}

func newCliff(o *options) *cobra.Command {
	var stride int
	c := &cobra.Command{
		Use: "cliff",
		Short: "false accepts and recall over sigma and gamma, with the longest edge bounded and " +
			"unbounded",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return o.cliff(c.Context(), stride)
		},
	}
	c.Flags().IntVar(&stride, "stride", 1, "use every Nth face")
	return c
}

func (o *options) cliff(ctx context.Context, stride int) error {
	space, ids, names, err := o.embeddedHeads(ctx)
	if err != nil {
		return err
	}
	var cells []*cell
	for _, bounded := range []bool{false, true} {
		for _, gamma := range cliffGammas {
			for _, sigma := range cliffSigmas {
				cells = append(cells, &cell{bounded: bounded, sigma: sigma, gamma: gamma})
			}
		}
	}
	err = each(cells, func(c *cell) error {
		s := online.Settings{Sigma: c.sigma, Gamma: c.gamma}
		if !c.bounded {
			s.Reach = unbounded
		}
		sum, err := evaluate.RunAll(ctx, ids,
			evaluate.Protocol{Enroll: 4, Order: evaluate.Sequential, Stride: stride},
			evaluate.Choices(names, 2), []evaluate.Entry{evaluate.Learner(space, s)}, nil)
		if err != nil {
			return err
		}
		c.recall, c.far = float64(sum.Methods[0].Recall), float64(sum.Methods[0].FAR)
		c.worst = float64(sum.Worst[0].FAR)
		fmt.Fprintf(os.Stderr,
			"bounded %t, sigma %g, gamma %g: recall %.4f, FAR %.4f, worst %.4f\n", c.bounded,
			c.sigma,
			c.gamma, c.recall, c.far, c.worst)
		return nil
	})
	if err != nil {
		return err
	}
	header := []string{"longest_edge", "sigma", "gamma", "recall", "far_mean", "far_worst"}
	if err := o.table("cliff.csv", header, rowsOfCliff(cells)); err != nil {
		return err
	}
	return o.drawCliff(cells)
}

// rowsOfCliff returns the rows of the table, one for each cell.
func rowsOfCliff(cells []*cell) (rows [][]string) {
	for _, c := range cells {
		edge := "unbounded"
		if c.bounded {
			edge = "bounded"
		}
		rows = append(rows, []string{edge, fmt.Sprint(c.sigma), fmt.Sprint(c.gamma),
			fmt.Sprintf("%.4f", c.recall),
			fmt.Sprintf("%.4f", c.far), fmt.Sprintf("%.4f", c.worst)})
	}
	return rows
}
