// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/store"
	"github.com/faceauth/faceauth/internal/vector"
)

var (
	crowd = flag.Int("people", 0, "people of the figures, such as 10000")
	many  = flag.Int("devices", 0, "devices of the figures, such as 1000")
)

func (p *process) used() (seconds, mb float64) { return used(p.Process.Pid) }

// used returns the seconds of processor and the resident megabytes of a process.
func used(pid int) (seconds, mb float64) {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+2:]))
	of := func(i int) float64 {
		x, _ := strconv.ParseFloat(f[i], 64)
		return x
	}
	return (of(11) + of(12)) / 100, of(21) * 4096 / 1e6
}

// write enrols people as rows, four faces each: the learner of 10,000 people would take minutes.
func (h *home) write(name string, people int) {
	db, err := store.Open(h.path, false)
	try(h.w.t, err)
	try(h.w.t, db.Write(func() error {
		for i := range people {
			err := db.Exec("insert into person(name, enrolled) values(?, 1700000000)", fmt.Sprint(name, " ", i))
			id := db.Last()
			for range 4 {
				err = errors.Join(err, db.Exec("insert into label(number, person, rejected, vector) values(?, ?, 0, ?)",
					int64(h.w.r.Uint64()>>12), id, vector.Bytes(h.w.vector())))
			}
			if err != nil {
				return err
			}
		}
		return nil
	}))
	try(h.w.t, db.Close())
}

func (w *world) until(what string, patience time.Duration, is func() bool) time.Duration {
	w.t.Helper()
	begun := time.Now()
	for ; !is(); time.Sleep(10 * time.Millisecond) {
		if time.Since(begun) > patience {
			w.t.Fatalf("not after %v: %s", patience, what)
		}
	}
	return time.Since(begun).Round(10 * time.Millisecond)
}

const peopleHere = "select count(*) from person"

// TestFigures measures a large fleet: go test ./fleet -run TestFigures -people 10000 -v
func TestFigures(t *testing.T) {
	if *crowd == 0 {
		t.Skip("it takes minutes: -people 10000")
	}
	was := room
	defer func() { room = was }()
	room = face.Space{ID: "wide", Dim: 512, Scale: 1, Unit: true, Sigma: .2, Gamma: 1e-3, Reach: .86, GenuineRadius: 1.3,
		ImpostorRadius: .93}
	w := newWorld(t, 9007, 3)
	a, b, c := w.devices[0], w.devices[1], w.devices[2]
	b.stop(false)
	c.stop(false)
	n := int64(*crowd)
	a.write("person", *crowd)
	took := w.until("given", 5*time.Minute, func() bool { return a.count(peopleHere) == n && a.settled() })
	ca, ma := a.run.used()
	cs, ms := w.server.used()
	t.Logf("%d people on the server's disk: %v; processor %.1f s (%.0f MB), server %.1f s (%.0f MB)", n, took, ca, ma, cs, ms)
	b.start()
	took = w.until("taken", 5*time.Minute, func() bool { return b.count(peopleHere) == n })
	cb, mb := b.run.used()
	t.Logf("a new device has all in its gallery: %v; processor %.1f s (%.0f MB)", took, cb, mb)
	var known []time.Duration
	for i := range 10 {
		time.Sleep(500 * time.Millisecond)
		a.write(fmt.Sprint("late ", i), 1)
		known = append(known, w.until("known", time.Minute, func() bool { return b.count(peopleHere) == n+int64(i)+1 }))
	}
	slices.Sort(known)
	t.Logf("an enrolment is known at the other device: %v median, %v at worst", known[5], known[9])
	c.start() // it has a row for the office that stays
	w.until("taken", 5*time.Minute, func() bool { return c.count(peopleHere) == n+10 })
	time.Sleep(25 * time.Second) // beyond the first look at what a learner should follow
	ca, _ = a.run.used()
	cb, _ = b.run.used()
	cs, _ = w.server.used()
	time.Sleep(40 * time.Second)
	ca2, ma := a.run.used()
	cb2, mb := b.run.used()
	cs2, ms := w.server.used()
	t.Logf("idle: devices %.2f %% and %.2f %% of a core (%.0f, %.0f MB), server %.2f %% (%.0f MB)", (ca2-ca)*2.5, (cb2-cb)*2.5,
		ma, mb, (cs2-cs)*2.5, ms)

	b.stop(false)
	a.write("while away", 250)
	db, err := store.Open(a.path, false)
	try(t, err)
	try(t, db.Write(func() error {
		return errors.Join(
			db.Exec("update person set name = name || ' x' where id in (select id from person where name like 'person %' limit 500)"),
			db.Exec("delete from person where id in (select id from person where name like 'person % %' limit 250 offset 1000)"))
	}))
	try(t, db.Close())
	w.until("given", 5*time.Minute, a.settled)
	b.start()
	took = w.until("all changes", 5*time.Minute, func() bool {
		return b.count("select count(*) from person where name like 'while away %' or name like '% x'") == min(750, n+250)
	})
	cb, _ = b.run.used()
	t.Logf("after an absence of 250 new people, 500 new names: %v; processor %.1f s", took, cb)
	before := time.Now()
	try(t, Revoke(t.Context(), a.path, c.name))
	t.Logf("shut out: %v", time.Since(before).Round(time.Millisecond))
	took = w.until("one key", 5*time.Minute, func() bool {
		return len(a.member().Ring.Keys) == 1 && len(b.member().Ring.Keys) == 1
	})
	t.Logf("all is sealed anew: %v", took)
}

// TestDevices measures a fleet of many devices, all of which run in this process: go test ./fleet -run TestDevices
// -devices 1000 -timeout 30m -v
func TestDevices(t *testing.T) {
	if *many == 0 {
		t.Skip("it takes minutes: -devices 1000")
	}
	w := newWorld(t, 9012, 1)
	first := w.devices[0]
	ctx, end := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer end()
	var all []*home
	begun := time.Now()
	for i := range *many - 1 {
		h := w.home(fmt.Sprint("device", i))
		invitation, err := Invite(first.path, h.name, false)
		try(t, err)
		try(t, Join(ctx, h.path, invitation))
		all = append(all, h)
		running.Go(func() { Run(ctx, h.path, func(string) {}) })
	}
	connected := func() bool {
		members, err := Members(first.path)
		n := 0
		for _, m := range members {
			if m.Online {
				n++
			}
		}
		return err == nil && n == *many
	}
	w.until("all are connected", 10*time.Minute, connected)
	t.Logf("%d devices have joined: %v", *many, time.Since(begun).Round(time.Second))
	known := func(n int64) time.Duration {
		return w.until("known", 5*time.Minute, func() bool {
			for len(all) > 0 && all[0].count(peopleHere) == n {
				all = append(all[1:], all[0])
				if all[0].name == "device0" {
					return true
				}
			}
			return false
		})
	}
	for i := range 5 {
		time.Sleep(2 * time.Second)
		w.enrolled(first, fmt.Sprint("person", i))
		t.Logf("somebody new is known to all: %v", known(int64(i+1)))
	}
	time.Sleep(25 * time.Second)
	here, _ := used(os.Getpid())
	server, _ := w.server.used()
	time.Sleep(time.Minute)
	here2, mb := used(os.Getpid())
	server2, mbServer := w.server.used()
	t.Logf("idle: server %.2f %% of a core (%.0f MB), a device %.3f %% (%.1f MB)", (server2-server)/.6, mbServer,
		(here2-here)/.6/float64(len(all)), mb/float64(len(all)))
	begun = time.Now()
	w.server.end(true)
	w.serve()
	w.until("all are connected again", 10*time.Minute, connected)
	took := time.Since(begun)
	w.enrolled(first, "after it")
	known(6)
	t.Logf("after a crash of the server all are connected again: %v", took.Round(time.Second))
}
