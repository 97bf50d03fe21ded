// SPDX-License-Identifier: Apache-2.0

package thesis

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/graph"
	"github.com/faceauth/faceauth/lab/evaluate"
	"github.com/spf13/cobra"
)

func newLimit(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "limit",
		Short: "how far each person's faces lie from their enrolled ones, and how near others' faces come",
		Long: "The first four usable faces of each person are enrolled. The genuine radius of the space limits names and\n" +
			"learning: own faces beyond it have no name of their own, others' faces beyond it cannot have this name.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return o.limit(c.Context()) },
	}
}

// limits are the distances that are compared.
var limits = []float64{1.2, 1.25, 1.3, 1.35, 1.4}

func (o *options) limit(ctx context.Context) error {
	var rows [][]string
	sets := []string{"fast_videos", "umist", "faces94_subset", "att", "vidtimit_rot"}
	err := o.inSets(ctx, sets, func(set string, space face.Space, ids []evaluate.Identity) error {
		enrolled, rest := make([][][]float32, len(ids)), make([][][]float32, len(ids))
		for i, id := range ids {
			first, others, err := id.Divide(4)
			if err != nil {
				continue // too few faces that may be enrolled
			}
			for _, j := range first {
				enrolled[i] = append(enrolled[i], id.Faces[j].Vector)
			}
			for _, j := range others {
				if f := id.Faces[j]; f.Vector != nil && !f.Hold {
					rest[i] = append(rest[i], f.Vector)
				}
			}
		}
		beyond := func(all []float64) (words []string) {
			for _, d := range limits {
				n := len(all) - countWithin(all, d)
				words = append(words, fmt.Sprintf("%.3f", float64(n)/float64(max(len(all), 1))))
			}
			return words
		}
		for i, id := range ids {
			var own, others []float64
			for j, faces := range rest {
				for _, x := range faces {
					d := math.Inf(1)
					for _, y := range enrolled[i] {
						d = min(d, graph.Distance(x, y, space.Scale))
					}
					if i == j {
						own = append(own, d)
					} else {
						others = append(others, d)
					}
				}
			}
			if len(own) == 0 {
				continue
			}
			slices.Sort(own)
			row := append([]string{set, fmt.Sprint(i + 1), fmt.Sprint(len(own)),
				fmt.Sprintf("%.3f", own[len(own)-1])}, append(beyond(own), beyond(others)...)...)
			rows = append(rows, row)
			fmt.Println(strings.Join(row, "\t"), id.Name)
		}
		return nil
	})
	if err != nil {
		return err
	}
	head := []string{"recordings", "person", "faces", "the furthest"}
	for _, whose := range []string{"own", "others'"} {
		for _, d := range limits {
			head = append(head, fmt.Sprintf("%s beyond %g", whose, d))
		}
	}
	return o.table("limit.csv", head, rows)
}

// countWithin returns how many distances are at most d.
func countWithin(all []float64, d float64) (n int) {
	for _, x := range all {
		if x <= d {
			n++
		}
	}
	return n
}
