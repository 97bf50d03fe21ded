// SPDX-License-Identifier: Apache-2.0

package thesis

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/reference/dense"
	"github.com/faceauth/faceauth/lab/evaluate"
	"github.com/faceauth/faceauth/quantized"
	"github.com/spf13/cobra"
	"gonum.org/v1/gonum/mat"
)

func newGraph(o *options) *cobra.Command {
	return &cobra.Command{
		Use: "graph",
		Short: "where the graph decides: the harmonic solution beside the nearest stored point, " +
			"with the same centroids",
		Long: "Both learn online, with the same number of centroids, edges and merging. One\n" +
			"gives a point the class of the largest harmonic value, the other that of the\n" +
			"nearest stored point: a labelled one, or one that it has given this class\n" +
			"before. A third knows the labelled points only.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return o.graph(c.Context()) },
	}
}

// point has a class, or -1 for a stranger.
type point struct {
	x     []float32
	class int
}

// ablation is a stream after some labelled points.
type ablation struct {
	name             string
	labelled, stream []point
	classes          int
	config           quantized.Config // without K
	ks               []int
}

// A decision gives a point that was tried a class, or -1.
type decision func(t quantized.Trial, classes int) int

func harmonicClass(t quantized.Trial, _ int) int {
	best, value := -1, 1e-9
	for _, v := range t.Solve().Values {
		if v.Value > value {
			best, value = v.Class, v.Value
		}
	}
	return best
}

func nearestClass(t quantized.Trial, classes int) int {
	best, distance := -1, math.Inf(1)
	for c := range classes {
		if d := t.Nearest(c); d < distance {
			best, distance = c, d
		}
	}
	return best
}

// labelledClass knows the labelled points only.
func labelledClass(t quantized.Trial, classes int) int {
	best, distance := -1, math.Inf(1)
	for c := range classes {
		if d := t.Anchor(c); d < distance {
			best, distance = c, d
		}
	}
	return best
}

// run returns the class of each point of the stream, and how many vertices are left.
func (a ablation) run(ctx context.Context, k int,
	by decision) (given []int, vertices int, err error) {
	c := a.config
	c.K, c.Dim, c.Scale, c.Multiplier = k, len(a.labelled[0].x), 1, 1.2
	g, err := quantized.New(c)
	if err != nil {
		return nil, 0, err
	}
	for _, p := range a.labelled {
		if err := g.Label(p.x, p.class); err != nil {
			return nil, 0, err
		}
	}
	for i, p := range a.stream {
		if err := ctx.Err(); err != nil {
			return nil, 0, err
		}
		t := g.Place(p.x)
		class := -1
		if !t.Outlier() {
			class = by(t.Trial, a.classes)
			t.Keep(class, quantized.Moment{Observation: int64(i) + 1})
		}
		given = append(given, class)
	}
	return given, g.Len() - len(a.labelled), nil
}

// graph runs all ablations.
func (o *options) graph(ctx context.Context) error {
	all, err := o.faceAblations(ctx)
	if err != nil {
		return err
	}
	tables, err := o.tableAblations()
	if err != nil {
		return err
	}
	all = append(append(all, tables...), overlapping()...)
	var rows [][]string
	for _, a := range all {
		for _, k := range a.ks {
			row := []string{a.name, fmt.Sprint(len(a.labelled)), fmt.Sprint(len(a.stream)),
				fmt.Sprint(k)}
			var both [][]int
			vertices := 0
			for _, by := range []decision{labelledClass, nearestClass, harmonicClass} {
				given, n, err := a.run(ctx, k, by)
				if err != nil {
					return fmt.Errorf("%s, k = %d: %w", a.name, k, err)
				}
				right, wrong := 0, 0
				for i, c := range given {
					switch {
					case c >= 0 && c == a.stream[i].class:
						right++
					case c >= 0:
						wrong++
					}
				}
				both, vertices = append(both, given), n
				row = append(row, fmt.Sprintf("%.4f", float64(right)/float64(len(given))),
					fmt.Sprintf("%.4f", float64(wrong)/float64(len(given))))
			}
			other := 0
			for i := range both[1] {
				if both[1][i] != both[2][i] {
					other++
				}
			}
			row = append(row, fmt.Sprint(other), fmt.Sprint(vertices))
			rows = append(rows, row)
			fmt.Println(strings.Join(row, "\t"))
		}
	}
	return o.table("graph.csv", []string{"points", "labelled", "stream", "k",
		"labelled alone: right", "wrong",
		"nearest stored: right", "wrong", "harmonic: right", "wrong", "answers that differ",
		"centroids"}, rows)
}

// faceAblations has the six heads of vidtimit_rot in order and shuffled, as embeddings and as
// pixels.
func (o *options) faceAblations(ctx context.Context) (all []ablation, err error) {
	err = o.inEachSpace(ctx, heads(), func(space face.Space, ids []evaluate.Identity) error {
		features := "embeddings"
		if !space.Unit {
			features = "pixels"
		}
		a := ablation{name: features + ", in order", classes: len(ids), ks: []int{6, 15, 45, 300}}
		a.config = quantized.Config{Kernel: quantized.Heat(space.Sigma), Reach: space.Reach,
			Gamma: space.Gamma, Epsilon: .1 * space.Gamma}
		for i, id := range ids {
			first, rest, err := id.Divide(4)
			if err != nil {
				return err
			}
			scaled := func(x []float32) []float32 {
				y := slices.Clone(x)
				for q := range y {
					y[q] *= float32(space.Scale)
				}
				return y
			}
			for _, j := range first {
				a.labelled = append(a.labelled, point{scaled(id.Faces[j].Vector), i})
			}
			for _, j := range rest {
				if f := id.Faces[j]; f.Vector != nil && !f.Hold {
					a.stream = append(a.stream, point{scaled(f.Vector), i})
				}
			}
		}
		shuffled := a
		shuffled.name, shuffled.stream = features+", shuffled", slices.Clone(a.stream)
		r := rand.New(rand.NewPCG(1, 46))
		r.Shuffle(len(a.stream), func(i, j int) {
			shuffled.stream[i], shuffled.stream[j] = shuffled.stream[j], shuffled.stream[i]
		})
		all = append(all, a, shuffled)
		return nil
	})
	return all, err
}

// kernelWidths are the widths of the kernel for tables, in units of the median distance to the
// tenth nearest neighbour.
var kernelWidths = []float64{.25, .5, 1}

// tableAblations has the benchmarks with their first official labelled set, and letters and digits
// with five labelled points of each class.
func (o *options) tableAblations() (all []ablation, err error) {
	add := func(name string, near float64, labelled, stream []point, classes int) {
		for _, width := range kernelWidths {
			a := ablation{name: fmt.Sprintf("%s, sigma %g", name, width), labelled: labelled,
				stream: stream, classes: classes, ks: []int{15, 100, 300}}
			a.config = quantized.Config{Kernel: quantized.Heat(width * near), Epsilon: 1e-12,
				Gamma: 1e-6}
			all = append(all, a)
		}
	}
	for _, name := range []string{"coil2", "digit1", "usps"} {
		b, err := o.benchmark(name)
		if err != nil {
			return nil, err
		}
		splits, err := o.splits(name, 100, len(b.x))
		if err != nil {
			return nil, err
		}
		var labelled, stream []point
		for i, x := range b.x {
			p := point{x, b.class[i]}
			if slices.Contains(splits[0], i) {
				labelled = append(labelled, p)
			} else {
				stream = append(stream, p)
			}
		}
		add(name, b.near, labelled, stream, 2)
	}
	for _, name := range []string{"letter", "optdigits"} {
		rows, err := o.rows(name)
		if err != nil {
			return nil, err
		}
		r := rand.New(rand.NewPCG(2, 46))
		r.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
		class, seen := make(map[string]int), make(map[string]int)
		var labelled, stream []point
		var x [][]float32
		for _, row := range rows[:1500] {
			if _, there := class[row.label]; !there {
				class[row.label] = len(class)
			}
			p := point{row.x, class[row.label]}
			x = append(x, row.x)
			if seen[row.label]++; seen[row.label] <= 5 {
				labelled = append(labelled, p)
			} else {
				stream = append(stream, p)
			}
		}
		add(name, tenthNearest(dense.Distances(x, 1)), labelled, stream, len(class))
	}
	return all, nil
}

// tenthNearest returns the median distance to the tenth nearest neighbour.
func tenthNearest(d mat.Symmetric) float64 {
	var tenth []float64
	for i := range d.SymmetricDim() {
		row := make([]float64, d.SymmetricDim())
		for j := range row {
			row[j] = d.At(i, j)
		}
		slices.Sort(row)
		tenth = append(tenth, row[benchmarkNeighbours])
	}
	slices.Sort(tenth)
	return tenth[len(tenth)/2]
}

// overlapping has ten made-up people whose faces overlap: in eight dimensions with two labelled
// faces each.
func overlapping() (all []ablation) {
	for _, spread := range []float64{.5, .8} {
		r := rand.New(rand.NewPCG(3, 46))
		const people, dim = 10, 8
		var at [people][dim]float64
		for i := range at {
			for q := range at[i] {
				at[i][q] = r.NormFloat64()
			}
		}
		draw := func(i int) point {
			x := make([]float32, dim)
			for q := range x {
				x[q] = float32(at[i][q] + spread*r.NormFloat64())
			}
			return point{x, i}
		}
		a := ablation{classes: people, ks: []int{15, 100, 300}}
		for i := range people {
			a.labelled = append(a.labelled, draw(i), draw(i))
		}
		var x [][]float32
		for range 1500 {
			p := draw(r.IntN(people))
			a.stream, x = append(a.stream, p), append(x, p.x)
		}
		near := tenthNearest(dense.Distances(x, 1))
		for _, width := range kernelWidths {
			b := a
			b.name = fmt.Sprintf("overlapping people, spread %g, sigma %g", spread, width)
			b.config = quantized.Config{Kernel: quantized.Heat(width * near), Epsilon: 1e-12,
				Gamma: 1e-6}
			all = append(all, b)
		}
	}
	return all
}
