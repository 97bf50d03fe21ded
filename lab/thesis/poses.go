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
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/internal/reference/dense"
	"github.com/faceauth/faceauth/lab/evaluate"
	"github.com/faceauth/faceauth/lab/peers"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/quantized"
	"github.com/spf13/cobra"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
)

func newPoses(o *options) *cobra.Command {
	return &cobra.Command{
		Use: "audit-poses",
		Short: "who finds the wrong names in a gallery of turned heads, also with four faces of " +
			"a person",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return o.poses(c.Context()) },
	}
}

const (
	poseRuns  = 20
	poseShare = .05
	poseFaces = 4
)

// poseAuditors returns the methods and settings for a gallery of turned heads. Edges are as long as
// the learner's.
func poseAuditors(space face.Space) (all []auditor) {
	reach := space.Reach
	soft := func(sigma, reach, c, gamma float64) func(d *mat.SymDense, y []int) ([]float64, error) {
		kernel := quantized.Heat(sigma)
		return func(d *mat.SymDense, y []int) ([]float64, error) {
			return peers.SoftHarmonic(dense.Similarity(d, kernel, kernel.Weight(reach)), y, c,
				gamma)
		}
	}
	add := func(family, setting string, f func(d *mat.SymDense, y []int) ([]float64, error)) {
		all = append(all, auditor{family, setting,
			func(_ [][]float32, d *mat.SymDense, y []int) ([]float64, error) {
				return f(d, y)
			}})
	}
	margin := func(d *mat.SymDense, y []int) ([]float64, error) {
		return peers.OwnMinusOther(d, y), nil
	}
	add("own - other", "", margin)
	for _, sigma := range []float64{.3, .4, .5, .7} {
		for _, c := range []float64{.1, 1} {
			for _, gamma := range []float64{.01, .1} {
				for _, r := range []float64{1, 1.3, 4} {
					f := soft(sigma, r*reach, c, gamma)
					setting := fmt.Sprintf("sigma %g, c %g, gamma %g, edges %g", sigma, c, gamma, r)
					add("SoftHAD", setting, f)
					for _, share := range []float64{.5, 1, 2} {
						add("SoftHAD and own - other", fmt.Sprintf("%s, share %g", setting, share),
							func(d *mat.SymDense, y []int) ([]float64, error) {
								scores, err := f(d, y)
								for i, m := range peers.OwnMinusOther(d, y) {
									if err == nil {
										scores[i] += share * min(max(m/reach, -1), 1)
									}
								}
								return scores, err
							})
					}
				}
			}
		}
	}
	all = append(all, auditor{"faceauth audit", "",
		func(x [][]float32, _ *mat.SymDense, y []int) ([]float64, error) {
			scores, _, err := audited(space, x, y)
			return scores, err
		}})
	add("3-NN", "", threeNearest)
	for _, cost := range []float64{1, 10, 100} {
		all = append(all, auditor{"logistic regression, five-fold", fmt.Sprintf("cost %g", cost),
			func(x [][]float32, _ *mat.SymDense, y []int) ([]float64, error) {
				return peers.CrossValidate(x, y, 5, peers.Logistic(cost))
			}})
	}
	for _, sigma := range []float64{.5, 1} {
		all = append(all, auditor{"SVM, five-fold", fmt.Sprintf("sigma %g, cost 1", sigma),
			func(x [][]float32, _ *mat.SymDense, y []int) ([]float64, error) {
				return peers.CrossValidate(x, y, 5, peers.Projection(quantized.Heat(sigma), 1))
			}})
	}
	return all
}

// some returns the faces of the classes for which keep returns true, at most n of each, or all for
// n = 0.
func (s auditSet) some(name string, n int, keep func(class int) bool) auditSet {
	t := auditSet{name: name}
	number := make(map[int]int) // new number of each kept class
	size := make(map[int]int)
	for i, class := range s.y {
		if !keep(class) || n > 0 && size[class] == n {
			continue
		}
		if _, ok := number[class]; !ok {
			number[class] = len(number)
		}
		size[class]++
		t.x, t.y = append(t.x, s.x[i]), append(t.y, number[class])
	}
	t.d = dense.Distances(t.x, 1)
	return t
}

// spaced returns n faces of each person, evenly spread over the person's faces.
func (s auditSet) spaced(n int) auditSet {
	byClass := make([][]int, slices.Max(s.y)+1)
	for i, class := range s.y {
		byClass[class] = append(byClass[class], i)
	}
	t := auditSet{name: fmt.Sprintf("%s, %d each", s.name, n)}
	for class, all := range byClass {
		for q := range min(n, len(all)) {
			i := all[q*len(all)/min(n, len(all))]
			t.x, t.y = append(t.x, s.x[i]), append(t.y, class)
		}
	}
	t.d = dense.Distances(t.x, 1)
	return t
}

// precision returns the share of renamed faces among the first n faces, where n is the number of
// renamed faces.
func (s auditSet) precision(a auditor, run int) (float64, error) {
	y, which := s.swap(rand.New(rand.NewPCG(uint64(run), 12)), poseShare)
	scores, err := a.scores(s.x, s.d, y)
	if err != nil {
		return 0, err
	}
	hits := 0.
	for _, i := range first(scores, 0, len(which)) {
		if slices.Contains(which, i) {
			hits++
		}
	}
	return hits / float64(len(which)), nil
}

// poses chooses the settings of each method on one half of the people of umist and reports results
// on the other half, for both halves.
func (o *options) poses(ctx context.Context) error {
	var whole auditSet
	var space face.Space
	err := o.inSets(ctx, []string{"umist"},
		func(name string, s face.Space, ids []evaluate.Identity) error {
			space, whole = s, newAuditSet(name, ids, 1)
			return nil
		})
	if err != nil {
		return err
	}
	all := poseAuditors(space)
	var rows [][]string
	for _, few := range []int{0, poseFaces} {
		var values [2][][]float64 // by half, method and run
		var sets [2]auditSet
		for half := range 2 {
			sets[half] = whole.some("umist", 0, func(class int) bool { return class%2 == half })
			if few > 0 {
				sets[half] = sets[half].spaced(few)
			}
			if err := sets[half].suspects(space, half); err != nil {
				return err
			}
			values[half] = make([][]float64, len(all))
			err := each(upTo(len(all)), func(q int) error {
				for run := range poseRuns {
					if err := ctx.Err(); err != nil {
						return err
					}
					p, err := sets[half].precision(all[q], run)
					if err != nil {
						return fmt.Errorf("%s, %s: %w", all[q].family, all[q].setting, err)
					}
					values[half][q] = append(values[half][q], p)
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		for half := range 2 {
			chosen := make(map[string]int)
			for q, a := range all {
				best, ok := chosen[a.family]
				if !ok || stat.Mean(values[1-half][q], nil) > stat.Mean(values[1-half][best], nil) {
					chosen[a.family] = q
				}
			}
			for q, a := range all {
				mean, spread := stat.MeanStdDev(values[half][q], nil)
				rows = append(rows, []string{sets[half].name, strconv.Itoa(half + 1),
					strconv.Itoa(len(sets[half].x)), a.family,
					a.setting,
					fmt.Sprintf("%.3f", mean), fmt.Sprintf("%.3f", spread),
					strconv.FormatBool(chosen[a.family] == q)})
			}
		}
		fmt.Fprintln(os.Stderr, sets[0].name, "measured")
	}
	return o.table("audit-poses.csv",
		[]string{"recordings", "half", "faces", "method", "setting", "precision in front",
			"standard deviation", "chosen on the other half"}, rows)
}

// threeNearest returns the share of the three nearest faces that have another name.
func threeNearest(d *mat.SymDense, y []int) ([]float64, error) {
	scores := make([]float64, len(y))
	for i := range y {
		near := make([]float64, len(y))
		for j := range near {
			near[j] = -d.At(i, j)
		}
		near[i] = math.Inf(-1)
		for _, j := range first(near, 0, 3) {
			if y[j] != y[i] {
				scores[i] += 1. / 3
			}
		}
	}
	return scores, nil
}

// audited returns the scores of the program's own audit, and the number of suspect faces.
func audited(space face.Space, x [][]float32,
	y []int) (scores []float64, suspects []int, err error) {
	g, err := gallery.New(space, online.Settings{K: len(x) + 2})
	if err != nil {
		return nil, nil, err
	}
	at := make(map[string]int)
	for i := range x {
		at[fmt.Sprint(x[i])] = i
		_, err := g.Enroll(strconv.Itoa(y[i]), x[i:i+1], time.Unix(0, 0),
			gallery.Enrolment{Add: true, Force: true})
		if err != nil {
			return nil, nil, err
		}
	}
	all, err := g.Audit(false)
	if err != nil {
		return nil, nil, err
	}
	scores = make([]float64, len(x))
	for q, u := range all {
		scores[at[fmt.Sprint(u.Vector)]] = float64(len(all) - q)
		if u.Suspect {
			suspects = append(suspects, at[fmt.Sprint(u.Vector)])
		}
	}
	return scores, suspects, nil
}

// suspects prints the number of suspects of the program's audit with right names, and then, with
// some faces renamed, the numbers of suspects among renamed faces and among other faces.
func (s auditSet) suspects(space face.Space, half int) error {
	_, clean, err := audited(space, s.x, s.y)
	if err != nil {
		return err
	}
	var right, wrong, renamed int
	for run := range poseRuns {
		y, which := s.swap(rand.New(rand.NewPCG(uint64(run), 12)), poseShare)
		_, suspects, err := audited(space, s.x, y)
		if err != nil {
			return err
		}
		renamed += len(which)
		for _, i := range suspects {
			if slices.Contains(which, i) {
				right++
			} else {
				wrong++
			}
		}
	}
	_, err = fmt.Fprintf(os.Stderr,
		"%s, half %d, %d faces: %d suspects with all names right; of %d renamed in %d runs %d "+
			"are suspects, and %d others\n",
		s.name, half+1, len(s.x), len(clean), renamed, poseRuns, right, wrong)
	return err
}
