// SPDX-License-Identifier: Apache-2.0

package thesis

import (
	"context"
	"fmt"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/lab/evaluate"
	"github.com/faceauth/faceauth/lab/parallel"
	"github.com/faceauth/faceauth/online"
	"github.com/spf13/cobra"
)

func newParallel(o *options) *cobra.Command {
	return &cobra.Command{
		Use: "parallel",
		Short: "one graph of 300 vertices against six of 50, by one and by two workers (Section " +
			"Parallel SSL)",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return o.parallel(c.Context()) },
	}
}

// observer is one learner, or several learners that act as one.
type observer interface {
	Label(x []float32, p online.Person) error
	Observe(x []float32) (online.Verdict, error)
}

// arrangement is one way of dividing 300 vertices among graphs.
type arrangement struct {
	name string
	new  func(face.Space, online.Settings) (observer, error)
}

var arrangements = []arrangement{
	{"one graph of 300", func(s face.Space, set online.Settings) (observer, error) {
		set.K = 300
		return online.New(s, set)
	}},
	{"six graphs of 50, one worker", six(1)},
	{"six graphs of 50, two workers", six(2)},
}

func six(workers int) func(face.Space, online.Settings) (observer, error) {
	return func(s face.Space, set online.Settings) (observer, error) {
		set.K = 50
		return parallel.New(s, set, workers)
	}
}

// examples is the number of labelled faces of the user, which is also the number of graphs.
const examples = 6

// parallel is the thesis's login: one person is labelled with faces from the whole recording, and
// everybody passes. It reports means over the six people.
func (o *options) parallel(ctx context.Context) error {
	var rows [][]string
	err := o.inEachSpace(ctx, heads(), func(space face.Space, ids []evaluate.Identity) error {
		var first float64
		for _, a := range arrangements {
			var all, fastest login
			for range 3 {
				all = login{}
				for user := range ids {
					if err := ctx.Err(); err != nil {
						return err
					}
					if err := all.run(a, space, online.Settings{}, ids, user); err != nil {
						return err
					}
				}
				if fastest.took == 0 || all.took < fastest.took {
					fastest = all
				}
			}
			ms := fastest.took.Seconds() * 1000 / float64(fastest.own+fastest.others)
			if first == 0 {
				first = ms
			}
			rows = append(rows, []string{
				space.ID, a.name, fmt.Sprintf("%.4f", float64(all.right)/float64(all.own)),
				fmt.Sprintf("%.4f", float64(all.accepted)/float64(all.others)),
				fmt.Sprintf("%.4f", ms),
				fmt.Sprintf("%.2f", first/ms),
			})
		}
		return nil
	})
	if err != nil {
		return err
	}
	return o.table("parallel.csv",
		[]string{"features", "arrangement", "recall", "far", "ms_a_face", "times_as_fast"}, rows)
}

// login counts faces of users and faces of other people.
type login struct {
	own, right       int
	others, accepted int
	took             time.Duration
}

// run adds the faces of one user and of everybody else.
func (n *login) run(a arrangement, s face.Space, set online.Settings, ids []evaluate.Identity,
	user int) error {
	l, err := a.new(s, set)
	if err != nil {
		return err
	}
	own := ids[user].Faces
	labelled := make(map[int]bool)
	for i := range examples {
		at := i * len(own) / examples
		labelled[at] = true
		if err := l.Label(own[at].Vector, 1); err != nil {
			return err
		}
	}
	begun := time.Now()
	for i, left := 0, true; left; i++ {
		left = false
		for q, id := range ids {
			if i >= len(id.Faces) {
				continue
			}
			left = true
			if q == user && labelled[i] {
				continue
			}
			v, err := l.Observe(id.Faces[i].Vector)
			if err != nil {
				return err
			}
			if q == user {
				n.own++
			} else {
				n.others++
			}
			switch {
			case v.Person == 1 && q == user:
				n.right++
			case v.Person == 1:
				n.accepted++
			}
		}
	}
	n.took += time.Since(begun)
	return nil
}
