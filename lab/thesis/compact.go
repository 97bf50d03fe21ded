// SPDX-License-Identifier: Apache-2.0

package thesis

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/lab/compact"
	"github.com/faceauth/faceauth/lab/evaluate"
	"github.com/faceauth/faceauth/online"
	"github.com/spf13/cobra"
	"gonum.org/v1/gonum/stat"
)

func newCompact(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "compact",
		Short: "galleries made of long recordings at once, and by learning face after face",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return o.compact(c.Context()) },
	}
}

var (
	compactK     = []int{30, 60, 100, 300}
	compactPulls = []float64{2, 5, 20, 1e9}
)

// rehearsal has the faces for a learner, and the faces of a test.
type rehearsal struct {
	labelled []compact.Example
	faces    [][]float32 // in the order of their time
	test     []compact.Example
	known    map[online.Person]bool
}

// rehearse enrols everybody except strangers. The first half of everybody's other faces is for learning, and the second
// half is the test.
func rehearse(ids []evaluate.Identity, strangers []string) rehearsal {
	r := rehearsal{known: make(map[online.Person]bool)}
	for q, id := range ids {
		labels, person := 4, online.Person(q+1)
		if slices.Contains(strangers, id.Name) {
			labels = 0
		} else {
			r.known[person] = true
		}
		half := labels + (len(id.Faces)-labels+1)/2
		for i, f := range id.Faces {
			switch {
			case i < labels:
				r.labelled = append(r.labelled, compact.Example{Vector: f.Vector, Person: person})
			case i < half && !f.Hold:
				r.faces = append(r.faces, f.Vector)
			case i >= half:
				r.test = append(r.test, compact.Example{Vector: f.Vector, Person: person})
			}
		}
	}
	return r
}

// judge returns the recall and the false accept rate of a learner without further learning.
func (r rehearsal) judge(l *online.Learner) (recall, far float64, err error) {
	own, others := 0., 0.
	for _, e := range r.test {
		v, err := l.Judge(e.Vector)
		if err != nil {
			return 0, 0, err
		}
		if r.known[e.Person] {
			own++
			if v.Person == e.Person {
				recall++
			}
		} else {
			others++
			if v.Person != 0 {
				far++
			}
		}
	}
	return recall / own, far / max(others, 1), nil
}

func (o *options) compact(ctx context.Context) error {
	var rows [][]string
	sets := []string{"fast_videos", "umist", "vidtimit_rot"}
	err := o.inSets(ctx, sets, func(name string, space face.Space, ids []evaluate.Identity) error {
		choices, err := evaluate.DrawChoices(namesOf(ids), 2, 15, 1)
		if err != nil {
			return err
		}
		type method struct {
			name string
			make func(s online.Settings, r rehearsal) (*online.Learner, error)
		}
		methods := []method{{"face after face", func(s online.Settings, r rehearsal) (*online.Learner, error) {
			return r.learn(space, s)
		}}}
		for _, pull := range compactPulls {
			methods = append(methods, method{fmt.Sprintf("at once, pull %g", pull),
				func(s online.Settings, r rehearsal) (*online.Learner, error) {
					l, _, err := compact.Learner(ctx, space, s, r.labelled, r.faces, compact.Options{Pull: pull})
					return l, err
				}})
		}
		for _, k := range compactK {
			for _, method := range methods {
				var recalls, fars, sizes []float64
				var mu sync.Mutex
				err := each(choices, func(strangers []string) error {
					r := rehearse(ids, strangers)
					if len(r.labelled) >= k {
						return nil
					}
					l, err := method.make(online.Settings{K: k}, r)
					if err != nil {
						return fmt.Errorf("k %d, %s: %w", k, method.name, err)
					}
					recall, far, err := r.judge(l)
					mu.Lock()
					defer mu.Unlock()
					recalls, fars, sizes = append(recalls, recall), append(fars, far), append(sizes,
						float64(l.Graph().Len()))
					return err
				})
				if err != nil {
					return err
				}
				if len(recalls) > 0 {
					rows = append(rows, []string{name, strconv.Itoa(k), method.name,
						fmt.Sprintf("%.0f", stat.Mean(sizes, nil)),
						fmt.Sprintf("%.4f", stat.Mean(recalls, nil)), fmt.Sprintf("%.4f", slices.Min(recalls)),
						fmt.Sprintf("%.4f", stat.Mean(fars, nil)), fmt.Sprintf("%.4f", slices.Max(fars))})
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return o.table("compact.csv", []string{"recordings", "k", "method", "faces kept", "recall", "least of 15 choices",
		"FAR", "largest of 15 choices"}, rows)
}

// learn returns a learner that saw the faces one after another.
func (r rehearsal) learn(space face.Space, s online.Settings) (*online.Learner, error) {
	l, err := online.New(space, s)
	if err != nil {
		return nil, err
	}
	for _, e := range r.labelled {
		if err := l.Label(e.Vector, e.Person); err != nil {
			return nil, err
		}
	}
	for _, x := range r.faces {
		if _, err := l.Observe(x); err != nil {
			return nil, err
		}
	}
	return l, nil
}
