// SPDX-License-Identifier: Apache-2.0

package thesis

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/lab/evaluate"
)

// clouds returns a problem of two clouds of points.
func clouds(n int) problem {
	r := rand.New(rand.NewPCG(3, 3))
	rows := func(at float64) (x [][]float32) {
		for range n / 2 {
			x = append(x, []float32{float32(at + .3*r.NormFloat64()),
				float32(.3 * r.NormFloat64())})
		}
		return x
	}
	return newProblem(rows(0), rows(2), 1)
}

// If there are as many centroids as points, the quantized graph is the graph itself: the error is
// 0, and the predictions are the same.
func TestApproximationVanishes(t *testing.T) {
	p := clouds(120)
	always := func(int) bool { return true }
	for _, s := range []sparse{true, false} {
		online := fixture.Must(p.online(context.Background(), s))(t)
		whole := fixture.Must(p.quantized(context.Background(), s, len(p.x), always))(t)
		for i, e := range whole.error {
			if !(e < 1e-9) || whole.right[i] != online.right[i] {
				t.Errorf("%s, t = %d: error %g, right %t and %t", s, whole.t[i], e, whole.right[i],
					online.right[i])
			}
		}
		small := fixture.Must(p.quantized(context.Background(), s, 20, always))(t)
		if last := small.error[len(small.error)-1]; !(last > .01) {
			t.Errorf("%s: with 20 centroids the error is %g", s, last)
		}
		if a := whole.accuracy(); bool(s) && a[len(a)-1] < .95 {
			t.Errorf("accuracy %v on two clouds", a)
		}
	}
}

// The labelled points come first, five of each class. The kernel follows the printed formula.
func TestProblem(t *testing.T) {
	p := clouds(120)
	seen := [2]int{}
	for _, c := range p.class[:p.labelled()] {
		seen[c]++
	}
	if len(p.x) != 120 || seen != [2]int{perClass, perClass} {
		t.Errorf("%d points, labelled %v", len(p.x), seen)
	}
	// Two features with deviations of about √(1+.3²) and .3: the denominator is 2 p σ².
	if want := 2 * 2 * math.Pow((math.Sqrt(1.09)+.3)/2,
		2); math.Abs(p.kernel.Denominator-want) > .2*want {
		t.Errorf("denominator %g, want about %g", p.kernel.Denominator, want)
	}
}

func TestReadUCI(t *testing.T) {
	o := options{data: filepath.Dir(fixture.Recordings(t, "tables"))}
	for dataset, features := range map[string]int{"letter": 16, "optdigits": 64} {
		ps, err := o.readUCI(dataset)
		if err != nil {
			t.Fatal(err)
		}
		if len(ps) != problems || len(ps[0].x) != points || len(ps[0].x[0]) != features {
			t.Errorf("%s: %d problems of %d points of %d features", dataset, len(ps), len(ps[0].x),
				len(ps[0].x[0]))
		}
	}
	if _, err := (&options{data: t.TempDir()}).readUCI("letter"); err == nil {
		t.Error("a folder without tables was read")
	}
}

// each does every job, also after a job that failed, and returns the error of the failed job.
func TestEach(t *testing.T) {
	jobs := make([]int, 100)
	for i := range jobs {
		jobs[i] = i
	}
	done := make([]int, len(jobs))
	broken := errors.New("broken")
	err := each(jobs, func(i int) error {
		done[i]++
		if i == 40 {
			return broken
		}
		return nil
	})
	if err != broken {
		t.Errorf("error %v", err)
	}
	for i, n := range done {
		if n != 1 {
			t.Errorf("job %d was done %d times", i, n)
		}
	}
	if err := each(nil, func(int) error { return broken }); err != nil {
		t.Errorf("without jobs: %v", err)
	}
}

// The precision at a recall is the best precision of the points that reach this recall.
func TestPrecisionAt(t *testing.T) {
	points := []evaluate.Point{{Precision: 1, Recall: .2}, {Precision: .7, Recall: .5},
		{Precision: .8, Recall: .8}}
	for _, c := range []struct{ recall, want evaluate.Rate }{{.1, 1}, {.2, 1}, {.3, .8}, {.8, .8}} {
		if got := precisionAt(points, c.recall); got != c.want {
			t.Errorf("precision at a recall of %g is %g, want %g", float64(c.recall), float64(got),
				float64(c.want))
		}
	}
	if got := precisionAt(points, .9); !math.IsNaN(float64(got)) {
		t.Errorf("precision at a recall that is not reached: %g", float64(got))
	}
}

// Every recording that an experiment names exists.
func TestRecordingsExist(t *testing.T) {
	for _, p := range append(heads(), films...) {
		for _, r := range p.recordings {
			fixture.Recordings(t, "faces/"+r)
		}
	}
}

// Films have ten frames a second, cut into tries of two seconds; stills count as frames. No
// labelled face is in a try.
func TestTries(t *testing.T) {
	film := func(take, frames int) (faces []evaluate.Face) {
		for i := range frames {
			at := time.Duration(i) * 40 * time.Millisecond
			faces = append(faces, evaluate.Face{Vector: []float32{float32(i)}, Usable: true,
				Take: take, At: at})
		}
		return faces
	}
	ids := []evaluate.Identity{{Name: "film", Faces: append(film(0, 131), film(1, 26)...)},
		{Name: "stills", Faces: film(0, 20)}}
	labelled, all, err := tries(ids)
	if err != nil || len(labelled) != 2 || len(labelled[0]) != examples {
		t.Fatal(labelled, err)
	}
	got := map[string]int{}
	for _, x := range all {
		got[fmt.Sprintf("%s, elsewhere %t: %d frames, from %g", ids[x.person].Name, x.elsewhere,
			len(x.faces), x.faces[0][0])]++
	}
	// Every third of 25 frames a second is a tenth of a second after the one before.
	want := map[string]int{"film, elsewhere false: 20 frames, from 6": 1,
		"film, elsewhere false: 20 frames, from 66": 1,
		"film, elsewhere false: 2 frames, from 126": 1, "film, elsewhere true: 9 frames, from 0": 1,
		"stills, elsewhere false: 14 frames, from 6": 1}
	if !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
