// SPDX-License-Identifier: Apache-2.0

package thesis

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/lab/evaluate"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/quantized"
	"github.com/spf13/cobra"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

func newLogin(o *options) *cobra.Command {
	return &cobra.Command{
		Use: "login",
		Short: "sixteen people log in with their faces: precision and recall over gamma, with " +
			"one graph and with parallel graphs (Section Vision Datasets)",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return o.login(c.Context()) },
	}
}

// sixteen are as many people as in the thesis: those of films, and one who speaks in a series of
// stills.
func sixteen() []person {
	return slices.Concat(heads(), films, []person{{"faces94", []string{"faces94_subset/00"}}})
}

const (
	frameOfTry  = 100 * time.Millisecond // time from one frame to the next, as in the thesis
	framesOfTry = 20
)

// try is a part of a recording in which somebody wants to log in.
type try struct {
	person    int
	elsewhere bool // in another recording than the one with the labelled faces
	faces     [][]float32
}

// tries returns the labelled faces of each person, and the tries of all in random order. Of a film
// they have ten frames a second; stills count as frames.
func tries(ids []evaluate.Identity) (labelled [][][]float32, all []try, err error) {
	for i, id := range ids {
		first, rest, err := id.Divide(examples)
		if err != nil {
			return nil, nil, err
		}
		var own [][]float32
		for _, j := range first {
			own = append(own, id.Faces[j].Vector)
		}
		labelled = append(labelled, own)
		still := len(id.Faces) <= framesOfTry
		take, last, t := -1, time.Duration(0), try{person: i}
		for _, j := range rest {
			f := id.Faces[j]
			if f.Take == take && f.At < last+frameOfTry && !still || f.Vector == nil {
				continue
			}
			if f.Take != take || len(t.faces) == framesOfTry {
				all = append(all, t)
				t = try{person: i, elsewhere: f.Take != id.Faces[first[0]].Take}
			}
			take, last, t.faces = f.Take, f.At, append(t.faces, f.Vector)
		}
		all = append(all, t)
	}
	all = slices.DeleteFunc(all, func(t try) bool { return len(t.faces) == 0 })
	r := rand.New(rand.NewPCG(1, 46))
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return labelled, all, nil
}

// logins counts frames of one user and of everybody else.
type logins struct {
	own, right       [2]int // in the recording with the labelled faces, and elsewhere
	others, accepted int
}

func (n *logins) count(user int, t try, accepted bool) {
	place := 0
	if t.elsewhere {
		place = 1
	}
	switch {
	case t.person != user:
		n.others++
		if accepted {
			n.accepted++
		}
	default:
		n.own[place]++
		if accepted {
			n.right[place]++
		}
	}
}

func (n *logins) add(m logins) {
	for i := range n.own {
		n.own[i], n.right[i] = n.own[i]+m.own[i], n.right[i]+m.right[i]
	}
	n.others, n.accepted = n.others+m.others, n.accepted+m.accepted
}

func (n *logins) recall() float64 {
	return float64(n.right[0]+n.right[1]) / float64(n.own[0]+n.own[1])
}

func (n *logins) precision() float64 {
	right := n.right[0] + n.right[1]
	return float64(right) / float64(right+n.accepted)
}

// ways are the arrangements of the login. The last has the longest edge that the programs use.
var ways = []struct {
	name  string
	reach float64
	arrangement
}{
	{"one graph of 300", 1e6, arrangements[0]},
	{"six graphs of 50", 1e6, arrangements[1]},
	{"one graph of 300, edges bounded", 0, arrangements[0]},
}

func (o *options) login(ctx context.Context) error {
	var rows [][]string
	var panels []*plot.Plot
	err := o.inEachSpace(ctx, sixteen(), func(space face.Space, ids []evaluate.Identity) error {
		labelled, all, err := tries(ids)
		if err != nil {
			return err
		}
		frames := 0
		for _, t := range all {
			frames += len(t.faces)
		}
		fmt.Printf("%s: %d tries, %d frames\n", space.ID, len(all), frames)
		features, _, _ := strings.Cut(space.ID, ":")
		nearest := nearestLabelled(space, labelled, all)
		curves := []curve{curveOf("nearest", nearest)}
		for _, way := range ways {
			c := curve{method: way.name}
			for _, gamma := range claimGammas(space) {
				users := make([]logins, len(ids))
				err := each(upTo(len(ids)), func(user int) error {
					set := online.Settings{Gamma: gamma, Reach: way.reach}
					l, err := way.new(space, set)
					if err != nil {
						return err
					}
					users[user], err = showTries(ctx, l, labelled[user], all, user)
					return err
				})
				if err != nil {
					return err
				}
				var sum logins
				least := 1.
				for _, n := range users {
					sum.add(n)
					least = min(least, n.recall())
				}
				p := plotter.XY{X: sum.recall(), Y: sum.precision()}
				if !math.IsNaN(p.Y) {
					c.points = append(c.points, p)
				}
				four := func(x float64) string { return fmt.Sprintf("%.4f", x) }
				rows = append(rows, []string{features, way.name, fmt.Sprint(gamma), four(p.Y),
					four(p.X), four(least),
					four(float64(sum.right[0]) / float64(sum.own[0])),
					four(float64(sum.right[1]) / float64(sum.own[1])),
					four(float64(sum.accepted) / float64(sum.others)),
					four(float64(precisionAt(nearest, evaluate.Rate(p.X))))})
			}
			curves = append(curves, c)
		}
		p, err := claimPanel("login, "+features, curves)
		panels = append(panels, p)
		return err
	})
	if err != nil {
		return err
	}
	if err := o.table("login.csv",
		[]string{"features", "arrangement", "gamma", "precision", "recall",
			"least_recall_of_a_user", "recall_in_the_labelled_recording", "recall_elsewhere", "far",
			"nearest_precision_at_that_recall"}, rows); err != nil {
		return err
	}
	return o.picture("login.png", 5*vg.Inch, 3.4*vg.Inch, [][]*plot.Plot{panels})
}

// showTries labels the faces of a user, and shows all tries.
func showTries(ctx context.Context, l observer, labelled [][]float32, all []try,
	user int) (n logins, err error) {
	for _, x := range labelled {
		if err := l.Label(x, 1); err != nil {
			return n, err
		}
	}
	for _, t := range all {
		if err := ctx.Err(); err != nil {
			return n, err
		}
		for _, x := range t.faces {
			v, err := l.Observe(x)
			if err != nil {
				return n, err
			}
			n.count(user, t, v.Person == 1)
		}
	}
	return n, nil
}

// nearestLabelled returns the precision of the nearest labelled face over its recall, with one
// threshold for all users.
func nearestLabelled(space face.Space, labelled [][][]float32,
	all []try) (points []evaluate.Point) {
	type score struct {
		distance float64
		own      bool
	}
	var scores []score
	own := 0.
	for user, faces := range labelled {
		for _, t := range all {
			for _, x := range t.faces {
				s := score{math.Inf(1), t.person == user}
				for _, y := range faces {
					s.distance = min(s.distance, quantized.Distance(x, y, space.Scale))
				}
				if scores = append(scores, s); s.own {
					own++
				}
			}
		}
	}
	slices.SortFunc(scores, func(a, b score) int { return cmp.Compare(a.distance, b.distance) })
	right := 0.
	for i, s := range scores {
		if s.own {
			right++
		}
		if i%50 == 49 {
			points = append(points, evaluate.Point{Recall: evaluate.Rate(right / own),
				Precision: evaluate.Rate(right / float64(i+1))})
		}
	}
	return points
}
