// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/faceauth/faceauth/internal/fixture"
	"golang.org/x/sys/unix"
)

var devices = flag.Int("devices", 0, "devices of TestCrowd, such as 1000")

// crowd is a world whose further devices run in the process of the test, so that many have room.
type crowd struct {
	*world
	admin *device
	paths []string // of the others
	run   func(path string)
	work  sync.WaitGroup
}

func newCrowd(t testing.TB, seed uint64) *crowd {
	c := &crowd{world: newWorld(t, seed, 1)}
	c.admin = c.devices[0]
	c.enrolled(c.admin, "alice")
	ctx, end := context.WithCancel(context.Background())
	t.Cleanup(func() {
		end()
		c.work.Wait()
	})
	c.run = func(path string) { c.work.Go(func() { Run(ctx, path, func(string) {}) }) }
	return c
}

// grow lets devices join until there are n beside the administrator, and waits until all know
// alice.
func (c *crowd) grow(n int) {
	c.t.Helper()
	var homes []string
	for i := len(c.paths); i < n; i++ {
		homes = append(homes, c.home(fmt.Sprint("x", i)).path)
	}
	rest := c.rest()
	begun, mine, server := time.Now(), own(), c.server.used()
	for i, path := range homes {
		try(c.t, Join(c.t.Context(), path,
			fixture.Must(Invite(c.admin.path, fmt.Sprint("x", len(c.paths)+i), false))(c.t)))
		c.run(path)
	}
	joined := time.Since(begun)
	for _, path := range homes {
		d := &device{w: c.world, path: path}
		c.wait(path+" knows alice", func() bool { return d.knows("alice") })
	}
	c.paths = append(c.paths, homes...)
	m := float64(len(homes)) / 1000
	took := time.Since(begun)
	c.t.Logf("%d to %d devices: %v joined, %v in step; a device %.1f ms of its processor and "+
		"%.1f of the server's, beside what those before take at rest", n-len(homes), n,
		joined.Round(time.Millisecond),
		took.Round(time.Millisecond), (own()-mine-took.Seconds()*rest[0])/m,
		(c.server.used()-server-took.Seconds()*rest[1])/m)
}

// rest returns which parts of a core the devices and the server take when nothing happens, if that
// is to be measured.
func (c *crowd) rest() (parts [2]float64) {
	if *devices == 0 {
		return parts
	}
	mine, server := own(), c.server.used()
	time.Sleep(10 * time.Second)
	return [2]float64{(own() - mine) / 10, (c.server.used() - server) / 10}
}

// own returns the seconds of processor of this process.
func own() float64 {
	var used unix.Timespec
	unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &used)
	return time.Duration(used.Nano()).Seconds()
}

// renewed waits until all devices but some have a key of a number, and none else if they are told
// that old ones are gone.
func (c *crowd) renewed(number uint32, alone bool, but ...string) {
	c.t.Helper()
	left := slices.Clone(c.paths)
	c.wait(fmt.Sprint("key ", number), func() bool {
		left = slices.DeleteFunc(left, func(path string) bool {
			k := fixture.Must(readMembership(path))(c.t).Ring.Keys
			return slices.Contains(but, path) || k.now() == number && (!alone || len(k) == 1)
		})
		return len(left) == 0
	})
}

// asked returns how many messages the server has received.
func (c *crowd) asked() float64 {
	c.t.Helper()
	answer := fixture.Must(http.Get("http://" + c.monitor + "/varz"))(c.t)
	defer answer.Body.Close()
	var v struct {
		N float64 `json:"in_msgs"`
	}
	try(c.t, json.NewDecoder(answer.Body).Decode(&v))
	return v.N
}

// A device that joins, and a new key, ask as much of a server and of each device in a larger fleet:
// nobody fetches what a newcomer says of itself, and each fetches its key once.
func TestPlainLinear(t *testing.T) {
	c := newCrowd(t, 9013)
	const more = 4
	join, renew := make(map[int]float64), make(map[int]float64)
	for i, n := range []int{more, 8 * more} {
		c.grow(n)
		before := c.asked()
		c.grow(n + more)
		join[i] = (c.asked() - before) / more
		before = c.asked()
		try(t, c.revoke(c.admin, ""))
		c.renewed(uint32(i+2), true)
		renew[i] = (c.asked() - before) / float64(n+more)
	}
	t.Log("messages of a device that joins: ", join, ", of each one for a new key: ", renew)
	if join[1] > 1.5*join[0] || renew[1] > 1.5*renew[0] {
		t.Error("they grow with the fleet")
	}
}

// TestCrowd measures many devices: go test ./internal/fleet -run TestCrowd -devices 1000 -v
func TestCrowd(t *testing.T) {
	if *devices == 0 {
		t.Skip("it takes minutes: -devices 1000")
	}
	c := newCrowd(t, 9012)
	for n := 10; n < *devices; n *= 10 {
		c.grow(n)
		c.grow(n + n/10)
	}
	c.grow(*devices)
	c.grow(*devices + *devices/100)
	gone := c.paths[0]
	begun, mine, server := time.Now(), own(), c.server.used()
	try(t, c.revoke(c.admin, filepath.Base(filepath.Dir(gone))))
	revoked := time.Since(begun)
	c.renewed(2, false, gone)
	took := time.Since(begun)
	c.renewed(2, true, gone)
	m := float64(len(c.paths)) / 1000
	t.Logf("revoked after %v, all have the new key after %v, and no old one after %v; a device "+
		"%.2f ms of its processor and %.2f of the server's", revoked.Round(time.Millisecond),
		took.Round(time.Millisecond),
		time.Since(begun).Round(time.Millisecond), (own()-mine)/m, (c.server.used()-server)/m)
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.server.Process.Pid))
	for line := range strings.Lines(string(status)) {
		if strings.HasPrefix(line, "VmRSS") {
			t.Log("the server: ", line)
		}
	}
}
