// SPDX-License-Identifier: Apache-2.0

package tablet

import (
	"testing"
	"time"
)

// An asker whom the profile does not remember may try, unless it remembers too many already. The user always may, as far
// as the user's own limits go.
func TestLimitsOf(t *testing.T) {
	now := onWall(time.Unix(1e9, 0))
	remembered := func(n int) map[uint32]limits {
		others := make(map[uint32]limits)
		for i := range n {
			others[uint32(1000+i)] = limits{}
		}
		return others
	}
	for name, c := range map[string]struct {
		others int
		asker  uint32
		want   Refusal
	}{
		"the user":                          {mostOthers, 0, ""},
		"the first other":                   {0, 5, ""},
		"the last one who is remembered":    {mostOthers, 1000 + mostOthers - 1, ""},
		"one whom the profile can remember": {mostOthers - 1, 5, ""},
		"one too many":                      {mostOthers, 5, TooManyFailures},
	} {
		a := account{kept: kept{Others: remembered(c.others)}}
		a.Limits.password(now)
		if got, _ := a.limitsOf(c.asker, Policy{}, now); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
