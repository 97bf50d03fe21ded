package main

import (
	"context"
	"fmt"
	"time"

	"github.com/faceauth/faceauth/evaluate"
	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/models"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/preprocess"
	"github.com/spf13/cobra"
)

func newParallel(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "parallel",
		Short: "one graph of 300 vertices against six of 50, by one and by two workers (Section Parallel SSL)",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return o.parallel(c.Context()) },
	}
}

// observer is a learner, or several.
type observer interface {
	Label(x []float32, name string) error
	Observe(x []float32) (online.Verdict, error)
}

// arrangement is one way of dividing 300 vertices.
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
		return online.NewParallel(s, set, online.PerExample, workers)
	}
}

// parallel labels the first face of each person, as many examples as there are graphs, and streams the
// others in turn. The normalised Laplacian is solved directly, as the thesis does, in O(k³).
func (o *options) parallel(ctx context.Context) error {
	embedding, err := preprocess.NewEmbedding(models.Default(models.Embedding), models.Dir())
	if err != nil {
		return err
	}
	defer embedding.Close()
	var rows [][]string
	for _, e := range []preprocess.Extractor{preprocess.NewPixels(), embedding} {
		ids, _, err := o.turningHeads(ctx, e)
		if err != nil {
			return err
		}
		for _, solver := range []string{"iterative", "direct"} {
			var first float64
			for _, a := range arrangements {
				var fastest, accuracy float64
				for range 3 {
					if err := ctx.Err(); err != nil {
						return err
					}
					ms, share, err := run(a, e.Space(), online.Settings{Normalized: solver == "direct"}, ids)
					if err != nil {
						return err
					}
					accuracy = share
					if fastest == 0 || ms < fastest {
						fastest = ms
					}
				}
				if first == 0 {
					first = fastest
				}
				rows = append(rows, []string{e.Space().ID, solver, a.name, fmt.Sprintf("%.4f", accuracy), fmt.Sprintf("%.4f", fastest), fmt.Sprintf("%.2f", first/fastest)})
			}
		}
	}
	return o.table("parallel.csv", []string{"features", "solver", "arrangement", "accuracy", "ms_a_face", "times_as_fast"}, rows)
}

// run returns the time a face and the share of the faces that were given the right name.
func run(a arrangement, s face.Space, set online.Settings, ids []evaluate.Identity) (ms, share float64, err error) {
	l, err := a.new(s, set)
	if err != nil {
		return 0, 0, err
	}
	for _, id := range ids {
		if err := l.Label(id.Faces[0].Vector, id.Name); err != nil {
			return 0, 0, err
		}
	}
	right, n := 0, 0
	begun := time.Now()
	for i := 1; ; i++ {
		left := false
		for _, id := range ids {
			if i >= len(id.Faces) {
				continue
			}
			left = true
			v, err := l.Observe(id.Faces[i].Vector)
			if err != nil {
				return 0, 0, err
			}
			n++
			if v.Label == id.Name {
				right++
			}
		}
		if !left {
			return time.Since(begun).Seconds() * 1000 / float64(n), float64(right) / float64(n), nil
		}
	}
}
