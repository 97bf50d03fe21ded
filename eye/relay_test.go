// SPDX-License-Identifier: Apache-2.0

package eye

import (
	"testing"
	"time"
)

// An eye makes so many connections in a row, and then one a second.
func TestRelayAllows(t *testing.T) {
	limit, begin := newLimit(), time.Unix(1e9, 0)
	for _, c := range []struct {
		after   time.Duration
		n, want int
	}{{0, 70, 60}, {time.Second, 2, 1}, {time.Hour, 70, 60}} {
		got := 0
		for range c.n {
			if limit.AllowN(begin.Add(c.after), 1) {
				got++
			}
		}
		if got != c.want {
			t.Errorf("after %v: %d of %d, want %d", c.after, got, c.n, c.want)
		}
	}
}
