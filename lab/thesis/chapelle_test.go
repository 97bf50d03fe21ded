// SPDX-License-Identifier: Apache-2.0

package thesis

import (
	"math"
	"path/filepath"
	"testing"

	"github.com/faceauth/faceauth/internal/fixture"
	"gonum.org/v1/gonum/stat"
)

// recorded are errors of the harmonic solution on the first three splits with ten labels, without
// and with class masses.
var recorded = map[string][2]float64{"digit1": {15.682, 20.537}, "usps": {19.911, 19.329}}

// The nearest labelled example has the errors in the book, except for rounding, so data and splits
// are the same as in the book. The expected errors of harmonic solutions were recorded when this
// agreed.
func TestChapelle(t *testing.T) {
	o := options{data: filepath.Dir(fixture.Recordings(t, "tables"))}
	for name, want := range book {
		if name != "digit1" && testing.Short() {
			continue
		}
		b, err := o.benchmark(name)
		if err != nil {
			t.Fatal(err)
		}
		for k, labels := range []int{10, 100} {
			splits, err := o.splits(name, labels, len(b.x))
			if err != nil || len(splits) != 12 {
				t.Fatalf("%d splits, %v", len(splits), err)
			}
			var nearest []float64
			for _, split := range splits {
				nearest = append(nearest, b.nearest(split))
			}
			if got := stat.Mean(nearest, nil); math.Abs(got-want["1-NN"][k]) > .005001 {
				t.Errorf("%s, %d labels: 1-NN %.4f %%, the book has %.2f", name, labels, got,
					want["1-NN"][k])
			}
		}
		splits, err := o.splits(name, 10, len(b.x))
		if err != nil {
			t.Fatal(err)
		}
		w := b.graph()
		var plain, masses, shares []float64
		for _, split := range splits[:3] {
			p, m, err := b.harmonic(w, split, false, nil)
			if err != nil {
				t.Fatal(err)
			}
			plain, masses = append(plain, p), append(masses, m)
			if name == "digit1" {
				// the true shares
				_, m, err := b.harmonic(w, split, false, []float64{766. / 1500, 734. / 1500})
				if err != nil {
					t.Fatal(err)
				}
				shares = append(shares, m)
			}
		}
		if name == "digit1" && math.Abs(stat.Mean(shares, nil)-7.248) > .01 {
			t.Errorf("harmonic with the true shares of the classes %.3f %%, recorded 7.248",
				stat.Mean(shares, nil))
		}
		if p, m := stat.Mean(plain, nil),
			stat.Mean(masses, nil); math.Abs(p-recorded[name][0]) > .01 ||
			math.Abs(m-recorded[name][1]) > .01 {
			t.Errorf("%s: harmonic %.3f %%, with class masses %.3f %%, recorded %v", name, p, m,
				recorded[name])
		}
	}
	if _, err := o.splits("digit1", 10, 100); err == nil {
		t.Error("a split with indices beyond the examples gave no error")
	}
}
