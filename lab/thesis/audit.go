// SPDX-License-Identifier: Apache-2.0

package thesis

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/reference/dense"
	"github.com/faceauth/faceauth/lab/evaluate"
	"github.com/faceauth/faceauth/lab/peers"
	"github.com/faceauth/faceauth/quantized"
	"github.com/spf13/cobra"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
)

func newAudit(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "audit",
		Short: "faces that were given another person's name, and who finds them",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return o.audit(c.Context()) },
	}
}

const auditRuns = 10

// auditor is a method with a setting.
type auditor struct {
	family, setting string
	scores          func(x [][]float32, d *mat.SymDense, y []int) ([]float64, error)
}

// auditors returns all methods and settings. Edges are as long as the learner's.
func auditors(reach float64) (all []auditor) {
	graphs := func(family, setting string, sigma float64, f func(w mat.Symmetric, y []int) (
		[]float64, error)) {
		kernel := quantized.Heat(sigma)
		all = append(all, auditor{family, fmt.Sprintf("sigma %g%s", sigma, setting),
			func(_ [][]float32, d *mat.SymDense, y []int) ([]float64, error) {
				return f(dense.Similarity(d, kernel, kernel.Weight(reach)), y)
			}})
	}
	crossed := func(family, setting string, t peers.Trainer) {
		all = append(all, auditor{family, setting,
			func(x [][]float32, _ *mat.SymDense, y []int) ([]float64, error) {
				return peers.CrossValidate(x, y, 5, t)
			}})
	}
	for _, sigma := range []float64{.2, .3, .5} {
		for _, c := range []float64{.1, 1} {
			for _, gamma := range []float64{.01, .1, 1} {
				graphs("SoftHAD", fmt.Sprintf(", c %g, gamma %g", c, gamma), sigma,
					func(w mat.Symmetric, y []int) (
						[]float64, error,
					) {
						return peers.SoftHarmonic(w, y, c, gamma)
					})
			}
		}
		for _, lambda := range []float64{0, 1e-5, 1e-4, 1e-3} {
			graphs("RWCAD", fmt.Sprintf(", lambda %g", lambda), sigma,
				func(w mat.Symmetric, y []int) ([]float64, error) {
					return peers.RandomWalk(w, y, lambda)
				})
		}
		graphs("weighted k-NN", "", sigma, peers.WeightedNeighbours)
	}
	for _, sigma := range []float64{.5, 1} {
		crossed("SVM", fmt.Sprintf("sigma %g, cost 1", sigma),
			peers.Projection(quantized.Heat(sigma), 1))
		crossed("one-class SVM", fmt.Sprintf("sigma %g, nu .1", sigma),
			peers.OneClass(quantized.Heat(sigma), .1))
	}
	crossed("QDA", "ridge 1", peers.Quadratic(1)) // a person has fewer faces than a face has values
	return all
}

// auditSet has the faces of a folder.
type auditSet struct {
	name string
	x    [][]float32
	y    []int
	d    *mat.SymDense
	// the tenth of the faces that are furthest from the fifth nearest face of their person
	far map[int]bool
}

// newAuditSet returns every Nth face of people.
func newAuditSet(name string, ids []evaluate.Identity, stride int) auditSet {
	s := auditSet{name: name}
	n := 0
	for class, id := range ids {
		for _, f := range id.Faces {
			if n%stride == 0 {
				s.x, s.y = append(s.x, f.Vector), append(s.y, class)
			}
			n++
		}
	}
	s.d = dense.Distances(s.x, 1)
	s.far = s.alone()
	return s
}

// swap gives a share of the faces another person's name, and returns their indices.
func (s auditSet) swap(r *rand.Rand, share float64) (y []int, which []int) {
	y = slices.Clone(s.y)
	which = r.Perm(len(y))[:max(1, int(math.Round(share*float64(len(y)))))]
	classes := slices.Max(y) + 1
	for _, i := range which {
		y[i] = (y[i] + 1 + r.IntN(classes-1)) % classes
	}
	return y, which
}

// alone returns the faces far from other faces of their person, for the true names: see
// auditSet.far.
func (s auditSet) alone() map[int]bool {
	far := make([]float64, len(s.x))
	for i := range far {
		var d []float64
		for j := range s.x {
			if j != i && s.y[i] == s.y[j] {
				d = append(d, s.d.At(i, j))
			}
		}
		slices.Sort(d)
		if len(d) > 0 {
			far[i] = d[min(4, len(d)-1)]
		}
	}
	some := make(map[int]bool)
	for _, i := range first(far, 0, len(far)/10) {
		some[i] = true
	}
	return some
}

// find renames n faces, and ranks all faces. Precision is the share of renamed faces among the
// first n. Within is their number among the first 2n, divided by n. Area is the area under the ROC
// curve. Fringe is the number of faces of auditSet.far with their true name among the first n,
// divided by n.
func (s auditSet) find(a auditor, run int) (precision, within, area, fringe float64, err error) {
	y, which := s.swap(rand.New(rand.NewPCG(uint64(run), 8)), flips)
	scores, err := a.scores(s.x, s.d, y)
	if err != nil {
		return 0, 0, 0, 0, err
	}
	truth := make([]float64, len(y))
	for _, i := range which {
		truth[i] = 1
	}
	hits := func(n int) (sum float64) {
		for _, i := range first(scores, 0, n) {
			sum += truth[i]
		}
		return sum
	}
	n := len(which)
	for _, i := range first(scores, 0, n) {
		if truth[i] == 0 && s.far[i] {
			fringe++
		}
	}
	return hits(n) / float64(n), hits(2*n) / float64(n), agreement(scores, truth),
		fringe / float64(n), nil
}

func (o *options) audit(ctx context.Context) error {
	var choosing, reported []auditSet
	var reach float64
	sets := []string{"umist", "faces94_subset", "fast_videos", "att", "vidtimit_rot"}
	err := o.inSets(ctx, sets, func(name string, space face.Space, ids []evaluate.Identity) error {
		reach = space.Reach
		switch name {
		case "att", "vidtimit_rot":
			reported = append(reported, newAuditSet(name, ids, 1))
		case "fast_videos":
			choosing = append(choosing, newAuditSet(name, ids, 5))
		default:
			choosing = append(choosing, newAuditSet(name, ids, 1))
		}
		return nil
	})
	if err != nil {
		return err
	}
	all := auditors(reach)
	var rows [][]string
	measure := func(sets []auditSet, of []int, chosen bool) ([]float64, error) {
		sum := make([]float64, len(all))
		for _, s := range sets {
			results := make([][4][]float64, len(all))
			err := each(of, func(q int) error {
				for run := range auditRuns {
					if err := ctx.Err(); err != nil {
						return err
					}
					p, w, a, f, err := s.find(all[q], run)
					if err != nil {
						return fmt.Errorf("%s, %s, %s: %w", s.name, all[q].family, all[q].setting,
							err)
					}
					for i, x := range []float64{p, w, a, f} {
						results[q][i] = append(results[q][i], x)
					}
				}
				return nil
			})
			if err != nil {
				return nil, err
			}
			for _, q := range of {
				line := []string{s.name, strconv.Itoa(len(s.x)), all[q].family, all[q].setting}
				for _, x := range results[q] {
					line = append(line, fmt.Sprintf("%.3f", stat.Mean(x, nil)))
				}
				rows = append(rows, append(line, strconv.FormatBool(chosen)))
				sum[q] += stat.Mean(results[q][0], nil)
			}
			fmt.Fprintln(os.Stderr, s.name, "measured")
		}
		return sum, nil
	}
	sum, err := measure(choosing, upTo(len(all)), false)
	if err != nil {
		return err
	}
	chosen := make(map[string]int)
	for q, a := range all {
		if best, ok := chosen[a.family]; !ok || sum[q] > sum[best] {
			chosen[a.family] = q
		}
	}
	var best []int
	for q, a := range all {
		if chosen[a.family] == q {
			best = append(best, q)
		}
	}
	if _, err := measure(reported, best, true); err != nil {
		return err
	}
	return o.table("audit.csv", []string{"recordings", "faces", "method", "setting",
		"precision in front",
		"found in twice as many", "area under ROC", "fringe in front", "chosen on others"}, rows)
}
