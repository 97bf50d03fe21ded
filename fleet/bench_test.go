// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/faceauth/faceauth/fleet/ledger"
)

// used returns the time of all processors that this program has had. Other programs do not count in it.
func used(t testing.TB) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// A device that knows 2,000 people comes back to 1,000 changes with 250 new people whose keys it has to ask for.
func BenchmarkCatchUp(b *testing.B) {
	log := newMemLog()
	a := newAdmin(b, log)
	one := a.join(everybody).run()
	rng := rand.New(rand.NewPCG(1, 1))
	faces := func() []ledger.Face {
		x := make([]float32, 512)
		for i := range x {
			x[i] = rng.Float32()
		}
		return []ledger.Face{{Vector: x}}
	}
	var ids []ledger.ID
	enroll := func(n int) {
		for range n {
			ids = append(ids, must[ledger.ID](b)(one.d.Enroll(fmt.Sprint("person ", len(ids)), space, faces())))
		}
	}
	wait := func(nodes ...*node) {
		for end := time.Now().Add(10 * time.Minute); ; time.Sleep(time.Millisecond) {
			done := true
			for _, n := range nodes {
				done = done && n.inStep() && n.d.State().Seq == log.last()
			}
			if done {
				return
			}
			if time.Now().After(end) {
				b.Fatal("it takes too long")
			}
		}
	}
	const crowd = 2000
	enroll(crowd)
	wait(one)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	two := a.join(everybody)
	begun, cpu := time.Now(), used(b)
	two.run()
	wait(one, two)
	b.Logf("a new device takes in %d people from the log in %.1f s, %.1f s of processors",
		crowd, time.Since(begun).Seconds(), (used(b) - cpu).Seconds())
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/1e6, "MB/device")
	b.ResetTimer()
	for range b.N {
		b.StopTimer()
		two.halt()
		enroll(250)
		for range 500 {
			must[ledger.Ref](b)(one.d.Label(ids[rng.IntN(crowd)], space, faces()))
		}
		wait(one)
		cpu := used(b)
		b.StartTimer()
		two.run()
		wait(two)
		b.ReportMetric((used(b) - cpu).Seconds(), "cpu-s/op")
	}
	b.StopTimer()
	begun, cpu = time.Now(), used(b)
	n := len(two.d.People())
	b.Logf("%d people are listed in %.2f s, %.2f s of processors", n, time.Since(begun).Seconds(), (used(b) - cpu).Seconds())
	begun = time.Now()
	two.close()
	two.open(fast)
	b.Logf("its folder is closed and opened in %.1f s", time.Since(begun).Seconds())
	two.close()
	one.close()
}
