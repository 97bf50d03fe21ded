// SPDX-License-Identifier: Apache-2.0

package thesis

import (
	"context"
	"fmt"
	"math"
	"strconv"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/lab/compact"
	"github.com/faceauth/faceauth/lab/distil"
	"github.com/faceauth/faceauth/lab/evaluate"
	"github.com/faceauth/faceauth/online"
	"github.com/spf13/cobra"
)

func newDistil(o *options) *cobra.Command {
	return &cobra.Command{
		Use: "distil",
		Short: "small verifiers made of what was learned: what their settings do, and against the learner and the " +
			"nearest face",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return o.distil(c.Context()) },
	}
}

// bench is a learner with one user.
type bench struct {
	learner *online.Learner
	name    string
	person  online.Person
	test    []compact.Example
}

// benches makes each person in turn the only user, as in the protocol of an authentication: the learner sees the first
// half of everybody's faces, and the second halves are the test.
func benches(space face.Space, ids []evaluate.Identity) (all []bench, err error) {
	names := namesOf(ids)
	for i, strangers := range evaluate.OneUser(names, names) {
		r := rehearse(ids, strangers)
		l, err := r.learn(space, online.Settings{})
		if err != nil {
			return nil, err
		}
		all = append(all, bench{l, names[i], online.Person(i + 1), r.test})
	}
	return all, nil
}

// tally has the values of users' own faces and of impostors' faces, over all users.
type tally struct{ genuine, impostor []float64 }

// rates returns the share of own faces below a threshold, and the share of impostors' faces at or above it.
func (t tally) rates(threshold float64) (fnmr, fmr float64) {
	for _, v := range t.genuine {
		if v < threshold {
			fnmr++
		}
	}
	for _, v := range t.impostor {
		if v >= threshold {
			fmr++
		}
	}
	return fnmr / float64(len(t.genuine)), fmr / float64(len(t.impostor))
}

// safest returns the least threshold above all impostors.
func (t tally) safest() float64 {
	most := math.Inf(-1)
	for _, v := range t.impostor {
		most = max(most, v)
	}
	return math.Nextafter(most, math.Inf(1))
}

func (b bench) tally(t *tally, value func(x []float32) (float64, error)) error {
	for _, e := range b.test {
		v, err := value(e.Vector)
		if err != nil {
			return err
		}
		if e.Person == b.person {
			t.genuine = append(t.genuine, v)
		} else {
			t.impostor = append(t.impostor, v)
		}
	}
	return nil
}

func (o *options) distil(ctx context.Context) error {
	var rows [][]string
	sets := []string{"fast_videos", "att", "faces94_subset", "umist", "vidtimit_rot"}
	err := o.inSets(ctx, sets, func(name string, space face.Space, ids []evaluate.Identity) error {
		all, err := benches(space, ids)
		if err != nil {
			return err
		}
		record := func(method, width, gamma string, support float64, t tally, threshold float64) {
			fnmr, fmr := t.rates(threshold)
			best, _ := t.rates(t.safest())
			rows = append(rows, []string{name, method, width, gamma, fmt.Sprintf("%.0f", support),
				strconv.Itoa(len(t.genuine)),
				strconv.Itoa(len(t.impostor)),
				fmt.Sprintf("%.4f", fnmr), fmt.Sprintf("%.6f", fmr), fmt.Sprintf("%.3f",
					t.safest()), fmt.Sprintf("%.4f", best)})
		}
		var learned, nearest tally
		vertices := 0.
		for _, b := range all {
			vertices += float64(b.learner.Graph().Len()) / float64(len(all))
			if err := b.tally(&learned, func(x []float32) (float64, error) {
				v, err := b.learner.Judge(x)
				return v.Confidence, err
			}); err != nil {
				return err
			}
			if err := b.tally(&nearest, func(x []float32) (float64, error) {
				d, err := b.learner.Nearest(x, b.person)
				return -d, err
			}); err != nil {
				return err
			}
		}
		record("learner, learning no more", "", "", vertices, learned, math.SmallestNonzeroFloat64)
		record("nearest labelled face", "", "", 4, nearest, nearest.safest())
		for _, width := range []float64{.3, .5, .6, .7, .8, 1} {
			for _, gamma := range []float64{.01, .1, 1, 10} {
				var t tally
				support := 0.
				for _, b := range all {
					if err := ctx.Err(); err != nil {
						return err
					}
					v, err := distil.New(b.learner, b.person, distil.Settings{Width: width, Gamma: gamma})
					if err != nil {
						return fmt.Errorf("%s: %w", b.name, err)
					}
					support += float64(v.Support()) / float64(len(all))
					if err := b.tally(&t, v.Value); err != nil {
						return err
					}
				}
				record("distilled", fmt.Sprint(width), fmt.Sprint(gamma), support, t, .5)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return o.table("distil.csv", []string{"recordings", "method", "width", "gamma", "faces kept", "own faces",
		"impostors' faces", "FNMR", "FMR", "threshold above all impostors", "FNMR there"}, rows)
}
