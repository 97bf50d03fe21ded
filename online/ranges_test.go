// SPDX-License-Identifier: Apache-2.0

package online_test

import (
	"slices"
	"testing"

	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/online"
)

// Ranges grow by later numbers, stay the same as bytes, follow numbers that are new, and keep the newest.
func TestRanges(t *testing.T) {
	var r online.Ranges
	for _, n := range []int64{1, 2, 3, 7, 8} {
		r = r.Plus(n)
	}
	r = r.With(online.Ranges{{20, 20}})
	is := fixture.Must(online.DecodeRanges(r.Encoded()))(t)
	if want := (online.Ranges{{1, 3}, {7, 8}, {20, 20}}); !slices.Equal(is, want) {
		t.Errorf("%v, want %v", is, want)
	}
	is = r.Renumbered(map[int64]int64{2: 0, 3: 9, 20: 10, 30: 1})
	if want := (online.Ranges{{1, 1}, {7, 10}}); !slices.Equal(is, want) {
		t.Errorf("%v, want %v", is, want)
	}
	for n := range int64(5000) {
		r = r.Plus(100 + 2*n)
	}
	if len(r) != 4096 || r[4095][1] != 10098 {
		t.Errorf("%d ranges, the last one %v", len(r), r[len(r)-1])
	}
	if r, err := online.DecodeRanges(nil); r != nil || err != nil {
		t.Error(r, err)
	}
	if _, err := online.DecodeRanges([]byte("no ranges")); err == nil {
		t.Error("bytes that are no ranges were read")
	}
}
