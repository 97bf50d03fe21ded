// SPDX-License-Identifier: Apache-2.0

package eye

import (
	"testing"
	"time"
)

// An eye makes at most so many connections in any minute.
func TestRelayAllows(t *testing.T) {
	r := new(relay)
	begin := time.Unix(1e9, 0)
	for i := range relaysPerMinute {
		if !r.allow(begin.Add(time.Duration(i) * time.Second / 2)) {
			t.Fatalf("connection %d is refused", i+1)
		}
	}
	for _, c := range []struct {
		after time.Duration
		want  bool
	}{{30 * time.Second, false}, {time.Minute, false}, {time.Minute + 1, true}, {time.Minute + 2, false},
		{3 * time.Minute, true}} {
		if got := r.allow(begin.Add(c.after)); got != c.want {
			t.Errorf("after %v: %t, want %t", c.after, got, c.want)
		}
	}
}
