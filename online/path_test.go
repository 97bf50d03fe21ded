// SPDX-License-Identifier: Apache-2.0

package online_test

import (
	"testing"

	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/online"
)

// The path of each learned face ends at a labelled one, after as many steps as its hops, even where
// faces on it were merged into others.
func TestPath(t *testing.T) {
	for _, k := range []int{200, 12} {
		l := fixture.Must(online.New(line, online.Settings{K: k}))(t)
		shown(t, l, alice, 0)
		for i := range 40 {
			fixture.Must(l.Observe([]float32{.2 * float32(i+1), 0}))(t)
		}
		merged, longest := 0, 0
		for _, s := range l.Stored() {
			path, whole, err := l.Path(s.ID)
			if err != nil || !whole || len(path)-1 != s.Hops || path[0].Stored != s.ID ||
				path[0].Distance != 0 {
				t.Fatalf("k %d: face %d of %d hops has the path %+v, whole %t, %v", k, s.ID, s.Hops,
					path, whole, err)
			}
			if last := path[len(path)-1]; last.Label.Person != alice || last.Merged {
				t.Errorf("k %d: the path of face %d ends at %+v", k, s.ID, last)
			}
			for _, step := range path[1:] {
				if step.Merged {
					merged++
				}
				if l.Vector(step.Stored) == nil {
					t.Errorf("k %d: face %d has a step at %d, which is not stored", k, s.ID,
						step.Stored)
				}
			}
			longest = max(longest, len(path))
		}
		if longest < 6 || (merged > 0) != (k == 12) {
			t.Errorf("k %d: the longest path has %d steps, and %d are merged", k, longest, merged)
		}
	}
}
