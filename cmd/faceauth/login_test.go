// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/socket"
	"github.com/faceauth/faceauth/internal/tape"
)

// device is a device with a daemon, a camera that plays recordings, PAM, and a stand-in for logind
// on a bus. Its user is nobody, whose password is "secret".
type device struct {
	t      testing.TB
	bus    *fixture.Logind
	dir    string
	daemon *exec.Cmd
	ended  chan struct{}
	log    *fixture.Log
	args   []string // arguments of the daemon
	eye    string   // in its environment: which eye it uses
	number int32    // its number among the devices of this process
	client socket.Client
}

// devices counts the devices of this process.
var devices atomic.Int32

// module builds the PAM module as make does, with a list of services and a socket in a folder.
func module(t testing.TB, dir string, more ...string) string {
	t.Helper()
	so := filepath.Join(dir, "pam_faceauth.so")
	c := exec.Command("make", append([]string{"-s", "-C", fixture.Root(t), "pam-module",
		fmt.Sprintf(
			`CPPFLAGS=-DSERVICES='"%s"' -DSOCKET='"%s"'`, filepath.Join(dir, "services"),
			filepath.Join(dir, "socket")),
		"PAM_MODULE=" + so}, more...)...)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("building the PAM module: %v\n%s", err, out)
	}
	return so
}

func newDevice(t testing.TB, args ...string) *device {
	t.Helper()
	d := &device{t: t, bus: fixture.StandInLogind(t, 0), args: args, number: devices.Add(1)}
	var err error
	// the name of a test may be too long for a socket
	if d.dir, err = os.MkdirTemp("", "faceauth-device"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(d.dir) })
	d.client = socket.Client(filepath.Join(d.dir, "socket"))
	d.bus.Place("getty@tty7.service")
	// stands in for pam_unix: the password arrives with a zero byte after it
	check := filepath.Join(d.dir, "check")
	fixture.Check(t, os.WriteFile(check, []byte("#!/bin/sh\n[ \"$(tr -d '\\000')\" = secret ]\n"),
		0o755))
	listed, so := "", module(t, d.dir)
	for name, options := range map[string]string{"login": "", "face": "noprompt",
		"turned": "noprompt"} {
		stack := fmt.Sprintf("auth [success=3 default=ignore] %s %s\n"+
			"auth [success=1 default=ignore] pam_exec.so quiet expose_authtok %s\n"+
			"auth requisite pam_deny.so\n"+
			"auth optional %s password placed\n"+
			"auth required pam_permit.so\n", so, options, check, so)
		// pamtester knows no other folder. Only these tests use services of these names.
		path := filepath.Join("/etc/pam.d", d.service(name))
		fixture.Check(t, os.WriteFile(path, []byte(stack), 0o644))
		t.Cleanup(func() { os.Remove(path) })
		listed += "greeter " + d.service(name)
		if name == "turned" {
			listed += " turn"
		}
		listed += "\n"
	}
	for name, text := range map[string]string{"services": listed,
		"key": "32 bytes that are no secret here"} {
		fixture.Check(t, os.WriteFile(filepath.Join(d.dir, name), []byte(text), 0o644))
	}
	t.Cleanup(func() {
		if t.Failed() && d.log != nil {
			t.Logf("the daemon said:\n%s", d.log)
		}
	})
	return d
}

// service returns the name that a PAM service of this device has on the machine that runs the test.
func (d *device) service(name string) string {
	return fmt.Sprintf("faceauth-test-%d-%d-%s", os.Getpid(), d.number, name)
}

// camera makes the camera play a recording from now on.
func (d *device) camera(recording string) {
	d.t.Helper()
	path := filepath.Join(d.dir, "camera")
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		d.t.Fatal(err)
	}
	fixture.Check(d.t, os.Symlink(recording, path))
}

// start starts the daemon and waits until it is ready. Its camera does not wait, and other tests
// run beside it, so the daemon gets a higher priority if that is allowed. If it is not, nice says
// so, and starts the daemon all the same.
func (d *device) start() {
	d.t.Helper()
	d.log = new(fixture.Log)
	c := exec.Command("nice", append([]string{
		"-n", "-10", "faceauth", "daemon", "--source", filepath.Join(d.dir, "camera"), "--socket",
		string(d.client), "--store",
		filepath.Join(d.dir, "state", "profiles"),
		"--key-file", filepath.Join(d.dir, "key"), "--models", fixture.Models(d.t),
	}, d.args...)...)
	c.Env = append(os.Environ(), "DBUS_SYSTEM_BUS_ADDRESS="+d.bus.Address, "TMPDIR="+d.dir,
		d.eye)
	c.Stderr = d.log
	fixture.Check(d.t, c.Start())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.Wait()
	}()
	d.daemon, d.ended = c, ended
	d.t.Cleanup(func() {
		c.Process.Kill()
		<-ended
	})
	d.until(func() bool {
		select {
		case <-ended:
			d.t.Fatalf("the daemon does not start: %s", d.log)
		default:
		}
		return strings.Contains(d.log.String(), "msg=ready")
	})
}

// stop ends the daemon.
func (d *device) stop(sig os.Signal) {
	d.t.Helper()
	fixture.Check(d.t, d.daemon.Process.Signal(sig))
	<-d.ended
}

// posing returns a film of ten minutes of somebody who is made up.
func posing(t testing.TB, who string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), who)
	fixture.Check(t, tape.Posing(who, 10*60*15).Write(path))
	return path
}

// until waits for a condition, for five minutes at most.
func (d *device) until(happened func() bool) {
	d.t.Helper()
	for end := time.Now().Add(5 * time.Minute); !happened(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			d.t.Fatal("it does not happen")
		}
	}
}

// said waits until a text is in the log for the n-th time since the daemon started.
func (d *device) said(n int, what string) {
	d.t.Helper()
	d.until(func() bool { return strings.Count(d.log.String(), what) >= n })
}

// ask runs faceauth login.
func (d *device) ask(args ...string) (out string, code int) {
	d.t.Helper()
	return d.command("", "faceauth",
		append([]string{"login", "--socket", string(d.client)}, args...)...)
}

// refusal returns why a login of nobody may not begin, "" if it may, and "no answer" if the daemon
// does not answer. Tests ask often: one process for each question, or questions without a pause,
// would take the processor from the daemon.
func (d *device) refusal() string {
	d.t.Helper()
	time.Sleep(50 * time.Millisecond)
	ctx, cancel := context.WithTimeout(d.t.Context(), 10*time.Second)
	defer cancel()
	s, err := d.client.Status(ctx, "nobody")
	if err != nil {
		return "no answer"
	}
	return string(s.Refusal)
}

// failures returns the number of looks that count as failures.
func (d *device) failures() int {
	d.t.Helper()
	out, _ := d.ask("history", "--user", "nobody")
	return strings.Count(out, "  no match") + strings.Count(out, "  too few pictures")
}

// mayLogIn waits until a login of nobody may begin.
func (d *device) mayLogIn() {
	d.t.Helper()
	d.until(func() bool { return d.refusal() == "" })
}

// login logs nobody in through PAM, answers prompts with lines, and reports whether that succeeded.
func (d *device) login(service, lines string, options ...string) bool {
	d.t.Helper()
	out, code := d.command(lines, "pamtester",
		append([]string{"-I", "tty=tty7"},
			append(slices.Clone(options), d.service(service), "nobody", "authenticate")...)...)
	if !strings.Contains(out, "pamtester: ") {
		d.t.Fatalf("pamtester said: %s", out)
	}
	return code == 0
}

// command runs a command, which has less than a minute.
func (d *device) command(stdin, name string, args ...string) (out string, code int) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, name, args...)
	c.Stdin = strings.NewReader(stdin)
	b, err := c.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		d.t.Fatalf("%s %q hangs: %s", name, args, b)
	case errors.As(err, &exit):
		return string(b), exit.ExitCode()
	case err != nil:
		d.t.Fatalf("%s: %v", name, err)
	}
	return string(b), 0
}

// enrol enrols nobody from a recording. A busy machine misses many frames, so a folder is played
// four times.
func (d *device) enrol(recording string) {
	d.t.Helper()
	frames, err := os.ReadDir(recording)
	if err != nil { // a video
		d.camera(recording)
		d.enrolSeen()
		return
	}
	often := d.t.TempDir()
	for i, f := range slices.Repeat(frames, 4) {
		link := filepath.Join(often, fmt.Sprintf("%05d%s", i, filepath.Ext(f.Name())))
		fixture.Check(d.t, os.Symlink(filepath.Join(recording, f.Name()), link))
	}
	d.camera(often)
	d.enrolSeen()
	d.camera(recording)
}

// enrolSeen enrols nobody with the present camera. On a busy machine a recording may end too early:
// then it tries again.
func (d *device) enrolSeen() {
	d.t.Helper()
	for try := 1; ; try++ {
		out, code := d.ask("enroll", "--user", "nobody")
		if code == 0 {
			return
		}
		if ended := strings.Count(d.log.String(),
			"the camera sends no more pictures"); ended < try || try == 10 {
			d.t.Fatalf("enrolling: %s", out)
		}
	}
}

// Tests the PAM module with the real daemon, whose camera plays recordings, in all situations of a
// login.
func TestSystemLogin(t *testing.T) {
	t.Parallel()
	user, stranger := posing(t, "user"), posing(t, "stranger")
	noFace := filepath.Join(t.TempDir(), "nothing")
	d := newDevice(t, "--deadline", "2500ms")

	const enter, right, wrong = "\n", "secret\n", "guess\n"
	try := func(what, service, lines string, want bool, options ...string) {
		t.Helper()
		if got := d.login(service, lines, options...); got != want {
			t.Errorf("%s: %t, want %t", what, got, want)
		}
	}
	// Without a daemon only the password works.
	d.camera(user)
	try("no daemon, password", "login", right, true)
	try("no daemon, wrong password", "login", wrong, false)
	try("no daemon, face", "face", enter, false)

	d.start()
	try("no profile, password", "login", right, true)
	try("no profile, face", "face", enter, false)

	d.enrol(user)
	try("the face, at once after the enrolment", "face", enter, true)
	before, _ := d.ask("history", "--user", "nobody")
	try("the password", "login", right, true)
	d.said(1, `msg="password used" user=nobody`)
	if after, _ := d.ask("history", "--user", "nobody"); strings.Count(after,
		"\n") != strings.Count(before, "\n")+1 {
		t.Errorf("a typed password is more than one line in the history:\n%s", after)
	}
	try("the password", "login", right, true)
	d.said(2, `msg="password used" user=nobody`)
	try("the face, with a prompt", "login", enter, true)
	try("the face, without one", "face", "", true)
	d.said(3, "msg=verify user=nobody uid=0 result=match")
	if out, _ := d.ask("history", "--user", "nobody"); !strings.Contains(out, "  password\n") ||
		!strings.HasSuffix(out, "  match, service "+d.service("face")+", from tty7\n") {
		t.Errorf("the history: %s", out)
	}
	if n := strings.Count(d.log.String(), "password used"); n != 2 {
		t.Errorf("the face counted as a password: %d", n)
	}
	// A service can have a challenge of its own.
	if out, _ := d.command("", "pamtester", "-I", "tty=tty7", d.service("turned"), "nobody",
		"authenticate"); !strings.Contains(out, "Turn your head a little to your") {
		t.Errorf("a service with a challenge: %s", out)
	}
	d.said(4, "msg=verify ")
	try("the password", "login", right, true)
	try("a remote session", "face", enter, false, "-I", "rhost=far.example")
	try("a terminal from elsewhere", "face", enter, false, "-I", "tty=pts/3")
	try("a serial line", "face", enter, false, "-I", "tty=ttyS0")
	try("a display of another machine", "face", enter, false, "-I", "tty=far.example:0")
	if n := strings.Count(d.log.String(), "msg=verify "); n != 4 {
		t.Errorf("the camera looked for a remote session: %d", n)
	}

	// The password wins, both while the camera sees a stranger and while the camera does not
	// answer.
	d.camera(stranger)
	try("a stranger", "login", enter+wrong, false)
	d.until(func() bool { return d.failures() > 0 })
	try("a stranger with a password", "login", right, true)
	d.said(4, `msg="password used"`)
	d.camera(noFace)
	try("no camera, face", "face", enter, false)
	try("no camera, password", "login", right, true)

	// The limits are the same after a restart.
	d.camera(stranger)
	fails := func(more int) { // on a busy machine a look may judge no picture, which is no failure
		t.Helper()
		for all := d.failures() + more; d.failures() < all; {
			d.mayLogIn()
			looks := strings.Count(d.log.String(), "msg=verify user")
			try("a stranger", "face", enter, false)
			d.said(looks+1, "msg=verify user")
		}
	}
	fails(1)
	d.stop(syscall.SIGKILL)
	d.start()
	fails(4)
	d.camera(user)
	if s, _ := d.ask("status", "--user", "nobody", "--json"); !strings.Contains(s,
		`"refusal":"too many failures"`) {
		t.Errorf("after five failures, one before a restart: %s", s)
	}
	try("too many failures", "face", enter, false)
	try("the password", "login", right, true)
	try("the face again", "face", enter, true)

	for _, secret := range []string{"secret", "guess"} {
		if strings.Contains(d.log.String(), secret) {
			t.Errorf("the log holds a password")
		}
	}

	// With a threshold that no face reaches, the user is taken for a picture.
	d.stop(syscall.SIGTERM)
	d.args = append(d.args, "--min-liveness", "1")
	d.start()
	for !strings.Contains(d.log.String(), "result=taken-for-picture") { // or there were too few
		d.mayLogIn()
		try("the user, taken for a picture", "face", enter, false)
		try("the password", "login", right, true)
	}
}

// If the first camera cannot be opened, the next one looks.
func TestSystemSecondCamera(t *testing.T) {
	t.Parallel()
	d := newDevice(t, "--source", posing(t, "user"))
	d.camera(filepath.Join(d.dir, "unplugged"))
	d.start()
	d.enrolSeen()
	d.said(1, "trying the next camera")
}
