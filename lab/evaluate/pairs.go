// SPDX-License-Identifier: Apache-2.0

package evaluate

import (
	"cmp"
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
	// FNMR is the share of the genuine pairs at more than each of the distances of Impostors; null
	// if it was not measured.
	FNMR [5]Rate `json:"fnmr"`
	// Norms says how the norms of the faces predict missed matches; nil if a face has no norm, or a
	// false match rate of 1e-4 was not measured.
	Norms *NormRates `json:"norms"`
}

// NormRates says which share of the genuine pairs lies beyond the distance at the false match rate
// 1e-4, by [face.Quality].Norm. The norm of a pair is the smaller one of its two faces.
type NormRates struct {
	Without []WithoutNorm `json:"without"` // without the lowest 0, 2, 5 and 10 % of the faces
	// LearnNorm and ClearNorm are for the description of a network: of all pairs with a smaller
	// norm, four in five and one in three are missed. 0 if so many are missed below no norm.
	LearnNorm float64 `json:"learn_norm"`
	ClearNorm float64 `json:"clear_norm"`
}

// WithoutNorm is the false non-match rate without the faces of the lowest norms.
type WithoutNorm struct {
	Lowest  float64 `json:"lowest"` // share of the faces that are left out
	Norm    float64 `json:"norm"`   // least norm of the other faces
	Genuine int     `json:"genuine"`
	FNMR    Rate    `json:"fnmr"`
}

// Shares of missed pairs that give LearnNorm and ClearNorm (lab/NOTES.md), and the fewest pairs for
// them.
const (
	missedLearn    = 4. / 5
	missedClear    = 1. / 3
	leastNormPairs = 50
)

// mostPairFaces bounds the faces of the comparison: 1.25 GB of distances.
const mostPairFaces = 25000

// leastPairs is the number of nearer impostor pairs that a measured distance needs.
const leastPairs = 5

// ComparePairs compares all pairs of faces that may be learned. If there are more than 25,000, it
// takes every second face, every third, and so on. A false match rate is a share of all pairs. Its
// distance is measured if at least five pairs are nearer.
func ComparePairs(ids []Identity, space face.Space) PairRates {
	var faces [][]float32
	var of []int
	var norms []float64
	total := 0
	for _, id := range ids {
		total += len(id.Faces)
	}
	step, n := total/mostPairFaces+1, 0
	for i, id := range ids {
		for _, f := range id.Faces {
			if n++; !f.Hold && n%step == 0 {
				faces, of, norms = append(faces, f.Vector), append(of, i),
					append(norms, f.Quality.Norm)
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
	var pairs []normPair // the genuine ones
	products := make([]float32, len(faces))
	for i, x := range faces {
		if i == 0 {
			continue
		}
		blas32.Gemv(blas.NoTrans, 1,
			blas32.General{Rows: i, Cols: space.Dim, Stride: space.Dim, Data: flat[:i*space.Dim]},
			blas32.Vector{N: space.Dim, Inc: 1, Data: x}, 0,
			blas32.Vector{N: i, Inc: 1, Data: products})
		for j, p := range products[:i] {
			d := float32(space.Scale * math.Sqrt(max(0, squares[i]+squares[j]-2*float64(p))))
			if of[i] == of[j] {
				genuine = append(genuine, d)
				pairs = append(pairs, normPair{float64(d), min(norms[i], norms[j])})
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
	if d := r.Impostors.Distances[2]; d > 0 && len(pairs) > 0 && slices.Min(norms) > 0 {
		r.Norms = normRates(norms, pairs, d)
	}
	return r
}

// normPair is a pair of faces of one person.
type normPair struct{ distance, norm float64 }

// normRates orders its arguments by norm. Pairs at more than the distance are missed.
func normRates(norms []float64, pairs []normPair, distance float64) *NormRates {
	slices.Sort(norms)
	slices.SortFunc(pairs, func(a, b normPair) int { return cmp.Compare(a.norm, b.norm) })
	missed := make([]int, len(pairs)+1) // of the first pairs
	r := &NormRates{}
	for i, p := range pairs {
		missed[i+1] = missed[i]
		if p.distance > distance {
			missed[i+1]++
		}
		if i+1 < leastNormPairs {
			continue
		}
		share := float64(missed[i+1]) / float64(i+1)
		if share >= missedLearn {
			r.LearnNorm = p.norm
		}
		if share >= missedClear {
			r.ClearNorm = p.norm
		}
	}
	for _, lowest := range []float64{0, .02, .05, .1} {
		least := norms[int(lowest*float64(len(norms)))]
		k, _ := slices.BinarySearchFunc(pairs, least, func(p normPair, x float64) int {
			return cmp.Compare(p.norm, x)
		})
		r.Without = append(r.Without, WithoutNorm{lowest, least, len(pairs) - k,
			rate(missed[len(pairs)]-missed[k], len(pairs)-k)})
	}
	return r
}

// Norms returns the norms of all faces, in order of size; nil if a face has none.
func Norms(ids []Identity) (all []float64) {
	for _, id := range ids {
		for _, f := range id.Faces {
			all = append(all, f.Quality.Norm)
		}
	}
	if slices.Sort(all); len(all) > 0 && !(all[0] > 0) {
		return nil
	}
	return all
}
