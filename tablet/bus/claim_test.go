// SPDX-License-Identifier: Apache-2.0

package bus

import (
	"testing"
	"time"
)

// A claim without started work is over soon, but a login has the time that a busy bus needs.
func TestOver(t *testing.T) {
	ended, working := make(chan struct{}), make(chan struct{})
	close(ended)
	for _, c := range []struct {
		name  string
		claim *claim
		age   time.Duration
		over  bool
	}{
		{"a new claim", &claim{by: caller{uid: 7}, granted: true}, startPatience / 2, false},
		{"an old claim", &claim{by: caller{uid: 7}, granted: true}, startPatience * 2, true},
		{"a claim that the bus is checking", &claim{by: caller{uid: 7}}, startPatience * 2, false},
		{"a claim that the bus never checked", &claim{by: caller{uid: 7}}, 3 * busPatience, true},
		{"a login", &claim{granted: true}, startPatience * 2, false},
		{"a login that never started", &claim{granted: true}, loginPatience * 2, true},
		{"a login with work", &claim{granted: true, running: working}, loginPatience * 2, false},
		{"a login whose work has ended", &claim{granted: true, running: ended}, 0, true},
	} {
		if c.claim.at = time.Now().Add(-c.age); c.claim.over() != c.over {
			t.Errorf("%s: over is %t", c.name, !c.over)
		}
	}
}
