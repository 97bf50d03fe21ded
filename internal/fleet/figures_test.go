// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"golang.org/x/sys/unix"
)

var people = flag.Int("people", 0, "people of the figures, such as 10000")

// used returns the seconds of processor that a process has used.
func (p *process) used() float64 {
	var used unix.Timespec
	unix.ClockGettime(int32(^p.Process.Pid<<3|2), &used) // the scheduler's clock of this process
	return time.Duration(used.Nano()).Seconds()
}

// write enrols people as rows: the learner of 10,000 people would take minutes.
func (h *device) write(name string, n, faces int) {
	d := h.local()
	try(h.w.t, d.write(func(b *ledger) {
		for i := range n {
			person, _ := b.Person(fmt.Sprint(name, " ", i))
			var all [][]float32
			for range faces {
				all = append(all, h.w.vector())
			}
			b.Label(person, false, all, nil)
		}
	}))
	try(h.w.t, d.rows.Close())
}

// TestFigures measures a large fleet: go test ./internal/fleet -run TestFigures -people 10000 -v
func TestFigures(t *testing.T) {
	if *people == 0 {
		t.Skip("it takes minutes: -people 10000")
	}
	was := room
	defer func() { room = was }()
	room = face.Space{ID: "wide", Dim: 512, Scale: 1, Unit: true, Sigma: .2, Gamma: 1e-3,
		Reach: .86, GenuineRadius: 1.3, ImpostorRadius: .93}
	w := newWorld(t, 9007, 3)
	a, b, c := w.devices[0], w.devices[1], w.devices[2]
	b.stop(false)
	c.stop(false)
	n := int64(*people)
	figure := func(what string, is func() bool) { t.Log(what, ": ", w.wait(what, is)) }
	a.write("person", *people, 4)
	figure("all on the server's disk", a.settled)
	b.start()
	figure("a new device has all in its gallery", b.has(n))
	for range 10 {
		a.write(fmt.Sprint("late ", n), 1, 4)
		n++
		figure("an enrolment is known at the other device", b.has(n))
	}
	time.Sleep(25 * time.Second) // beyond the first look at what a learner should follow
	device, server := b.run.used(), w.server.used()
	time.Sleep(40 * time.Second)
	t.Logf("idle: a device %.3f %% and the server %.2f %% of a core", (b.run.used()-device)*2.5,
		(w.server.used()-server)*2.5)
	b.stop(false)
	a.write("while away", 250, 4)
	a.query("update person set name = name || ' x' where id in (select id from person limit 500)",
		nil)
	a.query("delete from person where id in (select id from person limit 250 offset 1000)", nil)
	w.wait("given", a.settled)
	b.start()
	figure("after an absence of 250 new people, 500 new names and 250 who are forgotten",
		func() bool {
			return b.count("select count(*) from person where name like '% x'") == 500 && b.has(n)()
		})
	try(t, w.revoke(a, c.name))
	figure("all is sealed anew", func() bool {
		return len(a.member().Ring.Keys) == 1 && len(b.member().Ring.Keys) == 1
	})
}
