// SPDX-License-Identifier: Apache-2.0

package peers_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/reference/dense"
	"github.com/faceauth/faceauth/lab/peers"
	"github.com/faceauth/faceauth/quantized"
)

// clouds returns n points of two classes around (-2,0) and (2,0), and the numbers of the points
// with a flipped label.
func clouds(seed uint64, n int) (x [][]float32, y, flipped []int) {
	r := rand.New(rand.NewPCG(seed, 9))
	for i := range n {
		class := i % 2
		x = append(x, []float32{float32(float64(4*class-2) + .7*r.NormFloat64()),
			float32(.7 * r.NormFloat64())})
		if i%20 == 7 {
			class = 1 - class
			flipped = append(flipped, i)
		}
		y = append(y, class)
	}
	return x, y, flipped
}

// points returns n random points in the plane, and random classes.
func points(rnd *rand.Rand, n, k int) (x [][]float32, y []int) {
	for i := range n {
		x = append(x, []float32{float32(3 * rnd.Float64()), float32(3 * rnd.Float64())})
		y = append(y, i%k)
	}
	return x, y
}

// top returns the numbers of the largest scores, ascending.
func top(scores []float64, n int) []int {
	order := make([]int, len(scores))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case scores[a] > scores[b]:
			return -1
		case scores[a] < scores[b]:
			return 1
		}
		return 0
	})
	order = order[:n]
	slices.Sort(order)
	return order
}

// If the classes are far apart, every method gives the flipped labels the highest scores. Such
// different methods do not agree by chance.
func TestMethodsFindFlips(t *testing.T) {
	x, y, flipped := clouds(1, 200)
	kernel := quantized.Heat(.7)
	w := dense.Similarity(dense.Distances(x, 1), kernel, 0)
	for name, score := range map[string]func() ([]float64, error){
		"SoftHAD": func() ([]float64, error) { return peers.SoftHarmonic(w, y, 1, .1) },
		"RWCAD":   func() ([]float64, error) { return peers.RandomWalk(w, y, 1e-4) },
		"k-NN":    func() ([]float64, error) { return peers.WeightedNeighbours(w, y) },
		"backbone": func() ([]float64, error) {
			return peers.Backbone(context.Background(), x, y, 20, kernel, 1, .1)
		},
		"SVM": func() ([]float64, error) {
			return peers.CrossValidate(x, y, 5, peers.Projection(kernel, 1))
		},
		"one-class SVM": func() ([]float64, error) {
			// The method treats all its training labels as normal, so it is trained on right
			// labels.
			truth := slices.Clone(y)
			for _, i := range flipped {
				truth[i] = 1 - truth[i]
			}
			score, err := peers.OneClass(quantized.Heat(2), .2)(x, truth)
			if err != nil {
				return nil, err
			}
			scores := make([]float64, len(x))
			for i := range x {
				scores[i] = score(x[i], y[i])
			}
			return scores, nil
		},
		"QDA": func() ([]float64, error) {
			return peers.CrossValidate(x, y, 5, peers.Quadratic(0))
		},
	} {
		t.Run(name, func(t *testing.T) {
			scores, err := score()
			if err != nil {
				t.Fatal(err)
			}
			found := 0
			for _, i := range top(scores, len(flipped)) {
				if slices.Contains(flipped, i) {
					found++
				}
			}
			if found < len(flipped)-1 {
				t.Errorf("%d of the %d flipped labels have the highest scores", found, len(flipped))
			}
		})
	}
}

// With as many centroids as examples the backbone equals the graph.
func TestBackboneIsTheGraph(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	for run := range 10 {
		x, y := points(r, 40, 3)
		kernel := quantized.Heat(.3 + r.Float64())
		want := fixture.Must(peers.SoftHarmonic(dense.Similarity(dense.Distances(x, 1), kernel, 0),
			y, 2,
			.05))(t)
		for _, k := range []int{14, 40, 1000} { // a class has at most 14 examples
			got := fixture.Must(peers.Backbone(context.Background(), x, y, k, kernel, 2, .05))(t)
			for i := range got {
				if math.Abs(got[i]-want[i]) > 1e-9 {
					t.Fatalf("run %d, k %d, example %d: %g, want %g", run, k, i, got[i], want[i])
				}
			}
		}
	}
}

// With more centroids the result comes nearer to the whole graph.
func TestBackboneApproaches(t *testing.T) {
	x, y, _ := clouds(2, 400)
	kernel := quantized.Heat(.7)
	want := fixture.Must(peers.SoftHarmonic(dense.Similarity(dense.Distances(x, 1), kernel, 0), y,
		1, .1))(t)
	last := math.Inf(1)
	for _, k := range []int{2, 20, 100, 400} {
		got := fixture.Must(peers.Backbone(context.Background(), x, y, k, kernel, 1, .1))(t)
		var sum float64
		for i := range got {
			sum += math.Abs(got[i]-want[i]) / float64(len(got))
		}
		if sum > last {
			t.Errorf("k %d: mean error %g, and %g with a smaller k", k, sum, last)
		}
		last = sum
	}
	if last > 1e-9 {
		t.Errorf("all examples are centroids, and the mean error is %g", last)
	}
}

// The test compares QDA with the densities written out.
func TestQuadratic(t *testing.T) {
	x := [][]float32{{-1}, {0}, {1}, {4}, {6}, {8}}
	y := []int{0, 0, 0, 1, 1, 1}
	score := fixture.Must(peers.Quadratic(0)(x, y))(t)
	density := func(v, mean, variance float64) float64 {
		return math.Exp(-(v-mean)*(v-mean)/(2*variance)) / math.Sqrt(variance)
	}
	for _, v := range []float64{-3, 0, 2, 3, 6, 40} {
		a, b := density(v, 0, 1), density(v, 6, 4)
		if got, want := score([]float32{float32(v)}, 0), b/(a+b); math.Abs(got-want) > 1e-9 {
			t.Errorf("at %g: %g, want %g", v, got, want)
		}
	}
}

func TestPeersBadInput(t *testing.T) {
	nan := float32(math.NaN())
	kernel := quantized.Heat(1)
	trainers := map[string]peers.Trainer{
		"SVM": peers.Projection(kernel, 1), "one-class SVM": peers.OneClass(kernel, .1),
		"QDA": peers.Quadratic(0),
	}
	for name, train := range trainers {
		for what, c := range map[string]struct {
			x    [][]float32
			y    []int
			want error
		}{
			"nothing":          {nil, nil, peers.ErrExamples},
			"too few classes":  {[][]float32{{1}, {2}}, []int{1}, peers.ErrExamples},
			"two lengths":      {[][]float32{{1}, {2, 3}}, []int{0, 1}, peers.ErrExamples},
			"NaN":              {[][]float32{{1}, {nan}}, []int{0, 1}, peers.ErrExamples},
			"one class":        {[][]float32{{1}, {2}}, []int{1, 1}, peers.ErrLabels},
			"a negative class": {[][]float32{{1}, {2}}, []int{0, -1}, peers.ErrLabels},
		} {
			if _, err := train(c.x, c.y); !errors.Is(err, c.want) {
				t.Errorf("%s, %s: %v", name, what, err)
			}
		}
		if _, err := peers.CrossValidate([][]float32{{1}, {2}, {3}}, []int{0, 0, 1}, 3,
			train); !errors.Is(err,
			peers.ErrLabels) {
			t.Errorf("%s, a class with one example: error %v", name, err)
		}
		if _, err := peers.CrossValidate([][]float32{{1}, {2}, {3}, {4}}, []int{0, 0, 1, 1}, 1,
			train); !errors.Is(err,
			peers.ErrSetting) {
			t.Errorf("%s, one fold: %v", name, err)
		}
	}
	same := [][]float32{{1, 1}, {1, 1}, {1, 1}, {1, 1}}
	if _, err := peers.Quadratic(0)(same, []int{0, 0, 1, 1}); !errors.Is(err, peers.ErrExamples) {
		t.Errorf("constant features: %v", err)
	}
	for name, s := range map[string]peers.Trainer{"SVM": trainers["SVM"],
		"one-class SVM": trainers["one-class SVM"]} {
		// constant features, and duplicates with different classes
		score, err := s(same, []int{0, 1, 0, 1})
		if err != nil || math.IsNaN(score(same[0], 0)) {
			t.Errorf("%s, constant features: %v", name, err)
		}
	}
	// The numbers of the classes may have gaps.
	if score, err := peers.Projection(kernel, 1)([][]float32{{0}, {5}}, []int{0, 3}); err != nil ||
		score([]float32{5}, 3) >= score([]float32{5}, 0) {
		t.Errorf("classes 0 and 3: %v", err)
	}
	ctx := context.Background()
	x, y, _ := clouds(1, 20)
	if _, err := peers.Backbone(ctx, x, y, 0, kernel, 1, 1); !errors.Is(err, peers.ErrSetting) {
		t.Errorf("no centroids: %v", err)
	}
	if _, err := peers.Backbone(ctx, x, y, 3, kernel, 1, 0); !errors.Is(err, peers.ErrSetting) {
		t.Errorf("no sink: %v", err)
	}
	if _, err := peers.Backbone(ctx, x, y, 3, quantized.Kernel{}, 1, 1); !errors.Is(err,
		peers.ErrSetting) {
		t.Errorf("no kernel: %v", err)
	}
	if _, err := peers.Backbone(ctx, x[:1], y[:1], 3, kernel, 1, 1); !errors.Is(err,
		peers.ErrLabels) {
		t.Errorf("one class: %v", err)
	}
	stop, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := peers.Backbone(stop, x, y, 3, kernel, 1, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	// With a very narrow kernel no example has neighbours. Nothing is unusual then: all scores are
	// the same.
	scores, err := peers.Backbone(ctx, x, y, 3, quantized.Kernel{Denominator: 1e-300}, 3, 1)
	if err != nil || slices.Max(scores) != slices.Min(scores) {
		t.Errorf("a very narrow kernel: different scores, or error %v", err)
	}
}
