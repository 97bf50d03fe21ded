// SPDX-License-Identifier: Apache-2.0

package online

import (
	"slices"

	"github.com/fxamacker/cbor/v2"
)

// Ranges are ranges of observation numbers, ascending, both ends included: those through which a person in view taught
// the learner. One range is a time in which nobody else was seen. Of more than 4,096 the newest stay.
type Ranges [][2]int64

const mostRanges = 4096

// Plus returns the ranges with a later number.
func (r Ranges) Plus(n int64) Ranges {
	if last := len(r) - 1; last >= 0 && r[last][1] == n-1 {
		r[last][1] = n
		return r
	}
	r = append(r, [2]int64{n, n})
	return r[max(0, len(r)-mostRanges):]
}

// With returns the ranges of two, of which the second are later.
func (r Ranges) With(later Ranges) Ranges {
	all := append(slices.Clone(r), later...)
	return all[max(0, len(all)-mostRanges):]
}

// Encoded returns the ranges as bytes, for [DecodeRanges].
func (r Ranges) Encoded() []byte {
	b, _ := cbor.Marshal(r) // numbers can be encoded
	return b
}

// DecodeRanges returns the ranges that [Ranges.Encoded] has encoded; no bytes are no ranges.
func DecodeRanges(b []byte) (r Ranges, err error) {
	if len(b) > 0 {
		err = cbor.Unmarshal(b, &r)
	}
	return r, err
}

// has reports whether a number lies in one of the ranges.
func (r Ranges) has(n int64) bool {
	return slices.ContainsFunc(r, func(x [2]int64) bool { return x[0] <= n && n <= x[1] })
}

// Renumbered returns the ranges with new numbers for some of them; 0 for none.
func (r Ranges) Renumbered(now map[int64]int64) (is Ranges) {
	var all []int64
	for _, x := range r {
		for n := x[0]; n <= x[1]; n++ {
			other, there := now[n]
			if !there {
				other = n
			}
			if other > 0 {
				all = append(all, other)
			}
		}
	}
	slices.Sort(all)
	for _, n := range all {
		is = is.Plus(n)
	}
	return is
}
