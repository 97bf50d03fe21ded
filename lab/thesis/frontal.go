// SPDX-License-Identifier: Apache-2.0

package thesis

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/graph"
	"github.com/faceauth/faceauth/lab/evaluate"
	"github.com/spf13/cobra"
)

func newFrontal(o *options) *cobra.Command {
	return &cobra.Command{
		Use: "frontal",
		Short: "how many faces of a person are farther from all enrolled ones than the distance at a false match " +
			"rate of 1e-2, by greatest turn",
		Long: "The first four usable faces of each person are enrolled, or the first one of people with fewer than\n" +
			"eight. Own faces beyond the distance would be refused; others' faces within it would be accepted.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return o.frontal(c.Context()) },
	}
}

func (o *options) frontal(ctx context.Context) error {
	fmt.Println("set\tperson\tturn at most\town faces\trefused\tothers' faces\taccepted")
	turns := []float64{.15, .3, .45, .6, .9, 1.5}
	return o.inSets(ctx, []string{"vidtimit_rot", "fast_videos", "lfw"},
		func(set string, space face.Space, ids []evaluate.Identity) error {
			type enrolled struct {
				id    evaluate.Identity
				first [][]float32
				rest  []int
			}
			var people []enrolled
			for _, id := range ids {
				first, rest, err := id.Divide(min(4, max(1, len(id.Faces)/2)))
				if len(id.Faces) < 8 {
					first, rest, err = id.Divide(1)
				}
				if err != nil || len(rest) == 0 {
					continue // one picture, or none that may be enrolled
				}
				p := enrolled{id: id, rest: rest}
				for _, i := range first {
					p.first = append(p.first, id.Faces[i].Vector)
				}
				people = append(people, p)
			}
			var sums [6][4]int
			for _, p := range people {
				for i, turn := range turns {
					var n [4]int
					count := func(faces []evaluate.Face, which []int, at int, beyond bool) {
						for _, j := range which {
							f := faces[j]
							if f.Hold || math.Abs(f.Quality.Turn) > turn {
								continue
							}
							n[at]++
							d := math.Inf(1)
							for _, x := range p.first {
								d = min(d, graph.Distance(x, f.Vector, space.Scale))
							}
							if (d > space.Stills.Within(1e-2)) == beyond {
								n[at+1]++
							}
						}
					}
					count(p.id.Faces, p.rest, 0, true)
					for _, other := range people {
						if other.id.Name != p.id.Name && set != "lfw" {
							count(other.id.Faces, other.rest, 2, false)
						}
					}
					for k := range n {
						sums[i][k] += n[k]
					}
					if len(people) < 20 || n[1] > 0 && slices.Contains([]float64{.45}, turn) {
						fmt.Printf("%s\t%s\t%.2f\t%d\t%d\t%d\t%d\n", set, p.id.Name, turn, n[0], n[1], n[2], n[3])
					}
				}
			}
			for i, turn := range turns {
				n := sums[i]
				fmt.Printf("%s\tall %d\t%.2f\t%d\t%d\t%d\t%d\n", set, len(people), turn, n[0], n[1], n[2], n[3])
			}
			return nil
		})
}
