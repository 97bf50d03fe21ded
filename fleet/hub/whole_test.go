// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/faceauth/faceauth/fleet"
	"github.com/faceauth/faceauth/fleet/hub"
	"github.com/faceauth/faceauth/fleet/ledger"
	"github.com/fxamacker/cbor/v2"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"
)

// wholePeople is the number of people; FACEAUTH_FLEET_PEOPLE sets another number.
func wholePeople(b *testing.B) int {
	return fromEnvironment(b, "FACEAUTH_FLEET_PEOPLE", 10_000)
}

// wholes are whole devices and a server in a process of its own. Each device has its folder and a connection over TLS.
type wholes struct {
	*crowd
	admin    nkeys.KeyPair
	fleet    string
	folder   string
	people   []ledger.ID
	keys     []ledger.Key
	snapshot string // a file's path
	ring     string
	index    []byte // without its signature
	devices  []*whole
}

type whole struct {
	*fleet.Device
	key    nkeys.KeyPair
	folder string
	conn   *hub.Conn
	stop   func()
	kick   chan struct{}
}

func someFaces(rng *rand.Rand) (all []ledger.Face) {
	for range 4 {
		x := make([]float32, 512)
		for i := range x {
			x[i] = rng.Float32()
		}
		all = append(all, ledger.Face{Vector: x})
	}
	return all
}

// newWholes makes a fleet and admits n devices. Each person has a name and four faces of 512 values. The server begins
// with a snapshot of all people.
func newWholes(b *testing.B, n, people int) *wholes {
	b.Helper()
	ok := func(err error) {
		b.Helper()
		if err != nil {
			b.Fatal(err)
		}
	}
	w := &wholes{folder: b.TempDir(), crowd: &crowd{}}
	admin, id := fleetKey(b)
	w.admin, w.fleet = admin, id
	l, err := ledger.New(id)
	ok(err)
	rng := rand.New(rand.NewPCG(1, 1))
	counters := make(map[string]uint64)
	say := func(key nkeys.KeyPair, device string, e ledger.Entry, secret ledger.Key, content any) {
		counters[device]++
		e.Device, e.N, e.Time = device, counters[device], time.Now()
		if e.Kind.Sealed() {
			e.Seal(id, secret, content)
		} else {
			e.Put(content)
		}
		ok(e.Sign(id, key))
		if o, err := l.Apply(l.Seq()+1, e.Encode()); err != nil || !o.Accepted {
			b.Fatal(o.Reason, err)
		}
	}
	for i := range n {
		folder := filepath.Join(w.folder, fmt.Sprint("device-", i))
		ok(fleet.Join(folder, id))
		key, err := fleet.Identity(folder)
		ok(err)
		device, err := key.PublicKey()
		ok(err)
		say(admin, id, ledger.Entry{Kind: ledger.Admit}, ledger.Key{},
			ledger.Admission{Device: device, Name: fmt.Sprint("device ", i), Scope: ledger.Scope{All: true}})
		w.devices = append(w.devices, &whole{key: key, folder: folder, kick: make(chan struct{}, 1)})
	}
	author := w.devices[0].key
	device, err := author.PublicKey()
	ok(err)
	w.ring = filepath.Join(w.folder, "keys")
	ring, err := ledger.OpenRing(w.ring)
	ok(err)
	for i := range people {
		person, key := ledger.NewID(), ledger.NewKey()
		ring.Add(person, key)
		w.people, w.keys = append(w.people, person), append(w.keys, key)
		say(author, device, ledger.Entry{Kind: ledger.Name, Person: person}, key,
			ledger.Naming{Name: fmt.Sprint("person ", i)})
		say(author, device, ledger.Entry{Kind: ledger.Label, Person: person}, key,
			ledger.Faces{Space: "bench", Faces: someFaces(rng)})
	}
	ok(ring.Save())
	ok(ring.Close())
	var data bytes.Buffer
	ok(l.Snapshot(&data, admin))
	w.snapshot = filepath.Join(w.folder, "snapshot")
	ok(os.WriteFile(w.snapshot, data.Bytes(), 0o600))

	server := filepath.Join(w.folder, "server")
	ok(os.Mkdir(server, 0o700))
	seed, err := admin.Seed()
	ok(err)
	ok(os.WriteFile(filepath.Join(server, "admin.nk"), seed, 0o600))
	h := openHouse(b, server, "127.0.0.1:0", id, admin, hub.Limits{})
	ok(hub.PutSnapshot(within(b, 2*time.Minute), h.bucket, admin, id, l.Seq(), data.Bytes()))
	stream, err := h.js.Stream(b.Context(), h.names.Stream)
	ok(err)
	ok(stream.Purge(b.Context(), jetstream.WithPurgeSequence(l.Seq()+1))) // the log continues after the snapshot
	w.pin = h.Pin()
	h.Close()
	w.child = startChild(b, childConfig{Folder: server, Listen: "127.0.0.1:0", SnapshotEvery: 1 << 40})
	return w
}

// furnish gives a device the files of a device that has been in the fleet for some time: the ledger, its index, and all
// keys. All devices share one ledger file on disk: they only read it, and replace it with another file.
func (w *wholes) furnish(b *testing.B, i int) {
	b.Helper()
	x := w.devices[i]
	ok := func(err error) {
		b.Helper()
		if err != nil {
			b.Fatal(err)
		}
	}
	ok(os.Link(w.snapshot, filepath.Join(x.folder, ledger.BaseFile)))
	ring, err := os.ReadFile(w.ring)
	ok(err)
	ok(os.WriteFile(filepath.Join(x.folder, "keys"), ring, 0o600))
	index := filepath.Join(x.folder, "index")
	if w.index == nil {
		s, err := ledger.OpenStore(x.folder, w.fleet, x.key)
		ok(err)
		ok(s.Close())
		w.index, err = os.ReadFile(index)
		ok(err)
		w.index = w.index[:len(w.index)-64]
		return
	}
	device, err := x.key.PublicKey()
	ok(err)
	sum := sha256.Sum256(w.index)
	mode, err := cbor.CoreDetEncOptions().EncMode()
	ok(err)
	text, err := mode.Marshal([]any{"faceauth fleet index", w.fleet, 1, device, sum[:]})
	ok(err)
	sig, err := x.key.Sign(text)
	ok(err)
	ok(os.WriteFile(index, append(slices.Clone(w.index), sig...), 0o600))
}

func (w *wholes) open(b *testing.B, i int) {
	b.Helper()
	d, err := fleet.Open(w.devices[i].folder, fleet.Settings{})
	if err != nil {
		b.Fatal(err)
	}
	w.devices[i].Device = d
}

// run starts a device, which runs until its stop is called.
func (w *wholes) run(b *testing.B, i int) {
	b.Helper()
	x := w.devices[i]
	s := hub.Settings{URL: w.URL, Fleet: w.fleet, Pin: w.pin, Key: x.key}
	s.Dialer(func(network, address string) (net.Conn, error) {
		conn, err := net.DialTimeout(network, address, 10*time.Second)
		if err != nil {
			return nil, err
		}
		return counted{conn, &w.in, &w.out}, nil
	})
	conn, err := hub.Connect(s)
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- x.Run(ctx, conn) }()
	stopped := false
	x.conn, x.stop = conn, func() {
		if !stopped {
			stopped = true
			cancel()
			if err := <-done; err != nil {
				b.Error(err)
			}
			conn.Close()
		}
	}
	b.Cleanup(x.stop)
}

// settled waits until the devices are in step with the log and have all keys.
func settled(b *testing.B, patience time.Duration, all ...*whole) {
	b.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		waiting := 0
		for _, x := range all {
			if s := x.State(); !s.InStep || s.Keys > 0 || s.Seq < all[0].State().Seq {
				waiting++
			}
		}
		if waiting == 0 {
			return
		}
		if time.Now().After(end) {
			b.Fatalf("%d devices are not in step: %+v", waiting, all[len(all)-1].State())
		}
	}
}

// memoryOf returns the resident memory of a process in MB, and the part of it that is not backed by files.
func memoryOf(b *testing.B, pid int) (resident, own float64) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 1 {
			kb, _ := strconv.ParseFloat(f[1], 64)
			switch f[0] {
			case "VmRSS:":
				resident = kb / 1024
			case "RssAnon:":
				own = kb / 1024
			}
		}
	}
	return resident, own
}

// busy returns the processor time that a process has used. The time of other programs does not count.
func busy(b *testing.B, pid int) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Fatal(err)
	}
	var ticks int64
	f := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	for _, s := range f[11:13] { // user time and system time, in hundredths of a second
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			b.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// BenchmarkWholeDevices measures the time until a new person is in the view of each of many whole devices that know
// 10,000 people. The person has a key, a name and four faces. FACEAUTH_FLEET_DEVICES sets the number of devices.
func BenchmarkWholeDevices(b *testing.B) {
	n := benchDevices(b)
	w := newWholes(b, n, wholePeople(b))
	debug.FreeOSMemory()
	_, before := memoryOf(b, os.Getpid())
	begun := time.Now()
	for i := range w.devices {
		w.furnish(b, i)
		w.open(b, i)
	}
	b.Logf("%d devices are opened in %.1f s", n, time.Since(begun).Seconds())
	begun = time.Now()
	for i := range w.devices {
		w.run(b, i)
	}
	settled(b, 5*time.Minute, w.devices...)
	b.Logf("all are in step in %.1f s", time.Since(begun).Seconds())
	debug.FreeOSMemory()
	_, after := memoryOf(b, os.Getpid())
	b.Logf("memory of a device with its connection %.2f MB, of the server %.0f MB", (after-before)/float64(n),
		w.resident(b))

	type target struct {
		round int
		id    ledger.ID
		name  string
		begun time.Time
	}
	var now atomic.Pointer[target]
	var mu sync.Mutex
	var took []time.Duration
	var missing sync.WaitGroup
	ctx, cancel := context.WithCancel(b.Context())
	var watching sync.WaitGroup
	for _, x := range w.devices {
		watching.Go(func() {
			seen := 0
			for {
				select {
				case <-ctx.Done():
					return
				case <-x.Changed():
				case <-x.kick:
				}
				t := now.Load()
				if t == nil || t.round == seen {
					continue
				}
				if p, known := x.Person(t.id); known && p.Name == t.name && len(p.Faces) == 4 && p.Sealed == 0 {
					seen = t.round
					d := time.Since(t.begun)
					mu.Lock()
					took = append(took, d)
					mu.Unlock()
					missing.Done()
				}
			}
		})
	}
	rng := rand.New(rand.NewPCG(3, 3))
	w.in.Store(0)
	w.out.Store(0)
	rounds := 0
	devicesBusy, serverBusy := busy(b, os.Getpid()), busy(b, w.cmd.Process.Pid)
	for b.Loop() {
		rounds++
		missing.Add(n)
		t := &target{round: rounds, name: fmt.Sprint("new ", rounds), begun: time.Now()}
		var err error
		if t.id, err = w.devices[rng.IntN(n)].Enroll(t.name, "bench", someFaces(rng)); err != nil {
			b.Fatal(err)
		}
		now.Store(t)
		for _, x := range w.devices {
			select {
			case x.kick <- struct{}{}:
			default:
			}
		}
		missing.Wait()
	}
	in, out := w.in.Load(), w.out.Load()
	devicesBusy, serverBusy = busy(b, os.Getpid())-devicesBusy, busy(b, w.cmd.Process.Pid)-serverBusy
	cancel()
	watching.Wait()
	settled(b, time.Minute, w.devices...)
	_, hash := w.devices[0].Hash()
	for i, x := range w.devices {
		if _, other := x.Hash(); other != hash {
			b.Errorf("device %d has come to another state", i)
		}
	}
	slices.Sort(took)
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	b.ReportMetric(ms(took[len(took)/2]), "ms-median")
	b.ReportMetric(ms(took[len(took)*99/100]), "ms-p99")
	b.ReportMetric(ms(took[len(took)-1]), "ms-max")
	b.ReportMetric(ms(devicesBusy)/float64(rounds*n), "cpu-ms/device")
	b.ReportMetric(ms(serverBusy)/float64(rounds), "cpu-ms-server/op")
	b.ReportMetric(float64(in)/float64(rounds*n), "B-in/device")
	b.ReportMetric(float64(out)/float64(rounds*n), "B-out/device")
	b.ReportMetric((after-before)/float64(n), "MB/device")
	b.ReportMetric(w.resident(b), "MB-server")
	for _, x := range w.devices {
		x.stop()
		x.Close()
	}
}

// BenchmarkWholeDevice measures a whole device at a real server in two cases: a new device, which begins with the
// snapshot and asks for all keys, and a device that was offline for 1,000 changes, among them 250 new people.
func BenchmarkWholeDevice(b *testing.B) {
	people := wholePeople(b)
	w := newWholes(b, 2, people)
	one, two := w.devices[0], w.devices[1]
	w.furnish(b, 0)
	w.open(b, 0)
	w.run(b, 0)
	settled(b, time.Minute, one)
	var fresh, restart, away time.Duration
	rng := rand.New(rand.NewPCG(4, 4))
	for b.Loop() {
		begun := time.Now()
		w.open(b, 1)
		w.run(b, 1)
		settled(b, 5*time.Minute, one, two)
		fresh += time.Since(begun)
		if all := two.People(); all[0].Sealed > 0 || all[len(all)-1].Sealed > 0 {
			b.Fatalf("of %d people some are sealed", len(all))
		}
		two.stop()
		for i := range 250 {
			if _, err := one.Enroll(fmt.Sprint("away ", i), "bench", someFaces(rng)); err != nil {
				b.Fatal(err)
			}
		}
		for range 500 {
			if _, err := one.Label(w.people[rng.IntN(people)], "bench", someFaces(rng)[:1]); err != nil {
				b.Fatal(err)
			}
		}
		settled(b, 5*time.Minute, one)
		if err := two.Close(); err != nil {
			b.Fatal(err)
		}
		begun = time.Now()
		w.open(b, 1)
		restart += time.Since(begun)
		w.run(b, 1)
		settled(b, 5*time.Minute, one, two)
		away += time.Since(begun)
		two.stop()
		if err := two.Close(); err != nil {
			b.Fatal(err)
		}
		for _, name := range []string{ledger.BaseFile, ledger.TailFile, "index", "keys"} {
			if err := os.Remove(filepath.Join(two.folder, name)); err != nil {
				b.Fatal(err)
			}
		}
	}
	n := float64(b.N)
	b.ReportMetric(fresh.Seconds()/n, "s-new")
	b.ReportMetric(restart.Seconds()/n, "s-restart")
	b.ReportMetric(away.Seconds()/n, "s-away")
	one.stop()
	one.Close()
}
