// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/store"
	"github.com/faceauth/faceauth/internal/vector"
)

var crowd = flag.Int("people", 0, "people of the figures, such as 10000")

// used says what processes have used: seconds of processor and resident megabytes.
func used(all ...*process) (seconds []float64, text string) {
	for _, p := range all {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Process.Pid))
		f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+2:]))
		user, _ := strconv.ParseFloat(f[11], 64)
		system, _ := strconv.ParseFloat(f[12], 64)
		pages, _ := strconv.Atoi(f[21])
		seconds = append(seconds, (user+system)/100)
		text += fmt.Sprintf(" %.2f s %d MB;", (user+system)/100, pages*4096/1e6)
	}
	return seconds, text
}

// write enrols people as rows: the learner of 10,000 people would take minutes.
func (h *home) write(name string, people, faces int) {
	db := fixture.Must(store.Open(h.path, false))(h.w.t)
	try(h.w.t, db.Write(func() error {
		for i := range people {
			err := db.Exec("insert into person(name, enrolled) values(?, 1700000000)", fmt.Sprint(name, " ", i))
			id := db.Last()
			for range faces {
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

func (w *world) until(what string, is func() bool) time.Duration {
	w.t.Helper()
	begun := time.Now()
	for ; !is(); time.Sleep(10 * time.Millisecond) {
		if time.Since(begun) > 5*time.Minute {
			w.t.Fatal("not after five minutes: ", what)
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
	a.write("person", *crowd, 4)
	took := w.until("given", func() bool { return a.count(peopleHere) == n && a.settled() })
	_, text := used(a.run, w.server)
	t.Logf("%d people on the server's disk: %v; device and server%s", n, took, text)
	b.start()
	took = w.until("taken", func() bool { return b.count(peopleHere) == n })
	_, text = used(b.run)
	t.Logf("a new device has all in its gallery: %v;%s", took, text)
	var known []time.Duration
	for i := range 10 {
		time.Sleep(500 * time.Millisecond)
		a.write(fmt.Sprint("late ", i), 1, 4)
		known = append(known, w.until("known", func() bool { return b.count(peopleHere) == n+int64(i)+1 }))
	}
	slices.Sort(known)
	t.Logf("an enrolment is known at the other device: %v median, %v at worst", known[5], known[9])
	c.start() // it has a row for the office that stays
	w.until("taken", func() bool { return c.count(peopleHere) == n+10 })
	time.Sleep(25 * time.Second) // beyond the first look at what a learner should follow
	before, _ := used(a.run, b.run, w.server)
	time.Sleep(40 * time.Second)
	after, text := used(a.run, b.run, w.server)
	t.Logf("idle: devices %.3f %% and %.3f %% of a core, server %.2f %%;%s", (after[0]-before[0])*2.5,
		(after[1]-before[1])*2.5, (after[2]-before[2])*2.5, text)

	b.stop(false)
	a.write("while away", 250, 4)
	db := fixture.Must(store.Open(a.path, false))(t)
	try(t, db.Write(func() error {
		return errors.Join(
			db.Exec("update person set name = name || ' x' where id in (select id from person where name like 'person %' limit 500)"),
			db.Exec("delete from person where id in (select id from person where name like 'person % %' limit 250 offset 1000)"))
	}))
	try(t, db.Close())
	w.until("given", a.settled)
	b.start()
	took = w.until("all changes", func() bool {
		return b.count("select count(*) from person where name like 'while away %' or name like '% x'") == min(750, n+250)
	})
	_, text = used(b.run)
	t.Logf("after an absence of 250 new people, 500 new names: %v;%s", took, text)
	begun := time.Now()
	try(t, Revoke(t.Context(), a.path, c.name))
	t.Logf("shut out: %v", time.Since(begun).Round(time.Millisecond))
	took = w.until("one key", func() bool {
		return len(a.member().Ring.Keys) == 1 && len(b.member().Ring.Keys) == 1
	})
	t.Logf("all is sealed anew: %v", took)
}
