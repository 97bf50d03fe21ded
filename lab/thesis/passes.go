// SPDX-License-Identifier: Apache-2.0

package thesis

import (
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
	"github.com/faceauth/faceauth/sighting"
	"github.com/spf13/cobra"
)

// repeated is the set-up of a measurement over repeated passes.
type repeated struct {
	o        *options
	sets     []string
	people   []int
	ks       []int
	passes   int
	noise    float64
	settings online.Settings
}

func newPasses(o *options) *cobra.Command {
	r := &repeated{o: o}
	c := &cobra.Command{
		Use: "passes",
		Short: "what a learner names when the same recordings come again and again, beside one " +
			"that never learns",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return r.run(c.Context()) },
	}
	c.Flags().StringSliceVar(&r.sets, "sets", []string{"vidtimit_rot", "fast_videos"}, "recordings")
	c.Flags().IntSliceVar(&r.people, "people", []int{4, 8, 16, 40}, "numbers of people")
	c.Flags().IntSliceVar(&r.ks, "k", []int{15, 30, 45, 60, 100, 200, 300, 1000},
		"numbers of centroids")
	c.Flags().IntVar(&r.passes, "passes", 5, "number of passes")
	c.Flags().Float64Var(&r.noise, "noise", 0,
		"length of random noise that each face gets in each pass")
	return c
}

// shown is a person with enrolled faces, and the faces that are streamed.
type shown struct {
	name     string
	enrolled [][]float32
	stream   []evaluate.Face
}

// crowd returns n people, and others who stay strangers. If a set has too few, the coordinates of
// all its vectors are permuted to make further people: a fixed permutation keeps all distances
// within a copy, and two copies are as far apart as independent directions. So people of different
// copies are further apart than real ones: a stand-in for many people, good for the room they take,
// and too easy for telling them apart.
func crowd(ids []evaluate.Identity, n int) (people, others []shown, err error) {
	for copies := uint64(0); len(others) < 2; copies++ {
		order := rand.New(rand.NewPCG(copies, 7)).Perm(len(ids[0].Faces[0].Vector))
		for _, id := range ids {
			p := shown{name: fmt.Sprintf("%s.%d", id.Name, copies)}
			first, rest, err := id.Divide(4)
			if err != nil {
				return nil, nil, err
			}
			move := func(i int) evaluate.Face {
				f := id.Faces[i]
				if copies > 0 {
					x := make([]float32, len(f.Vector))
					for q, from := range order {
						x[q] = f.Vector[from]
					}
					f.Vector = x
				}
				return f
			}
			for _, i := range first {
				p.enrolled = append(p.enrolled, move(i).Vector)
			}
			for _, i := range rest {
				p.stream = append(p.stream, move(i))
			}
			if len(people) < n {
				people = append(people, p)
			} else {
				others = append(others, p)
			}
		}
	}
	return people, others, nil
}

// A stay is a part of the stream of a person.
type stay struct{ person, from, to int }

// stays cuts the streams into visits of this length; 0 means one visit for each person.
func stays(people []shown, length int) (all []stay) {
	for i, p := range people {
		step := len(p.stream)
		if length > 0 {
			step = length
		}
		for q := 0; q < len(p.stream); q += step {
			all = append(all, stay{i, q, min(q+step, len(p.stream))})
		}
	}
	return all
}

// pass counts what a learner says in one pass over all visits.
type pass struct {
	faces, right, wrong, visits, named int
	// frozen names these faces, and the learner does not, or names somebody else
	lost, other int
	worst       float64
}

func (p pass) share() float64 { return float64(p.right) / float64(p.faces) }

// see shows all visits to a learner.
func see(l, frozen *online.Learner, people []shown, all []stay, at *time.Duration,
	blur func([]float32) []float32) (p pass, err error) {
	right, faces := make([]int, len(people)), make([]int, len(people))
	for _, v := range all {
		w := sighting.NewWatcher(l)
		who, named := online.Person(v.person+1), 0
		for _, f := range people[v.person].stream[v.from:v.to] {
			*at += 40 * time.Millisecond
			x := blur(f.Vector)
			seen, err := w.See(*at, []face.Sample{{Box: f.Box, Vector: x, Quality: f.Quality,
				Landmarks: f.Landmarks}},
				func(int) bool { return f.Hold })
			if err != nil {
				return p, err
			}
			alone, err := frozen.Judge(x)
			if err != nil {
				return p, err
			}
			is := seen[0].Verdict.Person
			faces[v.person]++
			switch is {
			case who:
				right[v.person]++
			case 0:
			default:
				p.wrong++
			}
			if alone.Person != 0 && is != alone.Person {
				if is == 0 {
					p.lost++
				} else {
					p.other++
				}
			}
			if seen[0].Belief.Person == who {
				named++
			}
		}
		if 2*named > v.to-v.from {
			p.named++
		}
		*at += 10 * time.Second
	}
	p.visits, p.worst = len(all), 1
	for i := range people {
		p.right, p.faces = p.right+right[i], p.faces+faces[i]
		p.worst = min(p.worst, float64(right[i])/float64(faces[i]))
	}
	return p, nil
}

func (r *repeated) run(ctx context.Context) error {
	var rows [][]string
	fmt.Println("faces named rightly | of the worst person; the last columns count over all passes")
	header := []string{"set", "order", "people", "k", "frozen", "frozen_worst", "first",
		"first_worst", "least_later",
		"last", "last_worst", "sightings_first", "sightings_last", "wrong", "lost", "renamed",
		"strangers_named",
		"centroids", "full", "needed"}
	fmt.Println(strings.Join(header, " "))
	err := r.inSets(ctx, func(set string, space face.Space, ids []evaluate.Identity) error {
		for _, n := range r.people {
			people, others, err := crowd(ids, n)
			if err != nil {
				return err
			}
			for _, length := range []int{0, 25} {
				for _, k := range r.ks {
					if err := ctx.Err(); err != nil {
						return err
					}
					row, err := r.measure(space, people, others, length, k)
					if err != nil {
						return err
					}
					row = append([]string{set}, row...)
					rows = append(rows, row)
					fmt.Println(strings.Join(row, " "))
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return r.o.table("passes.csv", header, rows)
}

// inSets calls do with the faces of each set.
func (r *repeated) inSets(ctx context.Context,
	do func(set string, space face.Space, ids []evaluate.Identity) error) error {
	others := slices.DeleteFunc(slices.Clone(r.sets), func(set string) bool {
		return set == "vidtimit_rot"
	})
	if len(others) < len(r.sets) {
		space, ids, _, err := r.o.embeddedHeads(ctx)
		if err != nil {
			return err
		}
		for i := range ids {
			ids[i].Faces = slices.DeleteFunc(ids[i].Faces, func(f evaluate.Face) bool {
				return f.Vector == nil
			})
		}
		if err := do("vidtimit_rot", space, ids); err != nil {
			return err
		}
	}
	return r.o.inSets(ctx, others, do)
}

func (r *repeated) measure(space face.Space, people, others []shown, length,
	k int) ([]string, error) {
	settings := r.settings
	settings.K = k
	l, err := online.New(space, settings)
	if err != nil {
		return nil, err
	}
	settings.Freeze = true
	frozen, err := online.New(space, settings)
	if err != nil {
		return nil, err
	}
	for i, p := range people {
		for _, one := range []*online.Learner{l, frozen} {
			for _, x := range p.enrolled {
				if err := one.Label(x, online.Person(i+1)); err != nil {
					return nil, err
				}
			}
		}
	}
	random := rand.New(rand.NewPCG(1, 1))
	blur := func(x []float32) []float32 { return x }
	if r.noise > 0 {
		blur = func(x []float32) []float32 { return noisy(random, x, r.noise) }
	}
	all, at := stays(people, length), time.Duration(0)
	before, err := see(frozen, frozen, people, all, &at, blur)
	if err != nil {
		return nil, err
	}
	var total pass
	least := math.Inf(1)
	var first, last pass
	for i := range r.passes {
		if length > 0 {
			random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		}
		if last, err = see(l, frozen, people, all, &at, blur); err != nil {
			return nil, err
		}
		if i == 0 {
			first = last
		} else {
			least = min(least, last.share())
		}
		total.wrong, total.lost, total.other = total.wrong+last.wrong, total.lost+last.lost,
			total.other+last.other
	}
	strangers := 0
	for _, p := range others {
		for _, f := range p.stream {
			v, err := l.Judge(f.Vector)
			if err != nil {
				return nil, err
			}
			if v.Person != 0 {
				strangers++
			}
		}
	}
	three := func(x float64) string { return fmt.Sprintf("%.3f", x) }
	room := l.Room()
	return []string{map[bool]string{true: "visits", false: "in_order"}[length > 0],
		fmt.Sprint(len(people)),
		fmt.Sprint(k), three(before.share()), three(before.worst), three(first.share()),
		three(first.worst),
		three(least), three(last.share()), three(last.worst),
		three(float64(first.named) / float64(first.visits)),
		three(float64(last.named) / float64(last.visits)), fmt.Sprint(total.wrong),
		fmt.Sprint(total.lost),
		fmt.Sprint(total.other), fmt.Sprint(strangers), fmt.Sprint(l.Graph().Learned()),
		fmt.Sprint(room.Full),
		fmt.Sprint(room.Needed)}, nil
}

// noisy returns a unit vector at about this distance from x, in a random direction.
func noisy(r *rand.Rand, x []float32, length float64) []float32 {
	y, sum := make([]float32, len(x)), 0.
	for q, v := range x {
		y[q] = v + float32(r.NormFloat64()*length/math.Sqrt(float64(len(x))))
		sum += float64(y[q]) * float64(y[q])
	}
	for q := range y {
		y[q] = float32(float64(y[q]) / math.Sqrt(sum))
	}
	return y
}
