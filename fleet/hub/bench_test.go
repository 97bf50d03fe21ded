// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/faceauth/faceauth/fleet/hub"
	"github.com/faceauth/faceauth/fleet/ledger"
	"github.com/nats-io/nkeys"
)

// benchDevices is the number of devices; FACEAUTH_FLEET_DEVICES sets another number. A thousand devices need a higher
// limit of open files: ulimit -n 8192.
func benchDevices(b *testing.B) int {
	return fromEnvironment(b, "FACEAUTH_FLEET_DEVICES", 100)
}

// fromEnvironment returns the number in an environment variable, or n if the variable is not set.
func fromEnvironment(b *testing.B, name string, n int) int {
	if s := os.Getenv(name); s != "" {
		var err error
		if n, err = strconv.Atoi(s); err != nil || n < 1 {
			b.Fatalf("%s=%s is not a number above 0", name, s)
		}
	}
	return n
}

// enrolment has the size of an encoded enrolment with five faces of 512 values.
var enrolment = make([]byte, 5*2048+400)

// counted is a connection that counts its bytes, those of TLS included.
type counted struct {
	net.Conn
	in, out *atomic.Int64
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.in.Add(int64(n))
	return n, err
}

func (c counted) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.out.Add(int64(n))
	return n, err
}

// crowd is a server in a process of its own, with many member devices.
type crowd struct {
	*child
	keys    []nkeys.KeyPair
	pin     []byte
	in, out atomic.Int64
}

// newCrowd admits the devices before the server starts, because joining would need a token for each device.
func newCrowd(b *testing.B, n int) *crowd {
	b.Helper()
	folder := filepath.Join(b.TempDir(), "server")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		b.Fatal(err)
	}
	adminPair, id := fleetKey(b)
	seed, err := adminPair.Seed()
	if err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "admin.nk"), seed, 0o600); err != nil {
		b.Fatal(err)
	}
	c := &crowd{}
	h := openHouse(b, folder, "127.0.0.1:0", id, adminPair, hub.Limits{})
	writer := h.device(b)
	isUp(b, writer)
	for i := range n {
		key, device := deviceKey(b)
		c.keys = append(c.keys, key)
		e := ledger.Entry{N: uint64(i + 1), Time: time.Now(), Kind: ledger.Admit}
		e.Put(ledger.Admission{Device: device, Name: fmt.Sprint("device ", i), Scope: ledger.Scope{All: true}})
		if err := e.Sign(id, adminPair); err != nil {
			b.Fatal(err)
		}
		if err := writer.Append(within(b, 20*time.Second), "", e.Encode()); err != nil {
			b.Fatal(err)
		}
	}
	c.pin = h.Pin()
	writer.Close()
	h.Close()
	c.child = startChild(b, childConfig{Folder: folder, Listen: "127.0.0.1:0", SnapshotEvery: 1 << 40})
	return c
}

func (c *crowd) connect(b *testing.B, i int) *hub.Conn {
	b.Helper()
	s := hub.Settings{URL: c.URL, Fleet: c.Fleet, Pin: c.pin, Key: c.keys[i]}
	s.Dialer(func(network, address string) (net.Conn, error) {
		conn, err := net.DialTimeout(network, address, 10*time.Second)
		if err != nil {
			return nil, err
		}
		return counted{conn, &c.in, &c.out}, nil
	})
	conn, err := hub.Connect(s)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { conn.Close() })
	return conn
}

// resident returns the memory of the server in MB.
func (c *crowd) resident(b *testing.B) float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.cmd.Process.Pid))
	if err != nil {
		b.Log(err)
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "VmRSS:" {
			kb, _ := strconv.Atoi(f[1])
			return float64(kb) / 1024
		}
	}
	return 0
}

// BenchmarkEnrolment measures the time from when one device appends an entry of an enrolment's size until all devices
// have it. Devices use TLS, and the log is on disk.
func BenchmarkEnrolment(b *testing.B) {
	n := benchDevices(b)
	c := newCrowd(b, n)
	empty := c.resident(b)
	var mu sync.Mutex
	var got []time.Duration
	var arrived sync.WaitGroup
	var sent atomic.Int64
	conns := make([]*hub.Conn, n)
	begun := time.Now()
	ready := make(chan struct{}, n)
	for i := range n {
		conns[i] = c.connect(b, i)
		go func() {
			isUp(b, conns[i])
			last := uint64(n)
			conns[i].Follow(b.Context(), last-1, func(seq uint64, data []byte) error {
				if seq == last {
					ready <- struct{}{}
					return nil
				}
				d := time.Since(time.Unix(0, sent.Load()))
				mu.Lock()
				got = append(got, d)
				mu.Unlock()
				arrived.Done()
				return nil
			})
		}()
	}
	for range n {
		<-ready
	}
	connecting := time.Since(begun).Seconds()
	c.in.Store(0)
	c.out.Store(0)
	rounds := 0
	for b.Loop() {
		arrived.Add(n)
		sent.Store(time.Now().UnixNano())
		if err := conns[rounds%n].Append(within(b, 20*time.Second), "",
			enrolment); err != nil {
			b.Fatal(err)
		}
		arrived.Wait()
		rounds++
	}
	b.ReportMetric(connecting, "s-to-connect-all")
	slices.Sort(got)
	b.ReportMetric(float64(got[len(got)/2].Microseconds())/1000, "ms-median")
	b.ReportMetric(float64(got[len(got)*99/100].Microseconds())/1000, "ms-p99")
	b.ReportMetric(float64(got[len(got)-1].Microseconds())/1000, "ms-max")
	b.ReportMetric(float64(c.in.Load())/float64(rounds*n), "B-in/device")
	b.ReportMetric(float64(c.out.Load())/float64(rounds*n), "B-out/device")
	b.ReportMetric(empty, "MB-server-empty")
	b.ReportMetric(c.resident(b), "MB-server")
}

// BenchmarkCatchUp measures how long a device that was offline takes to read 1,000 entries of an enrolment's size.
func BenchmarkCatchUp(b *testing.B) {
	c := newCrowd(b, 2)
	writer := c.connect(b, 0)
	isUp(b, writer)
	const away = 1000
	begun := time.Now()
	for range away {
		if err := writer.Append(within(b, 20*time.Second), "", enrolment); err != nil {
			b.Fatal(err)
		}
	}
	writing := float64(time.Since(begun).Microseconds()) / away / 1000
	for b.Loop() {
		conn := c.connect(b, 1)
		isUp(b, conn)
		read := 0
		conn.Follow(b.Context(), 2, func(uint64, []byte) error {
			if read++; read == away {
				return errRead
			}
			return nil
		})
		if read != away {
			b.Fatalf("%d entries", read)
		}
		conn.Close()
	}
	b.ReportMetric(writing, "ms/append")
}

var errRead = fmt.Errorf("all is read")

// BenchmarkSnapshot measures how long a new device takes to fetch a snapshot of 10,000 people with one enrolment each.
func BenchmarkSnapshot(b *testing.B) {
	h := newHouse(b, hub.Limits{})
	data := make([]byte, 10000*len(enrolment))
	begun := time.Now()
	if err := hub.PutSnapshot(within(b, time.Minute), h.bucket, h.admin, h.fleet, 7, data); err != nil {
		b.Fatal(err)
	}
	put := time.Since(begun).Seconds()
	c := h.device(b)
	isUp(b, c)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		_, body, err := c.Snapshot(within(b, time.Minute))
		if err != nil {
			b.Fatal(err)
		}
		body.Close()
	}
	b.ReportMetric(put, "s/put")
}
