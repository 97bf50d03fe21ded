// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/fleet/server"
)

// TestMain lets the test's program be a server or a device, so that they can be killed.
func TestMain(m *testing.M) {
	if os.Getenv("FLEET_TEST") == "" {
		os.Exit(m.Run())
	}
	ctx, end := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer end()
	err := program(ctx, os.Args[1:])
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func program(ctx context.Context, args []string) error {
	tell := func(s string) { fmt.Println(s) }
	if args[0] == "run" {
		return Run(ctx, args[1], tell)
	}
	for ctx.Err() == nil { // a unit starts it again when the disk was full
		set := server.Settings{Listen: args[2], URLs: []string{"tls://" + args[2]},
			Monitor: args[3]}
		err := server.Serve(ctx, args[1], set, tell)
		if err != nil {
			tell(err.Error())
			time.Sleep(time.Second)
		}
	}
	return nil
}

type process struct {
	*exec.Cmd
	out fixture.Log
}

func (p *process) end(hard bool) {
	if p == nil {
		return
	}
	p.Process.Signal(map[bool]os.Signal{true: os.Kill, false: syscall.SIGTERM}[hard])
	p.Wait()
}

func start(t testing.TB, program string, args ...string) *process {
	p := &process{Cmd: exec.Command(program, args...)}
	p.Env = append(os.Environ(), "FLEET_TEST=1")
	p.Stdout, p.Stderr = &p.out, &p.out
	p.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	try(t, p.Start())
	return p
}

func (w *world) serve() { w.server = start(w.t, os.Args[0], "serve", w.folder, w.at, w.monitor) }

// newWorld returns a server and n devices that run. The ports of worlds with other numbers differ.
func newWorld(t testing.TB, seed uint64, n int) *world {
	w := newPeople(t, seed)
	// Below the ports that connections take, and another one in each run of the tests.
	w.at = fmt.Sprintf("127.0.0.1:%d", 21000+(seed+37*uint64(os.Getpid()))%9000)
	w.monitor = fixture.ClosedAddress(t)
	w.folder = filepath.Join(w.dir, "server")
	w.serve()
	w.wait("the server runs", func() bool { return strings.Contains(w.server.out.String(), "\n") })
	for i := range n {
		w.device(fmt.Sprint("d", i), i == 0)
	}
	return w
}

// device invites a device, and makes it a member that runs.
func (w *world) device(name string, admin bool) *device {
	i, err := ParseInvitation(w.server.out.String())
	if len(w.devices) > 0 {
		i, err = Invite(w.devices[0].path, name, admin)
	}
	try(w.t, err)
	return w.join(name, i)
}

func (w *world) join(name string, i Membership) *device {
	d := w.home(name)
	try(w.t, Join(w.t.Context(), d.path, i))
	w.devices = append(w.devices, d)
	d.start()
	return d
}

func (d *device) start() {
	if d.run == nil {
		d.run = start(d.w.t, os.Args[0], "run", d.path)
	}
}

func (d *device) stop(hard bool) {
	d.run.end(hard)
	d.run = nil
}

// revoke has a device revoke another one, or make a new key.
func (w *world) revoke(by *device, name string) error {
	return Revoke(w.t.Context(), by.path, name, func(s string) { w.say("%s", s) })
}

// settled reports whether the fleet has all that a device has.
func (d *device) settled() bool {
	return d.count(
		"select (select count(*) from shared where not sent) + (select count(*) from touched)") == 0
}

// wait waits for something, for a minute or in a large fleet more, and returns how long it took.
func (w *world) wait(what string, is func() bool) time.Duration {
	w.t.Helper()
	begun := time.Now()
	for ; !is(); time.Sleep(50 * time.Millisecond) {
		if time.Since(begun) < 3*time.Minute*time.Duration(1+*people/2000) {
			continue
		}
		all := ""
		for _, d := range w.devices {
			text, _ := d.content()
			all += d.name + ":\n" + text
			if d.run != nil {
				all += d.run.out.String()
			}
		}
		w.fail("in vain: %s\n%s", what, all)
	}
	return time.Since(begun)
}

// agreed reports whether all devices have told all, and know the same.
func (w *world) agreed() bool {
	first, _ := w.devices[0].content()
	return !slices.ContainsFunc(w.devices, func(d *device) bool {
		text, _ := d.content()
		return text != first || !d.settled()
	})
}

func (d *device) knows(name string) bool {
	text, _ := d.content()
	return strings.Contains("\n"+text, "\n"+name+" [")
}

// has reports whether a device has n people.
func (d *device) has(n int64) func() bool {
	return func() bool { return d.count("select count(*) from person") == n }
}

func (w *world) known(name string, at ...*device) {
	w.t.Helper()
	for _, d := range at {
		w.wait(d.name+" knows "+name, func() bool { return d.knows(name) })
	}
}

func (w *world) enrolled(d *device, name string) [][]float32 {
	x := w.vector()
	faces := w.said(&group{}, x, w.near(x), w.near(x))
	d.enrol(name, faces...)
	return faces
}

// TestPlainRandomWorlds runs random worlds of processes: users' words beside each other and while both
// sides are away, devices and servers killed, old copies of both put back.
func TestPlainRandomWorlds(t *testing.T) {
	for i := range cmp.Or(*seeds, map[bool]int{false: 4, true: 1}[testing.Short()]) {
		seed := *seed0 + uint64(i)
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := newWorld(t, seed, 3)
			for range *steps {
				w.step(seed%2 == 0)
			}
			for _, d := range w.devices {
				d.start()
			}
			w.wait("one state", w.agreed)
			time.Sleep(40 * soon)
			w.wait("it stays", w.agreed)
			for _, d := range w.devices {
				d.stop(false)
			}
			w.check(w.devices...)
		})
	}
}

// settle stops a device when the server has all that it has, and reports whether that is so still.
func (d *device) settle(hard bool) bool {
	d.start()
	d.w.wait(d.name+" settles", d.settled)
	d.stop(hard)
	return d.settled()
}

func (w *world) step(oldServers bool) {
	d := w.devices[w.r.IntN(len(w.devices))]
	switch k := w.r.IntN(20); {
	case k < 12:
		d.edit()
	case k == 12:
		w.say("%s is-killed", d.name)
		d.stop(true)
		d.start()
	case k == 13:
		d.stop(w.r.IntN(2) == 0)
	case k == 14:
		d.start()
	case k == 15:
		w.say("server was-killed")
		w.server.end(true)
		w.serve()
		time.Sleep(time.Duration(w.r.IntN(2)) * 300 * time.Millisecond)
	case k == 16 && oldServers:
		w.copies = append(w.copies, w.copied(""))
	case k == 17 && oldServers && len(w.copies) > 0:
		w.say("server is-put-back")
		w.server.end(true)
		w.copy(w.copies[w.r.IntN(len(w.copies))], w.folder)
		if w.r.IntN(3) == 0 { // all but the members is lost
			try(w.t, os.RemoveAll(filepath.Join(w.folder, "jetstream")))
		}
		w.serve()
	case k == 16:
		// nobody can know of people who were never shared, and forgotten after the copy
		if d.settle(true) {
			d.copies = append(d.copies, fmt.Sprint(filepath.Dir(d.path), len(d.copies)))
			w.copy(filepath.Dir(d.path), d.copies[len(d.copies)-1])
		}
	case k == 17 && len(d.copies) > 0:
		if d.settle(w.r.IntN(2) == 0) { // what it said since is with the server first
			w.say("%s is-put-back", d.name)
			w.copy(d.copies[w.r.IntN(len(d.copies))], filepath.Dir(d.path))
			d.start()
		}
	default:
		time.Sleep(time.Duration(w.r.IntN(700)) * time.Millisecond)
	}
}
