// SPDX-License-Identifier: Apache-2.0

package evaluate

import (
	"math"
	"slices"

	"github.com/faceauth/faceauth/face"
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
)

// PairRates holds the distances between pictures of one person, and of different people.
type PairRates struct {
	Impostors face.Impostors `json:"impostors"`
	Genuine   int64          `json:"genuine"` // pairs of pictures of one person
	// FNMR is the share of the genuine pairs at more than each of the distances of Impostors; null if it was not
	// measured.
	FNMR [5]Rate `json:"fnmr"`
}

// mostPairFaces bounds the faces of the comparison: 1.25 GB of distances.
const mostPairFaces = 25000

// leastPairs is the number of nearer impostor pairs that a measured distance needs.
const leastPairs = 5

// ComparePairs compares all pairs of faces that may be learned. If there are more than 25,000, it takes every second
// face, every third, and so on. A false match rate is a share of all pairs. Its distance is measured if at least five
// pairs are nearer.
func ComparePairs(ids []Identity, space face.Space) PairRates {
	var faces [][]float32
	var of []int
	total := 0
	for _, id := range ids {
		total += len(id.Faces)
	}
	step, n := total/mostPairFaces+1, 0
	for i, id := range ids {
		for _, f := range id.Faces {
			if n++; !f.Hold && n%step == 0 {
				faces, of = append(faces, f.Vector), append(of, i)
			}
		}
	}
	flat := make([]float32, 0, len(faces)*space.Dim)
	squares := make([]float64, len(faces))
	for i, x := range faces {
		flat = append(flat, x...)
		for _, v := range x {
			squares[i] += float64(v) * float64(v)
		}
	}
	var impostor, genuine []float32
	products := make([]float32, len(faces))
	for i, x := range faces {
		if i == 0 {
			continue
		}
		blas32.Gemv(blas.NoTrans, 1,
			blas32.General{Rows: i, Cols: space.Dim, Stride: space.Dim, Data: flat[:i*space.Dim]},
			blas32.Vector{N: space.Dim, Inc: 1, Data: x}, 0, blas32.Vector{N: i, Inc: 1, Data: products})
		for j, p := range products[:i] {
			d := float32(space.Scale * math.Sqrt(max(0, squares[i]+squares[j]-2*float64(p))))
			if of[i] == of[j] {
				genuine = append(genuine, d)
			} else {
				impostor = append(impostor, d)
			}
		}
	}
	slices.Sort(impostor)
	slices.Sort(genuine)
	people := slices.Compact(slices.Clone(of))
	r := PairRates{Impostors: face.Impostors{People: len(people), Pairs: int64(len(impostor))},
		Genuine: int64(len(genuine))}
	for i := range r.FNMR {
		r.FNMR[i] = Rate(math.NaN())
		k := int(math.Pow(10, -2-float64(i)) * float64(len(impostor)))
		if k < leastPairs || i > 0 && !(float64(impostor[k]) < r.Impostors.Distances[i-1]) {
			continue
		}
		r.Impostors.Distances[i] = float64(impostor[k])
		near, _ := slices.BinarySearch(genuine, impostor[k])
		r.FNMR[i] = rate(len(genuine)-near, len(genuine))
	}
	return r
}
