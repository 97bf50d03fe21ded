// SPDX-License-Identifier: Apache-2.0

package thesis

import (
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"sync"

	"github.com/faceauth/faceauth/internal/reference/dense"
	"github.com/faceauth/faceauth/quantized"
	"github.com/spf13/cobra"
	"gonum.org/v1/gonum/mat"
)

func newApproximation(o *options) *cobra.Command {
	return &cobra.Command{
		Use: "approximation",
		Short: "error of the quantized Laplacian, and accuracy on it, over time and over k " +
			"(Section UCI ML Repository Experiments)",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return o.approximation(c.Context()) },
	}
}

// Settings of the experiment. The thesis does not give n, the labels and gamma.
const (
	problems   = 10   // of each dataset
	points     = 1000 // of a problem, at the most
	perClass   = 5    // labelled points of each of the two classes, at the beginning
	neighbours = 5
	gammaUCI   = 1e-3
	// accuracy is measured at every tenth point, because each measurement needs a solution
	everyPoint = 10
	fixedK     = 200
)

var centroids = []int{25, 50, 100, 200, 400, 700, 1000}

// sparse selects the kind of graph.
type sparse bool

func (s sparse) String() string {
	if s {
		return "5-nearest-neighbour graph"
	}
	return "full graph as printed"
}

func (s sparse) weights(d mat.Symmetric, k quantized.Kernel) *mat.SymDense {
	if s {
		return dense.Nearest(d, k, neighbours)
	}
	return dense.Similarity(d, k, 0)
}

func (p problem) labelled() int { return 2 * perClass }

// solve returns the classes of the harmonic solution at the vertices of a graph with weights w. Its
// first vertices are the labelled points.
func (p problem) solve(w *mat.SymDense, v []float64) ([]int, error) {
	class := slices.Repeat([]int{-1}, w.SymmetricDim())
	copy(class, p.class[:p.labelled()])
	l, err := dense.Problem{W: w, V: v, Class: class, Classes: 2, Gamma: gammaUCI}.Harmonic()
	if err != nil {
		return nil, err
	}
	classes := make([]int, w.SymmetricDim())
	for i := range classes {
		if l.At(i, 1) > l.At(i, 0) {
			classes[i] = 1
		}
	}
	return classes, nil
}

// series has the measurements of one run.
type series struct {
	t     []int
	right []bool    // the prediction for point t
	error []float64 // of the Laplacian, at the requested times
}

// accuracy returns the share of right predictions up to each time.
func (s series) accuracy() []float64 {
	a := make([]float64, len(s.right))
	n := 0.
	for i, right := range s.right {
		if right {
			n++
		}
		a[i] = n / float64(i+1)
	}
	return a
}

// times returns the times of predictions.
func (p problem) times() (t []int) {
	for i := p.labelled(); i < len(p.x); i += everyPoint {
		t = append(t, i)
	}
	return t
}

// offline predicts every point with the graph of all points.
func (p problem) offline(s sparse) (series, error) {
	classes, err := p.solve(s.weights(p.d, p.kernel), nil)
	if err != nil {
		return series{}, err
	}
	r := series{t: p.times()}
	for _, t := range r.t {
		r.right = append(r.right, classes[t] == p.class[t])
	}
	return r, nil
}

// online predicts each point with the graph of the points up to it.
func (p problem) online(ctx context.Context, s sparse) (series, error) {
	r := series{t: p.times()}
	for _, t := range r.t {
		if err := ctx.Err(); err != nil {
			return r, err
		}
		classes, err := p.solve(s.weights(p.d.SliceSym(0, t+1), p.kernel), nil)
		if err != nil {
			return r, err
		}
		r.right = append(r.right, classes[t] == p.class[t])
	}
	return r, nil
}

// quantized predicts each point with the quantized graph, and measures the error of its Laplacian
// at the given times.
func (p problem) quantized(ctx context.Context, s sparse, k int,
	errorsAt func(t int) bool) (series, error) {
	g, err := quantized.New(quantized.Config{
		K: k - p.labelled(), Multiplier: 1.5, Dim: len(p.x[0]), Scale: 1, Kernel: p.kernel,
		Epsilon: 1e-300, Gamma: gammaUCI, Journal: points,
	})
	if err != nil {
		return series{}, err
	}
	r := series{t: p.times()}
	for t, x := range p.x {
		if err := ctx.Err(); err != nil {
			return r, err
		}
		if t < p.labelled() {
			if err := g.Label(x, p.class[t]); err != nil {
				return r, err
			}
			continue
		}
		c := g.Place(x)
		at, merged := c.Home()
		if _, kept := c.Keep(-1, quantized.Moment{Observation: int64(t)}); !kept {
			return r, fmt.Errorf("point %d is an outlier of the full graph, or has no room in it",
				t)
		}
		if !merged {
			at = g.Len() - 1
		}
		if (t-p.labelled())%everyPoint == 0 {
			d, v := vertices(g)
			classes, err := p.solve(s.weights(d, p.kernel), v)
			if err != nil {
				return r, err
			}
			r.right = append(r.right, classes[at] == p.class[t])
		}
		if (t-p.labelled())%everyPoint == 0 {
			e := math.NaN()
			if errorsAt(t) {
				e = p.error(g, s, t+1)
			}
			r.error = append(r.error, e)
		}
	}
	return r, nil
}

// vertices returns the distances between the vertices of a graph, and their multiplicities.
func vertices(g *quantized.Graph) (*mat.SymDense, []float64) {
	n := g.Len()
	d, v := mat.NewSymDense(n, nil), make([]float64, n)
	for i := range n {
		v[i] = g.Multiplicity(i)
		g.Neighbours(i,
			// edges of this graph have no limit
			func(j int, distance float64) { d.SetSym(i, j, distance) })
	}
	return d, v
}

// error returns the Frobenius norm of the difference of two normalised Laplacians over the first t
// points: of the graph of the points, and of the graph with every point at its centroid.
func (p problem) error(g *quantized.Graph, s sparse, t int) float64 {
	// The vertex of each point: labelled points have their own vertices, which come first.
	at := make([]int, t)
	state := g.State()
	vertex := make(map[int64]int)
	for i, v := range state.Vertices {
		vertex[v.Origin.ID] = i
		if v.Class < 0 {
			at[v.Origin.Observation] = i
		}
	}
	for i := range p.labelled() {
		at[i] = i
	}
	for _, e := range state.Journal {
		at[e.Observation] = vertex[e.Vertex]
	}
	d, _ := vertices(g)
	w := s.weights(d, p.kernel)
	replicated := mat.NewSymDense(t, nil)
	for i := range t {
		for j := range i {
			if at[i] == at[j] {
				replicated.SetSym(i, j, p.kernel.Weight(0))
			} else {
				replicated.SetSym(i, j, w.At(at[i], at[j]))
			}
		}
	}
	a := dense.Laplacian(s.weights(p.d.SliceSym(0, t), p.kernel), true)
	b := dense.Laplacian(replicated, true)
	var sum float64
	for i := range t {
		for j := range t {
			x := a.At(i, j) - b.At(i, j)
			sum += x * x
		}
	}
	return math.Sqrt(sum)
}

// outcome is the mean over the problems of a dataset on one graph.
type outcome struct {
	dataset string
	sparse  sparse

	t                          []int // over time, with fixed k
	error                      []float64
	offline, online, quantized []float64 // cumulative accuracy

	errorAt, accuracyAt []float64 // at the end, for each k
}

func (o *options) approximation(ctx context.Context) error {
	var all []*outcome
	for _, dataset := range []string{"letter", "optdigits"} {
		ps, err := o.readUCI(dataset)
		if err != nil {
			return err
		}
		for _, s := range []sparse{true, false} {
			out, err := approximate(ctx, dataset, s, ps)
			if err != nil {
				return err
			}
			all = append(all, out)
			fmt.Fprintf(os.Stderr,
				"%s, %s: accuracy offline %.3f, online %.3f, quantized at k = %d %.3f\n",
				dataset, s, out.offline[len(out.t)-1], out.online[len(out.t)-1], fixedK,
				out.quantized[len(out.t)-1])
		}
	}
	var rows [][]string
	number := func(x float64) string {
		if math.IsNaN(x) {
			return ""
		}
		return fmt.Sprintf("%.4f", x)
	}
	for _, out := range all {
		for i, t := range out.t {
			rows = append(rows, []string{out.dataset, out.sparse.String(), strconv.Itoa(t),
				strconv.Itoa(fixedK),
				number(out.error[i]), number(out.offline[i]), number(out.online[i]),
				number(out.quantized[i])})
		}
		last := len(out.t) - 1
		for i, k := range centroids {
			rows = append(rows, []string{out.dataset, out.sparse.String(),
				strconv.Itoa(out.t[last]), strconv.Itoa(k),
				number(out.errorAt[i]), number(out.offline[last]), number(out.online[last]),
				number(out.accuracyAt[i])})
		}
	}
	header := []string{"dataset", "graph", "t", "k", "error", "offline", "online", "quantized"}
	if err := o.table("approximation.csv", header, rows); err != nil {
		return err
	}
	return o.drawApproximation(all)
}

// approximate runs the problems of one dataset, two at a time.
func approximate(ctx context.Context, dataset string, s sparse, ps []problem) (*outcome, error) {
	type result struct {
		offline, online, fixed series
		byK                    []series
		err                    error
	}
	results := make([]result, len(ps))
	var wait sync.WaitGroup
	slots := make(chan bool, 2)
	for i, p := range ps {
		wait.Go(func() {
			slots <- true
			defer func() { <-slots }()
			r := &results[i]
			if r.offline, r.err = p.offline(s); r.err != nil {
				return
			}
			if r.online, r.err = p.online(ctx, s); r.err != nil {
				return
			}
			times := p.times()
			for _, k := range centroids {
				run, err := p.quantized(ctx, s, k, func(t int) bool {
					return t == times[len(times)-1] || k == fixedK &&
						(t-p.labelled())%(5*everyPoint) == 0
				})
				if err != nil {
					r.err = err
					return
				}
				r.byK = append(r.byK, run)
				if k == fixedK {
					r.fixed = run
				}
			}
		})
	}
	wait.Wait()
	out := &outcome{dataset: dataset, sparse: s}
	shortest := math.MaxInt
	for _, r := range results {
		if r.err != nil {
			return nil, r.err
		}
		shortest = min(shortest, len(r.fixed.t))
	}
	out.t = results[0].fixed.t[:shortest]
	mean := func(of func(r result) []float64) []float64 {
		sum := make([]float64, shortest)
		for _, r := range results {
			for i, x := range of(r)[:shortest] {
				sum[i] += x / float64(len(results))
			}
		}
		return sum
	}
	out.offline = mean(func(r result) []float64 { return r.offline.accuracy() })
	out.online = mean(func(r result) []float64 { return r.online.accuracy() })
	out.quantized = mean(func(r result) []float64 { return r.fixed.accuracy() })
	out.error = mean(func(r result) []float64 { return r.fixed.error })
	for i := range centroids {
		var e, a float64
		for _, r := range results {
			run := r.byK[i]
			last := len(run.error) - 1
			e += run.error[last] / float64(len(results))
			a += run.accuracy()[last] / float64(len(results))
		}
		out.errorAt, out.accuracyAt = append(out.errorAt, e), append(out.accuracyAt, a)
	}
	return out, nil
}
