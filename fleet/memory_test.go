// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/faceauth/faceauth/fleet"
)

// A device keeps little of each person in memory: faces and vectors stay in its database.
func TestMemory(t *testing.T) {
	const people, most = 1000, 1000 // most bytes of a person
	w := newWorld(t, 0)
	m := w.join(fleet.Scope{All: true})
	for i := range people {
		var all []fleet.Face
		for j := range 4 {
			all = append(all, fleet.Face{Vector: append(vector(4*i+j), make([]float32, 508)...)})
		}
		if _, err := m.d.Enroll(fmt.Sprint("p", i), space, all); err != nil {
			t.Fatal(err)
		}
	}
	for m.d.State().Waiting > 0 {
		<-m.d.Changed()
	}
	m.end()
	heap := func() uint64 {
		runtime.GC()
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		return s.HeapAlloc
	}
	before := heap()
	m.open()
	if n := len(m.d.Names()); n != people {
		t.Fatal(n)
	}
	m.d.State()
	if each := (heap() - before) / people; each > most {
		t.Errorf("a person takes %d bytes of memory, and %d are allowed", each, most)
	} else {
		t.Logf("a person takes %d bytes", each)
	}
	runtime.KeepAlive(m)
}
