// SPDX-License-Identifier: Apache-2.0

package quantized

import (
	"math"
	"math/bits"
)

// sketches hold every vertex again with two bits for each value. For most vertices this is enough
// to prove that they are too far.
//
// A vertex y is written as ŷ + e, where a value of ŷ is one of four levels, delta·(b - 1.5), and
// the probe x as x̂ + f, of sixteen levels, step·(a - 7.5). By the inequality of Cauchy and Schwarz
//
//	<x,y> = <x̂,ŷ> + <f,ŷ> + <x,e> <= <x̂,ŷ> + |f||ŷ| + |x||e|,
//
// and <x̂,ŷ> is a sum of whole numbers: bits of a and b that are both set are counted 64 at a time.
// A sketch decides only that a vertex lies beyond the edge radius; all other vertices are measured.
type sketches struct {
	words int // 64-bit words of a plane, a multiple of block: one bit of each value
	bits  []uint64
	about []sketch

	// For the current probe:
	probe  [4][]uint64
	sum    int // sum of all a
	step   float64
	norm   float64 // |x|
	missed float64 // |f|

	// If sketches leave most vertices to be measured, they cost more than they save. Then they rest
	// for a while.
	asked, left int64
	rest        int
}

// sketch holds the other numbers that the bound needs for one vertex. Norms are rounded up.
type sketch struct {
	delta  float32
	norm   float32 // |ŷ|
	missed float32 // |e|
	sum    int32   // sum of all b
}

// With these steps, in units of the standard deviation, uniform quantizers of four and of sixteen
// levels have the least error for normally distributed values (Max, Quantizing for Minimum
// Distortion, 1960).
const (
	step4  = .9957
	step16 = .3352
)

// sketchedFrom is the least number of coordinates for which sketches are used: 2 MB.
var sketchedFrom = 1 << 19

const (
	block         = 8    // words whose bits are counted at a time
	leastSketched = 256  // least dimension: below it a sketch costs as much as the distance
	sketchWindow  = 4096 // vertices after which the use of sketches is decided again
	sketchRest    = 256  // passes without sketches after a decision against them
)

func newSketches(dim int) sketches {
	if dim < leastSketched {
		return sketches{}
	}
	s := sketches{words: (dim + 64*block - 1) / (64 * block) * block}
	for i := range s.probe {
		s.probe[i] = make([]uint64, s.words)
	}
	return s
}

// push adds the sketch of a vertex with the given squared norm.
func (s *sketches) push(y []float32, square float64) {
	if s.words == 0 {
		return
	}
	from := len(s.bits)
	for range 2 * s.words {
		s.bits = append(s.bits, 0)
	}
	low, high := s.bits[from:from+s.words], s.bits[from+s.words:]
	width := step4 * math.Sqrt(square/float64(len(y)))
	var about sketch
	var dot, levels float64
	for i, v := range y {
		b := level(float64(v), width, 4)
		low[i/64] |= uint64(b&1) << (i % 64)
		high[i/64] |= uint64(b>>1) << (i % 64)
		about.sum += int32(b)
		dot += float64(v) * (float64(b) - 1.5)
		levels += (float64(b) - 1.5) * (float64(b) - 1.5)
	}
	about.delta = float32(dot / levels) // the delta with the least error
	var missed float64
	for i, v := range y {
		b := low[i/64]>>(i%64)&1 | high[i/64]>>(i%64)&1<<1
		e := float64(v) - float64(about.delta)*(float64(b)-1.5)
		missed += e * e
	}
	about.norm = above(math.Abs(float64(about.delta)) * math.Sqrt(levels))
	about.missed = above(math.Sqrt(missed))
	s.about = append(s.about, about)
}

// level returns the level that is nearest to v, of n levels of this width, symmetric about 0.
func level(v, width float64, n int) int {
	q := math.Floor(v/width) + float64(n/2)
	if !(q > 0) { // also for NaN
		return 0
	}
	return int(min(q, float64(n-1)))
}

// above returns a float32 that is certainly not below x, which has rounding errors.
func above(x float64) float32 { return math.Nextafter32(float32(x*(1+1e-9)), float32(math.Inf(1))) }

// ask sketches the probe x and reports whether sketches are to be used for it. Square is the
// squared norm of x.
func (s *sketches) ask(x []float32, square float64) bool {
	if s.words == 0 {
		return false
	}
	if s.rest > 0 {
		s.rest--
		return false
	}
	if s.asked >= sketchWindow {
		if s.left > s.asked/2 {
			s.rest = sketchRest
		}
		s.asked, s.left = 0, 0
		if s.rest > 0 {
			return false
		}
	}
	for _, plane := range s.probe {
		clear(plane)
	}
	s.sum, s.norm = 0, math.Sqrt(square)*(1+1e-9)
	width := step16 * math.Sqrt(square/float64(len(x)))
	var dot, levels float64
	var word [4]uint64
	for i, v := range x {
		a := level(float64(v), width, 16)
		for q := range word {
			word[q] |= uint64(a>>q&1) << (i % 64)
		}
		if i%64 == 63 || i == len(x)-1 {
			for q := range word {
				s.probe[q][i/64], word[q] = word[q], 0
			}
		}
		s.sum += a
		centred := float64(a) - 7.5
		dot += float64(v) * centred
		levels += centred * centred
	}
	s.step = dot / levels
	// |x - x̂|² = |x|² - <x,x̂>²/|x̂|² for the step with the least error, plus rounding.
	s.missed = math.Sqrt(max(square-dot*dot/levels, 0)+1e-12*square) * (1 + 1e-9)
	return true
}

// product returns 4 times <x̂,ŷ> in units of step and delta, for vertex i.
func (s *sketches) product(i, dim int) int {
	row := s.bits[2*i*s.words : 2*(i+1)*s.words]
	both := 0
	for w := 0; w < s.words; w += block {
		// Eight words at a time: the fixed length spares the bounds checks.
		low, high := (*[block]uint64)(row[w:]), (*[block]uint64)(row[s.words+w:])
		p0, p1 := (*[block]uint64)(s.probe[0][w:]), (*[block]uint64)(s.probe[1][w:])
		p2, p3 := (*[block]uint64)(s.probe[2][w:]), (*[block]uint64)(s.probe[3][w:])
		var n0, n1, n2, n3, n4 int
		for j := range block {
			l, h := low[j], high[j]
			n0 += bits.OnesCount64(l & p0[j])
			n1 += bits.OnesCount64(l&p1[j]) + bits.OnesCount64(h&p0[j])
			n2 += bits.OnesCount64(l&p2[j]) + bits.OnesCount64(h&p1[j])
			n3 += bits.OnesCount64(l&p3[j]) + bits.OnesCount64(h&p2[j])
			n4 += bits.OnesCount64(h & p3[j])
		}
		both += n0 + 2*n1 + 4*n2 + 8*n3 + 16*n4
	}
	// Σ (a - 7.5)(b - 1.5), four times.
	return 4*both - 6*s.sum - 30*int(s.about[i].sum) + 45*dim
}

// most returns an upper bound of the product of the probe and vertex i.
func (s *sketches) most(i, dim int) float64 {
	about := &s.about[i]
	return s.step*float64(about.delta)*float64(s.product(i, dim))/4 + s.missed*float64(about.norm) +
		s.norm*float64(about.missed)
}

// keep leaves only the sketches of kept, which is in ascending order, and erases the others from
// memory.
func (s *sketches) keep(kept []int) {
	if s.words == 0 {
		return
	}
	w := 2 * s.words
	for q, i := range kept {
		if q != i {
			copy(s.bits[q*w:(q+1)*w], s.bits[i*w:(i+1)*w])
			s.about[q] = s.about[i]
		}
	}
	clear(s.bits[len(kept)*w:])
	clear(s.about[len(kept):])
	s.bits, s.about = s.bits[:len(kept)*w], s.about[:len(kept)]
}
