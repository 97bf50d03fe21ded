// SPDX-License-Identifier: Apache-2.0

package online_test

import (
	"bytes"
	"errors"
	"math"
	"runtime"
	"testing"

	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/online"
	"github.com/fxamacker/cbor/v2"
)

// small returns a snapshot with every possible part: people, a rejected face, centroids and a
// journal.
func small(t testing.TB) []byte {
	t.Helper()
	l := fixture.Must(online.New(plane, online.Settings{K: 3}))(t)
	for i, name := range []online.Person{alice, bob} {
		fixture.Check(t, l.Label([]float32{float32(i), 0}, name))
	}
	fixture.Check(t, l.Reject([]float32{.5, .1}, alice))
	for i := range 12 {
		fixture.Must(l.Observe([]float32{float32(i%5) / 8, float32(i%3) / 20}))(t)
	}
	return fixture.Must(l.MarshalBinary())(t)
}

// allocated returns the bytes that f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// most is the memory that a small snapshot may make the process allocate. A graph of the largest
// dimension needs some.
const most = 16 << 20

// For any flipped bit of a snapshot there are two possible results: an error that says so, with the
// learner as before, or a learner that works and can be saved.
func TestEveryBitFlipped(t *testing.T) {
	data := small(t)
	var l online.Learner
	fixture.Check(t, l.UnmarshalBinary(data))
	good := snapshot(t, &l)
	read := 0
	for i := 0; i < 8*len(data); i++ {
		bad := bytes.Clone(data)
		bad[i/8] ^= 1 << (i % 8)
		var err error
		if n := allocated(func() { err = l.UnmarshalBinary(bad) }); n > most {
			t.Fatalf("bit %d: %d bytes were allocated for a snapshot of %d; %v", i, n, len(bad),
				err)
		}
		if err != nil {
			if !errors.Is(err, online.ErrDamaged) && !errors.Is(err, online.ErrVersion) {
				t.Fatalf("bit %d: %v", i, err)
			}
			if i%64 == 0 && !bytes.Equal(snapshot(t, &l), good) {
				t.Fatalf("bit %d: a snapshot that was refused changed the learner", i)
			}
			continue
		}
		read++
		works(t, &l)
		if t.Failed() {
			t.Fatalf("bit %d", i)
		}
		fixture.Check(t, l.UnmarshalBinary(data))
	}
	if !bytes.Equal(snapshot(t, &l), good) {
		t.Error("the learner is another one")
	}
	t.Logf("%d of %d flips were read", read, 8*len(data))
}

// works calls every operation once on a learner from a damaged snapshot, and reads the learner's
// own snapshot.
func works(t *testing.T, l *online.Learner) {
	t.Helper()
	x := make([]float32, l.Space().Dim)
	if len(x) != 2 {
		return
	}
	for i := range 6 {
		x[0], x[1] = float32(i)/6, float32(i%3)/9
		v, err := l.ObserveFrame([]online.Observation{{Vector: x, Source: 1 + int64(i)/3}})
		if err == nil && (math.IsNaN(v[0].Confidence) || math.IsNaN(v[0].Sink)) {
			t.Fatalf("a damaged snapshot gives %+v", v)
		}
	}
	for _, s := range l.Stored() {
		if s.ID%3 == 0 {
			l.Remove(s.ID)
		}
	}
	x[0] = .3
	l.Label(x, carol)
	l.Reject(x, carol)
	l.Unlearn(2)
	l.Undo(l.Counts().Observed - 3)
	s := l.Settings()
	s.K, s.Sigma = 2, 2*s.Sigma
	l.Configure(s)
	for _, name := range l.People() {
		l.Drift(name)
		l.Forget(name)
		break
	}
	var back online.Learner
	if err := back.UnmarshalBinary(snapshot(t, l)); err != nil {
		t.Errorf("a learner cannot be read again: %v", err)
	}
}

// altered returns a snapshot with a changed map.
func altered(t *testing.T, data []byte, change func(m map[string]any)) []byte {
	t.Helper()
	m := make(map[string]any)
	fixture.Check(t, cbor.Unmarshal(data, &m))
	for _, key := range []string{"space", "settings", "graph"} {
		inner := make(map[string]any)
		for k, v := range m[key].(map[any]any) {
			inner[k.(string)] = v
		}
		m[key] = inner
	}
	change(m)
	return fixture.Must(cbor.Marshal(m))(t)
}

// Large numbers in a snapshot cause no large allocation.
func TestHugeClaims(t *testing.T) {
	good := small(t)
	set := func(in, key string, value any) func(map[string]any) {
		return func(m map[string]any) {
			if in != "" {
				m = m[in].(map[string]any)
			}
			m[key] = value
		}
	}
	empty := func(change func(map[string]any)) func(map[string]any) {
		return func(m map[string]any) {
			g := m["graph"].(map[string]any)
			g["vertices"], g["journal"], g["links"], g["classes"] = []any{}, []any{}, []any{}, 0
			m["classes"] = []any{}
			change(m)
		}
	}
	for name, change := range map[string]func(map[string]any){
		"dimension":                  set("space", "dim", 1<<28),
		"dimension without vertices": empty(set("space", "dim", 1<<28)),
		"dimension at its limit": empty(func(m map[string]any) {
			set("space", "dim", 1<<20)(m)
			set("settings", "k", 1)(m)
		}),
		"dimension that overflows": empty(set("space", "dim", uint64(1)<<62)),
		"k":                        set("settings", "k", 1<<40),
		"k without vertices":       empty(set("settings", "k", 1<<26)),
		"journal":                  set("settings", "journal", 1<<20),
		"last ID":                  set("graph", "last_id", int64(math.MaxInt64)),
		"observed": func(m map[string]any) {
			m["counts"].(map[any]any)["observed"] = int64(math.MaxInt64)
		},
		"radius":                    set("graph", "r", math.MaxFloat64),
		"edges that are not listed": set("graph", "reach", 0),
		"multiplier":                set("settings", "multiplier", 1e300),
		"sigma":                     set("settings", "sigma", 1e300),
		"scale":                     set("space", "scale", 1e-300),
		"classes that nobody has":   set("graph", "classes", 4),
		"hops": func(m map[string]any) {
			origin(m, 4)[4] = int64(math.MaxInt64)
		},
		"observation of a vertex": func(m map[string]any) {
			origin(m, 4)[1] = int64(math.MaxInt64)
		},
		"time of a vertex":      func(m map[string]any) { origin(m, 4)[2] = int64(math.MinInt64) },
		"weight of a vertex":    func(m map[string]any) { vertex(m, 4)[1] = 1e300 },
		"class of a vertex":     func(m map[string]any) { vertex(m, 4)[2] = 1 << 40 },
		"neighbour of a vertex": func(m map[string]any) { vertex(m, 4)[5] = []int{1 << 40} },
		"coordinates of a vertex": func(m map[string]any) {
			vertex(m, 4)[0] = []byte{0, 0, 0xc0, 0x7f, 0, 0, 0, 0}
		},
		"entry of an unknown vertex": func(m map[string]any) { entry(m)[2] = 1 << 40 },
	} {
		t.Run(name, func(t *testing.T) {
			bad := altered(t, good, change)
			var l online.Learner
			var err error
			if n := allocated(func() { err = l.UnmarshalBinary(bad) }); n > most {
				t.Errorf("%d bytes were allocated for a snapshot of %d", n, len(bad))
			}
			if err == nil {
				if n := allocated(func() { works(t, &l) }); n > 2*most {
					t.Errorf("%d bytes were allocated by a learner", n)
				}
			} else if !errors.Is(err, online.ErrDamaged) {
				t.Error(err)
			}
			t.Log(err)
		})
	}
	// Lengths of a text, bytes, an array and a map without their data.
	for _, bad := range [][]byte{
		{0xa1, 0x67, 'v', 'e', 'r', 's', 'i', 'o', 'n', 0x9b, 0, 0, 0, 0xff, 0xff, 0xff, 0xff,
			0xff},
		{0x5b, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff},
		{0x7b, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff},
		{0xbb, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff},
	} {
		var l online.Learner
		var err error
		if n := allocated(func() { err = l.UnmarshalBinary(bad) }); n > 1<<20 ||
			!errors.Is(err, online.ErrDamaged) {
			t.Errorf("% x: %d bytes, %v", bad, n, err)
		}
	}
}

func vertex(m map[string]any, i int) []any {
	return m["graph"].(map[string]any)["vertices"].([]any)[i].([]any)
}

func entry(m map[string]any) []any {
	return m["graph"].(map[string]any)["journal"].([]any)[0].([]any)
}

func origin(m map[string]any, i int) []any { return vertex(m, i)[4].([]any) }
