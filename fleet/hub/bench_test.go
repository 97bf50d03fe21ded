// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/fleet"
	"github.com/faceauth/faceauth/online"
	"github.com/nats-io/nats.go"
)

// TestFigures prints the figures of docs/results.md: FACEAUTH_FLEET_PEOPLE people with four faces of 512 values, ten
// whole devices, and as many connections in all as FACEAUTH_FLEET_DEVICES says. Server and devices share this process.
func TestFigures(t *testing.T) {
	people, err := strconv.Atoi(os.Getenv("FACEAUTH_FLEET_PEOPLE"))
	if err != nil {
		t.Skip("set FACEAUTH_FLEET_PEOPLE for the figures of docs/results.md")
	}
	devices, _ := strconv.Atoi(cmp.Or(os.Getenv("FACEAUTH_FLEET_DEVICES"), "100"))
	x := newSite(t)
	x.options.Quota = 1 << 30
	x.start()
	resident := func() int {
		b, _ := os.ReadFile("/proc/self/status")
		for line := range strings.Lines(string(b)) {
			if f := strings.Fields(line); len(f) > 1 && f[0] == "VmRSS:" {
				kb, _ := strconv.Atoi(f[1])
				return kb >> 10
			}
		}
		return 0
	}
	processor := func() time.Duration {
		var u syscall.Rusage
		syscall.Getrusage(syscall.RUSAGE_SELF, &u)
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	rng := rand.New(rand.NewPCG(1, 2))
	person := func() (all []fleet.Face) {
		for range 4 {
			v := make([]float32, 512)
			for i := range v {
				v[i] = rng.Float32()
			}
			all = append(all, fleet.Face{Vector: v})
		}
		return all
	}
	first := x.join("first")
	begun := time.Now()
	for i := range people {
		if _, err := first.d.Enroll(fmt.Sprint("p", i), "space", person()); err != nil {
			t.Fatal(err)
		}
	}
	waitFor := func(m *member, n int) {
		for end := time.Now().Add(10 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
			if s := m.d.State(); s.InStep && s.Keys == 0 && (n == 0 || len(m.d.Names()) >= n) {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("not in step: %+v", m.d.State())
			}
		}
	}
	waitFor(first, people)
	t.Logf("%d people enrolled and on the server's disk: %v; %d MB resident", people, time.Since(begun), resident())
	begun = time.Now()
	second := x.join("second")
	waitFor(second, people)
	t.Logf("a new device has them all: %v; %d MB resident", time.Since(begun), resident())
	whole := []*member{first, second}
	for i := range 8 {
		m := x.join(fmt.Sprint("whole", i))
		waitFor(m, people)
		whole = append(whole, m)
	}
	t.Logf("ten whole devices: %d MB resident", resident())
	// One of them has a gallery, as an office has.
	part, err := fleet.NewPart(first.d, "space", nil)
	if err != nil {
		t.Fatal(err)
	}
	space := face.Space{ID: "space", Dim: 512, Scale: 1, Sigma: .2, Gamma: 1e-3, GenuineRadius: .5, ImpostorRadius: .5}
	g, err := fleet.OpenGallery(filepath.Join(t.TempDir(), "gallery"), space, online.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	var exchanging sync.Mutex
	var exchanges []time.Duration
	ctx, cancel := context.WithCancel(t.Context())
	var sharing sync.WaitGroup
	sharing.Go(func() {
		part.Share(ctx, func() error {
			exchanging.Lock()
			defer exchanging.Unlock()
			begun := time.Now()
			x, err := part.Exchange(g, nil)
			if err == nil && x.Changed {
				if err = g.Save(g.Path()); err == nil {
					err = x.Done()
				}
			}
			exchanges = append(exchanges, time.Since(begun))
			return err
		})
	})
	defer func() { cancel(); sharing.Wait(); g.Close() }()
	inGallery := func(name string) bool {
		exchanging.Lock()
		defer exchanging.Unlock()
		return g.Learner().Knows(name)
	}
	begun = time.Now()
	for i := range people {
		for end := time.Now().Add(time.Hour); !inGallery(fmt.Sprint("p", i)); time.Sleep(100 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("a person does not come into the gallery")
			}
		}
	}
	slices.Sort(exchanges)
	t.Logf("a gallery has met them all: %v, in %d exchanges, the longest %v; %d MB resident", time.Since(begun),
		len(exchanges), exchanges[len(exchanges)-1], resident())
	exchanges = nil
	// The other devices listen, and nothing else.
	var mu sync.Mutex
	heard := make(map[string][]time.Time)
	begun = time.Now()
	for range devices - len(whole) {
		d := x.member()
		_, err := d.nc.Subscribe("F.now.>", func(m *nats.Msg) {
			mu.Lock()
			defer mu.Unlock()
			heard[m.Subject] = append(heard[m.Subject], time.Now())
		})
		if err = cmp.Or(err, d.nc.Flush()); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d more connections: %v; %d MB resident", devices-len(whole), time.Since(begun), resident())
	var known, lines, met []time.Duration
	used := processor()
	const rounds = 20
	for i := range rounds {
		begun := time.Now()
		id, err := whole[i%len(whole)].d.Enroll(fmt.Sprint("new", i), "space", person())
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range whole {
			for {
				if p, there := m.d.Person(id); there && len(p.Faces) == 4 && p.Name != "" {
					break
				}
				if time.Since(begun) > time.Minute {
					t.Fatal("an enrolment is not known")
				}
				time.Sleep(5 * time.Millisecond)
			}
			known = append(known, time.Since(begun))
		}
		until(t, "the gallery has it", func() bool { return inGallery(fmt.Sprint("new", i)) })
		met = append(met, time.Since(begun))
		until(t, "all connections have it", func() bool {
			mu.Lock()
			defer mu.Unlock()
			for s, at := range heard {
				if strings.HasSuffix(s, "."+id.String()) && len(at) == devices-len(whole) {
					lines = append(lines, at[len(at)-1].Sub(begun))
					return true
				}
			}
			return devices == len(whole)
		})
	}
	slices.Sort(known)
	slices.Sort(lines)
	t.Logf("known at a whole device: median %v, 99th percentile %v, worst %v; processor for each: %v",
		known[len(known)/2], known[len(known)*99/100], known[len(known)-1], (processor()-used)/rounds)
	slices.Sort(met)
	exchanging.Lock()
	slices.Sort(exchanges)
	t.Logf("in the gallery: median %v, worst %v; an exchange, for which cameras wait: median %v, worst %v",
		met[len(met)/2], met[len(met)-1], exchanges[len(exchanges)/2], exchanges[len(exchanges)-1])
	exchanging.Unlock()
	if len(lines) > 0 {
		t.Logf("at the last of %d connections: median %v, worst %v", devices-len(whole), lines[len(lines)/2],
			lines[len(lines)-1])
	}
	second.end()
	for i := range 1000 {
		if i < 250 {
			_, err = first.d.Enroll(fmt.Sprint("away", i), "space", person())
		} else {
			err = first.d.Rename(first.d.Names()[i], fmt.Sprint("renamed", i))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	waitFor(first, 0)
	begun = time.Now()
	second.start()
	opened := time.Since(begun)
	until(t, "the device has caught up", func() bool { return second.d.State().InStep })
	t.Logf("away for 1,000 changes: opened in %v, in step after %v", opened, time.Since(begun))
	time.Sleep(2 * time.Second)
	used = processor()
	time.Sleep(20 * time.Second)
	t.Logf("idle, all in this process: %.2f %% of a core", float64(processor()-used)/float64(20*time.Second)*100)
	size := int64(0)
	filepath.Walk(first.folder, func(_ string, i os.FileInfo, _ error) error { size += i.Size(); return nil })
	t.Logf("files of a device: %d MB", size>>20)
}
