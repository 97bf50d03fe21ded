// SPDX-License-Identifier: Apache-2.0

package ledger_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/faceauth/faceauth/fleet/ledger"
)

// measure reports the processor time of an operation. The time of other programs does not count.
func measure(b *testing.B, op func()) {
	b.Helper()
	used := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	runtime.GC()
	b.ResetTimer()
	before := used()
	for range b.N {
		op()
	}
	b.ReportMetric(float64((used()-before).Microseconds())/1000/float64(b.N), "cpu-ms/op")
}

// crowd is the log of 10,000 people with four faces of 512 values each, written by 100 devices.
type crowd struct {
	admin *author
	log   [][]byte
	ring  *ledger.Ring
	bytes int
}

const crowdSize = 10_000

var aCrowd = sync.OnceValue(func() *crowd {
	var t testing.T
	c := &crowd{admin: newAdmin(&t), ring: ledger.NewRing()}
	rng := rand.New(rand.NewPCG(1, 1))
	var devices []*author
	for range 100 {
		d := newAuthor(&t, c.admin.fleet, newUser(&t))
		devices = append(devices, d)
		c.log = append(c.log, c.admin.admit(d.id, ledger.Scope{All: true}))
	}
	for i := range crowdSize {
		d, id := devices[i%len(devices)], ledger.NewID()
		d.own, _ = ledger.New(c.admin.fleet)
		key := ledger.NewKey()
		c.ring.Add(id, key)
		write := func(kind ledger.Kind, content any) {
			d.n++
			e := ledger.Entry{Device: d.id, N: d.n, Time: d.clock, Kind: kind, Person: id}
			e.Seal(c.admin.fleet, key, content)
			if err := e.Sign(c.admin.fleet, d.key); err != nil {
				panic(err)
			}
			c.log = append(c.log, e.Encode())
		}
		write(ledger.Name, ledger.Naming{Name: fmt.Sprint("person ", i)})
		f := ledger.Faces{Space: space}
		for range 4 {
			x := make([]float32, 512)
			for j := range x {
				x[j] = rng.Float32()
			}
			f.Faces = append(f.Faces, ledger.Face{Vector: x})
		}
		write(ledger.Label, f)
	}
	for _, data := range c.log {
		c.bytes += len(data)
	}
	return c
})

func (c *crowd) ledger(t testing.TB) *ledger.Ledger {
	t.Helper()
	l, err := ledger.New(c.admin.fleet)
	if err != nil {
		t.Fatal(err)
	}
	for i, data := range c.log {
		if o, err := l.Apply(uint64(i+1), data); err != nil || !o.Accepted {
			t.Fatal(o.Reason, err)
		}
	}
	return l
}

// One operation is the whole log of 10,000 people: 20,100 entries.
func BenchmarkApply(b *testing.B) {
	c := aCrowd()
	measure(b, func() { c.ledger(b) })
	b.ReportMetric(float64(c.bytes)/float64(len(c.log)-100), "bytes/entry")
}

// Measures how much memory the ledger and the key ring of 10,000 people use.
func BenchmarkMemory(b *testing.B) {
	c := aCrowd()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	l := c.ledger(b)
	runtime.GC()
	runtime.ReadMemStats(&after)
	for range b.N {
		l.Seq()
	}
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/1e6, "MB")
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/crowdSize, "bytes/person")
	runtime.KeepAlive(l)
}

func BenchmarkSnapshot(b *testing.B) {
	c := aCrowd()
	l := c.ledger(b)
	var buffer bytes.Buffer
	key := newUser(b)
	measure(b, func() {
		buffer.Reset()
		if err := l.Snapshot(&buffer, key); err != nil {
			b.Fatal(err)
		}
	})
	b.ReportMetric(float64(buffer.Len())/1e6, "MB")
}

// Measures a device that begins with the snapshot of another device.
func BenchmarkRestore(b *testing.B) {
	c := aCrowd()
	l := c.ledger(b)
	d := newAuthor(b, c.admin.fleet, newUser(b))
	if o, err := l.Apply(l.Seq()+1, c.admin.admit(d.id, ledger.Scope{All: true})); err != nil || !o.Accepted {
		b.Fatal(o.Reason, err)
	}
	var buffer bytes.Buffer
	if err := l.Snapshot(&buffer, d.key); err != nil {
		b.Fatal(err)
	}
	for _, own := range []string{"", d.id} {
		name := "another's"
		if own != "" {
			name = "own"
		}
		b.Run(name, func(b *testing.B) {
			measure(b, func() {
				if _, err := ledger.RestoreOwn(c.admin.fleet, own, bytes.NewReader(buffer.Bytes())); err != nil {
					b.Fatal(err)
				}
			})
		})
	}
}

func BenchmarkPeople(b *testing.B) {
	c := aCrowd()
	l := c.ledger(b)
	for _, x := range []struct {
		name string
		op   func()
	}{
		{"names", func() { l.Names(c.ring) }},
		{"each", func() { l.EachPerson(c.ring, func(ledger.Person) bool { return true }) }},
		{"hash", func() { l.Hash() }},
		{"with", func() { l.With() }},
		{"wants", func() { l.Wants(c.admin.fleet, c.ring) }},
	} {
		b.Run(x.name, func(b *testing.B) { measure(b, x.op) })
	}
}

// A new device asks for 1,000 keys.
func BenchmarkKeys(b *testing.B) {
	c := aCrowd()
	l := c.ledger(b)
	d := newUser(b)
	id, _ := d.PublicKey()
	if o, err := l.Apply(l.Seq()+1, c.admin.admit(id, ledger.Scope{All: true})); err != nil || !o.Accepted {
		b.Fatal(o.Reason, err)
	}
	wants := l.Wants(id, ledger.NewRing())[:ledger.MaxWants]
	measure(b, func() {
		q, err := ledger.NewKeyRequest(c.admin.fleet, d, wants)
		if err != nil {
			b.Fatal(err)
		}
		answer, _, err := l.AnswerKeys(q.Bytes(), c.ring, d)
		if err != nil {
			b.Fatal(err)
		}
		if n, err := q.Open(answer, ledger.NewRing()); n != len(wants) || err != nil {
			b.Fatal(n, err)
		}
	})
}
