// SPDX-License-Identifier: Apache-2.0

package socket_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/socket"
	"github.com/faceauth/faceauth/internal/stage"
	"github.com/faceauth/faceauth/tablet"
	"github.com/faceauth/faceauth/tablet/profile"
)

// System users that exist on every Debian, and that no person uses.
const (
	nobody = 65534
	games  = 5
)

// house is the service with a camera, and with stand-ins for logind and systemd.
type house struct {
	t    *testing.T
	path string
	// notifiers is the folder of their sockets.
	notifiers string
	logind    *fixture.Logind
	camera    stage.Camera
	a         *tablet.Authenticator
	log       *fixture.Log
	ended     chan error // receives the result of Serve
	stop      func() error
}

func newHouse(t *testing.T, o tablet.Options, served socket.Options) *house {
	t.Helper()
	fixture.OnlyRoot(t, "only root can be several users")
	// the name of a test may be too long for a socket
	dir := fixture.Must(os.MkdirTemp("", "faceauth-socket"))(t)
	t.Cleanup(func() { os.RemoveAll(dir) })
	fixture.Check(t, os.Chmod(dir, 0o755))
	served.Notifiers = filepath.Join(dir, "notifiers")
	fixture.Check(t, os.Mkdir(served.Notifiers, 0o755))
	fixture.Check(t, os.Chmod(served.Notifiers, 0o777))
	h := &house{t: t, path: filepath.Join(dir, "s"), notifiers: served.Notifiers,
		log: new(fixture.Log), ended: make(chan error, 1)}
	h.logind = fixture.StandInLogind(t, nobody)
	store, err := profile.Open(filepath.Join(dir, "profiles"), profile.NewKey([32]byte{}),
		stage.Space)
	fixture.Check(t, err)
	if o.Policy.Deadline == 0 {
		o.Policy.Deadline = 2 * time.Second
	}
	o.Log = slog.New(slog.NewTextHandler(h.log, nil))
	served.Log, served.Bus = o.Log, h.logind.Address
	if served.Broken == nil {
		if h.a, err = tablet.New(store, stage.Space, h.camera.Open, o); err != nil {
			t.Fatal(err)
		}
	}
	l := fixture.Must(socket.Listen(h.path))(t)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { h.ended <- socket.Serve(ctx, l, h.a, served) }()
	h.stop = sync.OnceValue(func() error { cancel(); return <-h.ended })
	t.Cleanup(func() {
		if err := h.stop(); err != nil {
			t.Error(err)
		}
		store.Close()
		if now, most := h.camera.Uses(); now != 0 || most > 1 {
			t.Errorf("%d cameras left open, %d at once", now, most)
		}
	})
	return h
}

// as runs a function in a thread of another user: the kernel tells the service who connects.
func (h *house) as(uid int, f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		// the thread ends with this goroutine, and nobody else becomes that user
		runtime.LockOSThread()
		if _, _, e := syscall.RawSyscall(syscall.SYS_SETRESUID, ^uintptr(0), uintptr(uid),
			^uintptr(0)); e != 0 {
			panic(e)
		}
		f()
	}()
	<-done
}

// client is a connection of a user.
type client struct {
	t     *testing.T
	conn  net.Conn
	lines *bufio.Scanner
}

// send connects as a user and sends lines.
func (h *house) send(uid int, text string) *client {
	h.t.Helper()
	c, path := &client{t: h.t}, h.path
	if uid == 0 {
		path += socket.ForRoot
	}
	h.as(uid, func() {
		err := error(syscall.EAGAIN)
		for end := time.Now().Add(2 * time.Minute); errors.Is(err, syscall.EAGAIN) &&
			time.Now().Before(end); {
			c.conn, err = net.Dial("unix", path) // in a flood the socket of users is full
			time.Sleep(time.Millisecond)
		}
		if err != nil {
			h.t.Error(err)
		}
	})
	if c.conn == nil {
		h.t.FailNow()
	}
	h.t.Cleanup(func() { c.conn.Close() })
	c.lines = bufio.NewScanner(c.conn)
	c.write(text)
	return c
}

func (c *client) write(text string) {
	if _, err := c.conn.Write([]byte(text)); err != nil {
		c.t.Logf("sending %.40q: %v", text, err) // refused before it could read
	}
}

// looking waits until the camera looks for this client.
func (c *client) looking() {
	c.t.Helper()
	c.conn.SetReadDeadline(time.Now().Add(2 * time.Minute))
	if !c.lines.Scan() || c.lines.Text() != "say looking" {
		c.t.Fatalf("it does not look: %s, %v", c.lines.Text(), c.lines.Err())
	}
}

// last returns the last answer: the result, or the name of a refusal.
func (c *client) last() string {
	c.t.Helper()
	c.conn.SetReadDeadline(time.Now().Add(2 * time.Minute))
	for c.lines.Scan() {
		f := strings.Fields(c.lines.Text())
		if len(f) > 1 && f[0] != "say" {
			return f[1]
		}
	}
	if err := c.lines.Err(); errors.Is(err, os.ErrDeadlineExceeded) {
		c.t.Error("it does not answer")
	}
	return "gone"
}

// ask sends a request as a user, and returns the last answer.
func (h *house) ask(uid int, fields ...string) string {
	h.t.Helper()
	c := h.send(uid, strings.Join(fields, "\t")+"\nask\n")
	defer c.conn.Close()
	return c.last()
}

// pam returns the request of a module of root.
func pam(user string, asker int, challenge string) string {
	return fmt.Sprintf("verify\t%s\t%d\tlogin\t%s\t\t\t\nask\n", user, asker, challenge)
}

// seen waits until the camera is open.
func (h *house) seen(open bool) {
	h.t.Helper()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(time.Millisecond) {
		if now, _ := h.camera.Uses(); now > 0 == open {
			return
		}
		if time.Now().After(end) {
			h.t.Fatalf("the camera is not open: %t", open)
		}
	}
}

// shown waits until the camera has shown n frames in all.
func (h *house) shown(n int) {
	h.t.Helper()
	for end := time.Now().Add(2 * time.Minute); h.camera.Told() < n; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			h.t.Fatalf("the camera has shown %d frames of %d", h.camera.Told(), n)
		}
	}
}

// enrol enrols a user as root, and reports that the user gave the password.
func (h *house) enrol(user string, who []float32) {
	h.t.Helper()
	h.camera.Play(stage.Show{Frames: stage.Enrolling(who)})
	c := socket.Client(h.path)
	if word, err := c.Enroll(h.t.Context(), user, "", false, func(string) {}); err != nil ||
		word != "enrolled" {
		h.t.Fatalf("%q, %v\n%s", word, err, h.log)
	}
	if got := h.ask(0, "password", user, "0", "", ""); got != "true" {
		h.t.Fatal(got)
	}
}

// name returns the name of a refusal.
func name(err error) string {
	var e *socket.Error
	if errors.As(err, &e) {
		return e.Name
	}
	return fmt.Sprint(err)
}

// The results of verifications, and what the log says of them.
func TestVerify(t *testing.T) {
	h := newHouse(t, tablet.Options{}, socket.Options{})
	h.enrol("nobody", stage.Alice)
	for _, c := range []struct {
		name string
		show stage.Show
		want string
	}{
		{"the user", stage.Show{Frames: stage.Seen(stage.Alice, 9)}, "match"},
		{"nobody", stage.Show{}, "no-face"},
		{"a fault", stage.Show{Fail: os.ErrNotExist}, "no-camera"},
		{"somebody else", stage.Show{Frames: stage.Seen(stage.Bob, 9)}, "no-match"},
		{"too soon", stage.Show{}, "TooSoon"},
	} {
		h.camera.Play(c.show)
		if got := h.ask(nobody, "verify", "", "", "", "", "", "", ""); got != c.want {
			t.Errorf("%s: %q", c.name, got)
		}
	}
	log := h.log.String()
	for _, want := range []string{"msg=verify user=nobody uid=65534 result=match",
		`result=no-match`,
		"msg=enroll user=nobody uid=0 result=enrolled", `msg="password used" user=nobody`} {
		if !strings.Contains(log, want) {
			t.Errorf("the log has no %q:\n%s", want, log)
		}
	}
	for _, secret := range []string{"confidence", "distance", "vector"} {
		if strings.Contains(log, secret) {
			t.Errorf("the log speaks of a %s:\n%s", secret, log)
		}
	}
	// The client of the program.
	c := socket.Client(h.path)
	s, err := c.Status(t.Context(), "nobody")
	if err != nil || s.Labelled != 4 || s.Refusal != tablet.Wait || s.Wait == 0 ||
		time.Since(s.Enrolled) > time.Minute {
		t.Errorf("status %+v, %v", s, err)
	}
	events, err := c.History(t.Context(), "nobody")
	if n := len(events); err != nil || n == 0 || events[n-1].Result != string(tablet.NoMatch) {
		t.Errorf("history %+v, %v", events, err)
	}
	if n, err := c.Undo(t.Context(), "nobody", time.Now()); err != nil || n != 0 {
		t.Errorf("undo %d, %v", n, err)
	}
	_, err = c.Verify(t.Context(), "nobody", func(string) {})
	var e *socket.Error
	if !errors.As(err, &e) || e.Name != "TooSoon" || e.Wait == 0 ||
		!strings.Contains(e.Error(), "use your password") {
		t.Errorf("refused: %+v", err)
	}
}

// Who may ask for what, of whom. What another user asked is in the log, at most once a minute.
func TestCallers(t *testing.T) {
	const denied = "PermissionDenied"
	begin := time.Now()
	h := newHouse(t, tablet.Options{Policy: tablet.Policy{Deadline: time.Second / 2}},
		socket.Options{})
	for _, c := range []struct {
		request           string
		root, self, other string
	}{
		{"verify\tnobody\t\t\t\t\t\t", "match", "match", denied},
		{pam("nobody", nobody, ""), "match", "match", denied},
		{"verify\tnobody\t\t\twink\t\t\t", "Internal", "Internal", denied},
		{"verify\tnobody\t\t\t\tmark\t\t", "give-password", "match", denied},
		{"enroll\tnobody\t\t", "enrolled", denied, denied},
		{"enroll\tnobody\t\ttrue", "enrolled", denied, denied},
		{"enroll\troot\t\t", denied, denied, denied},
		{"status\tnobody", "{", "{", denied},
		{"history\tnobody", "[", "[", denied},
		{"undo\tnobody\t0", "0", "0", denied},
		{"password\tnobody\t0\t\t", "true", denied, denied},
		{"forget\tnobody", "true", "true", denied},
	} {
		for who, want := range map[int]string{0: c.root, nobody: c.self, games: c.other} {
			h.a.Forget("nobody") // with the mark
			h.enrol("nobody", stage.Alice)
			h.camera.Play(stage.Show{Frames: append(stage.Seen(stage.Alice, 4),
				stage.Enrolling(stage.Alice)...)})
			got := h.ask(who, strings.TrimSuffix(c.request, "\nask\n"))
			if got != want && !(len(want) == 1 && strings.HasPrefix(got, want)) {
				t.Errorf("%q by %d: %q, want %q", c.request, who, got, want)
			}
		}
	}
	told := strings.Count(h.log.String(), fmt.Sprintf("msg=refused uid=%d ", games))
	if most := 1 + int(time.Since(begin)/time.Minute); told < 1 || told > most {
		t.Errorf("the log tells %d times of what user %d asked, want 1 to %d", told, games, most)
	}
}

// What is no request is refused, or not answered, and nothing fails by it.
func TestMalformed(t *testing.T) {
	h := newHouse(t, tablet.Options{}, socket.Options{})
	for request, want := range map[string]string{
		"\n": "Internal", "verify\n": "Internal", "open\t\n": "Internal",
		"status\ta\tb\n":     "Internal",
		"status\t\xff\x00\n": "InvalidUser", "status\tno such user\n": "NoProfile",
		"status\t../root\n":          "NoProfile",
		"enroll\tno such user\t\t\n": "InvalidUser", "undo\tnobody\tx\n": "Internal",
		"password\tnobody\t-1\t\t\n":                   "Internal",
		"verify\tnobody\tx\t\t\t\t\t\n":                "Internal",
		"status\t" + strings.Repeat("x", 3000) + "\n":  "InvalidUser",
		"status\t" + strings.Repeat("x", 1<<16) + "\n": "gone",
	} {
		if got := h.send(0, request).last(); got != want {
			t.Errorf("%.40q: %q, want %q", request, got, want)
		}
	}
	c := h.send(0, "status\tnobody") // without an end
	c.conn.(*net.UnixConn).CloseWrite()
	if got := c.last(); got != "gone" {
		t.Errorf("half a line: %q", got)
	}
}

// With several clients at once, the newest has the camera. But a user's own login never loses the
// camera to another user who wants to become that user, nor to a program that is not a login.
func TestClaims(t *testing.T) {
	h := newHouse(t, tablet.Options{Policy: tablet.Policy{Deadline: 20 * time.Second}},
		socket.Options{})
	h.enrol("nobody", stage.Alice)
	h.enrol("games", stage.Bob)
	type start struct {
		uid  int
		line string
	}
	const program = "verify\t\t\t\t\t\t\t\nask\n"
	own, greeter := start{0, pam("nobody", nobody, "")}, start{0, pam("games", 0, "")}
	other := start{0, pam("nobody", games, "")}
	for _, c := range []struct {
		name         string
		first, newer start
		taken        bool
	}{
		{"two programs", start{nobody, program}, start{games, program}, true},
		{"a login, and a program", own, start{games, program}, false},
		{"a program, and a login", start{games, program}, own, true},
		{"two logins", greeter, own, true},
		{"two logins, the other way", own, greeter, true},
		{"a login, and somebody else's su", own, other, false},
		{"somebody else's su, and a login", other, own, true},
		{"somebody else's su, and a program", other, start{games, program}, true},
		{"a program, and somebody else's su", start{nobody, program}, other, false},
		{"two of somebody else's su", other, other, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			h.t = t
			h.camera.Play(stage.Show{Pace: time.Millisecond})
			first := h.send(c.first.uid, c.first.line)
			first.looking()
			newer := h.send(c.newer.uid, c.newer.line)
			losing, want := first, "interrupted"
			if !c.taken {
				losing, want = newer, "AlreadyInUse"
			}
			if got := losing.last(); got != want {
				t.Errorf("%q, want %s", got, want)
			}
			first.conn.Close()
			newer.conn.Close()
			h.seen(false)
		})
	}
	h.t = t
}

// A user who fails to log in as another user loses their own attempts, and not the attempts of the
// other user.
func TestForeignFailures(t *testing.T) {
	h := newHouse(t, tablet.Options{Policy: tablet.Policy{Failures: 2, Delay: time.Millisecond,
		Deadline: time.Second}},
		socket.Options{})
	h.enrol("nobody", stage.Alice)
	try := func(who string, asker int, want string) {
		t.Helper()
		time.Sleep(5 * time.Millisecond) // the delay between attempts
		if got := h.ask(0, strings.TrimSuffix(pam("nobody", asker, ""), "\nask\n")); got != want {
			t.Errorf("%s: %q, want %q", who, got, want)
		}
	}
	h.camera.Play(stage.Show{Frames: stage.Seen(stage.Bob, 9)})
	try("somebody else", games, "no-match")
	try("somebody else", games, "no-match")
	try("somebody else", games, "PasswordNeeded")
	try("a third", 13, "no-match")
	h.camera.Play(stage.Show{Frames: stage.Seen(stage.Alice, 9)})
	try("the user", nobody, "match")
	try("at a greeter", 0, "match")
	try("somebody else, after the user's match", games, "PasswordNeeded")
	h.ask(0, "password", "nobody", "0", "", "")
	try("somebody else, after the user's password", games, "PasswordNeeded")
	h.ask(0, "password", "nobody", fmt.Sprint(games), "", "")
	try("somebody else who knew the password", games, "match")
}

// A service without a store says at once why nobody is recognised.
func TestBroken(t *testing.T) {
	h := newHouse(t, tablet.Options{}, socket.Options{Broken: profile.ErrDamaged})
	_, err := socket.Client(h.path).Status(t.Context(), "")
	if name(err) != "Internal" || !strings.HasSuffix(err.Error(),
		"the store cannot be used: damaged store") {
		t.Errorf("%v", err)
	}
}

// When a client is gone, the camera is released, and the next one does not wait for it.
func TestClientGone(t *testing.T) {
	h := newHouse(t, tablet.Options{Policy: tablet.Policy{Deadline: time.Minute}}, socket.Options{})
	h.enrol("nobody", stage.Alice)
	h.camera.Play(stage.Show{Pace: time.Millisecond})
	for range 20 {
		c := h.send(0, "verify\tnobody\t\t\t\t\t\t\nask\n")
		c.looking()
		c.conn.Close()
	}
	h.seen(false)
}

// A user has a few connections at once. Others are answered meanwhile, and the user again when one
// has ended.
func TestQuota(t *testing.T) {
	h := newHouse(t, tablet.Options{}, socket.Options{})
	status := func(uid int) bool { return h.ask(uid, "status", "") != "TooManyRequests" }
	var open []net.Conn
	h.as(nobody, func() {
		for range 8 {
			conn, err := net.Dial("unix", h.path)
			if err != nil {
				t.Error(err)
				return
			}
			t.Cleanup(func() { conn.Close() })
			open = append(open, conn)
		}
	})
	if status(nobody) || !status(games) || !status(0) {
		t.Error("nine connections of a user, or one of another user, are not told apart")
	}
	open[0].Close()
	for end := time.Now().Add(time.Minute); !status(nobody); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("a connection that has ended counts")
		}
	}
}

// When the service ends, it ends everything that it started, and the client notices at once. So it
// does when the service is gone.
func TestStop(t *testing.T) {
	h := newHouse(t, tablet.Options{Policy: tablet.Policy{Deadline: time.Minute}}, socket.Options{})
	h.enrol("nobody", stage.Alice)
	h.camera.Play(stage.Show{Pace: time.Millisecond})
	c := socket.Client(h.path)
	ended := make(chan string, 1)
	go func() {
		word, err := c.Verify(t.Context(), "nobody", func(string) {})
		ended <- fmt.Sprint(word, err)
	}()
	h.seen(true)
	if err := h.stop(); err != nil {
		t.Error(err)
	}
	// unasked, if the service ended before it read that somebody asks
	if w := <-ended; w != "error<nil>" && w != "unasked<nil>" {
		t.Errorf("%q", w)
	}
	if _, err := c.Status(t.Context(), "nobody"); !errors.Is(err, socket.ErrNoService) {
		t.Errorf("no service: %v", err)
	}
	l := fixture.Must(socket.Listen(h.path))(t) // one that dies
	for _, l := range l {
		defer l.Close()
		go func() {
			if conn, err := l.Accept(); err == nil {
				bufio.NewReader(conn).ReadString('\n')
				conn.Close()
			}
		}()
	}
	if _, err := c.Status(t.Context(), "nobody"); !errors.Is(err, socket.ErrNoService) ||
		!strings.Contains(err.Error(), "try again") {
		t.Errorf("a service that dies: %v", err)
	}
}

// A service without requests ends after a while, and not while it is in use.
func TestIdle(t *testing.T) {
	var h *house
	for idle, slow := 400*time.Millisecond, true; slow; idle *= 4 {
		last := time.Now()
		h = newHouse(t, tablet.Options{}, socket.Options{Idle: idle})
		slow = false
		for range 4 {
			time.Sleep(idle / 2)
			_, err := socket.Client(h.path).Status(t.Context(), "nobody")
			slow = name(err) != "NoProfile" && time.Since(last) > idle && idle < time.Minute
			if slow { // this machine is too busy to ask as often
				break
			}
			if name(err) != "NoProfile" {
				t.Fatalf("while it is asked: %v", err)
			}
			last = time.Now()
		}
	}
	select {
	case err := <-h.ended:
		if err != nil {
			t.Error(err)
		}
		h.ended <- nil // the end of the test waits for this
	case <-time.After(time.Minute):
		t.Error("it goes on")
	}
}

// Before somebody asks, nothing is told of what was seen; then a match of just now is told at once.
// It is void when the person is no longer at the device, and when the faces were forgotten.
func TestPrepared(t *testing.T) {
	for _, c := range []struct {
		name string
		then func(h *house)
		want string
	}{
		{"asked", func(*house) {}, "match"},
		{"another session is used now", func(h *house) {
			x := fixture.AtSeat(nobody)
			x.Active = false
			h.logind.Place("", x)
		}, "error"},
		{"the faces were forgotten", func(h *house) { h.ask(0, "forget", "nobody") },
			"interrupted"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHouse(t, tablet.Options{}, socket.Options{})
			h.enrol("nobody", stage.Alice)
			h.camera.Play(stage.Show{Frames: stage.Seen(stage.Alice, 5000),
				Pace: 20 * time.Millisecond})
			before := h.camera.Told()
			client := h.send(0, strings.TrimSuffix(pam("nobody", nobody, ""), "ask\n"))
			client.looking()
			h.shown(before + 20) // enough for a match
			client.conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
			b := make([]byte, 999)
			n, err := client.conn.Read(b)
			if !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("told before somebody asked: %q (%v)", b[:n], err)
			}
			c.then(h)
			client.write("ask\nask\n")
			if got := client.last(); got != c.want {
				t.Errorf("%q, want %s", got, c.want)
			}
		})
	}
}
