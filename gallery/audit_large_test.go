// SPDX-License-Identifier: Apache-2.0

package gallery_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/online"
)

// A thousand people with four faces each, as the network makes them: people lie apart as random directions do, with
// some who look alike, and a few faces have another person's name. Memory grows with the neighbours and not with the
// pairs. Package anomaly measures ten thousand.
func TestAuditOfMany(t *testing.T) {
	people := 1000
	if testing.Short() {
		people = 250
	}
	space := face.Space{ID: "many", Dim: 512, Scale: 1, Unit: true, Sigma: .2, Gamma: 1e-3, Reach: .86,
		ImpostorRadius: .93}
	g, err := gallery.New(space, online.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 1))
	const alike = 96 // directions in which people differ: one pair in ten thousand is nearer than 1.09
	swapped := make(map[string]bool)
	ids := make(map[string]int64)
	err = g.Change(func(tx *gallery.Tx) error {
		for p := range people {
			at := make([]float64, alike)
			for i := range at {
				at[i] = r.NormFloat64() / math.Sqrt(alike)
			}
			name := fmt.Sprintf("p%05d", p)
			for q := range 4 {
				x, sum := make([]float32, space.Dim), 0.
				for i := range x {
					v := .6 * r.NormFloat64() / math.Sqrt(float64(space.Dim))
					if i < alike {
						v += at[i]
					}
					x[i] = float32(v)
					sum += v * v
				}
				for i := range x {
					x[i] /= float32(math.Sqrt(sum))
				}
				of := name
				if q == 3 && p%100 == 7 {
					of = fmt.Sprintf("p%05d", p-5)
					swapped[of] = true
				}
				id := ids[of]
				if id == 0 {
					var err error
					if id, err = tx.Person(of); err != nil {
						return err
					}
					ids[of] = id
				}
				if err := tx.Label(id, false, [][]float32{x}, nil); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	start := time.Now()
	all, err := g.Audit(false)
	if err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	n := int64(len(all))
	bytes := int64(after.TotalAlloc - before.TotalAlloc)
	t.Logf("%d faces: %v, %d MB allocated, %d bytes a face", n, time.Since(start).Round(time.Millisecond), bytes>>20,
		bytes/n)
	if bytes/n > 16<<10 {
		t.Errorf("%d bytes for each face", bytes/n)
	}
	for i, u := range all {
		if u.Suspect != (i < len(swapped)) || u.Suspect && !swapped[u.Name] {
			t.Fatalf("place %d of %d: %+v", i+1, len(swapped), u.Name)
		}
	}
}
