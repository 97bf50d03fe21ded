// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/fleet"
	"github.com/faceauth/faceauth/fleet/ledger"
	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/online"
	"github.com/nats-io/nkeys"
)

// used returns the processor time that this program has used. The time of other programs does not count.
func used(t testing.TB) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// crowdSize is the number of people in the fleet of [BenchmarkDevice]. FACEAUTH_FLEET_PEOPLE sets another number.
func crowdSize(b *testing.B) int {
	n := 10_000
	if s := os.Getenv("FACEAUTH_FLEET_PEOPLE"); s != "" {
		var err error
		if n, err = strconv.Atoi(s); err != nil || n < 1000 {
			b.Fatalf("FACEAUTH_FLEET_PEOPLE=%s is no number of people, or fewer than 1000", s)
		}
	}
	return n
}

// someFaces returns random faces of 512 values and length 1.
func someFaces(rng *rand.Rand, n int) (all []ledger.Face) {
	for range n {
		x := make([]float32, 512)
		sum := 0.0
		for i := range x {
			x[i] = float32(rng.NormFloat64())
			sum += float64(x[i]) * float64(x[i])
		}
		for i := range x {
			x[i] /= float32(math.Sqrt(sum))
		}
		all = append(all, ledger.Face{Vector: x})
	}
	return all
}

// crowd fills the log with people of four faces, and returns their keys.
func (a *admin) crowd(b *testing.B, n int) (ids []ledger.ID, keys []ledger.Key) {
	rng := rand.New(rand.NewPCG(1, 1))
	type author struct {
		key nkeys.KeyPair
		id  string
		n   uint64
	}
	var authors []*author
	for range 10 {
		key := must[nkeys.KeyPair](b)(nkeys.CreateUser())
		authors = append(authors, &author{key: key, id: must[string](b)(key.PublicKey())})
		a.admit(authors[len(authors)-1].id, everybody)
	}
	for i := range n {
		x, id, key := authors[i%len(authors)], ledger.NewID(), ledger.NewKey()
		ids, keys = append(ids, id), append(keys, key)
		for _, what := range []struct {
			kind    ledger.Kind
			content any
		}{
			{ledger.Name, ledger.Naming{Name: fmt.Sprint("person ", i)}},
			{ledger.Label, ledger.Faces{Space: benchSpace.ID, Faces: someFaces(rng, 4)}},
		} {
			x.n++
			e := ledger.Entry{Device: x.id, N: x.n, Time: time.Now(), Kind: what.kind, Person: id}
			e.Seal(a.fleet, key, what.content)
			if err := e.Sign(a.fleet, x.key); err != nil {
				b.Fatal(err)
			}
			a.log.add(e.Subject(), e.Encode())
		}
	}
	return ids, keys
}

// shoot puts a snapshot that a member has signed into the log, and trims the log to it.
func (a *admin) shoot(b *testing.B, member nkeys.KeyPair) {
	l := must[*ledger.Ledger](b)(ledger.New(a.fleet))
	for _, e := range a.log.all {
		if o, err := l.Apply(e.seq, e.data); err != nil || !o.Accepted {
			b.Fatal(o.Reason, err)
		}
	}
	var data bytes.Buffer
	if err := l.Snapshot(&data, member); err != nil {
		b.Fatal(err)
	}
	a.log.snapshot, a.log.snapSeq = data.Bytes(), l.Seq()
	a.log.trim()
}

// heap returns the number of bytes in use after a garbage collection.
func heap() float64 {
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// onDisk returns the total size of the files in a folder, in bytes.
func onDisk(b *testing.B, folder string) (n float64) {
	if err := filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		n += float64(info.Size())
		return err
	}); err != nil {
		b.Fatal(err)
	}
	return n
}

// BenchmarkDevice measures a whole device, with its folder on disk, in a fleet of 10,000 people. Each person has a name
// and four faces of 512 values. The log is in memory, so the benchmark measures the device alone. The number before a
// slash is elapsed time, the number after it is processor time. FACEAUTH_FLEET_GALLERY gives the device a gallery, too.
func BenchmarkDevice(b *testing.B) {
	n := crowdSize(b)
	log := newMemLog()
	a := newAdmin(b, log)
	ids, keys := a.crowd(b, n)
	keeper := a.join(everybody)
	one := a.join(everybody)
	limited := a.join(ledger.Scope{People: ids[:1]})
	keeper.close()
	ring := must[*ledger.Ring](b)(ledger.OpenRing(filepath.Join(keeper.folder, "keys")))
	for i, id := range ids {
		ring.Add(id, keys[i])
	}
	if err := ring.Save(); err != nil {
		b.Fatal(err)
	}
	ring.Close()
	step := func(what string, f func()) {
		begun, cpu := time.Now(), used(b)
		f()
		b.Logf("%-60s %8.3f s / %.3f s", what, time.Since(begun).Seconds(), (used(b) - cpu).Seconds())
	}
	wait := func(nodes ...*node) {
		for end := time.Now().Add(10 * time.Minute); ; time.Sleep(time.Millisecond) {
			done := true
			for _, n := range nodes {
				s := n.d.State()
				done = done && s.InStep && s.Seq == log.last() && s.Keys == 0
			}
			if done {
				return
			}
			if time.Now().After(end) {
				b.Fatal("it takes too long")
			}
		}
	}
	for b.Loop() {
		step("all of the log, key by key", func() {
			keeper.open(fast)
			keeper.run()
			wait(keeper)
		})
		a.shoot(b, must[nkeys.KeyPair](b)(fleet.Identity(keeper.folder)))
		before := heap()
		step("a new device, from a snapshot, until it has all keys", func() {
			one.run()
			wait(one)
		})
		after := heap()
		b.Logf("%-60s %8.1f MB", "memory in use of a device", (after-before)/1e6)
		b.ReportMetric((after-before)/1e6, "MB/device")
		b.Logf("%-60s %8.1f MB", "files of a device", onDisk(b, one.folder)/1e6)
		before = heap()
		step("a device that may have one person", func() {
			limited.run()
			wait(limited)
		})
		b.Logf("%-60s %8.1f MB", "memory in use of a device that may have one person", (heap()-before)/1e6)
		if all := limited.d.People(); len(all) != n || all[0].Sealed+all[1].Sealed == 0 {
			b.Fatalf("%d people", len(all))
		}
		limited.close()
		step("all people, with their faces", func() {
			if all := one.d.People(); len(all) != n {
				b.Fatalf("%d people", len(all))
			}
		})
		step("a person by name", func() { must[ledger.Person](b)(one.d.Find("person 77")) })
		step("closed", one.close)
		step("opened", func() { one.open(fast) })
		rng := rand.New(rand.NewPCG(2, 2))
		step("250 people enrolled, 500 faces labelled, by another", func() {
			for i := range 250 {
				must[ledger.ID](b)(keeper.d.Enroll(fmt.Sprint("later ", i), benchSpace.ID, someFaces(rng, 4)))
			}
			for range 500 {
				must[ledger.Ref](b)(keeper.d.Label(ids[rng.IntN(n)], benchSpace.ID, someFaces(rng, 1)))
			}
			wait(keeper)
		})
		step("a device that was away comes back to these 1,000", func() {
			one.run()
			wait(one)
		})
		if os.Getenv("FACEAUTH_FLEET_GALLERY") == "" {
			continue // it takes minutes with 10,000 people
		}
		g := must[*gallery.Gallery](b)(gallery.New(benchSpace, online.Settings{}))
		step("an empty gallery is brought in line",
			func() { must[fleet.Reconciled](b)(one.d.Reconcile(g, fleet.Reconciling{})) })
		r := must[fleet.Reconciled](b)(one.d.Reconcile(g, fleet.Reconciling{}))
		if err := r.Done(); err != nil {
			b.Fatal(err)
		}
		must[ledger.ID](b)(keeper.d.Enroll("the last", benchSpace.ID, someFaces(rng, 4)))
		wait(keeper, one)
		step("and again after one enrolment", func() {
			if r := must[fleet.Reconciled](b)(one.d.Reconcile(g, fleet.Reconciling{})); r.Took == 0 {
				b.Fatal("it took nothing")
			}
		})
		runtime.KeepAlive(g)
	}
	one.close()
	keeper.close()
}

var benchSpace = face.Space{
	ID: "bench", Dim: 512, Scale: 1, Unit: true, Sigma: .2, Gamma: 1e-3, GenuineRadius: .5, ImpostorRadius: .5,
}
