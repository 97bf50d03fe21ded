// SPDX-License-Identifier: Apache-2.0

package quantized_test

import (
	"testing"
)

// The chain of each learned vertex ends at a labelled vertex, after as many steps as its hops, also if repartitions
// have merged vertices in between.
func TestPath(t *testing.T) {
	for _, k := range []int{200, 12} {
		g, s := labelled(t, k, 10000)
		learn(t, g, s, 1, 150)
		merged, long := 0, 0
		for i := range g.Len() {
			path, whole := g.Path(i)
			o := g.Origin(i)
			if !whole {
				t.Fatalf("k %d: the way of vertex %d is not whole: %+v", k, i, path)
			}
			if len(path)-1 != o.Hops || path[0].Vertex != i || path[0].ID != o.ID || path[0].Moment != o.Moment {
				t.Errorf("k %d: vertex %d with %+v has the way %+v", k, i, o, path)
			}
			last := path[len(path)-1]
			if _, ok := g.Class(last.Vertex); !ok || last.Merged {
				t.Errorf("k %d: the way of vertex %d ends at %+v", k, i, last)
			}
			long = max(long, len(path))
			for n, step := range path[1:] {
				if step.ID >= path[n].ID || step.Vertex < 0 {
					t.Errorf("k %d: %+v", k, path)
				}
				if step.Merged {
					merged++
				}
			}
		}
		if long < 4 {
			t.Errorf("k %d: the longest way has %d steps: the stream does not test this", k, long)
		}
		if (merged > 0) != (k == 12) {
			t.Errorf("k %d: %d steps were merged", k, merged)
		}
	}
}

// If the journal has lost a vertex in between, the chain ends there, and this is reported.
func TestPathLost(t *testing.T) {
	g, s := labelled(t, 12, 0)
	learn(t, g, s, 1, 150)
	broken := 0
	for i := range g.Len() {
		path, whole := g.Path(i)
		if len(path)-1 > g.Origin(i).Hops || whole && len(path)-1 != g.Origin(i).Hops {
			t.Errorf("%+v of %+v", path, g.Origin(i))
		}
		if !whole {
			broken++
		}
	}
	if broken == 0 {
		t.Error("every way is whole without a journal")
	}
}
